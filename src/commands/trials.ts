/** `wavetile trials`: its arguments; the work is in actions/trials.ts. */
import { z } from "zod";
import { argument, command } from "./command.ts";

export const trials = command({
  name: "trials",
  summary: "list what was tried, show one key, or merge stores",
  args: z.strictObject({
    action: argument(z.enum(["list", "show", "merge"]).default("list"), {
      description: "list, show KEY, or merge --from FILE",
      value: "list|show|merge",
      positional: true,
    }),
    key: argument(z.string().optional(), {
      description: "the first digits of a trial's key",
      value: "KEY",
      positional: true,
    }),
    from: argument(z.array(z.string()).default([]), {
      description: "a store to merge from (repeatable)",
      value: "FILE",
    }),
    best: argument(z.boolean().default(false), {
      description: "list the best measured trial of each key alone",
    }),
    store: argument(z.string().optional(), {
      description: "the store; default: trials.jsonl in the data folder",
      value: "FILE",
    }),
  }),
  load: async () => (await import("./actions/trials.ts")).trialsAction,
});
