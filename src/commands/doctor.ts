/** `wavetile doctor`: its arguments; the work is in actions/doctor.ts. */
import { z } from "zod";
import { command } from "./command.ts";

export const doctor = command({
  name: "doctor",
  summary: "what this machine offers and what is missing",
  args: z.strictObject({}),
  load: async () => (await import("./actions/doctor.ts")).doctorAction,
});
