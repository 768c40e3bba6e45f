/** `wavetile explain`: its arguments; the work is in actions/explain.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const explain = command({
  name: "explain",
  summary:
    "say why each region has its schedule: states, constraints, phases, price, bound and gap",
  args: z.strictObject({
    model: shared.model,
    region: argument(z.string().optional(), {
      description: "only this region, with every constraint and the schedule",
      value: "NAME",
    }),
    svg: argument(z.string().optional(), {
      description: "draw funnel, collapse, gap, prices, layers and machines into this folder",
      value: "FOLDER",
    }),
    rewrite: argument(z.boolean().default(false), {
      description:
        "which rules rewrite the graph of an ONNX model, prices before and after, runners-up",
    }),
    rewritten: argument(z.enum(["on", "off", "approximate"]).default("off"), {
      description: "of the schedules of the graph that --rewrite of `optimize` leads to",
      value: "on|off|approximate",
    }),
    allow: shared.allow,
    rules: shared.rules,
    target: shared.target,
    shape: shared.shape,
    state: shared.state,
    value: shared.value,
    calibration: shared.calibration,
  }),
  load: async () => (await import("./actions/explain.ts")).explainModel,
});
