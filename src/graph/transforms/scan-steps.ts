/**
 * Scans, and loops that their first carried value ends (repeatable-loops.ts), for programs that repeat the tasks
 * of one step: constants leave the body, so that the graph around it owns every weight, and a step becomes a graph
 * of its own, in which the number of a scan's step is a symbol and what is carried over is an input. Values of the
 * graph around keep their names there.
 */
import { type IndexExpr, sub } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { toRef } from "../../semantics/tensor.ts";
import { GraphBuilder } from "../builder.ts";
import { flopsOf } from "../counts.ts";
import type { Graph, Node, NodeOf, ValueId } from "../graph.ts";
import { subgraphsOf } from "../op-table.ts";
import { elementsOf } from "../tensor-type.ts";
import { inlineSubgraph, isCopyable } from "./inline-subgraph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";
import { isCut } from "./split-at-data.ts";

type Scan = NodeOf<"scan">;
type Loop = NodeOf<"loop">;
type Repeated = Scan | Loop;

/** A value that goes from step to step, under the names of the values that hold it. */
export interface CarriedValue {
  /** Before the first step. */
  readonly initial: string;
  /** What a step takes, and in the end the scan's result. */
  readonly state: string;
  /** Which output of the step the next one takes. */
  readonly next: number;
}

/** An output of the step that becomes one row of a result of the scan. */
export interface CollectedValue {
  readonly element: number;
  readonly into: string;
  readonly axis: number;
  /** Where along the axis, over the number of the step. */
  readonly position: IndexExpr;
}

/** How often a step runs. */
export type Trips =
  /** `variable`: the symbol that is the number of the step. */
  | { readonly kind: "count"; readonly variable: string; readonly count: IndexExpr }
  /** As long as this carried value, by the name of the state, is true; `most`: more are an error of the run. */
  | { readonly kind: "while"; readonly condition: string; readonly most: number };

/** One step as a graph; its inputs and weights are values of the graph around it, or what is carried. */
export interface RepeatedSteps {
  readonly graph: Graph;
  readonly trips: Trips;
  readonly carried: readonly CarriedValue[];
  readonly collected: readonly CollectedValue[];
}

/** Every scan and loop that programs repeat takes the weights of its body from outside. */
export function hoistBodyWeights(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => (isRepeatable(site.node, site.old) ? hoisted(site, site.node) : undefined),
  });
}

function hoisted(
  { b, inputs }: RebuildSite,
  { op, attrs }: Repeated,
): readonly ValueId[] | undefined {
  const { body } = attrs;
  const moved = movable(body);
  if (moved.length === 0 || !isCopyable(body)) return undefined;
  const declared = [...body.inputs, ...moved.map((w) => w.value)].map((id) => {
    const { name, type } = body.values[id]!;
    return { name, type };
  });
  const weights = moved.map(({ value, source }) => {
    const { name, type } = body.values[value]!;
    return source.kind === "inline"
      ? b.constant(source.tensor, name)
      : b.weight(name, type, source.key);
  });
  const inner = b.nested(body.name);
  const ids = declared.map(({ name, type }) => inner.input(name, type));
  const open = { ...body, inputs: [...body.inputs, ...moved.map((w) => w.value)] };
  const kept = body.weights.filter((w) => !moved.includes(w));
  const results = inlineSubgraph(inner, { ...open, weights: kept }, ids);
  const closed = { ...attrs, body: inner.finish(results) };
  return b.nodes(op, [...inputs, ...weights], closed as never);
}

/** Whether programs can repeat the steps of a node: shapes in its body are known outside, nothing in it is cut. */
export function isRepeatable(node: Node, graph: Graph): node is Repeated {
  if (node.op !== "scan" && !(node.op === "loop" && isUncounted(node, graph))) return false;
  const { body } = node.attrs;
  const stays = (inner: Node): boolean => !isCut(inner, body) || isRepeatable(inner, body);
  return isCopyable(body) && body.nodes.every(stays);
}

/** Whether steps of such a node can be tasks: its weights are outside. */
export function hasSteps(node: Node, graph: Graph): node is Repeated {
  return isRepeatable(node, graph) && ownWeights(node.attrs.body) === 0;
}

function ownWeights(body: Graph): number {
  const inside = body.nodes.flatMap((node) => subgraphsOf(node).map(ownWeights));
  return inside.reduce((a, b) => a + b, movable(body).length);
}

/** Weights of a body but for the counts of loops, which no program reads. */
function movable({ weights, nodes, outputs }: Graph): Graph["weights"] {
  const read = new Set(outputs);
  for (const { op, inputs } of nodes) {
    for (const id of op === "loop" ? inputs.slice(1) : inputs) read.add(id);
  }
  const counts = new Set(nodes.flatMap(({ op, inputs }) => (op === "loop" ? [inputs[0]!] : [])));
  return weights.filter(({ value }) => read.has(value) || !counts.has(value));
}

