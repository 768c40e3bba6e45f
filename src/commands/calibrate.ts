/** `wavetile calibrate`: its arguments; the work is in actions/calibrate.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const calibrate = command({
  name: "calibrate",
  summary: "fit the cost model to this machine by measuring samples",
  args: z.strictObject({
    target: shared.target,
    samples: argument(z.coerce.number().int().default(200), {
      description: "schedules to measure, 50 to 200",
      value: "N",
    }),
    seconds: argument(z.coerce.number().default(150), {
      description: "time for measuring, at most 170",
      value: "SECONDS",
    }),
    seed: shared.seed,
    output: argument(z.string().optional(), {
      description: "the file to write; default: where optimize looks for it",
      value: "FILE.json",
      short: "o",
    }),
    from: argument(z.string().optional(), {
      description: "fit the samples of this file again instead of measuring",
      value: "FILE.json",
    }),
  }),
  load: async () => (await import("./actions/calibrate.ts")).calibrateAction,
});
