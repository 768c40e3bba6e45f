/**
 * Where and when one instance of a statement runs: device, block, group of threads, thread, lane, and its
 * time among what the same thread runs. For `inspect --schedule --at`.
 */
import * as affine from "../affine/index.ts";
import { bridgeRegion } from "../region/affine-bridge.ts";
import { attempt, type Result, reject } from "../support/diagnostic.ts";
import { type ExecutedStatement, executedLoops, executionOrder } from "./execution-order.ts";
import type { ScheduledMode, ScheduledRegion } from "./scheduled-region.ts";

export interface InstancePlace {
  /** Number of the kernel among those of the region. */
  readonly kernel: number;
  /** A program runs on one device. */
  readonly device: 0;
  /** One index for each loop whose iterations are dealt out to blocks, or to the threads of a CPU. */
  readonly block: readonly number[];
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
    const s = executedStatement(region, statement);
    checkInstance(region, s, point);
    const loops = executedLoops(s).map(({ name, mode }) => ({
      name,
      mode,
      value: affine.evaluateAffine(s.values.get(name)!, point),
    }));
    const rest = loops.flatMap(({ value }, i) => [value, s.positions[i + 1] ?? 0]);
    const on = (...modes: readonly ScheduledMode[]): readonly number[] =>
      loops.filter((l) => modes.includes(l.mode)).map((l) => l.value);
    return {
      kernel: s.kernel,
      device: 0,
      block: on("grid", "blocks"),
      group: on("groups"),
      thread: on("threads"),
      lane: on("vector"),
      loops,
      time: [s.kernel, s.positions[0]!, ...rest],
    };
  });
}

function executedStatement(region: ScheduledRegion, statement: string): ExecutedStatement {
  const all = executionOrder(region);
  const nameOf = (e: ExecutedStatement): string => e.scheduled.statement.name;
  const found = all.find((e) => nameOf(e) === statement);
  if (found) return found;
  return reject("SCH001", `there is no statement ${statement} in region ${region.region.name}`, {
    help: `statements are ${all.map(nameOf).join(", ")}`,
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
  const wrong =
    names.find((n) => point[n] === undefined) ?? Object.keys(point).find((n) => !names.includes(n));
  if (wrong !== undefined) {
    reject("SCH002", `the point does not fit the loops of ${name}: ${wrong}`, {
      at: name,
      help: `give a value for each of ${names.join(", ")}`,
    });
  }
  const { statements, context } = bridgeRegion(region.region);
  const where = names.map((n) => affine.equals(n, point[n]!));
  const here = affine.makeSet({ tuple: name, dims: names, where });
  const domain = affine.intersectParams(statements.get(name)!.domain, context);
  if (affine.isDisjoint(domain, here) !== "yes") return;
  const extents = loops.map((l) => `${l.name} in ${l.extent.key}`);
  reject("SCH020", `${name}[${names.map((n) => point[n]).join(", ")}] is no iteration`, {
    at: name,
    help: `it runs for ${extents.join(", ")}`,
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
      const [name, value] =
        /^\s*(?:([A-Za-z_][\w.]*)\s*=\s*)?(-?\d+)\s*$/.exec(part)?.slice(1) ?? malformed(text);
      return { name, value: Number(value) };
    });
    return {
      ...(region !== undefined && { region }),
      statement: statement!,
      point: (loops) =>
        Object.fromEntries(values.map((v, i) => [v.name ?? loops[i] ?? `axis ${i}`, v.value])),
    };
  });
}

function malformed(text: string): never {
  return reject("TXT001", `${JSON.stringify(text)} is no iteration`, {
    help: "write REGION:STATEMENT[i = 2, j = 7], or the values alone in the order of the loops",
  });
}

/** The place in words, a line each. */
export function formatPlace(place: InstancePlace): string {
  const spelled = (label: string, at: readonly number[]): readonly string[] =>
    at.length > 0 ? [`${label.padEnd(8)}${at.join(", ")}`] : [];
  const loops = place.loops.map((l) => {
    const mode = l.mode === "serial" ? "" : ` (${l.mode})`;
    return `  ${l.name} = ${l.value}${mode}`;
  });
  return [
    ...spelled("device", [place.device]),
    ...spelled("kernel", [place.kernel]),
    ...spelled("block", place.block),
    ...spelled("group", place.group),
    ...spelled("thread", place.thread),
    ...spelled("lane", place.lane),
    `time    (${place.time.join(", ")})`,
    "loops",
    ...loops,
  ].join("\n");
}
