/** `wavetile run`: its arguments; the work is in actions/run.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const run = command({
  name: "run",
  summary: "run a model on .npy files or random inputs",
  args: z.strictObject({
    model: shared.model,
    input: shared.input,
    random: argument(z.boolean().default(false), {
      description: "draw the inputs that are not given",
    }),
    outputDir: argument(z.string().optional(), {
      description: "write each output to NAME.npy there",
      value: "DIR",
    }),
    profile: argument(z.boolean().default(false), { description: "time every kernel" }),
    trace: argument(z.string().optional(), {
      description: "write the times as a Chrome trace",
      value: "FILE.json",
    }),
    target: shared.target,
    shape: shared.shape,
    rewrite: shared.rewrite,
    allow: shared.allow,
    rules: shared.rules,
    state: shared.state,
    value: shared.value,
    threads: shared.threads,
    seed: shared.seed,
  }),
  load: async () => (await import("./actions/run.ts")).runModel,
});
