/** `wavetile detect`: its arguments; the work is in actions/detect.ts. */
import { z } from "zod";
import { argument, command } from "./command.ts";

export const detect = command({
  name: "detect",
  summary: "the processors, memory and GPUs of this machine, and how many threads to use",
  args: z.strictObject({
    capture: argument(z.string().optional(), {
      description: "also write what was read from this machine: for a fixture, or a bug report",
      value: "FILE",
    }),
    replay: argument(z.string().optional(), {
      description: "detect from such a file instead of this machine",
      value: "FILE",
    }),
  }),
  load: async () => (await import("./actions/detect.ts")).detectAction,
});
