/**
 * Texts of attention as the compiler lowers it to one kernel (lower/attention/), each from the composite and
 * an `attend` schedule: what assembling, counting and planting faults work on.
 */

import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { lowerRegionProgram } from "../../src/lower/region-program.ts";
import type { Program } from "../../src/program/program.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { buildNests } from "../../src/region/builders/build-nests.ts";
import { coalesceRegion } from "../../src/region/coalesce.ts";
import { type LayOut, regionsOf } from "../../src/region/regions-of.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { AttentionFinder } from "../../src/schedule/attention/join-attention.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import type { ScheduledRegion } from "../../src/schedule/scheduled-region.ts";
import { constant, type IndexLike, toIndex } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { targets } from "../../src/target/index.ts";
import { Making } from "./making.ts";

export interface AttentionCase {
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly dtype: "bf16" | "f16";
  readonly causal: boolean;
  /** Columns before the last one that a row meets as well, where that is not all. */
  readonly behind?: number;
  /** Whether the columns that count are data. */
  readonly lengths?: boolean;
  /** Whether the columns of each row are data: tokens of several sequences behind each other. */
  readonly packed?: boolean;
  /** Whether batch, rows and columns are open, up to these; where rows and columns are as many they stay so. */
  readonly open?: boolean;
  /** Whether a mask is added to the scores: of each row, of an open batch one of each sequence. */
  readonly mask: boolean;
  /** What scores are bounded by; absent: nothing. */
  readonly softcap?: number;
  /** The `attend` directive without its statement. */
  readonly how: string;
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join(" "));
  return result.value;
}

/** Sequences of a batch that is open, at most. */
const mostSequences = 4;

/** The composite by itself; in f32 for an oracle of it. */
export function attentionGraph(
  c: Omit<AttentionCase, "how" | "dtype"> & { readonly dtype: AttentionCase["dtype"] | "f32" },
): Graph {
  const g = new GraphBuilder("attention");
  const input = (name: string, shape: readonly IndexLike[]) =>
    g.input(name, { dtype: c.dtype, shape: shape.map(toIndex) });
  const [batch, rows] = c.open
    ? [g.symbol("B", 1, mostSequences), g.symbol("S", 1, c.rows)]
    : [1, c.rows];
  const columns = !c.open ? c.columns : c.rows === c.columns ? rows : g.symbol("T", 1, c.columns);
  const operands = [
    input("q", [batch, c.heads, rows, c.depth]),
    input("k", [batch, c.groups, columns, c.depth]),
    input("v", [batch, c.groups, columns, c.depth]),
    ...(c.mask ? [input("m", [batch, 1, c.open ? 1 : rows, columns])] : []),
    ...(c.lengths ? [lengthMask(g, c)] : []),
    ...(c.packed ? [rowMask(g, c)] : []),
  ];
  const causal = c.causal && !c.lengths ? "end" : "none";
  const band = c.behind === undefined ? {} : { behind: c.behind };
  const mask = c.mask || c.lengths === true || c.packed === true;
  const attrs = { scale: 1 / Math.sqrt(c.depth), causal, ...band, mask, softcap: c.softcap ?? 0 };
  return g.finish([g.node("attention", operands, attrs as never)]);
}

/** The composite's one region under the schedule. */
export function attentionRegion(c: AttentionCase): ScheduledRegion {
  return attentionOf(attentionGraph(c), c.how);
}

/** Columns before a length that is data; where causal, up to the row's place at the end of them. */
function lengthMask(
  g: GraphBuilder,
  { rows, columns, causal }: Pick<AttentionCase, "rows" | "columns" | "causal">,
): ValueId {
  const one = constant(1);
  const given = g.input("lengths", { dtype: "i64", shape: [one] });
  const length = g.node("reshape", [given], { shape: [one, one, one, one] });
  const place = (shape: readonly number[], axis: number): ValueId =>
    g.node("iota", [], { shape: shape.map((n) => constant(n)), axis, dtype: "i64" });
  const column = place([1, columns], 1);
  if (!causal) return g.node("less", [column, length], {});
  const last = g.node("add", [place([rows, 1], 0), g.applyNumber("sub", length, rows)], {});
  return g.node("lessEqual", [column, last], {});
}

/** Columns from one number of a row to another. */
function rowMask(
  g: GraphBuilder,
  { rows, columns }: Pick<AttentionCase, "rows" | "columns">,
): ValueId {
  const shape = [constant(rows), constant(1)];
  const numbers = ["starts", "ends"].map((name) =>
    g.input(name, { dtype: "i32", shape: shape.slice(0, 1) }),
  );
  const [start, end] = numbers.map((n) => g.node("reshape", [n], { shape }));
  const places = [constant(1), constant(columns)];
  const column = g.node("iota", [], { shape: places, axis: 1, dtype: "i32" });
  const isBehind = g.node("lessEqual", [start!, column], {});
  return g.node("and", [isBehind, g.node("less", [column, end!], {})], {});
}

/** The attention of a graph that ends with it. */
export function attentionOf(graph: Graph, how: string): ScheduledRegion {
  const model = prepareModel({ graph, weights: noWeights });
  const nests = take(buildNests(model.graph));
  let found: ReturnType<AttentionFinder["find"]>;
  const layOut: LayOut = (regions, grouped) => {
    found = new AttentionFinder(regions, grouped).find(regions.length - 1);
    return { regions, tensors: new Map() };
  };
  regionsOf(nests, { layOut });
  if (!found) throw new Error("the graph does not end with attention");
  const { region } = coalesceRegion(found.region);
  const last = region.statements.at(-1)!.name;
  const text = `schedule "${region.name}" for "h200" { attend ${last} ${how} }`;
  return take(applySchedule(region, take(parseSchedule(text))));
}

/** Proved, unless it is made otherwise. */
export function attentionProgram(scheduled: ScheduledRegion, making = new Making()): Program {
  const { program } = take(lowerRegionProgram(scheduled, targets.get("h200")!));
  return take(making.prove(program));
}

export function attentionText(c: AttentionCase, making?: Making): string {
  return printProgram(attentionProgram(attentionRegion(c), making));
}

/** All kernels of attention as the search schedules it. */
export function chosenAttentionText(c: Omit<AttentionCase, "how">, making = new Making()): string {
  const model = { graph: attentionGraph(c), weights: noWeights };
  const compiled = making.compile(model, { target: targets.get("h200")!, overlap: false });
  return printProgram(compiled.plan.program);
}
