/** `wavetile plan kernels`: its arguments; the work is in actions/plan-kernels.ts. */
import { z } from "zod";
import { kernelClasses, problemTypes } from "../../plan/kernels/problem.ts";
import { argument, command } from "../command.ts";

const extent = (description: string) =>
  argument(z.coerce.number().optional(), { description, value: "N" });

export const planKernels = command({
  name: "plan kernels",
  summary: "the kernel for a problem on each machine: strategy, launch, predicted time and why",
  args: z.strictObject({
    kind: argument(z.enum(kernelClasses), {
      description: kernelClasses.join(", "),
      value: "CLASS",
      positional: true,
    }),
    rows: extent("rows of the result; tokens, queries or output pixels; default: 1"),
    columns: extent("columns of the result or of a row"),
    depth: extent("extent that is summed; width of a head for attention"),
    batch: extent("equal problems at once: groups, heads x sequences; default: 1"),
    keys: argument(z.coerce.number().optional(), {
      description: "attention: tokens that are attended to",
      value: "N",
    }),
    type: argument(z.enum(problemTypes).default("bf16"), {
      description: problemTypes.join(", "),
      value: "TYPE",
    }),
    weightBits: argument(z.coerce.number().optional(), {
      description: "bits of a stored weight, scales included",
      value: "N",
    }),
    target: argument(z.array(z.string()).default([]), {
      description:
        "a target or a target file; default: all machines with a data sheet (repeatable)",
      value: "NAME",
    }),
  }),
  load: async () => (await import("../actions/plan-kernels.ts")).planKernelsAction,
});
