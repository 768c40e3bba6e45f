/** `wavetile detect`: its arguments; the work is in actions/detect.ts. */
import { z } from "zod";
import { command } from "./command.ts";

export const detect = command({
  name: "detect",
  summary: "the processors, memory and GPUs of this machine, and how many threads to use",
  args: z.strictObject({}),
  load: async () => (await import("./actions/detect.ts")).detectAction,
});
