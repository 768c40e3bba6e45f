/** What H100 and H200 share: the GH100 die on an SXM5 board, its rates and links. Memory and L2 differ. */
import { sm90a } from "../architectures/hopper-blackwell.ts";
import { perDevice, perLink } from "../figure.ts";
import type { GpuMachine } from "../machine.ts";
import { pcie } from "./links.ts";

/**
 * The data sheets of both boards round the same rates and count sparsity: FP64 34, FP32 67, TF32 989,
 * BF16 1,979, FP8 3,958.
 */
const whitePaper =
  "NVIDIA H100 Tensor Core GPU Architecture white paper V1.04, comparison of A100 and H100, column H100 SXM5, dense";

export const gh100: Omit<
  GpuMachine,
  "driverNames" | "memoryKind" | "memoryBytes" | "memoryBytesPerNs" | "l2Bytes"
> = {
  kind: "gpu",
  vendor: "NVIDIA",
  architecture: sm90a,
  multiprocessors: perDevice(132, whitePaper),
  boostMhz: perDevice(
    1980,
    "nvidia-smi -q -d CLOCK, maximum SM clock of an H200 (awslabs/amazon-eks-ami#1985; driver attributes in detect/fixtures/h200-host.json)",
    "measured",
  ),
  unifiedMemory: false,
  vectorTeraops: {
    f32: perDevice(66.9, whitePaper),
    f64: perDevice(33.5, whitePaper),
    f16: perDevice(133.8, whitePaper),
    bf16: perDevice(133.8, whitePaper),
  },
  matrixTeraops: {
    f64: perDevice(66.9, whitePaper),
    tf32: perDevice(494.7, whitePaper),
    bf16: perDevice(989.4, whitePaper),
    f16: perDevice(989.4, whitePaper),
    fp8: perDevice(1978.9, whitePaper),
    int8: perDevice(1978.9, whitePaper),
  },
  links: [
    {
      kind: "nvlink",
      generation: "4",
      bytesPerNsEachWay: perDevice(
        450,
        `${whitePaper}: NVLink 900 GB/s, both ways together, halved`,
      ),
      joins: perLink(8, "NVIDIA HGX H100 and H200: 8 GPUs through NVSwitch"),
    },
    pcie("5.0", 16),
  ],
};

export const h100WhitePaper = whitePaper;