/** A count that ends no loop which programs run. */
export const uncounted = 2 ** 31 - 1;

/** Whether a loop is ended by its first carried value alone, which is its condition, and collects nothing. */
export function isUncounted({ attrs, inputs, outputs }: Loop, graph: Graph): boolean {
  const { body, carried } = attrs;
  const count = graph.weights.find((w) => w.value === inputs[0])?.source;
  const isOwn = carried > 0 && inputs[1] === inputs[2] && body.outputs[0] === body.outputs[1];
  const isPassed = body.nodes.some((n) => n.inputs.some((id) => body.inputs.indexOf(id) >>> 0 < 2));
  const gives = body.outputs.some((id) => body.inputs.indexOf(id) >>> 0 < 2);
  if (!isOwn || isPassed || gives || outputs.length > carried || count?.kind !== "inline")
    return false;
  return Number(toRef(count.tensor).data[0]) >= uncounted;
}

/** One step of a scan or loop whose body has no weights of its own. */
export function stepsOf(graph: Graph, node: Repeated): RepeatedSteps {
  return node.op === "scan" ? stepsOfScan(graph, node) : stepsOfLoop(graph, node);
}

function stepsOfScan(graph: Graph, node: Scan): RepeatedSteps {
  const { attrs, inputs, outputs } = node;
  const { carried, sequences, inputAxes, inputReversed, outputAxes, outputReversed } = attrs;
  const count = graph.values[inputs[carried]!]!.type.shape[inputAxes[0]!]!;
  const b = builderOf(graph, node);
  const ranges = new Map(graph.symbols.map((s) => [s.name, s]));
  const variable = freeName(`step${node.id}`, new Set(ranges.keys()));
  const number = b.symbol(variable, 0, Math.max(0, rangeOf(count, ranges).max - 1));
  const states = outputs.slice(0, carried);
  const { known, outside } = declare(b, graph, { states, operands: inputs.slice(carried) });
  const at = (reversed: boolean): IndexExpr => (reversed ? sub(sub(count, 1), number) : number);
  const elements = inputs.slice(carried, carried + sequences).map((id, s) => {
    const axis = inputAxes[s]!;
    const slice = b.sliceAxis(outside.get(id)!, axis, at(inputReversed[s]!), 1);
    return b.reshape(
      slice,
      b.shapeOf(slice).filter((_, i) => i !== axis),
    );
  });
  const captures = inputs.slice(carried + sequences).map((id) => outside.get(id)!);
  const held = states.map((id) => outside.get(id)!);
  const results = b.withOrigin(node.origin ?? "scan", () =>
    inlineSubgraph(b, attrs.body, [...held, ...elements, ...captures]),
  );
  const step = finish(b, graph, { node, known, results });
  return {
    graph: step.graph,
    trips: { kind: "count", variable, count },
    carried: carriedOf(graph, node, inputs, step.placeOf),
    collected: outputs.slice(carried).map((id, i) => ({
      element: step.placeOf[carried + i]!,
      into: graph.values[id]!.name,
      axis: outputAxes[i]!,
      position: at(outputReversed[i]!),
    })),
  };
}

/** Its first carried value is the condition; trip count and condition of the node are not read. */
function stepsOfLoop(graph: Graph, node: Loop): RepeatedSteps {
  const { attrs, outputs } = node;
  const { body, carried } = attrs;
  const inputs = node.inputs.slice(2);
  const b = builderOf(graph, node);
  const operands = inputs.slice(carried);
  const { known, outside } = declare(b, graph, { states: outputs, operands });
  const held = outputs.map((id) => outside.get(id)!);
  const captures = inputs.slice(carried).map((id) => outside.get(id)!);
  const inner = { ...body, inputs: body.inputs.slice(2), outputs: body.outputs.slice(1) };
  const results = b.withOrigin(node.origin ?? "loop", () =>
    inlineSubgraph(b, inner, [...held, ...captures]),
  );
  const step = finish(b, graph, { node, known, results });
  const ranges = new Map(graph.symbols.map((s) => [s.name, s]));
  const most = Math.min(rangeOf(attrs.maxTrips, ranges).max, mostTrips(step.graph));
  return {
    graph: step.graph,
    trips: { kind: "while", condition: graph.values[outputs[0]!]!.name, most },
    carried: carriedOf(graph, node, inputs, step.placeOf),
    collected: [],
  };
}

/** What a loop that data end may take, counted in operations: less than a minute, mostly. */
const mostWork = 2 ** 39;
const workOfNode = 2 ** 9;
const workOfElement = 2 ** 3;

