/**
 * Who gets a job: one interface, four strategies. All choose among the devices that accept the job now
 * and answer -1 when there is none; equal devices are told apart by their number, so that the same jobs
 * always go the same way.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Fleet, Job } from "./fleet.ts";

export const strategyNames = ["round-robin", "load-balanced", "priority", "best-fit"] as const;
export type StrategyName = (typeof strategyNames)[number];

export interface Strategy {
  readonly name: StrategyName;
  /** Jobs that wait for any device are taken by priority, not by arrival. */
  readonly byPriority: boolean;
  choose(fleet: Fleet, job: Job): number;
}

/** The accepting device of the lowest cost; an infinite cost is none. */
function cheapest(fleet: Fleet, job: Job, cost: (device: number) => number): number {
  let best = -1;
  let least = Infinity;
  for (let d = 0; d < fleet.devices.length; d++) {
    if (!fleet.accepts(d, job)) continue;
    const price = cost(d);
    if (price < least) [best, least] = [d, price];
  }
  return best;
}

/** When the job would end there. */
function endNs(fleet: Fleet, job: Job, device: number): number {
  return fleet.pendingNs[device]! + fleet.serviceNs(device, job);
}

function roundRobin(): Strategy {
  let next = 0;
  return {
    name: "round-robin",
    byPriority: false,
    choose: (fleet, job) => {
      const count = fleet.devices.length;
      for (let i = 0; i < count; i++) {
        const device = (next + i) % count;
        if (!fleet.accepts(device, job)) continue;
        next = (device + 1) % count;
        return device;
      }
      return -1;
    },
  };
}

const makers: Readonly<Record<StrategyName, () => Strategy>> = {
  "round-robin": roundRobin,
  "load-balanced": () => ({
    name: "load-balanced",
    byPriority: false,
    choose: (fleet, job) => cheapest(fleet, job, (d) => endNs(fleet, job, d)),
  }),
  // Who stands in a device's queue cannot be overtaken: all wait in the common line until one is free.
  priority: () => ({
    name: "priority",
    byPriority: true,
    choose: (fleet, job) =>
      cheapest(fleet, job, (d) => (fleet.depth[d]! > 0 ? Infinity : endNs(fleet, job, d))),
  }),
  "best-fit": () => ({
    name: "best-fit",
    byPriority: false,
    choose: (fleet, job) => cheapest(fleet, job, (d) => fleet.freeBytes[d]! - job.memoryBytes),
  }),
};

/** For names that a program was given: what is no strategy is refused. */
export function strategyNamed(name: string): Result<Strategy> {
  const known = strategyNames.find((n) => n === name);
  if (known) return ok(makeStrategy(known));
  return fail(
    diagnostic("PLN008", `there is no dispatch strategy ${JSON.stringify(name)}`, {
      at: "strategy",
      help: `use one of ${strategyNames.join(", ")}`,
    }),
  );
}

/** A strategy at its beginning: it may remember whose turn it is. */
export function makeStrategy(name: StrategyName): Strategy {
  return makers[name]();
}
