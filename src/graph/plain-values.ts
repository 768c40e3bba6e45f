/**
 * What is known of values where integer inputs hold nothing negative: that they hold nothing negative either, or one
 * number everywhere. So much is enough to see through the idioms by which exporters let positions count from the
 * end (`x + n * (x < 0)`): the branch for negative ones is 0 then.
 */
import { dtypes, isIntegerDType } from "../semantics/dtype.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import { type Tensor, toRef } from "../semantics/tensor.ts";
import type { Graph, Node, ValueId } from "./graph.ts";
import { traitsOf } from "./op-table.ts";

/** Elements of a constant that are looked at: those that are one number are small. */
const mostElements = 4096;

export interface PlainValue {
  /** All elements are this. Truths are 0 and 1. */
  readonly number?: number;
  readonly isNatural: boolean;
}

const unknown: PlainValue = { isNatural: false };
const naturalOnes: PlainValue = { isNatural: true };

/** By value; absent: nothing is known. */
export function plainValues(graph: Graph): ReadonlyMap<ValueId, PlainValue> {
  const known = new Map<ValueId, PlainValue>();
  for (const v of graph.inputs) {
    const { dtype } = graph.values[v]!.type;
    if (isIntegerDType(dtype) || dtypes[dtype].kind === "bool") known.set(v, naturalOnes);
  }
  for (const { value, source } of graph.weights) {
    if (source.kind === "inline") known.set(value, plainConstant(source.tensor));
  }
  for (const node of graph.nodes) {
    const operands = node.inputs.map((v) => known.get(v) ?? unknown);
    const found = plainResult(node, graph, operands);
    if (found) for (const v of node.outputs) known.set(v, found);
  }
  return known;
}

function plainConstant(tensor: Tensor): PlainValue {
  const { data } = toRef(tensor);
  if (data.length === 0 || data.length > mostElements) return unknown;
  const values = Array.from(data as Float64Array, Number);
  if (values.every((x) => x === values[0])) return ofNumber(values[0]!);
  return { isNatural: values.every((x) => x >= 0) };
}

function ofNumber(number: number): PlainValue {
  return { number, isNatural: number >= 0 };
}

function plainResult(
  node: Node,
  graph: Graph,
  operands: readonly PlainValue[],
): PlainValue | undefined {
  const traits = traitsOf(node, graph);
  if (traits.dataMovement) return common(operands);
  if (traits.conversion) {
    const [x] = operands;
    const { dtype } = graph.values[node.outputs[0]!]!.type;
    if (dtypes[dtype].kind !== "bool") return x;
    return x!.number === undefined ? naturalOnes : ofNumber(Number(x!.number !== 0));
  }
  if (node.op === "clip") return operands[0]!.isNatural ? { isNatural: true } : undefined;
  return traits.elementwise && scalarResults[traits.elementwise]?.(...operands);
}

/** What is true of each. */
function common([first, ...others]: readonly PlainValue[]): PlainValue | undefined {
  if (!first) return undefined;
  const isOne = others.every((o) => o.number === first.number);
  const isNatural = first.isNatural && others.every((o) => o.isNatural);
  return isOne ? first : { isNatural };
}

type Rule = (...operands: readonly PlainValue[]) => PlainValue | undefined;

/** Both are numbers: the result is one. */
const computed = (f: (a: number, b: number) => number, otherwise: Rule): Rule => {
  return (a, b) => {
    const [x, y] = [a?.number, b?.number];
    return x !== undefined && y !== undefined ? ofNumber(f(x, y)) : otherwise(a!, b!);
  };
};
const bothNatural: Rule = (a, b) => ({ isNatural: a!.isNatural && b!.isNatural });
const truth = (isTrue: boolean): PlainValue => ofNumber(Number(isTrue));
const isZero = ({ number }: PlainValue): boolean => number === 0;

/** Operators that say something; absent: unknown. */
const scalarResults: Readonly<Partial<Record<ScalarOp, Rule>>> = {
  not: (x) => (x!.number === undefined ? naturalOnes : ofNumber(1 - x!.number)),
  less: computed(
    (a, b) => Number(a < b),
    (a, b) =>
      a!.isNatural && b!.number !== undefined && b!.number <= 0 ? truth(false) : naturalOnes,
  ),
  lessEqual: computed(
    (a, b) => Number(a <= b),
    (a, b) =>
      b!.isNatural && a!.number !== undefined && a!.number <= 0 ? truth(true) : naturalOnes,
  ),
  equal: () => naturalOnes,
  mul: computed(
    (a, b) => a * b,
    (a, b) => (isZero(a!) || isZero(b!) ? ofNumber(0) : bothNatural(a!, b!)),
  ),
  add: computed((a, b) => a + b, bothNatural),
  sub: computed(
    (a, b) => a - b,
    (a, b) => (isZero(b!) ? a : undefined),
  ),
  select: (c, a, b) => (c!.number === undefined ? common([a!, b!]) : c!.number === 0 ? b : a),
  min: bothNatural,
  max: (a, b) => ({ isNatural: a!.isNatural || b!.isNatural }),
  abs: () => naturalOnes,
  relu: () => naturalOnes,
  mod: (a) => ({ isNatural: a!.isNatural }),
  floorMod: (_, b) => ({ isNatural: b!.isNatural }),
};
