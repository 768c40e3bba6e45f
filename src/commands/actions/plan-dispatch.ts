/** Requests played through each dispatch strategy: utilisation of the devices and waits. */
import type { PlanDevice } from "../../plan/device.ts";
import { randomArrivals } from "../../plan/dispatch/arrivals.ts";
import type { Accelerator } from "../../plan/dispatch/fleet.ts";
import { type DispatchReport, simulateDispatch } from "../../plan/dispatch/simulate.ts";
import { type StrategyName, strategyNames } from "../../plan/dispatch/strategies.ts";
import { reserveBytes } from "../../plan/quantize/memory.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { findDevices } from "../library/find-devices.ts";
import { suggestFor } from "./dispatch-moves.ts";
import { formatBytes, formatTime } from "./format.ts";
import { printTable } from "./table.ts";

export interface DispatchArgs {
  readonly state?: string | undefined;
  readonly above?: number | undefined;
  readonly device: readonly string[];
  readonly strategy: StrategyName | "all";
  readonly arrivals: number;
  readonly rate: number;
  readonly workMs: number;
  readonly memoryGib: number;
  readonly reservedGib: number;
  readonly queue: number;
  readonly seed: number;
}

export const planDispatchAction: Action<DispatchArgs> = async (args, context) => {
  if (args.state !== undefined) return suggestFor(args.state, args.above);
  if (args.above !== undefined) {
    const help = "give the file of requests too, or leave --above out";
    return fail(diagnostic("CLI001", "--above needs a STATE file", { at: "--above", help }));
  }
  const devices = await findDevices(args.device);
  if (!devices.ok) return devices;
  const fleet = acceleratorsOf(devices.value, args);
  if (!fleet.ok) return fleet;
  const arrivals = randomArrivals({
    count: args.arrivals,
    perSecond: args.rate,
    workNs: args.workMs * 1e6,
    memoryBytes: args.memoryGib * 2 ** 30,
    seed: args.seed,
  });
  if (!arrivals.ok) return arrivals;
  const names = args.strategy === "all" ? strategyNames : [args.strategy];
  const reports = names.map((name) => {
    context.progress(name);
    return simulateDispatch(fleet.value, arrivals.value, name);
  });
  const data = {
    devices: fleet.value,
    reports,
    origins: { speed: "predicted: memory bandwidth against the fastest", wait: "simulated" },
  };
  return ok({ data, text: describe(fleet.value, reports) });
};

/** Decoding is bound by reading memory: a device's speed is its bandwidth against the fastest. */
function acceleratorsOf(
  devices: readonly PlanDevice[],
  { queue, reservedGib }: DispatchArgs,
): Result<readonly Accelerator[]> {
  const fastest = Math.max(...devices.map((d) => d.memoryBytesPerNs.value));
  const accelerators = devices.map((d) => ({
    name: d.name,
    memoryBytes: Math.floor(d.memoryBytes.value - reserveBytes(d).value - reservedGib * 2 ** 30),
    speed: d.memoryBytesPerNs.value / fastest,
    queueDepth: queue,
  }));
  const full = accelerators.find((a) => !(a.memoryBytes > 0));
  if (!full) return ok(accelerators);
  return fail(
    diagnostic(
      "PLN001",
      `--reserved-gib ${reservedGib} leaves nothing of the memory of ${full.name}`,
      {
        at: "--reserved-gib",
        help: "give what the weights take on each device",
      },
    ),
  );
}

function describe(fleet: readonly Accelerator[], reports: readonly DispatchReport[]): string {
  const rows = reports.map((r) => {
    const busy = r.devices.map((d) => d.utilisation);
    return [
      r.strategy,
      `${percent(Math.min(...busy))}..${percent(Math.max(...busy))}`,
      formatTime(r.wait.meanNs),
      formatTime(r.wait.medianNs),
      formatTime(r.wait.p99Ns),
      formatTime(r.wait.mostNs),
      String(r.served),
      String(r.refused),
    ];
  });
  const head = ["strategy", "busy", "mean wait", "median", "p99", "longest", "served", "refused"];
  const priorities = reports
    .filter((r) => r.strategy === "priority")
    .flatMap((r) => r.byPriority)
    .map((p) => `priority ${p.priority}: mean wait ${formatTime(p.wait.meanNs)}`);
  return [
    ...fleet.map(
      (d) => `${d.name}: ${formatBytes(d.memoryBytes)} for requests, speed ${d.speed.toFixed(2)}`,
    ),
    "",
    printTable(head, rows),
    "",
    ...priorities,
    ...(reports[0]!.refused > 0
      ? [`refused: ${reports[0]!.refused} requests that no device could ever hold`]
      : []),
    "simulated: random arrivals (Poisson), work (exponential) and memory of the given means",
  ].join("\n");
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)} %`;
}
