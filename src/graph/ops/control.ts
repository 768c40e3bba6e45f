/**
 * Control flow. A subgraph sees the symbols of the graph around it and declares only its own, whose
 * names differ from all those. It takes everything it uses as an input.
 */
import { type IndexExpr, indexEquals, variablesOf } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { booleans, dim, graph, integer, integers } from "../attr-schema.ts";
import type { Graph, TensorType } from "../graph.ts";
import {
  checkAxis,
  checkDType,
  checkLength,
  checkRank,
  compareExtents,
  refuse,
  unify,
  unifyShapes,
} from "../inference.ts";
import type { InferContext, OpRows } from "../op-info.ts";
import { printType, tensorType } from "../tensor-type.ts";

export function inputTypes(g: Graph): readonly TensorType[] {
  return g.inputs.map((id) => g.values[id]!.type);
}

export function outputTypes(g: Graph): readonly TensorType[] {
  return g.outputs.map((id) => g.values[id]!.type);
}

function checkInputs(
  ctx: InferContext,
  body: Graph,
  given: readonly TensorType[],
  what: string,
): void {
  const wanted = inputTypes(body);
  if (wanted.length !== given.length) {
    refuse(ctx, "GRF004", `${what} takes ${wanted.length} inputs, but gets ${given.length}`);
  }
  for (const [i, type] of wanted.entries()) {
    checkAgrees(ctx, type, given[i]!, `input ${i} of ${what}`);
  }
}

function checkAgrees(ctx: InferContext, a: TensorType, b: TensorType, what: string): void {
  if (a.dtype !== b.dtype || a.shape.length !== b.shape.length) {
    refuse(ctx, "GRF004", `${what}: ${printType(a)} against ${printType(b)}`);
  }
  unifyShapes(ctx, a.shape, b.shape, what);
}

/** The extent if every branch gives it, else a new symbol that covers all. */
function mergeExtents(
  ctx: InferContext,
  sides: readonly { readonly extent: IndexExpr; readonly graph: Graph }[],
): IndexExpr {
  const first = sides[0]!.extent;
  const local = sides.some(({ extent, graph: g }) => mentionsOwn(g, extent));
  const same = sides.every(
    ({ extent }) => indexEquals(extent, first) || compareExtents(ctx, extent, first) === "equal",
  );
  if (same && !local) return first;
  const ranges = sides.map(({ extent, graph: g }) => {
    const own = g.symbols.map((s) => [s.name, s] as const);
    return rangeOf(extent, new Map([...ctx.ranges, ...own]));
  });
  return ctx.freshSymbol("branch", {
    min: Math.max(0, Math.min(...ranges.map((r) => r.min))),
    max: Math.max(...ranges.map((r) => r.max)),
  });
}

function mentionsOwn(g: Graph, extent: IndexExpr): boolean {
  const names = variablesOf(extent);
  return g.symbols.some((s) => names.has(s.name));
}

/** Extents that leave a body may not mention the body's own symbols. */
function checkEscapes(ctx: InferContext, body: Graph, types: readonly TensorType[]): void {
  for (const type of types) {
    if (type.shape.some((d) => mentionsOwn(body, d))) {
      refuse(ctx, "GRF004", `a result ${printType(type)} depends on a symbol inside the body`);
    }
  }
}

/** Outputs of a loop body after the carried values, which must keep their types. */
function checkCarried(
  ctx: InferContext,
  before: readonly TensorType[],
  after: readonly TensorType[],
): void {
  if (after.length < before.length) {
    refuse(ctx, "GRF004", `the body gives ${after.length} of ${before.length} carried values`);
  }
  for (const [i, type] of before.entries()) {
    checkAgrees(ctx, type, after[i]!, `carried value ${i}`);
  }
}

function insertAxis(
  type: TensorType,
  axis: number,
  extent: IndexExpr,
  ctx: InferContext,
): TensorType {
  checkAxis(ctx, axis, type.shape.length + 1);
  return {
    dtype: type.dtype,
    shape: [...type.shape.slice(0, axis), extent, ...type.shape.slice(axis)],
  };
}

const nested = { hasSubgraph: true } as const;

