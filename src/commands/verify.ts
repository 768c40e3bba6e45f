/** `wavetile verify`: its arguments; the work is in actions/verify.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const verify = command({
  name: "verify",
  summary: "compare a model's outputs with a reference, on .npy files or random inputs",
  args: z.strictObject({
    model: shared.model,
    input: shared.input,
    against: argument(z.enum(["oracle", "onnxruntime"]).default("oracle"), {
      description: "oracle (float64 interpreter) or onnxruntime",
      value: "NAME",
    }),
    budget: argument(z.coerce.number().positive().default(60), {
      description: "seconds for the oracle; beyond, smaller shapes or samples of each region",
      value: "SECONDS",
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
  load: async () => (await import("./actions/verify.ts")).verifyModel,
});
