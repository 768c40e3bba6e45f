/** The kernel that a problem would get on each machine, with what it was chosen over. */
import type { KernelConfiguration } from "../../plan/kernels/configuration.ts";
import {
  configureKernel,
  type KernelChoice,
  type RejectedKernel,
} from "../../plan/kernels/configure.ts";
import type { KernelCounts } from "../../plan/kernels/counts.ts";
import {
  isPass,
  type KernelClass,
  type KernelProblem,
  workOf,
} from "../../plan/kernels/problem.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import type { Action } from "../command.ts";
import { findMachine } from "../library/find-machine.ts";
import { formatTime } from "./format.ts";
import { printTable } from "./table.ts";

type Extent = "batch" | "rows" | "columns" | "depth" | "keys" | "weightBits";

export interface PlanKernelsArgs
  extends Pick<KernelProblem, "kind" | "type">,
    Readonly<Partial<Record<Extent, number | undefined>>> {
  readonly target: readonly string[];
}

export const planKernelsAction: Action<PlanKernelsArgs> = async (args) => {
  const machines = machinesFor(args.target);
  if (!machines.ok) return machines;
  const faults = extentFaults(args);
  if (faults.length > 0) return fail(...faults);
  const { kind, type, keys, weightBits, batch = 1, rows = 1, columns = 1, depth = 1 } = args;
  const problem: KernelProblem = {
    ...{ kind, type, batch, rows, columns, depth },
    ...(keys !== undefined && { keys }),
    ...(weightBits !== undefined && { weightBits }),
  };
  const choices: KernelChoice[] = [];
  for (const target of machines.value) {
    const choice = configureKernel(problem, target);
    if (!choice.ok) return choice;
    choices.push(choice.value);
  }
  const data = { problem, work: workOf(problem), choices, origins };
  return ok({ data, text: describe(choices) });
};

const options: Readonly<Record<Extent, string>> = {
  batch: "--batch",
  rows: "--rows",
  columns: "--columns",
  depth: "--depth",
  keys: "--keys",
  weightBits: "--weight-bits",
};

/** Extents that a class must be given, and those that mean nothing to it. */
function extentsOf(kind: KernelClass): {
  readonly needed: readonly Extent[];
  readonly unread: readonly Extent[];
} {
  if (kind.startsWith("attention")) {
    return { needed: ["depth", "keys"], unread: ["columns", "weightBits"] };
  }
  if (isPass({ kind })) return { needed: ["columns"], unread: ["depth", "keys", "weightBits"] };
  const bits: readonly Extent[] = kind === "quantised-gemm" ? ["weightBits"] : [];
  return { needed: ["columns", "depth", ...bits], unread: ["keys"] };
}

function extentFaults(args: PlanKernelsArgs): readonly Diagnostic[] {
  const { needed, unread } = extentsOf(args.kind);
  const missing = needed
    .filter((e) => args[e] === undefined)
    .map((e) => {
      const message = `${args.kind} has no ${options[e]}`;
      const help = `give ${needed.map((n) => options[n]).join(", ")}`;
      return diagnostic("PLN020", message, { at: options[e], help });
    });
  const extra = unread
    .filter((e) => args[e] !== undefined)
    .map((e) => {
      const message = `${options[e]} means nothing to ${args.kind}`;
      return diagnostic("PLN020", message, { at: options[e], help: "leave it out" });
    });
  return [...missing, ...extra];
}

const origins = {
  problem: "given",
  work: "computed: operations, and bytes of each operand and result once",
  choices: "predicted: docs/planning.md, Kernels",
  limits: "datasheet, or as wavetile targets show NAME marks them",
} as const;

function machinesFor(names: readonly string[]): Result<readonly Target[]> {
  if (names.length === 0) return ok([...targets.values()].filter((t) => t.machine));
  const found: Target[] = [];
  for (const name of names) {
    const target = findMachine(name);
    if (!target.ok) return target;
    found.push(target.value);
  }
  return ok(found);
}

function describe(choices: readonly KernelChoice[]): string {
  const table = printTable(
    ["target", "predicted", "bound by", "tile", "stages", "grid", "block", "iterations", "kernel"],
    choices.map(({ target, chosen: c, counts }) => [
      target,
      formatTime(c.estimateNs),
      c.bound,
      `${c.tile.m}x${c.tile.n}x${c.tile.k}`,
      String(c.stages),
      c.grid.join("x"),
      c.block.join("x"),
      formatCount(counts.iterations),
      `${c.implementation}${c.emitted ? "" : " (no emitter yet)"}`,
    ]),
    [1, 3, 4, 5, 6, 7],
  );
  const known = `times: ${origins.choices}; limits: ${origins.limits}`;
  const [only] = choices;
  if (choices.length === 1) return [table, "", ...detail(only!), known].join("\n");
  const help = "written today, runner-ups, limits that were broken: --target NAME";
  return [table, "", known, help].join("\n");
}

/** Whole up to 2^53; above that counts are rounded. */
function formatCount(count: number): string {
  return count < 1e12 ? String(count) : count.toExponential(3);
}

function detail(choice: KernelChoice): readonly string[] {
  const { chosen, counts, rejected, overLimit, made, possible } = choice;
  const line = (c: RejectedKernel): string =>
    `  ${formatTime(c.estimateNs)}  ${c.implementation}, ${shapeOf(c)}: ${c.why}`;
  return [
    ...(chosen.instruction ? [`instruction: ${chosen.instruction}`] : []),
    `registers a thread: ${chosen.registersPerThread}, unroll ${chosen.unroll}, loads of ${chosen.vectorBytes} bytes, shared bytes a block: ${chosen.sharedBytes}, cluster ${chosen.cluster}`,
    ...countLines(counts),
    ...chosen.reasons.map((r) => `because: ${r}`),
    ...todayLines(choice),
    `${made} candidates, ${possible} within the machine's limits; rejected, the best of each kind:`,
    ...rejected.map(line),
    ...(overLimit.length > 0 ? ["over a limit of the machine, the fastest of each kind:"] : []),
    ...overLimit.map(line),
  ];
}

function shapeOf({ tile, stages }: KernelConfiguration): string {
  const staged = stages > 1 ? `, ${stages} stages` : "";
  return `${tile.m}x${tile.n}x${tile.k}${staged}`;
}

/** What Wavetile writes now, and where it does. */
function todayLines({ today }: KernelChoice): readonly string[] {
  if ("none" in today) return [`written today: nothing, ${today.none}`];
  const { kernel, code } = today;
  return [
    `written today: ${kernel.implementation}, ${shapeOf(kernel)}, predicted ${formatTime(kernel.estimateNs)}`,
    `  by ${code.join(", ")}`,
  ];
}

function countLines(counts: KernelCounts): readonly string[] {
  const { tiles, stepsPerTile, iterations, instructions, outputElements, tileElements } = counts;
  const wasted = (100 * (tileElements / outputElements - 1)).toFixed(1);
  return [
    `tiles: ${tiles.join(" x ")}, ${stepsPerTile} steps each: ${formatCount(iterations)} iterations`,
    ...(instructions === undefined ? [] : [`matrix instructions: ${formatCount(instructions)}`]),
    `output elements: ${formatCount(outputElements)}; of whole tiles ${formatCount(tileElements)} (${wasted} % over the edges)`,
  ];
}
