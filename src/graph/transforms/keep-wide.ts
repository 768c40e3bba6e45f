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
import { isHalfDType } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { wideTensor } from "../../semantics/wide-tensor.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Model, Node, NodeOf, ValueId, Weight } from "../graph.ts";
import { subgraphsOf, traitsOf } from "../op-table.ts";
import { elementsOf } from "../tensor-type.ts";
import {
  endless,
  estimateRanges,
  type GraphRanges,
  largestHalf,
  magnitudeOf,
  mayLeaveHalf,
  type ValueRange,
} from "../value-ranges.ts";
import { openBodies } from "./open-bodies.ts";
import { type RebuildSite, rebuildGraph } from "./rebuild.ts";

/** A value of half precision that is kept wide. */
export interface WideValue {
  readonly value: string;
  /** Node of the model, where it is known. */
  readonly origin: string;
  readonly range: ValueRange;
}

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
  /** And products by such weights of bf16 take their data in bf16, as the model's own types round them. */
  readonly pairsOfBrains?: boolean;
}

/** Elements of half weights up to which they are made wide: half of what 32 bits can address. */
const mostWideElements = 2 ** 29;

export function keepWide(
  source: Model,
  {
    hasHalfUnits = false,
    everywhere = false,
    narrowFactors = false,
    pairsOfBrains = false,
  }: KeepWideOptions = {},
): { readonly model: Model; readonly isChanged: boolean; readonly wide: readonly WideValue[] } {
  const unchanged = { model: source, isChanged: false, wide: [] };
  if (!hasHalves(source.graph)) return unchanged;
  const factors = narrowFactors ? factorWeights(source.graph) : none;
  const isWhole = everywhere && halfWeightElements(source.graph, factors) <= mostWideElements;
  const sets = new WideSets(withOpenBodies(source), isWhole);
  const { graph, weights } = sets.model;
  const wide = sets.overflowing(graph);
  if (sets.of(graph).kept.size === 0 && wide.length === 0) return unchanged;
  /** Stored weights that are read wide, by their new keys. */
  const widened = new Map<string, string>();
  const rebuilt = rebuildGraph(graph, {
    node: (site) => {
      const own = { ...sets.of(site.old), factors: site.old === graph ? factors : none };
      return (
        (hasHalfUnits && multiplyScaled(site, own.kept)) ||
        (pairsOfBrains && multiplyPairs(site, own)) ||
        widen(site, own)
      );
    },
    weight: (b, weight, old) => {
      if (!isWhole || old !== graph || graph.outputs.includes(weight.value)) return undefined;
      if (factors.has(weight.value)) return undefined;
      return wideWeight(b, weight, { graph, widened });
    },
  });
  const read = (key: string): Tensor => {
    const narrow = widened.get(key);
    if (narrow !== undefined) return wideTensor(weights.read(narrow));
    return rebuilt.constants.get(key) ?? weights.read(key);
  };
  return { model: { graph: rebuilt.graph, weights: { read } }, isChanged: true, wide };
}

const none: ReadonlySet<ValueId> = new Set();

function hasHalves(graph: Graph): boolean {
  return (
    graph.values.some((v) => isHalfDType(v.type.dtype)) ||
    graph.nodes.some((node) => subgraphsOf(node).some(hasHalves))
  );
}

/** A model with the ranges of its values, those in bodies among them. */
interface RangedModel {
  readonly model: Model;
  readonly ranges: GraphRanges;
}

/** The model where bodies take and give in single precision what may leave the range of half. */
function withOpenBodies(model: Model): RangedModel {
  const ranges = estimateRanges(model);
  const opened = openBodies(model.graph, ranges);
  if (!opened) return { model, ranges };
  const weights = {
    read: (key: string) => opened.constants.get(key) ?? model.weights.read(key),
  };
  const found = { graph: opened.graph, weights };
  return { model: found, ranges: estimateRanges(found) };
}

interface WideSet {
  /** Values of half precision that may leave its range. */
  readonly overflows: ReadonlySet<ValueId>;
  /** Those that are kept wide, these among them. */
  readonly kept: ReadonlySet<ValueId>;
}

/** Which values of a model are kept wide, in the graph and in each of the bodies in it. */
class WideSets {
  /** With outputs of their own where others read them: what is kept wide of them is no output. */
  readonly model: Model;
  readonly #isWhole: boolean;
  readonly #ranges: GraphRanges;
  readonly #named: ReadonlyMap<ValueId, string>;
  readonly #sets = new Map<Graph, WideSet>();

  constructor({ model, ranges }: RangedModel, isWhole: boolean) {
    this.#isWhole = isWhole;
    const own = ranges.get(model.graph)!;
    const isKept = (id: ValueId) => isWhole || this.#leaves(model.graph, id, own);
    const halves = new Set(widenable(model.graph).filter(isKept));
    const { graph, named } = withOwnOutputs(model.graph, halves);
    this.model = { graph, weights: model.weights };
    this.#named = named;
    this.#ranges = new Map([...ranges, [graph, own]]);
  }

