/** `wavetile plan place`: its arguments; the work is in actions/plan-place.ts. */
import { z } from "zod";
import { argument, command, shared } from "../command.ts";
import { planShared } from "./shared.ts";

export const planPlace = command({
  name: "plan place",
  summary: "which device runs what: the shortest time under the devices' memory",
  args: z.strictObject({
    problem: argument(z.string().optional(), {
      description:
        "an .onnx graph, a .gguf or .safetensors model or its folder, or a .json file of tasks and devices; or give --params",
      value: "FILE",
      positional: true,
    }),
    params: argument(z.string().optional(), {
      description: "a decoder of this size, layer by layer: 70B",
      value: "N",
    }),
    format: argument(z.string().optional(), {
      description: "weight format of the decoder; default: BF16, of a file as it is stored",
      value: "FORMAT",
    }),
    device: planShared.device,
    context: planShared.context,
    batch: planShared.batch,
    kvBits: planShared.kvBits,
    shape: shared.shape,
  }),
  load: async () => (await import("../actions/plan-place.ts")).planPlaceAction,
});
