/**
 * Core ops on small tensors of symbolic numbers: shape arithmetic, evaluated at import. Data movement
 * runs the op's own reference on element positions and picks the elements that come out, so it needs no
 * code per op; arithmetic is a table over symbolic-number.ts. undefined: the op stays in the graph.
 */
import type { OpAttrs, OpKind } from "../../../graph/graph.ts";
import { evaluateAttrs } from "../../../semantics/concrete-attrs.ts";
import type { CoreOpKind } from "../../../semantics/core-ops.ts";
import { type DType, dtypes } from "../../../semantics/dtype.ts";
import { constantValue, type IndexExpr } from "../../../semantics/index-expr.ts";
import { type Reference, references } from "../../../semantics/references/references.ts";
import {
  broadcastShapes,
  broadcastStrides,
  elementCount,
  viewOffsets,
} from "../../../semantics/shape.ts";
import { indicesOf, type RefTensor, refTensor } from "../../../semantics/tensor.ts";
import {
  fromNumber,
  integerOf,
  type SymbolicArithmetic,
  type SymbolicNumber,
} from "./symbolic-number.ts";

/** A known small tensor. */
interface SymbolicTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly elements: readonly SymbolicNumber[];
}

export interface SymbolicCall<K extends OpKind> {
  readonly op: K;
  readonly inputs: readonly SymbolicTensor[];
  readonly attrs: OpAttrs[K];
  readonly result: { readonly dtype: DType; readonly shape: readonly number[] };
}

type Elementwise = (
  arithmetic: SymbolicArithmetic,
  operands: readonly SymbolicNumber[],
  dtype: DType,
) => SymbolicNumber | undefined;

const truth = (value: boolean): SymbolicNumber => fromNumber(value ? 1 : 0)!;

function compared(decide: (order: "less" | "equal" | "greater") => boolean): Elementwise {
  return (arithmetic, [a, b]) => {
    const order = arithmetic.compare(a!, b!);
    return order === "mixed" ? undefined : truth(decide(order));
  };
}

const isFloat = (dtype: DType): boolean => dtypes[dtype].kind === "float";

const elementwise: Partial<Record<OpKind, Elementwise>> = {
  add: (m, [a, b]) => m.add(a!, b!),
  sub: (m, [a, b]) => m.sub(a!, b!),
  mul: (m, [a, b]) => m.mul(a!, b!),
  div: (m, [a, b], dtype) => (isFloat(dtype) ? m.divide(a!, b!) : m.quotient(a!, b!)),
  floorMod: (m, [a, b]) => m.remainder(a!, b!),
  mod: (m, [a, b]) => (m.isNonNegative(a!) ? m.remainder(a!, b!) : undefined),
  min: (m, [a, b]) => m.min(a!, b!),
  max: (m, [a, b]) => m.max(a!, b!),
  neg: (m, [a]) => m.sub(truth(false), a!),
  abs: (m, [a]) => (m.isNonNegative(a!) ? a : undefined),
  relu: (m, [a]) => m.max(a!, truth(false)),
  floor: (m, [a]) => m.floor(a!),
  ceil: (m, [a]) => m.ceil(a!),
  trunc: (m, [a]) => m.truncate(a!),
  round: (_m, [a]) => (integerOf(a!) ? a : undefined),
  equal: compared((order) => order === "equal"),
  less: compared((order) => order === "less"),
  lessEqual: compared((order) => order !== "greater"),
  and: (m, [a, b]) => m.mul(a!, b!),
  or: (m, [a, b]) => m.max(a!, b!),
  not: (m, [a]) => m.sub(truth(true), a!),
  select: (_m, [condition, a, b]) => {
    const decided = constantValue(condition!.numerator);
    return decided === undefined ? undefined : decided === 0 ? b : a;
  },
};

/** Ops that only move elements. */
const movement: ReadonlySet<OpKind> = new Set<OpKind>([
  "reshape",
  "transpose",
  "broadcast",
  "slice",
  "reverse",
  "concat",
  "gather",
  "gatherElements",
  "gatherNd",
]);

/** The op's first result as symbolic elements, or undefined where it is none. */
export function evaluateSymbolic<K extends OpKind>(
  call: SymbolicCall<K>,
  arithmetic: SymbolicArithmetic,
): readonly SymbolicNumber[] | undefined {
  const table = elementwise[call.op];
  if (table) return mapElements(call, (operands, dtype) => table(arithmetic, operands, dtype));
  if (movement.has(call.op)) return moveElements(call);
  if (call.op === "cast") return convert(call.inputs[0]!, call.result.dtype, arithmetic);
  if (call.op === "reduce") return reduce(call as unknown as SymbolicCall<"reduce">, arithmetic);
  return undefined;
}