  of(graph: Graph): WideSet {
    const known = this.#sets.get(graph) ?? this.#find(graph);
    this.#sets.set(graph, known);
    return known;
  }

  /** What is told of the values that may leave the range. */
  overflowing(graph: Graph): readonly WideValue[] {
    const { overflows } = this.of(graph);
    const ranges = this.#ranges.get(graph)!;
    const isTop = graph === this.model.graph;
    return graph.nodes.flatMap((node) => [
      ...node.outputs
        .filter((id) => overflows.has(id))
        .map((id) => {
          const value = (isTop && this.#named.get(id)) || graph.values[id]!.name;
          return { value, origin: node.origin ?? node.op, range: ranges.get(id)! };
        }),
      ...subgraphsOf(node).flatMap((body) => this.overflowing(body)),
    ]);
  }

  #find(graph: Graph): WideSet {
    const outputs = new Set(graph.outputs);
    const ranges = this.#ranges.get(graph)!;
    const halves = widenable(graph).filter((id) => !outputs.has(id));
    const overflows = new Set(halves.filter((id) => this.#leaves(graph, id, ranges)));
    const isWhole = this.#isWhole && graph === this.model.graph;
    return { overflows, kept: isWhole ? new Set(halves) : overflows };
  }

  #leaves(graph: Graph, id: ValueId, ranges: ReadonlyMap<ValueId, ValueRange>): boolean {
    return mayLeaveHalf(graph.values[id]!.type.dtype, ranges.get(id));
  }
}

/**
 * Outputs that would be kept wide and that other nodes read become conversions of what these read, so that what
 * follows does not hang on whether a value is looked at. Also, by their new numbers, the names of what is read.
 */
function withOwnOutputs(
  graph: Graph,
  kept: ReadonlySet<ValueId>,
): { readonly graph: Graph; readonly named: ReadonlyMap<ValueId, string> } {
  const read = new Set(graph.nodes.flatMap((n) => n.inputs));
  const apart = new Set(graph.outputs.filter((id) => kept.has(id) && read.has(id)));
  if (apart.size === 0) return { graph, named: new Map() };
  const taken = new Set(graph.values.map((v) => v.name));
  const values = [...graph.values];
  const nodes = [...graph.nodes];
  const own = new Map<ValueId, ValueId>();
  const named = new Map<ValueId, string>();
  for (const id of apart) {
    const value = graph.values[id]!;
    let name = `${value.name}.wide`;
    while (taken.has(name)) name += "'";
    taken.add(name);
    values[id] = { ...value, name };
    own.set(id, values.length);
    named.set(id, value.name);
    values.push({ ...value, id: values.length });
    const to = value.type.dtype;
    const attrs = { to, saturate: false };
    const origin = `output ${value.name}`;
    const outputs = [own.get(id)!];
    nodes.push({ id: nodes.length, op: "cast", inputs: [id], outputs, attrs, origin });
  }
  const outputs = graph.outputs.map((id) => own.get(id) ?? id);
  const states = graph.states.map((s) => ({ ...s, output: own.get(s.output) ?? s.output }));
  return { graph: { ...graph, values, nodes, outputs, states }, named };
}

/** Results of half precision of nodes that mean the same with wide operands. */
function widenable(graph: Graph): readonly ValueId[] {
  const able = graph.nodes.flatMap((node) => (canWiden(node, graph) ? node.outputs : []));
  return able.filter((id) => isHalfDType(graph.values[id]!.type.dtype));
}

/**
 * Stored weights of half precision that are factors of products and nothing else, and along which the results
 * lie: a vector of them is widened as a whole, once for all rows of a tile.
 */
function factorWeights(graph: Graph): ReadonlySet<ValueId> {
  const stored = graph.weights.filter((w) => w.source.kind === "stored").map((w) => w.value);
  const found = new Set(stored.filter((id) => isHalfDType(graph.values[id]!.type.dtype)));
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
    .filter(({ dtype }) => isHalfDType(dtype))
    .reduce((sum, type) => sum + (constantValue(elementsOf(type)) ?? Infinity), 0);
}

/** A weight of half precision in single precision; undefined: it is none. */
function wideWeight(
  b: GraphBuilder,
  { value, source }: Weight,
  { graph, widened }: { readonly graph: Graph; readonly widened: Map<string, string> },
): ValueId | undefined {
  const { name, type } = graph.values[value]!;
  if (!isHalfDType(type.dtype)) return undefined;
  if (source.kind === "inline") return b.constant(wideTensor(source.tensor), name);
  const taken = new Set(graph.weights.map((w) => (w.source.kind === "stored" ? w.source.key : "")));
  let key = `${source.key} as f32`;
  while (taken.has(key)) key += "'";
  b.reserveKeys([key]);
  widened.set(key, source.key);
  return b.weight(name, { ...type, dtype: "f32" }, key);
}

/** Its meaning does not depend on the type of its float operands. */
function canWiden(node: Node, graph: Graph): boolean {
  const { composite, hasSubgraph, random, dataDependentShape } = traitsOf(node, graph);
  return !composite && !hasSubgraph && !random && !dataDependentShape;
}

/** A product of which an operand is kept wide, by half operands; undefined: it is none. */
function multiplyScaled(
  { b, old, node, inputs }: RebuildSite,
  kept: ReadonlySet<ValueId>,
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
  const fits = old.values[id!]!.type.dtype === "f16" && !kept.has(id!);
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

/** Terms that one lane of an instruction for bf16 sums. */
const pairTerms = 2;

/**
 * A product by a stored weight of bf16, whose data are rounded to bf16 as the model rounds them; undefined: it is none
 * that instructions for pairs take: the data contiguous along one even depth.
 */
function multiplyPairs(
  { b, old, node, inputs }: RebuildSite,
  { kept, factors }: WideSet & { readonly factors: ReadonlySet<ValueId> },
): readonly ValueId[] | undefined {
  if (node.op !== "contract") return undefined;
  const isBrain = node.inputs.every((id) => old.values[id]!.type.dtype === "bf16");
  const weight = node.inputs.findIndex((id) => factors.has(id));
  if (!isBrain || weight < 0 || b.dtypeOf(inputs[1 - weight]!) !== "f32") return undefined;
  const { lhs, rhs, output } = node.attrs;
  const labels = weight === 0 ? rhs : lhs;
  const summed = labels.filter((label) => !output.includes(label));
  const depth = constantValue(b.shapeOf(inputs[1 - weight]!).at(-1)!);
  if (summed.length !== 1 || labels.at(-1) !== summed[0]) return undefined;
  if (depth === undefined || depth % pairTerms !== 0) return undefined;
  const narrow = inputs.map((id) => b.cast(id, "bf16"));
  const [sum] = b.nodes(node.op, narrow, { ...node.attrs, accumulator: "f32" });
  const [id] = node.outputs;
  const fits = old.values[id!]!.type.dtype === "bf16" && !kept.has(id!);
  return [fits ? b.cast(sum!, "bf16") : sum!];
}

function widen(
  { b, old, node, inputs }: RebuildSite,
  { overflows, kept, factors }: WideSet & { readonly factors: ReadonlySet<ValueId> },
): readonly ValueId[] | undefined {
  const typeOf = (id: ValueId) => old.values[id]!.type.dtype;
  const isWide = (i: number): boolean =>
    isHalfDType(typeOf(node.inputs[i]!)) && b.dtypeOf(inputs[i]!) === "f32";
  const takesWide = inputs.some((_, i) => isWide(i));
  const gives = node.outputs.some((id) => kept.has(id));
  if (!takesWide && !gives) return undefined;
  if (!canWiden(node, old)) {
    const narrow = inputs.map((id, i) => (isWide(i) ? b.cast(id, typeOf(node.inputs[i]!)) : id));
    return b.nodes(node.op, narrow, node.attrs as never);
  }
  if (node.op === "cast") {
    const [x] = inputs as [ValueId];
    if (gives) return [wideConversion(b, x, node, overflows)];
    return [b.dtypeOf(x) === node.attrs.to ? x : b.node("cast", [x], node.attrs)];
  }
  // A product of narrow operands with a wide sum is what matrix units compute.
  const staysNarrow = "accumulator" in node.attrs && !takesWide;
  const operands = inputs.map((id, i) => {
    const isNarrow = staysNarrow || factors.has(node.inputs[i]!);
    return isHalfDType(typeOf(node.inputs[i]!)) && !isNarrow ? b.cast(id, "f32") : id;
  });
  const results = b.nodes(node.op, operands, wideAttributes(node) as never);
  return results.map((result, i) => {
    const id = node.outputs[i]!;
    const fits = isHalfDType(typeOf(id)) && !kept.has(id);
    return fits ? b.cast(result, typeOf(id)) : result;
  });
}

/**
 * What a conversion to half precision gives, in single. One that the model asks for is rounded; where that is
 * likely to become infinite, what leaves the range stays as it is, like the values of operators.
 */
function wideConversion(
  b: GraphBuilder,
  x: ValueId,
  { attrs, outputs }: NodeOf<"cast">,
  overflows: ReadonlySet<ValueId>,
): ValueId {
  if (!attrs.rounds) return b.cast(x, "f32");
  if (!overflows.has(outputs[0]!)) return b.cast(b.node("cast", [x], attrs), "f32");
  const wide = b.cast(x, "f32");
  const inRange = b.applyNumber("min", b.applyNumber("max", wide, -largestHalf), largestHalf);
  const rounded = b.cast(b.node("cast", [inRange], attrs), "f32");
  const fits = b.apply("lessEqual", b.apply("abs", wide), b.scalar(largestHalf, "f32"));
  return b.select(fits, rounded, wide);
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
    if (magnitudeOf(range) >= endless) return `${value} (${origin}): without a bound that is known`;
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
