/**
 * Values of half precision that are likely to leave its range (65,504) are computed and kept in single
 * precision: the squares of a decomposed layer norm become infinite otherwise, the norm divides by that,
 * and the result is finite and simply wrong. A node with such an operand is computed in single precision
 * too; a result that fits is rounded to half again, so that storage stays narrow where it can. For a target
 * whose matrix units take half operands, a wide operand of a product is divided by the largest element of
 * what is summed, rounded to half, and the sum multiplied by it: whatever the range is, the product is as
 * exact as one of half operands. Where a conversion costs as much as the arithmetic (WebAssembly), all
 * values of half precision are kept wide, of both kinds, and weights are read so. Inputs and outputs of the
 * graph keep their type. In: a model of core ops; out: the same with conversions, and what would have left
 * its range, with the estimate. Stored factors of products may stay half where loads widen them cheaply: memory
 * is read half as much, and no value changes.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { decodeTableOf } from "../../semantics/float-codec.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { makeTensor, type Tensor } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Model, Node, ValueId, Weight } from "../graph.ts";
import { traitsOf } from "../op-table.ts";
import { elementsOf } from "../tensor-type.ts";
import { estimateRanges, magnitudeOf, type ValueRange } from "../value-ranges.ts";
import { type RebuildSite, rebuildGraph } from "./rebuild.ts";

/** A value of half precision that is kept wide. */
export interface WideValue {
  readonly value: string;
  /** Node of the model, where it is known. */
  readonly origin: string;
  readonly range: ValueRange;
}

const largestHalf = 65_504;
/** What the largest element of a scaled operand becomes, and the least that it is taken to be. */
const top = 2 ** 14;
const leastSize = 2 ** -100;

export interface KeepWideOptions {
  /** Products of half operands are faster than those of single ones. */
  readonly hasHalfUnits?: boolean;
  /** All values of half precision are kept wide. */
  readonly everywhere?: boolean;
  /** But weights that are factors of products: they are widened where they are loaded. */
  readonly narrowFactors?: boolean;
}

/** Elements of half weights up to which they are made wide: half of what 32 bits can address. */
const mostWideElements = 2 ** 29;

export function keepWide(
  { graph, weights }: Model,
  { hasHalfUnits = false, everywhere = false, narrowFactors = false }: KeepWideOptions = {},
): { readonly model: Model; readonly isChanged: boolean; readonly wide: readonly WideValue[] } {
  const halves = graph.values.filter((v) => isHalf(v.type.dtype));
  if (halves.length === 0) return { model: { graph, weights }, isChanged: false, wide: [] };
  const ranges = estimateRanges({ graph, weights });
  const outputs = new Set(graph.outputs);
  const overflows = new Set(
    widenable(graph).filter((id) => {
      const isF16 = graph.values[id]!.type.dtype === "f16" && !outputs.has(id);
      return isF16 && magnitudeOf(ranges.get(id)!) > largestHalf;
    }),
  );
  const factors = narrowFactors ? factorWeights(graph) : new Set<ValueId>();
  const isWhole = everywhere && halfWeightElements(graph, factors) <= mostWideElements;
  const kept = isWhole
    ? new Set(
        widenable(graph).filter((id) => isHalf(graph.values[id]!.type.dtype) && !outputs.has(id)),
      )
    : overflows;
  if (kept.size === 0) return { model: { graph, weights }, isChanged: false, wide: [] };
  /** Stored weights that are read wide, by their new keys. */
  const widened = new Map<string, string>();
  const rebuilt = rebuildGraph(graph, {
    node: (site) => {
      if (site.old !== graph) return undefined;
      return (hasHalfUnits && multiplyScaled(site, kept)) || widen(site, kept, factors);
    },
    weight: (b, weight, old) => {
      if (!isWhole || old !== graph || outputs.has(weight.value)) return undefined;
      if (factors.has(weight.value)) return undefined;
      return wideWeight(b, weight, { graph, widened });
    },
  });
  const read = (key: string): Tensor => {
    const narrow = widened.get(key);
    if (narrow !== undefined) return wideTensor(weights.read(narrow));
    return rebuilt.constants.get(key) ?? weights.read(key);
  };
  const wide = graph.nodes.flatMap((node) =>
    node.outputs
      .filter((id) => overflows.has(id))
      .map((id) => {
        const { name } = graph.values[id]!;
        return { value: name, origin: node.origin ?? node.op, range: ranges.get(id)! };
      }),
  );
  return { model: { graph: rebuilt.graph, weights: { read } }, isChanged: true, wide };
}