/** Trips that every such loop may make. */
const leastLimit = 2 ** 18;

function mostTrips(step: Graph): number {
  const ranges = new Map(step.symbols.map((s) => [s.name, s]));
  const work = Math.max(1, workOf(step, ranges));
  return Math.min(uncounted, Math.max(leastLimit, Math.floor(mostWork / work)));
}

/** Of a graph, with one trip of each loop inside. */
function workOf(graph: Graph, ranges: IndexRanges): number {
  const ofNode = (node: Node): number => {
    const bodies = subgraphsOf(node).map((body) => workOf(body, ranges));
    const elements = node.outputs.map(
      (id) => rangeOf(elementsOf(graph.values[id]!.type), ranges).max,
    );
    const own = bodies.length > 0 ? 0 : rangeOf(flopsOf(node, graph), ranges).max;
    const sum = (all: readonly number[]): number => all.reduce((a, b) => a + b, 0);
    return workOfNode + workOfElement * sum(elements) + own + sum(bodies);
  };
  return graph.nodes.reduce((sum, node) => sum + ofNode(node), 0);
}

function builderOf(graph: Graph, { outputs }: Repeated): GraphBuilder {
  const b = new GraphBuilder(`${graph.name} ${graph.values[outputs[0]!]!.name}`);
  for (const { name, min, max } of graph.symbols) b.symbol(name, min, max);
  return b;
}

/** The step, with names of its own for its own values, and which of its outputs each result is. */
function finish(
  b: GraphBuilder,
  { values }: Graph,
  made: {
    readonly node: Repeated;
    readonly known: number;
    readonly results: readonly ValueId[];
  },
): { readonly graph: Graph; readonly placeOf: readonly number[] } {
  const { node, known, results } = made;
  const distinct = [...new Set(results)];
  const step = b.finish(distinct);
  const prefix = `${values[node.outputs[0]!]!.name}.`;
  const named = step.values.map((v) => (v.id < known ? v : { ...v, name: prefix + v.name }));
  return {
    graph: { ...step, values: named },
    placeOf: results.map((id) => distinct.indexOf(id)),
  };
}

function carriedOf(
  { values }: Graph,
  { attrs, outputs }: Repeated,
  initial: readonly ValueId[],
  placeOf: readonly number[],
): readonly CarriedValue[] {
  return outputs.slice(0, attrs.carried).map((id, i) => ({
    initial: values[initial[i]!]!.name,
    state: values[id]!.name,
    next: placeOf[i]!,
  }));
}

/** What a step takes from around it; values up to the number `known` are called as they are there. */
interface Declared {
  readonly known: number;
  readonly outside: ReadonlyMap<ValueId, ValueId>;
}

/**
 * Values of the graph around under their names: inputs first, then what is a weight there. A weight in another shape
 * is reshaped in the step, so that its products have the weight itself, which may be stored as they like.
 */
function declare(
  b: GraphBuilder,
  graph: Graph,
  of: { readonly states: readonly ValueId[]; readonly operands: readonly ValueId[] },
): Declared {
  const weights = new Map(graph.weights.map((w) => [w.value, w.source]));
  const ids = new Set([...of.states, ...of.operands]);
  const stored = new Map([...ids].map((id) => [id, reshapedWeight(graph, weights, id)]));
  const found = new Map<ValueId, ValueId>();
  for (const id of ids) {
    const { name, type } = graph.values[id]!;
    if (stored.get(id) === undefined) found.set(id, b.input(name, type));
  }
  const own = new Set([...stored.values()].filter((id) => id !== undefined));
  for (const id of own) {
    const source = weights.get(id)!;
    const { name, type } = graph.values[id]!;
    found.set(
      id,
      source.kind === "inline" ? b.constant(source.tensor, name) : b.weight(name, type, source.key),
    );
  }
  const known = b.valueCount;
  for (const [id, weight] of stored) {
    if (weight === undefined || weight === id) continue;
    found.set(id, b.reshape(found.get(weight)!, graph.values[id]!.type.shape));
  }
  return { known, outside: found };
}

/** The weight that a value has the elements of, in order; undefined: none. */
function reshapedWeight(
  graph: Graph,
  weights: ReadonlyMap<ValueId, unknown>,
  value: ValueId,
): ValueId | undefined {
  let id = value;
  while (!weights.has(id)) {
    const made = graph.nodes.find((n) => n.outputs[0] === id);
    if (made?.op !== "reshape") return undefined;
    id = made.inputs[0]!;
  }
  return id;
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  let name = wanted;
  for (let n = 1; taken.has(name); n++) name = `${wanted}${n}`;
  return name;
}
