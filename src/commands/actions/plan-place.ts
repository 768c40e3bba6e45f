/** A placement with its certificate: who runs what and when, memory, bound and gap. */
import { unboundedSymbols } from "../../graph/unbounded-symbols.ts";
import { linkBetween, type PlanDevice } from "../../plan/device.ts";
import { readCount } from "../../plan/number.ts";
import { decoderProblem, transferLatency } from "../../plan/place/decoder-problem.ts";
import { graphProblem } from "../../plan/place/graph-problem.ts";
import { type PlacePlan, place } from "../../plan/place/place.ts";
import type { PlaceProblem } from "../../plan/place/problem.ts";
import { parsePlaceProblem } from "../../plan/place/read-problem.ts";
import { formatNamed, weightFormats } from "../../plan/quantize/formats.ts";
import { checkWorkload } from "../../plan/quantize/memory.ts";
import { type ModelDescription, modelOfSize } from "../../plan/quantize/model.ts";
import type { WeightChoice } from "../../plan/quantize/weights.ts";
import { readModelFile } from "../../runtime/files/model-source.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { assumeSizes, sizeTexts, withSizes } from "../library/assumed-sizes.ts";
import { describeModel } from "../library/describe-model.ts";
import { findDevices } from "../library/find-devices.ts";
import { parseShapes } from "../library/load.ts";
import { importBytes } from "../library/model-bytes.ts";
import { assumed } from "./at-sizes.ts";
import { formatBytes, formatTime } from "./format.ts";
import { readAssignments } from "./inputs.ts";
import { deviceLines, SourceList } from "./sources.ts";
import { printTable } from "./table.ts";

export interface PlaceArgs {
  readonly problem?: string | undefined;
  readonly params?: string | undefined;
  readonly format?: string | undefined;
  readonly device: readonly string[];
  readonly context: number;
  readonly batch: number;
  readonly kvBits: number;
  readonly shape: readonly string[];
}

export const planPlaceAction: Action<PlaceArgs> = async (args) => {
  const given = await problemOf(args);
  if (!given.ok) return given;
  const { problem, devices } = given.value;
  const plan = place(problem);
  if (!plan.ok) return plan;
  const rows = runsOf(problem, plan.value);
  const data = {
    makespanNs: plan.value.makespanNs,
    boundNs: plan.value.boundNs,
    gap: plan.value.gap,
    optimal: plan.value.optimal,
    aloneNs: plan.value.aloneNs.map((ns) => (ns === Infinity ? null : ns)),
    devices: problem.devices.map((d, i) => ({
      ...d,
      usedBytes: plan.value.memoryBytes[i]!,
      ...(devices && { sheet: devices[i] }),
    })),
    tasks: problem.tasks.map((task, t) => ({
      name: task.name,
      device: problem.devices[plan.value.deviceOf[t]!]!.name,
      startNs: plan.value.startNs[t]!,
      finishNs: plan.value.finishNs[t]!,
      memoryBytes: task.memoryBytes,
    })),
    transfers: devices ? linkRows(devices) : null,
    origins: {
      makespanNs: devices ? "predicted: rooflines of the tasks" : "computed from the file's times",
      boundNs: "proved: no placement is below it",
      gap: "computed: makespan over bound, less one",
      aloneNs: devices ? "predicted: as the makespan" : "computed from the file's times",
      memoryBytes: devices
        ? "predicted: of a device its memory less the reserve, of a task its weights and state"
        : "given: the file's",
      usedBytes: devices ? "predicted: weights and state" : "given: the file's",
      tasks: devices ? "predicted: rooflines" : "computed from the file's times",
    },
  };
  const text = [describe(problem, plan.value, rows), ...knownLines(devices)].join("\n");
  return ok({ data, text }, given.warnings);
};