function isHalf(dtype: DType): boolean {
  return dtype === "f16" || dtype === "bf16";
}

/** Results of nodes that mean the same with wide operands. */
function widenable(graph: Graph): readonly ValueId[] {
  return graph.nodes.flatMap((node) => (canWiden(node, graph) ? node.outputs : []));
}

/**
 * Stored weights of half precision that are factors of products and nothing else, and along which the results
 * lie: a vector of them is widened as a whole, once for all rows of a tile.
 */
function factorWeights(graph: Graph): ReadonlySet<ValueId> {
  const stored = graph.weights.filter((w) => w.source.kind === "stored").map((w) => w.value);
  const found = new Set(stored.filter((id) => isHalf(graph.values[id]!.type.dtype)));
  for (const id of graph.outputs) found.delete(id);
  for (const node of graph.nodes) {
    for (const [i, id] of node.inputs.entries()) if (!liesAlong(node, i, graph)) found.delete(id);
  }
  return found;
}

/** Whether the results of a product lie along this factor, and the other is data. */
function liesAlong(node: Node, factor: number, graph: Graph): boolean {
  if (node.op !== "contract" || node.inputs[0] === node.inputs[1]) return false;
  const { lhs, rhs, output } = node.attrs;
  const { shape } = graph.values[node.outputs[0]!]!.type;
  const last = output.findLast((_, axis) => constantValue(shape[axis]!) !== 1);
  return last !== undefined && (factor === 0 ? lhs : rhs).includes(last);
}

/** Elements of weights of half precision but for those that stay so. */
function halfWeightElements(graph: Graph, narrow: ReadonlySet<ValueId>): number {
  return graph.weights
    .filter(({ value }) => !narrow.has(value))
    .map(({ value }) => graph.values[value]!.type)
    .filter(({ dtype }) => isHalf(dtype))
    .reduce((sum, type) => sum + (constantValue(elementsOf(type)) ?? Infinity), 0);
}

/** A weight of half precision in single precision; undefined: it is none. */
function wideWeight(
  b: GraphBuilder,
  { value, source }: Weight,
  { graph, widened }: { readonly graph: Graph; readonly widened: Map<string, string> },
): ValueId | undefined {
  const { name, type } = graph.values[value]!;
  if (!isHalf(type.dtype)) return undefined;
  if (source.kind === "inline") return b.constant(wideTensor(source.tensor), name);
  const taken = new Set(graph.weights.map((w) => (w.source.kind === "stored" ? w.source.key : "")));
  let key = `${source.key} as f32`;
  while (taken.has(key)) key += "'";
  b.reserveKeys([key]);
  widened.set(key, source.key);
  return b.weight(name, { ...type, dtype: "f32" }, key);
}

function wideTensor({ dtype, shape, data }: Tensor): Tensor {
  invariant(dtypes[dtype].bits === 16 && data instanceof Uint16Array, () => `${dtype} is no half`);
  const wide = makeTensor("f32", shape);
  const table = decodeTableOf(dtype);
  const into = wide.data as Float32Array;
  for (let i = 0; i < data.length; i++) into[i] = table[data[i]!]!;
  return wide;
}

/** Its meaning does not depend on the type of its float operands. */
function canWiden(node: Node, graph: Graph): boolean {
  const { composite, hasSubgraph, random, dataDependentShape } = traitsOf(node, graph);
  return !composite && !hasSubgraph && !random && !dataDependentShape;
}

/** A product of which an operand is kept wide, by half operands; undefined: it is none. */
function multiplyScaled(
  { b, old, node, inputs }: RebuildSite,
  overflows: ReadonlySet<ValueId>,
): readonly ValueId[] | undefined {
  if (node.op !== "contract") return undefined;
  const isHalf = node.inputs.every((id) => old.values[id]!.type.dtype === "f16");
  if (!isHalf || inputs.every((id) => b.dtypeOf(id) === "f16")) return undefined;
  const { lhs, rhs, output } = node.attrs;
  const sides = [lhs, rhs].map((labels, i) => scaled(b, inputs[i]!, labels, output));
  const narrow = sides.map((side) => side.value);
  const [sum] = b.nodes(node.op, narrow, { ...node.attrs, accumulator: "f32" });
  const whole = sides.reduce((at, { size }) => (size === undefined ? at : b.mul(at, size)), sum!);
  const [id] = node.outputs;
  const fits = old.values[id!]!.type.dtype === "f16" && !overflows.has(id!);
  return [fits ? b.cast(whole, "f16") : whole];
}

