/**
 * What is known of the value that an e-class stands for: its type, whether weights alone decide it, its
 * elements when they are few, its sign and finiteness. An e-class analysis: every e-node says what it
 * knows, equal e-nodes join, and two facts that cannot both hold are a contradiction, which names the
 * rule that made it. Types come from the op table's own inference; an e-node that does not type, or
 * that asks for an equality of extents which the graph does not grant, is a fault.
 */
import { type Analysis, Contradiction, type EGraph, type NodeId } from "../egraph/index.ts";
import type { AnyAttrs } from "../graph/attr-schema.ts";
import { inferCall, inferDefinition } from "../graph/builder.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, OpAttrs, OpKind, TensorType } from "../graph/graph.ts";
import type { InferContext } from "../graph/op-info.ts";
import { infoOf, isComposite } from "../graph/op-table.ts";
import { elementsOf, printType, sameType } from "../graph/tensor-type.ts";
import type { CoreOpKind } from "../semantics/core-ops.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue, type IndexExpr, sub, toIndex } from "../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../semantics/index-range.ts";
import { type ReferenceContext, runReference } from "../semantics/references/references.ts";
import { fromRef, numbersOf, type RefTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { attempt, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { isFoldable } from "./foldable.ts";
import { addConstant, callOf, constantOp, knownElements, type Leaf, leafOp } from "./terms.ts";

export interface Facts {
  /** Absent with a fault. */
  readonly type?: TensorType;
  /** Why the e-node cannot be: it does not type. */
  readonly fault?: string;
  /** Decided by weights and constants alone, and within the limits of folding. */
  readonly constant: boolean;
  /** The elements, where they are few and known. */
  readonly value?: RefTensor;
  /** No element is NaN or infinite. */
  readonly finite: boolean;
  /** No element is below zero (it may be NaN unless it is finite). */
  readonly nonNegative: boolean;
  /** No element is minus infinity (it may be NaN or plus infinity). */
  readonly aboveLowest: boolean;
}

/** What the analysis reads of the graph it works for. */
export interface FactScope {
  readonly ranges: IndexRanges;
  /** Equalities of extents that the graph requires: `a = b`, both ways round. */
  readonly granted: ReadonlySet<string>;
  /** Types that were inferred before, by what was asked; may be shared by graphs of one scope. */
  readonly inferred: Map<string, TensorType | string>;
}

export function scopeOf(graph: Graph): FactScope {
  const granted = new Set(
    graph.constraints.flatMap(({ left, right }) => [
      `${left.key} = ${right.key}`,
      `${right.key} = ${left.key}`,
    ]),
  );
  return { ranges: rangesOf(graph), granted, inferred: new Map() };
}

/** Infers the type of a call, or says why it has none. */
export function typeOfCall(
  scope: FactScope,
  op: OpKind,
  inputs: readonly TensorType[],
  { attrs, key }: { readonly attrs: AnyAttrs; readonly key: string },
): TensorType | string {
  const asked = `${op} ${key} ${inputs.map(printType).join(" ")}`;
  const known = scope.inferred.get(asked);
  if (known !== undefined) return known;
  const found = inferType(scope, op, inputs, attrs);
  scope.inferred.set(asked, found);
  return found;
}

function inferType(
  scope: FactScope,
  op: OpKind,
  inputs: readonly TensorType[],
  attrs: AnyAttrs,
): TensorType | string {
  const ctx: InferContext = {
    ranges: scope.ranges,
    at: op,
    requireEqual: (a, b) => {
      if (scope.granted.has(`${a.key} = ${b.key}`)) return;
      const rest = simplify(sub(a, b), scope.ranges);
      if (rest.key !== "0") reject("SHP002", `${a.key} is not known to be ${b.key}`);
    },
    freshSymbol: () => reject("SHP004", `the data decide an extent of ${op}`),
    inferDefinition: (kind, types, given) => inferDefinition(kind, types, given, ctx),
  };
  const result = attempt(() => inferCall(op, inputs, attrs as OpAttrs[OpKind], ctx));
  if (!result.ok) return result.diagnostics.map((d) => d.message).join("; ");
  if (result.value.length !== 1) return `${op} has ${result.value.length} results`;
  const { dtype, shape } = result.value[0]!;
  return { dtype, shape: shape.map((d) => simplify(d, scope.ranges)) };
}

const unknown: Facts = { constant: false, finite: false, nonNegative: false, aboveLowest: false };

export function factsAnalysis(scope: FactScope): Analysis<Facts> {
  return {
    make: (node, graph) => factsOf(scope, node, graph),
    join: joinFacts,
    equals: sameFacts,
    modify: materialise,
  };
}

function factsOf(scope: FactScope, node: NodeId, graph: EGraph<Facts>): Facts {
  const op = graph.opName(node);
  const value = graph.payloadValue(node);
  if (op === constantOp) return factsOfTensor(value as Tensor);
  if (op === leafOp) {
    const { type, isWeight } = value as Leaf;
    const finite = isExactType(type);
    return { ...unknown, type, constant: isWeight, finite, aboveLowest: finite };
  }
  const children = graph.children(node).map((child) => graph.data(child));
  const broken = children.find((c) => c.fault !== undefined);
  if (broken) return { ...unknown, fault: broken.fault! };
  const key = graph.vocabulary.payloadKey(graph.payload(node));
  const call = callOf(op, key, value);
  invariant(call, () => `unknown operator "${op}"`);
  return factsOfCall(scope, call, key, children);
}

function factsOfCall(
  scope: FactScope,
  { op, attrs }: { readonly op: OpKind; readonly attrs: AnyAttrs },
  key: string,
  children: readonly Facts[],
): Facts {
  const types = children.map((c) => c.type!);
  const type = typeOfCall(scope, op, types, { attrs, key });
  if (typeof type === "string") return { ...unknown, fault: type };
  const constant =
    children.length > 0 &&
    children.every((c) => c.constant) &&
    isFoldable({ op, attrs, inputs: types, outputs: [type] });
  const value = constant ? evaluate(op, attrs, children, type) : undefined;
  if (value) return { ...factsOfValue(value), type, constant };
  const sign = signOf(op, children, type);
  const aboveLowest =
    sign.finite ||
    sign.nonNegative ||
    (op === "max" && children.some((c) => c.aboveLowest)) ||
    (movesData(op) && children.every((c) => c.aboveLowest));
  return { type, constant, ...sign, aboveLowest };
}

function factsOfTensor(tensor: Tensor): Facts {
  return factsOfValue(toRef(tensor));
}

function factsOfValue(value: RefTensor): Facts {
  const type = { dtype: value.dtype, shape: value.shape.map(toIndex) };
  const numbers = value.data instanceof Float64Array ? numbersOf(value) : undefined;
  return {
    type,
    constant: true,
    value,
    finite: numbers ? numbers.every((x) => Number.isFinite(x)) : true,
    nonNegative: numbers ? numbers.every((x) => x >= 0) : !value.data.some((x) => x < 0),
    aboveLowest: numbers ? numbers.every((x) => x !== -Infinity) : true,
  };
}

function isExactType({ dtype }: TensorType): boolean {
  return dtypes[dtype].kind !== "float";
}

/** Results at or above zero whatever the operand (or NaN). */
const neverNegative: ReadonlySet<string> = new Set(["abs", "exp", "relu", "sigmoid", "sqrt"]);
const keepSign: ReadonlySet<string> = new Set(["add", "mul", "max", "min", "div"]);
const anyOne: ReadonlySet<string> = new Set(["max"]);

function movesData(op: OpKind): boolean {
  const { traits } = infoOf(op);
  return typeof traits !== "function" && traits.dataMovement === true;
}

function signOf(
  op: OpKind,
  children: readonly Facts[],
  type: TensorType,
): { readonly finite: boolean; readonly nonNegative: boolean } {
  const finite = isExactType(type);
  if (neverNegative.has(op)) return { finite, nonNegative: true };
  const all = children.length > 0 && children.every((c) => c.nonNegative);
  if (anyOne.has(op)) return { finite, nonNegative: children.some((c) => c.nonNegative) };
  if (movesData(op)) {
    return { finite: finite || children.every((c) => c.finite), nonNegative: all };
  }
  return { finite, nonNegative: all && keepSign.has(op) && !finite };
}

function refuseSubgraph(): never {
  invariant(false, () => "a node with a subgraph was folded");
}

const noSubgraphs: ReferenceContext<Graph> = {
  runSubgraph: refuseSubgraph,
  subgraphOutputTypes: refuseSubgraph,
};

/** The elements, when operands are known and the result is small. */
function evaluate(
  op: OpKind,
  attrs: AnyAttrs,
  children: readonly Facts[],
  type: TensorType,
): RefTensor | undefined {
  const elements = constantValue(elementsOf(type));
  if (isComposite(op) || elements === undefined || elements > knownElements) return undefined;
  const inputs = children.map((c) => c.value);
  if (inputs.some((v) => v === undefined)) return undefined;
  const result = runReference(
    {
      kind: op as CoreOpKind,
      attrs: attrs as never,
      inputs: inputs as readonly RefTensor[],
      evaluate: (d: IndexExpr) => constantValue(d)!,
    },
    noSubgraphs,
  );
  return result.ok ? result.value[0] : undefined;
}

/** Relative difference of two elements that rounding explains. */
const roundingSlack = 1e-3;

function joinFacts(a: Facts, b: Facts): Facts | Contradiction {
  if (a.fault !== undefined || b.fault !== undefined) {
    return new Contradiction(`a term does not type: ${a.fault ?? b.fault}`);
  }
  invariant(a.type && b.type, () => "facts without a type");
  if (a.type.dtype !== b.type.dtype || a.type.shape.length !== b.type.shape.length) {
    return new Contradiction(`${printType(a.type)} cannot equal ${printType(b.type)}`);
  }
  const differs = a.type.shape.some((d, i) => {
    const gap = constantValue(sub(d, b.type!.shape[i]!));
    return gap !== undefined && gap !== 0;
  });
  if (differs) {
    return new Contradiction(`${printType(a.type)} cannot equal ${printType(b.type)}`);
  }
  if (a.value && b.value && !isClose(a.value, b.value)) {
    return new Contradiction(`the constant ${textOf(a.value)} cannot equal ${textOf(b.value)}`);
  }
  const value = smaller(a.value, b.value);
  return {
    type: printType(a.type) <= printType(b.type) ? a.type : b.type,
    constant: a.constant || b.constant,
    finite: a.finite || b.finite,
    nonNegative: a.nonNegative || b.nonNegative,
    aboveLowest: a.aboveLowest || b.aboveLowest,
    ...(value && { value }),
  };
}

/** Of two that rounding set apart the one that is first in order, so that joins commute. */
function smaller(a: RefTensor | undefined, b: RefTensor | undefined): RefTensor | undefined {
  if (!a || !b) return a ?? b;
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [a.data[i]!, b.data[i]!];
    if (Object.is(x, y) || x === y) continue;
    // NaN comes last.
    return x < y || Number.isNaN(Number(y)) ? a : b;
  }
  return a;
}

function isClose(a: RefTensor, b: RefTensor): boolean {
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [Number(a.data[i]), Number(b.data[i])];
    if (Object.is(x, y) || x === y) continue;
    if (!(Math.abs(x - y) <= roundingSlack * Math.max(Math.abs(x), Math.abs(y), 1e-30)))
      return false;
  }
  return true;
}

function textOf({ data }: RefTensor): string {
  return `[${Array.from(data.slice(0, 4), String).join(", ")}${data.length > 4 ? ", …" : ""}]`;
}

function sameFacts(a: Facts, b: Facts): boolean {
  return (
    a.constant === b.constant &&
    a.finite === b.finite &&
    a.nonNegative === b.nonNegative &&
    a.aboveLowest === b.aboveLowest &&
    a.fault === b.fault &&
    (a.value === b.value ||
      (a.value !== undefined &&
        b.value !== undefined &&
        smaller(a.value, b.value) === a.value &&
        smaller(b.value, a.value) === b.value)) &&
    (a.type === b.type ||
      (a.type !== undefined && b.type !== undefined && sameType(a.type, b.type)))
  );
}

/** Known elements become a constant of their own, for rules to match and extraction to choose. */
function materialise(root: NodeId, graph: EGraph<Facts>): void {
  const { value } = graph.data(root);
  if (!value) return;
  const known = addConstant(graph, fromRef(value));
  if (!graph.equal(known, root)) graph.union(root, known, "constant folding");
}
