/**
 * Where and when one instance of a statement runs: device, block, group of threads, thread, lane, and its
 * time among what the same thread runs. For `inspect --schedule --at`.
 */
import * as affine from "../../affine/index.ts";
import { bridgeRegion } from "../../region/affine-bridge.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import {
  type ExecutedStatement,
  executedLoops,
  executionOrder,
} from "../legality/execution-order.ts";
import { treeOf } from "../products/product-tree.ts";
import type { ScheduledMode, ScheduledRegion } from "../scheduled-region.ts";
import type { TreeSchedule } from "./tree-schedule.ts";

export interface InstancePlace {
  /** Number of the kernel among those of the region. */
  readonly kernel: number;
  /** A program runs on one device. */
  readonly device: 0;
  /** One index for each loop whose iterations are dealt out to blocks, or to the threads of a CPU. */
  readonly block: readonly number[];
  /** The group of threads, a warp. */
  readonly group: readonly number[];
  readonly thread: readonly number[];
  readonly lane: readonly number[];
  /** All loops, outermost first. */
  readonly loops: readonly {
    readonly name: string;
    readonly mode: ScheduledMode;
    readonly value: number;
  }[];
  /** (kernel, place, loop, place, …): instances of a thread run in the order of these vectors. */
  readonly time: readonly number[];
}

/** The place of the instance whose original loops have the values `point`. */
export function placeOf(
  region: ScheduledRegion,
  statement: string,
  point: Readonly<Record<string, number>>,
): Result<InstancePlace> {
  return attempt(() => {
    const tree = treeOf(region);
    if (tree) return placeInTree(region, tree, { statement, point });
    const s = executedStatement(region, statement);
    checkInstance(region, s, point);
    const loops = executedLoops(s).map(({ name, mode }) => ({
      name,
      mode,
      value: affine.evaluateAffine(s.values.get(name)!, point),
    }));
    const rest = loops.flatMap(({ value }, i) => [value, s.positions[i + 1] ?? 0]);
    return {
      kernel: s.kernel,
      device: 0,
      ...levels(loops),
      loops,
      time: [s.kernel, s.positions[0]!, ...rest],
    };
  });
}

/** Which modes of the language loops marked in a tree have. */
const modeOf: Readonly<Record<affine.LoopMark, ScheduledMode>> = {
  parallel: "grid",
  grid: "grid",
  device: "grid",
  blocks: "blocks",
  groups: "groups",
  threads: "threads",
  vector: "vector",
  unroll: "unroll",
};

function placeInTree(
  region: ScheduledRegion,
  { verdict, nest: original }: TreeSchedule,
  at: affine.Instance,
): InstancePlace {
  const { nest, tree } =
    verdict.kind === "legal" ? verdict.plan : { nest: original, tree: original.tree };
  const named = nest.statements.find((s) => s.name === at.statement);
  if (!named) return noStatement(region, at.statement, nest.statements);
  checkPoint(named.name, named.dims, at.point);
  checkRuns(named, nest.context, at.point);
  const parts = affine.timePaths(tree, nest.statements).get(at.statement)!;
  const timeOf = (p: affine.TimePart): number => affine.evaluateAffine(p.value, at.point);
  const loops = parts.flatMap((p) => {
    const marks = p.marks.flatMap((m) =>
      m.kind in modeOf ? modeOf[m.kind as affine.LoopMark] : [],
    );
    return p.loop === undefined
      ? []
      : [{ name: p.loop, mode: marks[0] ?? ("serial" as const), value: timeOf(p) }];
  });
  const kernels = parts.slice(
    0,
    parts.findIndex((p) => p.loop !== undefined),
  );
  const kernel = kernels[0] ? timeOf(kernels[0]) : 0;
  return { ...levels(loops), kernel, device: 0, loops, time: parts.map(timeOf) };
}

type Levels = Pick<InstancePlace, "block" | "group" | "thread" | "lane">;

function levels(loops: InstancePlace["loops"]): Levels {
  const on = (...modes: readonly ScheduledMode[]): readonly number[] =>
    loops.filter((l) => modes.includes(l.mode)).map((l) => l.value);
  return {
    block: on("grid", "blocks"),
    group: on("groups"),
    thread: on("threads"),
    lane: on("vector"),
  };
}

function executedStatement(region: ScheduledRegion, statement: string): ExecutedStatement {
  const all = executionOrder(region);
  const found = all.find((e) => e.scheduled.statement.name === statement);
  return (
    found ??
    noStatement(
      region,
      statement,
      all.map((e) => e.scheduled.statement),
    )
  );
}

function noStatement(
  { region }: ScheduledRegion,
  statement: string,
  known: readonly { readonly name: string }[],
): never {
  return reject("SCH001", `there is no statement ${statement} in region ${region.name}`, {
    help: `statements are ${known.map((s) => s.name).join(", ")}`,
  });
}

