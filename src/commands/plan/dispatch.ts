/** `wavetile plan dispatch`: its arguments; the work is in actions/plan-dispatch.ts. */
import { z } from "zod";
import { argument, command, shared } from "../command.ts";
import { planShared } from "./shared.ts";

export const planDispatch = command({
  name: "plan dispatch",
  summary: "how long requests wait by dispatch strategy, or which to move off busy devices",
  args: z.strictObject({
    state: argument(z.string().optional(), {
      description: "a .json file of requests on devices now: suggests moves instead",
      value: "STATE",
      positional: true,
    }),
    above: argument(z.coerce.number().optional(), {
      description:
        "with STATE: milliseconds of work above which devices give away; default: the mean",
      value: "MS",
    }),
    device: planShared.device,
    strategy: argument(
      z.enum(["all", "round-robin", "load-balanced", "priority", "best-fit"]).default("all"),
      { description: "all, round-robin, load-balanced, priority or best-fit", value: "NAME" },
    ),
    arrivals: argument(z.coerce.number().optional(), {
      description: "requests to play; default: 100000",
      value: "N",
    }),
    rate: argument(z.coerce.number().optional(), {
      description: "requests a second, all together; default: 1",
      value: "N",
    }),
    workMs: argument(z.coerce.number().optional(), {
      description: "milliseconds of an average request on the fastest device; default: 1000",
      value: "MS",
    }),
    memoryGib: argument(z.coerce.number().optional(), {
      description: "GiB that an average request keeps (its KV cache); default: 2",
      value: "GIB",
    }),
    reservedGib: argument(z.coerce.number().optional(), {
      description: "GiB that is taken on each device already (the weights); default: 0",
      value: "GIB",
    }),
    queue: argument(z.coerce.number().int().min(0).max(1_000_000).optional(), {
      description: "requests that a device accepts behind the running one; default: 8",
      value: "N",
    }),
    seed: shared.seed,
  }),
  load: async () => (await import("../actions/plan-dispatch.ts")).planDispatchAction,
});