/** How the numbers of the text are known. */
function knownLines(devices: readonly PlanDevice[] | undefined): readonly string[] {
  if (!devices) return ["times: computed from the file's; memory and links: the file's (given)"];
  const list = new SourceList();
  const own = deviceLines(devices, list);
  const seen = new Set<string>();
  const links = linkRows(devices).flatMap(({ between: [a, b], bytesPerNs }) => {
    const rate = list.mark(`${bytesPerNs.value} GB/s`, bytesPerNs);
    if (seen.has(rate)) return [];
    seen.add(rate);
    return [`link ${a} - ${b}: ${rate} after ${list.mark("10 µs", transferLatency)}`];
  });
  return [
    "",
    "times and bound: predicted (rooflines; docs/planning.md, Placement); memory in use: predicted; of a device: its memory less the reserve (predicted)",
    ...own,
    ...links,
    ...list.lines(),
  ];
}

interface Given {
  readonly problem: PlaceProblem;
  /** Absent: the file describes its devices itself. */
  readonly devices?: readonly PlanDevice[];
}

async function problemOf(args: PlaceArgs): Promise<Result<Given>> {
  if ((args.problem === undefined) === (args.params === undefined)) {
    return fail(
      diagnostic("CLI001", "give either a file or --params", {
        help: "for example wavetile plan place --params 70B --device h100:2",
      }),
    );
  }
  if (args.problem !== undefined && /\.json$/i.test(args.problem)) {
    const ignored = ignoredBesideFile(args);
    if (ignored) return fail(ignored);
    const file = readWhole(args.problem);
    if (!file.ok) return file;
    const problem = parsePlaceProblem(new TextDecoder().decode(file.value));
    return problem.ok ? ok({ problem: problem.value }) : problem;
  }
  const devices = await findDevices(args.device);
  if (!devices.ok) return devices;
  const problem =
    args.problem !== undefined && /\.onnx$/i.test(args.problem)
      ? graphOfArgs(args.problem, args, devices.value)
      : await decoderOfArgs(args, devices.value);
  return problem.ok
    ? ok({ problem: problem.value, devices: devices.value }, [
        ...devices.warnings,
        ...problem.warnings,
      ])
    : problem;
}

/** A .json file states devices and tasks itself: what would change them is refused. */
function ignoredBesideFile({ device, shape, format }: PlaceArgs): Diagnostic | undefined {
  const given = {
    "--device": device.length !== 1 || device[0] !== "auto",
    "--shape": shape.length > 0,
    "--format": format !== undefined,
  };
  const [at] = Object.entries(given).find(([, is]) => is) ?? [];
  return at === undefined ? undefined : ignored(at, "a file of tasks and devices");
}

async function decoderOfArgs(
  args: PlaceArgs,
  devices: readonly PlanDevice[],
): Promise<Result<PlaceProblem>> {
  if (args.shape.length > 0) return fail(ignored("--shape", "a decoder placed by layers"));
  const model = await describedModel(args);
  if (!model.ok) return model;
  const format = formatOf(args);
  if (!format.ok) return format;
  const load = { context: args.context, batch: args.batch, kvBits: args.kvBits };
  const faults = checkWorkload(load);
  if (faults.length > 0) return fail(...faults);
  const problem = decoderProblem({ model: model.value, format: format.value, load, devices });
  if (problem) return ok(problem);
  return fail(
    diagnostic("PLN004", `${model.value.name}: ${model.value.decoderSource}`, {
      at: args.problem ?? "--params",
      help: "put its config.json beside it, or give --params and --format",
    }),
  );
}

async function describedModel(args: PlaceArgs): Promise<Result<ModelDescription>> {
  if (args.problem !== undefined) return describeModel(args.problem);
  const count = readCount("--params", args.params!);
  return count.ok ? modelOfSize(count.value, { bits: 32, name: "FP32" }) : count;
}

/** The one asked for; else BF16 for a size, and for a file the weights as they are stored. */
function formatOf({ format, problem }: PlaceArgs): Result<WeightChoice> {
  if (format === undefined && problem !== undefined) return ok("stored");
  const found = formatNamed(format ?? "BF16");
  if (found) return ok(found);
  return fail(
    diagnostic("CLI001", `${JSON.stringify(format)} is no weight format`, {
      at: "--format",
      help: `use ${weightFormats.map((f) => f.name).join(", ")}`,
    }),
  );
}

