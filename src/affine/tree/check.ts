/**
 * Legality of a schedule tree: every dependence goes forward in the time that the tree gives, marked
 * loops and sets separate no dependent instances, and what meets only at the end of a kernel (grid,
 * device, block) separates none within it. Updates that may be reordered bind no order, but two of one
 * element never run at once except in vector lanes, which have an accumulator each.
 */
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { Dependence } from "../dependence.ts";
import { affine } from "../expression.ts";
import type { KnownConflicts } from "../known-conflicts.ts";
import {
  checkApart,
  checkDependence,
  type Legality,
  type LegalityOptions,
  type TimeSchedule,
  type Witness,
} from "../legality.ts";
import type { NestStatement } from "../nest.ts";
import {
  flattenTree,
  markOf,
  type TimePart,
  type TimePaths,
  timeMapOf,
  timesOf,
} from "./flatten.ts";
import { meetsAtEnd, type ScheduleTree } from "./tree.ts";

export interface TreeQuestion {
  readonly statements: readonly NestStatement[];
  readonly dependences: readonly Dependence[];
  readonly tree: ScheduleTree;
}

export type TreeLegality =
  | Legality
  /** The tree has no meaning for a statement; the witness is a pair that it would leave without order. */
  | {
      readonly kind: "malformed";
      readonly diagnostics: readonly Diagnostic[];
      readonly witness?: Witness;
    };

export interface TreeOptions extends LegalityOptions {
  /** Pairs that refused other trees of these statements; what refuses this one is added. */
  readonly known?: KnownConflicts;
}

export function checkTree(question: TreeQuestion, options: TreeOptions = {}): TreeLegality {
  const { statements, dependences, tree } = question;
  const flat = flattenTree(tree, statements);
  const absent = statements.find((s) => !flat.paths.has(s.name));
  if (absent) {
    const fault = diagnostic("SCH001", `${absent.name} has no leaf in the schedule tree`);
    return { kind: "malformed", diagnostics: [fault] };
  }
  const stray = outsideGrid(flat.paths);
  if (stray) {
    const witness = unorderedPair(stray.statements, question, options);
    return { kind: "malformed", diagnostics: [stray.fault], ...(witness && { witness }) };
  }
  const { known } = options;
  const broken = known?.find(flat, "ordered") ?? known?.find(flat, "apart");
  if (broken) return { kind: "illegal", witness: broken };
  const grid = gridTimes(statements, flat.paths);
  let open: Legality | undefined;
  const threads = outerTimes(flat, statements);
  for (const dependence of dependences) {
    const ordered = dependence.reassociable
      ? checkUpdates([threads, flat], dependence, options)
      : checkDependence(flat, dependence, options);
    const all = grid ? [ordered, checkApart(grid, dependence, options)] : [ordered];
    for (const one of all) {
      if (one.kind === "illegal") known?.add(one.witness);
      if (one.kind === "illegal") return one;
      if (one.kind === "unknown") open ??= one;
    }
  }
  return open ?? { kind: "legal" };
}

/** The dimensions down to the last whose iterations run on threads: what lies deeper separates nobody. */
function outerTimes(
  { paths, marks = [] }: TimeSchedule & { readonly paths: TimePaths },
  statements: readonly NestStatement[],
): TimeSchedule {
  const ends = marks.map((m) => (m.kind === "parallel" ? m.dimension + 1 : 0));
  return { times: timesOf(paths, statements, Math.max(0, ...ends)), marks };
}

/** Updates in any order: by the first schedule where that proves them legal, else in words of the second. */
function checkUpdates(
  [short, whole]: readonly [TimeSchedule, TimeSchedule],
  dependence: Dependence,
  options: LegalityOptions,
): Legality {
  const found = checkApart(short, dependence, options);
  return found.kind === "legal" ? found : checkApart(whole, dependence, options);
}

/** Places before the first loop: which kernel. */
function kernelParts(parts: readonly TimePart[]): readonly TimePart[] {
  const first = parts.findIndex((p) => p.loop !== undefined);
  return parts.slice(0, first < 0 ? parts.length : first);
}

function gridParts(parts: readonly TimePart[]): readonly TimePart[] {
  return parts.filter((p) => p.marks.some(meetsAtEnd));
}

/** Why a kernel's statements do not all run inside its grid loops, and which two show it. */
function outsideGrid(
  paths: TimePaths,
): { readonly fault: Diagnostic; readonly statements: readonly string[] } | undefined {
  const kernels = new Map<string, { name: string; grid: readonly TimePart[] }>();
  for (const [name, parts] of paths) {
    const key = kernelParts(parts)
      .map((p) => p.value.constant)
      .join();
    const grid = gridParts(parts);
    const first = kernels.get(key);
    if (!first) {
      kernels.set(key, { name, grid });
      continue;
    }
    const same =
      first.grid.length === grid.length && grid.every((p, i) => p.node === first.grid[i]!.node);
    const loop = [...grid, ...first.grid].find((p) => p.loop)?.loop;
    if (same) continue;
    const text = `${name} and ${first.name} do not share the grid loop ${loop}`;
    const help =
      "threads meet only between kernels: fuse inside the grid loop, or mark it parallel";
    return { fault: diagnostic("SCH016", text, { help }), statements: [first.name, name] };
  }
  return undefined;
}

/** Two instances that need each other, of statements that nothing orders. */
function unorderedPair(
  names: readonly string[],
  { statements, dependences }: TreeQuestion,
  options: LegalityOptions,
): Witness | undefined {
  const apart = statements.filter((s) => names.includes(s.name));
  const times = new Map(apart.map((s, i) => [s.name, timeMapOf(s, [{ value: affine(i) }])]));
  const schedule = { times, marks: [{ dimension: 0, kind: "parallel" as const }] };
  for (const d of dependences) {
    if (!times.has(d.source) || !times.has(d.sink)) continue;
    const one = checkApart(schedule, d, options);
    if (one.kind === "illegal") return one.witness;
  }
  return undefined;
}

/**
 * Which kernel, then the loops that meet only at its end, whatever is around them; undefined where the
 * tree's own time starts like this, with the same marks.
 */
function gridTimes(
  statements: readonly NestStatement[],
  paths: TimePaths,
): TimeSchedule | undefined {
  const all = [...paths.values()];
  const depth = Math.max(0, ...all.map((p) => gridParts(p).length));
  const before = Math.max(...all.map((p) => kernelParts(p).length));
  const standFirst = all.every((parts) => {
    const grid = gridParts(parts);
    return (
      grid.length === depth &&
      grid.every((p, i) => p === parts[before + i] && markOf(p) === "parallel")
    );
  });
  if (standFirst) return undefined;
  const zeros = Array.from({ length: before + depth }, () => ({ value: affine(0) }));
  const padded = (
    parts: readonly Pick<TimePart, "value">[],
    length: number,
  ): readonly Pick<TimePart, "value">[] => [...parts, ...zeros].slice(0, length);
  const times = new Map(
    statements.map((s) => {
      const parts = paths.get(s.name)!;
      const values = [...padded(kernelParts(parts), before), ...padded(gridParts(parts), depth)];
      return [s.name, timeMapOf(s, values)];
    }),
  );
  const marks = Array.from({ length: depth }, (_, i) => ({
    dimension: before + i,
    kind: "parallel" as const,
  }));
  return { times, marks };
}
