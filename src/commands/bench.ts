/** `wavetile bench`: its arguments; the work is in actions/bench.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const bench = command({
  name: "bench",
  summary: "time a model, interleaved with onnxruntime if asked",
  args: z.strictObject({
    model: shared.model,
    against: argument(z.enum(["onnxruntime"]).optional(), {
      description: "peer to time in turns",
      value: "NAME",
    }),
    runs: argument(z.coerce.number().int().min(1).max(100_000).default(30), {
      description: "timed runs of each",
      value: "N",
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
  load: async () => (await import("./actions/bench.ts")).benchModel,
});
