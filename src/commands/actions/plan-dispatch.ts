/** Requests played through each dispatch strategy: utilisation of the devices and waits. */
import type { PlanDevice } from "../../plan/device.ts";
import { mostArrivals, randomArrivals } from "../../plan/dispatch/arrivals.ts";
import type { Accelerator } from "../../plan/dispatch/fleet.ts";
import { type DispatchReport, simulateDispatch } from "../../plan/dispatch/simulate.ts";
import { type StrategyName, strategyNames } from "../../plan/dispatch/strategies.ts";
import { checkNumber } from "../../plan/number.ts";
import { reserveBytes } from "../../plan/quantize/memory.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { findDevices } from "../library/find-devices.ts";
import { suggestFor } from "./dispatch-moves.ts";
import { formatBytes, formatTime } from "./format.ts";
import { deviceLines, SourceList } from "./sources.ts";
import { printTable } from "./table.ts";

export interface DispatchArgs {
  readonly state?: string | undefined;
  readonly above?: number | undefined;
  readonly device: readonly string[];
  readonly strategy: StrategyName | "all";
  readonly arrivals?: number | undefined;
  readonly rate?: number | undefined;
  readonly workMs?: number | undefined;
  readonly memoryGib?: number | undefined;
  readonly reservedGib?: number | undefined;
  readonly queue?: number | undefined;
  readonly seed: number;
}

/** What is taken where nothing is said: said in the answer. */
const assumed = {
  arrivals: 100_000,
  rate: 1,
  workMs: 1000,
  memoryGib: 2,
  reservedGib: 0,
  queue: 8,
} as const;
type Demand = Readonly<Record<keyof typeof assumed, number>>;

const demandNames = Object.keys(assumed) as readonly (keyof Demand)[];

function demandOf(args: DispatchArgs): Demand {
  return Object.fromEntries(demandNames.map((n) => [n, args[n] ?? assumed[n]])) as Demand;
}

/** In the units of the options. */
function checkDemand({ arrivals, rate, workMs, memoryGib, reservedGib }: Demand) {
  const positive = { least: 1e-9, most: 1e9 };
  return [
    checkNumber("PLN001", "--arrivals", arrivals, { least: 1, most: mostArrivals, integer: true }),
    checkNumber("PLN001", "--rate", rate, positive),
    checkNumber("PLN001", "--work-ms", workMs, positive),
    checkNumber("PLN001", "--memory-gib", memoryGib, { least: 0, most: 1e9 }),
    checkNumber("PLN001", "--reserved-gib", reservedGib, { least: 0, most: 1e9 }),
  ].filter((f) => f !== undefined);
}

export const planDispatchAction: Action<DispatchArgs> = async (args, context) => {
  if (args.state !== undefined) return suggestFor(args.state, args.above);
  if (args.above !== undefined) {
    const help = "give the file of requests too, or leave --above out";
    return fail(diagnostic("CLI001", "--above needs a STATE file", { at: "--above", help }));
  }
  const devices = await findDevices(args.device);
  if (!devices.ok) return devices;
  const demand = demandOf(args);
  const faults = checkDemand(demand);
  if (faults.length > 0) return fail(...faults);
  const fleet = acceleratorsOf(devices.value, demand);
  if (!fleet.ok) return fleet;
  const arrivals = randomArrivals({
    count: demand.arrivals,
    perSecond: demand.rate,
    workNs: demand.workMs * 1e6,
    memoryBytes: demand.memoryGib * 2 ** 30,
    seed: args.seed,
  });
  if (!arrivals.ok) return arrivals;
  const names = args.strategy === "all" ? strategyNames : [args.strategy];
  const reports = names.map((name) => {
    context.progress(name);
    return simulateDispatch(fleet.value, arrivals.value, name);
  });
  const data = {
    devices: fleet.value.map((d, i) => ({ ...d, sheet: devices.value[i]! })),
    demand: Object.fromEntries(
      demandNames.map((n) => [
        n,
        { value: demand[n], origin: args[n] === undefined ? "assumed" : "given" },
      ]),
    ),
    reports,
    origins: {
      memoryBytes: "predicted: the sheet's less the reserve and what is taken",
      speed: "predicted: memory bandwidth against the fastest",
      queueDepth: "given, or assumed: 8",
      reports: "predicted: by simulation of random arrivals",
    },
  };
  const text = [describe(fleet.value, reports), ...knownLines(args, devices.value)].join("\n");
  return ok({ data, text }, devices.warnings);
};

/** How the numbers of the text are known. */
function knownLines(args: DispatchArgs, devices: readonly PlanDevice[]): readonly string[] {
  const demand = demandOf(args);
  const labels = {
    arrivals: (n: number) => `${n} requests`,
    rate: (n: number) => `${n} a second`,
    workMs: (n: number) => `${n} ms of work each`,
    memoryGib: (n: number) => `${n} GiB each`,
    reservedGib: (n: number) => `${n} GiB taken on a device`,
    queue: (n: number) => `queues of ${n}`,
  } as const satisfies Record<keyof Demand, (n: number) => string>;
  const origin = (n: keyof Demand): string => (args[n] === undefined ? "assumed" : "given");
  const list = new SourceList();
  return [
    `demand: ${demandNames.map((n) => `${labels[n](demand[n])} (${origin(n)})`).join(", ")}`,
    "utilisation and waits: predicted, by simulation; memory for requests: a device's less the reserve (predicted); speed: bandwidth against the fastest (predicted)",
    ...deviceLines(devices, list),
    ...list.lines(),
  ];
}

/** Decoding is bound by reading memory: a device's speed is its bandwidth against the fastest. */
function acceleratorsOf(
  devices: readonly PlanDevice[],
  { queue, reservedGib }: Demand,
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
