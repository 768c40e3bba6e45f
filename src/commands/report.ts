/** `wavetile report`: its arguments; the work is in actions/report.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const report = command({
  name: "report",
  summary: "draw how a model was scheduled: one HTML page with every picture",
  args: z.strictObject({
    model: shared.model,
    output: argument(z.string().default("report.html"), {
      description: "the page to write",
      value: "FILE.html",
      short: "o",
    }),
    svg: argument(z.string().optional(), {
      description: "also write each picture by itself into this folder",
      value: "FOLDER",
    }),
    measure: argument(z.boolean().default(false), {
      description: "run the model on random inputs and compare each region's time with its price",
    }),
    machines: argument(z.string().default("wasm,x64-avx2,x64-avx512"), {
      description: "targets that an ONNX model is also scheduled for, for comparison, or none",
      value: "NAME,NAME",
    }),
    target: shared.target,
    shape: shared.shape,
    state: shared.state,
    value: shared.value,
    calibration: shared.calibration,
    seed: shared.seed,
  }),
  load: async () => (await import("./actions/report.ts")).reportModel,
});
