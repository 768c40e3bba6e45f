/** `wavetile optimize`: its arguments; the work is in actions/optimize.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const optimize = command({
  name: "optimize",
  summary: "compile a model into an artifact",
  args: z.strictObject({
    model: shared.model,
    output: argument(z.string().optional(), {
      description: "the artifact to write; default: MODEL with .wt",
      value: "OUT.wt",
      short: "o",
    }),
    target: shared.target,
    shape: shared.shape,
    rewrite: shared.rewrite,
    allow: shared.allow,
    rules: shared.rules,
    state: shared.state,
    value: shared.value,
    calibration: shared.calibration,
    threads: argument(z.coerce.number().int().min(1).max(256).optional(), {
      description: "threads to compile for; the program runs on any number; default: any",
      value: "N",
    }),
    seed: shared.seed,
    budget: argument(z.coerce.number().positive().max(86_400).optional(), {
      description:
        "seconds for measuring the best schedules of each region; default: none is measured",
      value: "SECONDS",
    }),
  }),
  load: async () => (await import("./actions/optimize.ts")).optimizeModel,
});
