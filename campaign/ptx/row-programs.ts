/**
 * Texts of norms, softmax, scans and places of the largest as the compiler lowers them to one kernel over rows (lower/rows/), each from a
 * graph and a `rows` schedule: what assembling, counting and planting faults work on.
 */
import type { CompiledModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { lowerProgram } from "../../src/lower/lower-program.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { buildNests } from "../../src/region/builders/build-nests.ts";
import { programOf, regionsOf } from "../../src/region/regions-of.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import type { ReduceKind } from "../../src/semantics/core-ops.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant, variable } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { targets } from "../../src/target/index.ts";
import { Making } from "./making.ts";

export interface RowsCase {
  readonly op: "softmax" | "layerNorm" | "rmsNorm" | "cumulative" | "argReduce";
  readonly shape: readonly [rows: number, length: number];
  /** Softmax, places and scans: along the first axis, of which the second one has the rows. */
  readonly across?: true;
  readonly dtype: "f32" | "bf16" | "f16" | "i64";
  /** The `rows` directive without its statement. */
  readonly how: string;
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join(" "));
  return result.value;
}

const h200 = targets.get("h200")!;

const norm = { axis: 1, epsilon: 1e-5 };
const attrsOf = {
  softmax: { axis: 1 },
  layerNorm: norm,
  rmsNorm: norm,
  cumulative: { axis: 1, kind: "sum", exclusive: false, reverse: true },
  argReduce: { axis: 1, kind: "max", keepDims: false, selectLast: false },
};

/** A fold by itself, whether or not it is cheaper in parts. */
function placesText(graph: Graph, how: string): string {
  const { regions, nests } = regionsOf(take(buildNests(graph)), { forBlocks: true });
  const [region] = regions;
  const text = `schedule "${region!.name}" for "h200" { rows ${region!.statements.at(-1)!.name} ${how} }`;
  const scheduled = take(applySchedule(region!, take(parseSchedule(text))));
  const alone = { nests, scheduled: [scheduled], requires: [], states: [] };
  return printProgram(take(lowerProgram(alone, h200)).program);
}

export interface SelectionCase {
  readonly dtype: DType;
  readonly shape: readonly [rows: number, length: number];
  readonly k: number;
}

/** The k largest of rows as the compiler makes them, in all of its kernels. */
export function selectionText(given: SelectionCase, making?: Making): string {
  return printProgram(compiledSelection(given, making).plan.program);
}

/** Of those kernels the one that counts: that with the most statements, by itself. */
export function countingText(given: SelectionCase, making?: Making): string {
  const { regions } = compiledSelection(given, making);
  const [scheduled] = regions
    .map((r) => r.scheduled)
    .sort((a, b) => b.statements.length - a.statements.length);
  const nests = programOf(scheduled!.region);
  const alone = { nests, scheduled: [scheduled!], requires: [], states: [] };
  return printProgram(take(lowerProgram(alone, h200)).program);
}

export interface ScanCase {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly reverse: boolean;
}

/** A sum up to each element as the compiler makes it, in all of its kernels. */
export function scanText({ dtype, shape, axis, reverse }: ScanCase, making = new Making()): string {
  const g = new GraphBuilder("scan");
  const x = g.input("x", { dtype, shape: shape.map((n) => constant(n)) });
  const attrs = { kind: "sum", axis, exclusive: false, reverse } as const;
  const graph = g.finish([g.node("cumulative", [x], attrs)]);
  const made = making.compile({ graph, weights: noWeights }, { target: h200, overlap: false });
  return printProgram(made.plan.program);
}

export interface GroupNormCase {
  readonly dtype: DType;
  readonly shape: readonly [batch: number, channels: number, ...spatial: number[]];
  readonly groups: number;
  /** The `rows` directive without its statement. */
  readonly how: string;
}

