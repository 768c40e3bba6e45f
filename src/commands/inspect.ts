/** `wavetile inspect`: its arguments; the work is in actions/inspect.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const inspect = command({
  name: "inspect",
  summary: "print a model in one of its text forms",
  args: z.strictObject({
    model: shared.model,
    graph: argument(z.boolean().default(false), { description: "the optimized graph (default)" }),
    regions: argument(z.boolean().default(false), {
      description: "regions with work and estimates; of an artifact: kernels",
    }),
    schedule: argument(z.boolean().default(false), { description: "the schedule of every region" }),
    at: argument(z.string().optional(), {
      description:
        "with --schedule: where and when one iteration runs: 'REGION:STATEMENT[i=2, j=7]'",
      value: "POINT",
    }),
    loops: argument(z.boolean().default(false), {
      description: "with --schedule: the loops that the order of each region comes to",
    }),
    use: argument(z.string().optional(), {
      description:
        "with --schedule, --program or --asm: the schedules of a file, proved, in place of the chosen",
      value: "FILE",
    }),
    program: argument(z.boolean().default(false), { description: "the program" }),
    asm: argument(z.boolean().default(false), {
      description: "machine code as assembler text; of a CPU with what its registers cost",
    }),
    target: shared.target,
    shape: shared.shape,
    rewrite: shared.rewrite,
    allow: shared.allow,
    rules: shared.rules,
    state: shared.state,
    value: shared.value,
    calibration: shared.calibration,
  }),
  load: async () => (await import("./actions/inspect.ts")).inspectModel,
});