/** The point names every loop, and is one that the statement runs for some value of the symbols. */
function checkInstance(
  region: ScheduledRegion,
  { scheduled }: ExecutedStatement,
  point: Readonly<Record<string, number>>,
): void {
  const { name, loops } = scheduled.statement;
  const names = loops.map((l) => l.name);
  checkPoint(name, names, point);
  const { statements, context } = bridgeRegion(region.region);
  const domain = affine.intersectParams(statements.get(name)!.domain, context);
  const extents = loops.map((l) => `${l.name} in ${l.extent.key}`);
  checkInside(domain, { name, dims: names }, { point, runs: extents.join(", ") });
}

/** The point names every loop and nothing else. */
function checkPoint(
  name: string,
  dims: readonly string[],
  point: Readonly<Record<string, number>>,
): void {
  const wrong =
    dims.find((n) => point[n] === undefined) ?? Object.keys(point).find((n) => !dims.includes(n));
  if (wrong === undefined) return;
  reject("SCH002", `the point does not fit the loops of ${name}: ${wrong}`, {
    at: name,
    help: `give a value for each of ${dims.join(", ")}`,
  });
}

function checkRuns(
  statement: affine.NestStatement,
  context: affine.IntegerSet | undefined,
  point: Readonly<Record<string, number>>,
): void {
  const all = affine.domainOf(statement);
  const domain = context ? affine.intersectParams(all, context) : all;
  checkInside(domain, statement, { point, runs: affine.formatSet(domain) });
}

function checkInside(
  domain: affine.IntegerSet,
  { name, dims }: { readonly name: string; readonly dims: readonly string[] },
  { point, runs }: { readonly point: Readonly<Record<string, number>>; readonly runs: string },
): void {
  const where = dims.map((n) => affine.equals(n, point[n]!));
  const here = affine.makeSet({ tuple: name, dims, where });
  if (affine.isDisjoint(domain, here) !== "yes") return;
  reject("SCH020", `${name}[${dims.map((n) => point[n]).join(", ")}] is no iteration`, {
    at: name,
    help: `it runs for ${runs}`,
  });
}

/** Which instance a text means: `REGION:STATEMENT[2, 7]`, or with names, `STATEMENT[i = 2, j = 7]`. */
export interface AskedInstance {
  /** Absent: any region that has the statement. */
  readonly region?: string;
  readonly statement: string;
  /** The values by name, numbers without one taken in the order of `loops`. */
  readonly point: (loops: readonly string[]) => Readonly<Record<string, number>>;
}

export function parseAt(text: string): Result<AskedInstance> {
  return attempt(() => {
    const [region, statement, inside] =
      /^(?:(.+):)?([^\s:[\]]+)\[(.*)\]$/.exec(text)?.slice(1) ?? malformed(text);
    const parts = inside!.trim() === "" ? [] : inside!.split(",");
    const values = parts.map((part) => {
      const [name, digits] =
        /^\s*(?:([A-Za-z_][\w.]*)\s*=\s*)?(-?\d+)\s*$/.exec(part)?.slice(1) ?? malformed(text);
      const value = Number(digits);
      return Number.isSafeInteger(value) ? { name, value } : malformed(text);
    });
    return {
      ...(region !== undefined && { region }),
      statement: statement!,
      point: (loops) => {
        const named = values.map((v, i) => [v.name ?? loops[i] ?? `axis ${i}`, v.value] as const);
        const [twice] = named.find(([n], i) => named.some(([m], k) => m === n && k < i)) ?? [];
        if (twice === undefined) return Object.fromEntries(named);
        return reject("SCH020", `${JSON.stringify(text)} gives ${twice} two values`, {
          at: "--at",
          help: `name each loop once: ${loops.join(", ")}`,
        });
      },
    };
  });
}

function malformed(text: string): never {
  return reject("TXT001", `${JSON.stringify(text)} is no iteration`, {
    help: "write REGION:STATEMENT[i = 2, j = 7], or the values alone in the order of the loops",
  });
}

/** The place in words, a line each. */
/** Lines; where a target has blocks of threads, block, warp and thread also where no loop decides them. */
export function formatPlace(place: InstancePlace, hasBlocks = false): string {
  const spelled = (label: string, at: readonly number[], always = false): readonly string[] =>
    at.length > 0 || always ? [`${label.padEnd(8)}${at.join(", ") || "0"}`] : [];
  const loops = place.loops.map((l) => {
    const mode = l.mode === "serial" ? "" : ` (${l.mode})`;
    return `  ${l.name} = ${l.value}${mode}`;
  });
  return [
    ...spelled("device", [place.device]),
    ...spelled("kernel", [place.kernel]),
    ...spelled("block", place.block, hasBlocks),
    ...spelled("warp", place.group, hasBlocks),
    ...spelled("thread", place.thread, hasBlocks),
    ...spelled("lane", place.lane),
    `time    (${place.time.join(", ")})`,
    "loops",
    ...loops,
  ].join("\n");
}