function ignored(at: string, what: string): Diagnostic {
  return diagnostic("CLI001", `${at} says nothing about ${what}`, { at, help: `leave ${at} out` });
}

function graphOfArgs(
  path: string,
  { shape, format }: PlaceArgs,
  devices: readonly PlanDevice[],
): Result<PlaceProblem> {
  if (format !== undefined)
    return fail(ignored("--format", "an ONNX graph, whose types are its own"));
  const source = readModelFile(path);
  if (!source.ok) return source;
  const assigned = readAssignments("--shape", shape);
  if (!assigned.ok) return assigned;
  const shapes = parseShapes(assigned.value);
  if (!shapes.ok) return shapes;
  const given = { shapes: shapes.value };
  const sizes = assumeSizes(source.value, given, { ranges: [] });
  const taken = sizes ? { shapes: withSizes(given, sizes) } : given;
  const model = importBytes(source.value, taken);
  if (!model.ok) return model;
  const open = unboundedSymbols(model.value.graph);
  if (open) return fail(open);
  return ok(graphProblem(model.value.graph, devices), sizes && [assumed(sizeTexts(sizes))]);
}

function linkRows(devices: readonly PlanDevice[]) {
  return devices.flatMap((a, i) =>
    devices.slice(i + 1).map((b) => ({
      between: [a.name, b.name],
      bytesPerNs: linkBetween(a, b),
      latencyNs: transferLatency,
    })),
  );
}

interface Run {
  readonly device: string;
  readonly first: string;
  readonly last: string;
  readonly tasks: number;
  readonly bytes: number;
  readonly startNs: number;
  readonly finishNs: number;
}

/** Tasks in a row on one device, as one line. */
function runsOf({ tasks, devices }: PlaceProblem, plan: PlacePlan): readonly Run[] {
  const runs: Run[] = [];
  for (const t of plan.order) {
    const device = devices[plan.deviceOf[t]!]!.name;
    const { name, memoryBytes } = tasks[t]!;
    const last = runs.at(-1);
    const finishNs = plan.finishNs[t]!;
    if (last?.device === device) {
      const bytes = last.bytes + memoryBytes;
      runs[runs.length - 1] = { ...last, last: name, tasks: last.tasks + 1, bytes, finishNs };
    } else {
      const startNs = plan.startNs[t]!;
      runs.push({
        device,
        first: name,
        last: name,
        tasks: 1,
        bytes: memoryBytes,
        startNs,
        finishNs,
      });
    }
  }
  return runs;
}

const mostLines = 60;

function describe(problem: PlaceProblem, plan: PlacePlan, runs: readonly Run[]): string {
  const lines = runs
    .slice(0, mostLines)
    .map((r) => [
      r.device,
      r.first === r.last ? r.first : `${r.first} … ${r.last}`,
      String(r.tasks),
      formatBytes(r.bytes),
      formatTime(r.startNs),
      formatTime(r.finishNs),
    ]);
  const head = ["device", "what", "tasks", "memory", "start", "end"];
  const alone = problem.devices.map((d, i) => {
    const ns = plan.aloneNs[i]!;
    if (ns !== Infinity) return `${d.name} ${formatTime(ns)}`;
    const runs = problem.tasks.every((t) => t.timeNs[i] !== Infinity);
    return `${d.name} ${runs ? "does not hold it" : "cannot run it"}`;
  });
  const memory = problem.devices.map(
    (d, i) => `${d.name} ${formatBytes(plan.memoryBytes[i]!)} of ${formatBytes(d.memoryBytes)}`,
  );
  const proof = plan.optimal ? "proved the shortest" : `gap ${(plan.gap * 100).toFixed(2)} %`;
  return [
    `${formatTime(plan.makespanNs)} (bound ${formatTime(plan.boundNs)}, ${proof})`,
    "",
    printTable(head, lines, [2, 3, 4, 5]),
    ...(runs.length > mostLines ? [`… ${runs.length - mostLines} more lines in --json`] : []),
    "",
    `memory: ${memory.join(", ")}`,
    `alone: ${alone.join(", ")}`,
  ].join("\n");
}
