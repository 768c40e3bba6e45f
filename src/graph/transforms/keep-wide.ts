/**
 * Values of half precision that are likely to leave its range (65,504) are computed and kept in single
 * precision: the squares of a decomposed layer norm become infinite otherwise, the norm divides by that,
 * and the result is finite and simply wrong. A node with such an operand is computed in single precision
 * too; a result that fits is rounded to half again, so that storage stays narrow where it can. For a target
 * whose matrix units take half operands, a wide operand of a product is divided by the largest element of
 * what is summed, rounded to half, and the sum multiplied by it: whatever the range is, the product is as
 * exact as one of half operands. Outputs of the graph keep their type. In: a model of core ops; out: the
 * same with conversions, and what was widened with its estimated range.
 */
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Model, Node, ValueId } from "../graph.ts";
import { traitsOf } from "../op-table.ts";
import { estimateRanges, magnitudeOf, type ValueRange } from "../value-ranges.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

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

/** @param hasHalfUnits whether products of half operands are faster than those of single ones */
export function keepWide(
  model: Model,
  hasHalfUnits = false,
): Rebuilt & { readonly wide: readonly WideValue[] } {
  const { graph } = model;
  if (!graph.values.some((v) => v.type.dtype === "f16")) {
    return { graph, constants: new Map(), wide: [] };
  }
  const ranges = estimateRanges(model);
  const outputs = new Set(graph.outputs);
  const overflows = new Set(
    graph.nodes
      .flatMap((node) => (canWiden(node, graph) ? node.outputs : []))
      .filter((id) => {
        const isHalf = graph.values[id]!.type.dtype === "f16" && !outputs.has(id);
        return isHalf && magnitudeOf(ranges.get(id)!) > largestHalf;
      }),
  );
  if (overflows.size === 0) return { graph, constants: new Map(), wide: [] };
  const rebuilt = rebuildGraph(graph, {
    node: (site) => {
      if (site.old !== graph) return undefined;
      return (hasHalfUnits && multiplyScaled(site, overflows)) || widen(site, overflows);
    },
  });
  const wide = graph.nodes.flatMap((node) =>
    node.outputs
      .filter((id) => overflows.has(id))
      .map((id) => {
        const { name } = graph.values[id]!;
        return { value: name, origin: node.origin ?? node.op, range: ranges.get(id)! };
      }),
  );
  return { ...rebuilt, wide };
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
): readonly ValueId[] | undefined {
  const typeOf = (id: ValueId) => old.values[id]!.type.dtype;
  const isWide = (i: number): boolean =>
    typeOf(node.inputs[i]!) === "f16" && b.dtypeOf(inputs[i]!) === "f32";
  const takesWide = inputs.some((_, i) => isWide(i));
  const gives = node.outputs.some((id) => overflows.has(id));
  if (!takesWide && !gives) return undefined;
  if (!canWiden(node, old)) {
    const narrow = inputs.map((id, i) => (isWide(i) ? b.cast(id, "f16") : id));
    return b.nodes(node.op, narrow, node.attrs as never);
  }
  if (node.op === "cast") {
    const to = node.attrs.to;
    const target = to === "f16" && gives ? "f32" : to;
    return [b.dtypeOf(inputs[0]!) === target ? inputs[0]! : b.cast(inputs[0]!, target)];
  }
  // A product of narrow operands with a wide sum is what matrix units compute.
  const staysNarrow = "accumulator" in node.attrs && !takesWide;
  const operands = inputs.map((id, i) =>
    typeOf(node.inputs[i]!) === "f16" && !staysNarrow ? b.cast(id, "f32") : id,
  );
  const results = b.nodes(node.op, operands, wideAttributes(node) as never);
  return results.map((result, i) => {
    const id = node.outputs[i]!;
    const fits = typeOf(id) === "f16" && !overflows.has(id);
    return fits ? b.cast(result, "f16") : result;
  });
}

/** The sum of a product that was narrow becomes wide with its operands. */
function wideAttributes({ attrs }: Node): Node["attrs"] {
  const { accumulator } = attrs as { readonly accumulator?: string };
  return accumulator === "f16" ? ({ ...attrs, accumulator: "f32" } as never) : attrs;
}
