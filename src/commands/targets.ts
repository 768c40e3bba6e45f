/** `wavetile targets`: its arguments; the work is in actions/targets.ts. */
import { z } from "zod";
import { argument, command } from "./command.ts";

export const targetsCommand = command({
  name: "targets",
  summary: "list the targets, or show one",
  args: z.strictObject({
    action: argument(z.enum(["list", "show"]).default("list"), {
      description: "list or show",
      value: "list|show",
      positional: true,
    }),
    name: argument(z.string().optional(), {
      description: "the target to show, or the path of a target file",
      value: "NAME|FILE",
      positional: true,
    }),
  }),
  load: async () => (await import("./actions/targets.ts")).targetsAction,
});