/**
 * A wide operand divided by its largest element along the sum, and that element where the results are; a
 * narrow one as it is. Elements that half precision drops are 2^-38 of the largest, far below its rounding.
 */
function scaled(
  b: GraphBuilder,
  value: ValueId,
  labels: readonly string[],
  output: readonly string[],
): { readonly value: ValueId; readonly size?: ValueId } {
  if (b.dtypeOf(value) === "f16") return { value };
  const summed = labels.flatMap((label, axis) => (output.includes(label) ? [] : [axis]));
  const largest = b.reduce("max", b.apply("abs", value), summed, true);
  const size = b.applyNumber("mul", b.applyNumber("max", largest, leastSize), 1 / top);
  const kept = output.filter((label) => labels.includes(label)).map((l) => labels.indexOf(l));
  const shape = output.map((l) => (labels.includes(l) ? b.shapeOf(value)[labels.indexOf(l)]! : 1));
  const inOrder = b.transpose(size, [...kept, ...summed]);
  return { value: b.cast(b.div(value, size), "f16"), size: b.reshape(inOrder, shape) };
}

function widen(
  { b, old, node, inputs }: RebuildSite,
  overflows: ReadonlySet<ValueId>,
  factors: ReadonlySet<ValueId>,
): readonly ValueId[] | undefined {
  const typeOf = (id: ValueId) => old.values[id]!.type.dtype;
  const isWide = (i: number): boolean =>
    isHalf(typeOf(node.inputs[i]!)) && b.dtypeOf(inputs[i]!) === "f32";
  const takesWide = inputs.some((_, i) => isWide(i));
  const gives = node.outputs.some((id) => overflows.has(id));
  if (!takesWide && !gives) return undefined;
  if (!canWiden(node, old)) {
    const narrow = inputs.map((id, i) => (isWide(i) ? b.cast(id, typeOf(node.inputs[i]!)) : id));
    return b.nodes(node.op, narrow, node.attrs as never);
  }
  if (node.op === "cast") {
    const { to } = node.attrs;
    const target = gives ? "f32" : to;
    return [b.dtypeOf(inputs[0]!) === target ? inputs[0]! : b.cast(inputs[0]!, target)];
  }
  // A product of narrow operands with a wide sum is what matrix units compute.
  const staysNarrow = "accumulator" in node.attrs && !takesWide;
  const operands = inputs.map((id, i) => {
    const isNarrow = staysNarrow || factors.has(node.inputs[i]!);
    return isHalf(typeOf(node.inputs[i]!)) && !isNarrow ? b.cast(id, "f32") : id;
  });
  const results = b.nodes(node.op, operands, wideAttributes(node) as never);
  return results.map((result, i) => {
    const id = node.outputs[i]!;
    const fits = isHalf(typeOf(id)) && !overflows.has(id);
    return fits ? b.cast(result, typeOf(id)) : result;
  });
}

/** The sum of a product that was narrow becomes wide with its operands. */
function wideAttributes({ attrs }: Node): Node["attrs"] {
  const { accumulator } = attrs as { readonly accumulator?: string };
  return accumulator === "f16" || accumulator === "bf16"
    ? ({ ...attrs, accumulator: "f32" } as never)
    : attrs;
}

/** Rows of the warning about values that are kept wide. */
const mostWideRows = 20;

/** The warning about values that are kept wide; none where there are none. */
export function keptWide(wide: readonly WideValue[]): readonly Diagnostic[] {
  if (wide.length === 0) return [];
  const rows = wide.slice(0, mostWideRows).map(({ value, origin, range }) => {
    const [low, high] = [range.low, range.high].map((x) => x.toPrecision(2));
    return `${value} (${origin}): about ${low} to ${high}`;
  });
  const more = wide.length - rows.length;
  const message = `${wide.length} values may leave the range of f16; they are kept in f32`;
  const found = diagnostic("GRF015", message, {
    notes: more > 0 ? [...rows, `and ${more} more`] : rows,
    help: "nothing is lost but some time; scale the activations, or export the model in f32 or bf16",
  });
  return [{ ...found, severity: "warning" }];
}