/** Rows without counts: those of subgraphs need the op table (counts.ts). */
export const controlOps = {
  if: {
    arity: [1, Infinity],
    schema: { then: graph, else: graph },
    traits: { ...nested, dataDependentShape: true },
    infer: (inputs, attrs, ctx) => {
      checkDType(ctx, inputs[0]!, "bool", "the condition");
      const sides = [attrs.then, attrs.else] as const;
      checkInputs(ctx, attrs.then, inputs.slice(1), "the then branch");
      checkInputs(ctx, attrs.else, inputs.slice(1), "the else branch");
      const [yes, no] = sides.map(outputTypes) as [readonly TensorType[], readonly TensorType[]];
      if (yes.length !== no.length) {
        refuse(ctx, "GRF004", `the branches give ${yes.length} and ${no.length} outputs`);
      }
      return yes.map((type, o) => {
        const other = no[o]!;
        if (type.dtype !== other.dtype || type.shape.length !== other.shape.length) {
          const found = `${printType(type)} and ${printType(other)}`;
          refuse(ctx, "GRF004", `output ${o} of the branches: ${found}`);
        }
        const shape = type.shape.map((extent, i) =>
          mergeExtents(ctx, [
            { extent, graph: attrs.then },
            { extent: other.shape[i]!, graph: attrs.else },
          ]),
        );
        return { dtype: type.dtype, shape };
      });
    },
  },
  loop: {
    arity: [2, Infinity],
    schema: { body: graph, carried: integer, maxTrips: dim },
    traits: { ...nested, dataDependentShape: true },
    infer: (inputs, { body, carried, maxTrips }, ctx) => {
      checkDType(ctx, inputs[0]!, "i64", "the trip count");
      checkRank(ctx, inputs[0]!, 0, "the trip count");
      checkDType(ctx, inputs[1]!, "bool", "the condition");
      checkRank(ctx, inputs[1]!, 0, "the condition");
      checkInputs(
        ctx,
        body,
        [tensorType("i64"), tensorType("bool"), ...inputs.slice(2)],
        "the body",
      );
      const results = outputTypes(body);
      if (results.length === 0) refuse(ctx, "GRF004", "the body gives no condition");
      checkAgrees(ctx, tensorType("bool"), results[0]!, "the condition of the body");
      const before = inputs.slice(2, 2 + carried);
      checkCarried(ctx, before, results.slice(1));
      const elements = results.slice(1 + carried);
      checkEscapes(ctx, body, elements);
      if (elements.length === 0) return before;
      const most = Math.max(0, rangeOf(maxTrips, ctx.ranges).max);
      const trips = ctx.freshSymbol("trips", { min: 0, max: most });
      return [...before, ...elements.map((t) => insertAxis(t, 0, trips, ctx))];
    },
  },
  scan: {
    arity: [1, Infinity],
    schema: {
      body: graph,
      carried: integer,
      sequences: integer,
      inputAxes: integers,
      inputReversed: booleans,
      outputAxes: integers,
      outputReversed: booleans,
    },
    traits: nested,
    infer: (inputs, attrs, ctx) => {
      const { body, carried, sequences, inputAxes, outputAxes } = attrs;
      checkLength(ctx, inputAxes, sequences, "inputAxes");
      checkLength(ctx, attrs.inputReversed, sequences, "inputReversed");
      const before = inputs.slice(0, carried);
      const sequence = inputs.slice(carried, carried + sequences);
      if (sequence.length === 0 || sequence.length < sequences) {
        refuse(ctx, "GRF001", `scan over ${sequence.length} sequences`, "it needs at least one");
      }
      const trips = scanTrips(ctx, sequence, inputAxes);
      const elements = sequence.map((type, i) => ({
        dtype: type.dtype,
        shape: type.shape.filter((_, axis) => axis !== inputAxes[i]!),
      }));
      const captures = inputs.slice(carried + sequences);
      checkInputs(ctx, body, [...before, ...elements, ...captures], "the body");
      const results = outputTypes(body);
      checkCarried(ctx, before, results);
      const collected = results.slice(carried);
      checkLength(ctx, outputAxes, collected.length, "outputAxes");
      checkLength(ctx, attrs.outputReversed, collected.length, "outputReversed");
      checkEscapes(ctx, body, collected);
      return [...before, ...collected.map((t, i) => insertAxis(t, outputAxes[i]!, trips, ctx))];
    },
  },
} satisfies OpRows<"if" | "loop" | "scan">;

function scanTrips(
  ctx: InferContext,
  sequences: readonly TensorType[],
  axes: readonly number[],
): IndexExpr {
  const extents = sequences.map((type, i) => {
    checkAxis(ctx, axes[i]!, type.shape.length);
    return type.shape[axes[i]!]!;
  });
  return extents.reduce((a, b) => unify(ctx, a, b, "extents of the scanned axes"));
}