/** A norm of groups of channels under a schedule, in all of its kernels. */
export function groupNormText(
  { dtype, shape, groups, how }: GroupNormCase,
  making = new Making(),
): string {
  const g = new GraphBuilder("groups");
  const [x, s, b] = [shape, [shape[1]], [shape[1]]].map((dims, i) =>
    g.input("xsb"[i]!, { dtype, shape: dims.map((n) => constant(n)) }),
  );
  const graph = g.finish([g.node("groupNorm", [x!, s!, b!], { groups, epsilon: 1e-5 })]);
  const options = { target: h200, overlap: false };
  const plain = making.compile({ graph, weights: noWeights }, options);
  const { name, scheduled } = plain.regions.find((r) => r.scheduled.rows !== undefined)!;
  const last = scheduled.statements.at(-1)!.statement.name;
  const text = `schedule "${name}" for "h200" { rows ${last} ${how} }`;
  const measured = new Map([[name, take(parseSchedule(text))]]);
  const compiled = making.compile({ graph, weights: noWeights }, { ...options, measured });
  return printProgram(compiled.plan.program);
}

export interface FoldCase {
  /** A sum where it is absent. */
  readonly kind?: ReduceKind;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axes: readonly number[];
}

/** A fold over axes as the compiler makes it, in all of its kernels. */
export function foldText(
  { kind = "sum", dtype, shape, axes }: FoldCase,
  making = new Making(),
): string {
  const g = new GraphBuilder("fold");
  const x = g.input("x", { dtype, shape: shape.map((n) => constant(n)) });
  const graph = g.finish([g.reduce(kind, x, axes, false)]);
  const made = making.compile({ graph, weights: noWeights }, { target: h200, overlap: false });
  return printProgram(made.plan.program);
}

function compiledSelection(
  { dtype, shape, k }: SelectionCase,
  making = new Making(),
): CompiledModel {
  const g = new GraphBuilder("selection");
  const x = g.input("x", { dtype, shape: shape.map((n) => constant(n)) });
  const attrs = { axis: 1, k: constant(k), largest: true, sorted: true };
  const graph = g.finish([...g.nodes("topK", [x], attrs)]);
  return making.compile({ graph, weights: noWeights }, { target: h200, overlap: false });
}

/** What follows a statistic of rows of open number and length, with a few rows a thread: as the compiler makes it. */
export function openMapText(making = new Making()): string {
  const g = new GraphBuilder("map");
  g.symbol("S", 1, 512);
  const [heads, rows] = [constant(8), variable("S")];
  const x = g.input("x", { dtype: "f32", shape: [heads, rows, rows] });
  const most = g.input("most", { dtype: "f32", shape: [heads, rows, constant(1)] });
  const graph = g.finish([g.apply("exp", g.sub(x, most))]);
  const target = targets.get("a100-40gb")!;
  return printProgram(making.compile({ graph, weights: noWeights }, { target }).plan.program);
}

export function rowsText(
  { op, shape, across, dtype, how }: RowsCase,
  making = new Making(),
): string {
  const g = new GraphBuilder("rows");
  const input = (name: string, dims: readonly number[]) =>
    g.input(name, { dtype, shape: dims.map((n) => constant(n)) });
  const x = input("x", across ? shape.toReversed() : shape);
  const isNorm = op === "layerNorm" || op === "rmsNorm";
  const scale = isNorm ? [input("s", shape.slice(1))] : [];
  const bias = op === "layerNorm" ? [input("b", shape.slice(1))] : [];
  const attrs = { ...attrsOf[op], ...(across && { axis: 0 }) };
  const graph = g.finish([g.node(op, [x, ...scale, ...bias], attrs as never)]);
  const target = h200;
  const plain = making.compile({ graph, weights: noWeights }, { target });
  const [region, ...others] = plain.regions;
  if (op === "argReduce") return placesText(graph, how);
  if (!region || others.length > 0) throw new Error(`${op} is ${others.length + 1} regions`);
  const last = region.scheduled.statements.at(-1)!.statement.name;
  const text = `schedule "${region.name}" for "h200" { rows ${last} ${how} }`;
  const measured = new Map([[region.name, take(parseSchedule(text))]]);
  const compiled = making.compile({ graph, weights: noWeights }, { target, measured });
  return printProgram(compiled.plan.program);
}
