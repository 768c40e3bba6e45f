/**
 * The central check of region/: on random inputs the nests of a graph compute what the oracle
 * computes. Used by tests of nests, groups and rewritings of statements.
 */
import type { Graph, Node } from "../graph/graph.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import type { NestOptions } from "../region/builders/context.ts";
import type { NestProgram, Routine } from "../region/nest.ts";
import { evaluateAttrs } from "../semantics/concrete-attrs.ts";
import type { CoreOpKind } from "../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType } from "../semantics/dtype.ts";
import { evaluate, type IndexExpr } from "../semantics/index-expr.ts";
import { packTensor } from "../semantics/layout.ts";
import { references } from "../semantics/references/references.ts";
import {
  fromRef,
  type RefTensor,
  randomRef,
  refTensor,
  type Tensor,
  toRef,
} from "../semantics/tensor.ts";
import { DiagnosticError, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { Rng } from "../support/rng.ts";
import { distanceOf } from "./approximate.ts";
import { bindGraphSymbols, runGraph } from "./graph.ts";
import { type NestRunOptions, runNests } from "./nest.ts";
import { drawPoint, writesAgain } from "./sample-points.ts";
import { StatementSampler } from "./sample-statement.ts";

export interface NestCheckOptions {
  readonly rng: Rng;
  /** Values of the graph's symbols. */
  readonly extents: Readonly<Record<string, number>>;
  /** Range of random integers. */
  readonly bounds?: readonly [number, number];
  /** How nests are built. */
  readonly nests?: NestOptions;
  /** A rewriting of the nests that must not change what they compute. */
  readonly transform?: (program: NestProgram) => NestProgram;
}

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

/** Throws InternalError naming the first element on which nests and oracle differ. */
export function checkNests(graph: Graph, options: NestCheckOptions): void {
  const { rng, extents, bounds, nests = {}, transform = (p) => p } = options;
  const symbols = new Map(Object.entries(extents));
  const random = (dtype: DType, shape: readonly IndexExpr[]): RefTensor => {
    const concrete = shape.map((d) => evaluate(d, symbols));
    const tensor = randomRef(dtype, concrete, rng);
    if (!bounds || isFloatDType(dtype) || dtype === "bool") return tensor;
    const { kind, min, max } = dtypes[dtype];
    const low = kind === "uint" ? 0 : Math.max(min, bounds[0]);
    const draw = () => rng.integer(low, Math.min(max, bounds[1]));
    return refTensor(dtype, concrete, Array.from({ length: tensor.data.length }, draw));
  };
  const inputs = graph.inputs.map((v) => {
    const { dtype, shape } = graph.values[v]!.type;
    return random(dtype, shape);
  });
  const stored = new Map<string, Tensor>();
  for (const { value, source } of graph.weights) {
    if (source.kind === "inline") continue;
    const { dtype, shape } = graph.values[value]!.type;
    stored.set(source.key, fromRef(random(dtype, shape)));
  }
  const weights = { read: (key: string) => stored.get(key)! };
  const expected = unwrap(runGraph(graph, inputs, weights));
  const program = transform(unwrap(buildNests(graph, nests)));
  const given = new Map(graph.inputs.map((v, i) => [graph.values[v]!.name, inputs[i]!]));
  for (const { value, source } of graph.weights) {
    const tensor = source.kind === "inline" ? source.tensor : weights.read(source.key);
    given.set(graph.values[value]!.name, toRef(tensor));
  }
  for (const { name, stored: copy } of program.tensors.values()) {
    if (copy) given.set(name, toRef(packTensor(fromRef(given.get(copy.of)!), copy.layout)));
  }
  const bound = unwrap(bindGraphSymbols(graph, inputs));
  const runRoutine = (routine: Routine, reads: readonly RefTensor[]) =>
    runNode(graph.nodes[routine.node]!, reads, bound);
  const afterStatement = checkSamples(rng);
  const actual = unwrap(runNests(program, { given, symbols: bound, runRoutine, afterStatement }));
  for (const [i, tensor] of expected.entries()) {
    compareTensors(program.outputs[i]!, actual[i]!, tensor);
  }
}

/** Elements that the sampling oracle gives one by one are those of the whole run, within their errors. */
function checkSamples(rng: Rng): NonNullable<NestRunOptions["afterStatement"]> {
  return (statement, cells, symbols) => {
    if (writesAgain(statement)) return;
    const sampler = new StatementSampler(statement, symbols, (name) => {
      const { dtype, shape, data } = cells(name);
      const element = (at: number) => data[at]!;
      const plain = data instanceof Float64Array && data.length > 0;
      return { dtype, shape, element, ...(plain && { repeats: { data, phase: 0 } }) };
    });
    for (let i = 0; i < samplesOfOneStatement; i++) {
      const point = drawPoint(sampler, rng);
      for (const { tensor, offset, value, error } of point ? sampler.valuesAt(point) : []) {
        const whole = cells(tensor).data[offset]!;
        const close = distanceOf(value, whole) <= error;
        invariant(close, () => `${tensor}: ${whole} at ${offset}, by itself ${value} +- ${error}`);
      }
    }
  };
}

const samplesOfOneStatement = 6;

function runNode(
  node: Node,
  reads: readonly RefTensor[],
  symbols: ReadonlyMap<string, number>,
): readonly RefTensor[] {
  const kind = node.op as CoreOpKind;
  const attrs = evaluateAttrs(kind, node.attrs as never, (e) => evaluate(e, symbols));
  const run = references[kind] as (attrs: unknown, reads: readonly RefTensor[]) => RefTensor[];
  return run(attrs, reads);
}

/**
 * Equal up to a few roundings of the dtype for floats, exactly for everything else. Small differences of large
 * numbers have the roundings of these: an error is of the largest element, as the verdict's is.
 */
function compareTensors(name: string, actual: RefTensor, expected: RefTensor): void {
  const type = (t: RefTensor): string => `${t.dtype}[${t.shape}]`;
  invariant(type(actual) === type(expected), () => `${name}: ${type(actual)}, ${type(expected)}`);
  const mantissa = dtypes[expected.dtype].format?.mantissaBits;
  const relative = mantissa === undefined ? 0 : 32 * 2 ** -mantissa;
  let largest = 1;
  for (const want of expected.data) {
    const size = Math.abs(Number(want));
    if (Number.isFinite(size)) largest = Math.max(largest, size);
  }
  for (const [i, want] of expected.data.entries()) {
    const got = actual.data[i]!;
    if (Object.is(got, want) || got === want) continue;
    const close = typeof want === "number" && Math.abs(Number(got) - want) <= relative * largest;
    invariant(close, () => `${name}: element ${i} is ${got}, the oracle says ${want}`);
  }
}
