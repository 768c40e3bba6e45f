/** `wavetile plan quantize`: its arguments; the work is in actions/plan-quantize.ts. */
import { z } from "zod";
import { argument, command } from "../command.ts";
import { planShared } from "./shared.ts";

export const planQuantize = command({
  name: "plan quantize",
  summary: "which weight format fits the devices, and how fast each could be",
  args: z.strictObject({
    model: argument(z.string().optional(), {
      description: "a .safetensors, .gguf or .onnx file, or a model folder; or give --params",
      value: "MODEL",
      positional: true,
    }),
    params: argument(z.string().optional(), {
      description: "number of parameters, where there is no file: 70B, 8.03B, 350M",
      value: "N",
    }),
    original: argument(z.string().default("BF16"), {
      description: "format of the model that --params stands for; nothing above it is recommended",
      value: "FORMAT",
    }),
    device: planShared.device,
    context: planShared.context,
    batch: planShared.batch,
    kvBits: planShared.kvBits,
    prefer: argument(z.enum(["quality", "balanced", "speed"]).default("balanced"), {
      description: "quality, balanced or speed",
      value: "WHAT",
    }),
    split: argument(z.enum(["layers", "tensor"]).default("layers"), {
      description: "over several devices: whole layers on each, or a part of each layer",
      value: "HOW",
    }),
  }),
  load: async () => (await import("../actions/plan-quantize.ts")).planQuantizeAction,
});