function mapElements<K extends OpKind>(
  { inputs, result }: SymbolicCall<K>,
  apply: (operands: readonly SymbolicNumber[], dtype: DType) => SymbolicNumber | undefined,
): readonly SymbolicNumber[] | undefined {
  const shape = broadcastShapes(...inputs.map((t) => t.shape));
  if (!shape || elementCount(shape) !== elementCount(result.shape)) return undefined;
  const offsets = inputs.map((t) => viewOffsets(shape, broadcastStrides(t.shape, shape)));
  const elements: SymbolicNumber[] = [];
  for (let i = 0; i < elementCount(shape); i++) {
    const operands = inputs.map((t, k) => t.elements[offsets[k]![i]!]!);
    const element = apply(operands, inputs.at(-1)!.dtype);
    if (!element) return undefined;
    elements.push(element);
  }
  return elements;
}

/** Runs the reference on positions: element p of operand k is the number start(k) + p. */
function moveElements<K extends OpKind>(
  call: SymbolicCall<K>,
): readonly SymbolicNumber[] | undefined {
  const indexed = call.op.startsWith("gather");
  const data = indexed ? call.inputs.slice(0, 1) : call.inputs;
  const inputs: RefTensor[] = [];
  let start = 0;
  for (const { shape, elements } of data) {
    const first = start;
    inputs.push(
      refTensor(
        "i32",
        shape,
        elements.map((_, p) => first + p),
      ),
    );
    start += elements.length;
  }
  if (indexed) {
    const [table, indices] = call.inputs as [SymbolicTensor, SymbolicTensor];
    const values = indices.elements.map((e) => constantValue(e.numerator));
    const known = values.filter((v) => v !== undefined);
    if (known.length < values.length || !inBounds(call, known, table.shape)) return undefined;
    inputs.push(refTensor("i64", indices.shape, known));
  }
  const evaluate = (e: IndexExpr): number => constantValue(e) ?? Number.NaN;
  const attrs = evaluateAttrs(call.op as CoreOpKind, call.attrs as never, evaluate);
  if (Object.values(attrs).some((v) => [v].flat().some((x) => Number.isNaN(x)))) return undefined;
  const [moved] = (references[call.op as CoreOpKind] as Reference<CoreOpKind>)(
    attrs as never,
    inputs,
    noSubgraphs,
  );
  const all = data.flatMap((t) => t.elements);
  return Array.from(indicesOf(moved!), (position) => all[position]!);
}

const noSubgraphs = {
  runSubgraph: () => ({ ok: false as const, diagnostics: [] }),
  subgraphOutputTypes: () => [],
};

/** Indices out of range are left to the run, which reports them. */
function inBounds<K extends OpKind>(
  call: SymbolicCall<K>,
  indices: readonly number[],
  shape: readonly number[],
): boolean {
  const axis = "axis" in call.attrs ? Number(call.attrs.axis) : 0;
  const extent = call.op === "gatherNd" ? Math.min(...shape) : (shape[axis] ?? 0);
  return indices.every((i) => i >= -extent && i < extent);
}

function convert(
  input: SymbolicTensor,
  to: DType,
  arithmetic: SymbolicArithmetic,
): readonly SymbolicNumber[] | undefined {
  const wide = isFloat(to) || to === "i64" || to === "i32";
  if (!wide) return to === input.dtype ? input.elements : undefined;
  if (isFloat(to) || !isFloat(input.dtype)) return input.elements;
  const elements = input.elements.map((e) => arithmetic.truncate(e));
  return elements.every((e) => e !== undefined) ? elements : undefined;
}

/** Sums, products and extrema over all elements (the usual element count of a shape). */
function reduce(
  { inputs, attrs }: SymbolicCall<"reduce">,
  arithmetic: SymbolicArithmetic,
): readonly SymbolicNumber[] | undefined {
  const [input] = inputs;
  const kinds = {
    sum: arithmetic.add,
    prod: arithmetic.mul,
    max: arithmetic.max,
    min: arithmetic.min,
  };
  if (attrs.axes.length !== input!.shape.length || !(attrs.kind in kinds)) return undefined;
  const combine = kinds[attrs.kind as keyof typeof kinds];
  const [first, ...rest] = input!.elements;
  if (!first) return undefined;
  let total: SymbolicNumber | undefined = first;
  for (const element of rest) total = total && combine(total, element);
  return total && [total];
}
