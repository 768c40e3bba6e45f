/** What both A100 boards share: the GA100 die, its rates and links. Memory differs. */
import { sm80 } from "../architectures/turing-ampere-ada.ts";
import { perDevice, perLink } from "../figure.ts";
import type { GpuMachine } from "../machine.ts";
import { pcie } from "./links.ts";

const whitePaper =
  "NVIDIA A100 Tensor Core GPU Architecture white paper V1.0, Table 1 (performance) and Table 4 (comparison of data center GPUs), dense";

/** nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-nvidia-us-2188504-web.pdf */
export const a100Datasheet =
  "NVIDIA A100 Tensor Core GPU datasheet 2188504, Specifications, SXM columns";

export const ga100: Omit<
  GpuMachine,
  "driverNames" | "memoryKind" | "memoryBytes" | "memoryBytesPerNs"
> = {
  kind: "gpu",
  vendor: "NVIDIA",
  architecture: sm80,
  multiprocessors: perDevice(108, whitePaper),
  boostMhz: perDevice(1410, whitePaper),
  unifiedMemory: false,
  l2Bytes: perDevice(40 * 2 ** 20, whitePaper),
  vectorTeraops: {
    f32: perDevice(19.5, whitePaper),
    f64: perDevice(9.7, whitePaper),
    f16: perDevice(78, whitePaper),
    bf16: perDevice(39, whitePaper),
  },
  matrixTeraops: {
    f64: perDevice(19.5, whitePaper),
    tf32: perDevice(156, whitePaper),
    bf16: perDevice(312, whitePaper),
    f16: perDevice(312, whitePaper),
    int8: perDevice(624, whitePaper),
    int4: perDevice(1248, whitePaper),
  },
  links: [
    {
      kind: "nvlink",
      generation: "3",
      bytesPerNsEachWay: perDevice(
        300,
        `${a100Datasheet}: NVLink 600 GB/s, both ways together, halved`,
      ),
      joins: perLink(8, "NVIDIA HGX A100: 8 GPUs through NVSwitch"),
    },
    pcie("4.0", 16),
  ],
};
