/**
 * Control flow without control flow: bodies of if, loop and scan become part of the graph around them
 * where that is the same and stays small. Programs know no branches or loops over whole graphs, so
 * what remains here is refused later.
 *
 *   if    with a known condition: the branch. Otherwise, when neither branch can fail and both give
 *         the same types, both run and the results are selected.
 *   loop  of a known number of trips: as many copies of the body. When the condition is computed, or
 *         the number is only bounded: copies up to the bound, each of which keeps the values of the
 *         one before once the loop has ended; only without collected outputs, whose extent is then
 *         known at run time alone.
 *   scan  of a known number of steps: as many copies. Of a symbolic number with a bound: the sequences
 *         are padded to the bound, steps past the end keep the state, and the outputs are cut. Where
 *         programs repeat tasks, scans of more than a few steps stay (scan-steps.ts).
 *
 * For graphs that go to runtimes with control flow of their own, what the data decide stays.
 */
import { constantValue, type IndexExpr, sub, toIndex } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { type Tensor, toRef } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, NodeOf, ValueId } from "../graph.ts";
import { inlineSubgraph, isCopyable, isSpeculative, nodeCount } from "./inline-subgraph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

export interface InlineLimits {
  /** Copies of one body. */
  readonly trips: number;
  /** Copies of the body of a scan, where programs can repeat its steps; absent: as of any body. */
  readonly steps?: number;
  /** Nodes that are added in all. */
  readonly nodes: number;
  /** Branches that the data choose, and loops that they end, stay: whoever runs the graph skips the rest. */
  readonly keepsChoices?: boolean;
}

export interface Inlined extends Rebuilt {
  /** Nodes with subgraphs that are gone; 0: the graph is as it was. */
  readonly count: number;
  /** What the copies took of the limit. */
  readonly nodes: number;
}

/** Inner subgraphs come first: a body is copied with its own control flow gone. */
export function inlineControl(graph: Graph, limits: InlineLimits): Inlined {
  const budget: Budget = { ...limits, count: 0 };
  const rebuilt = rebuildGraph(graph, {
    node: (site) => {
      const results = inlineNode(site, budget);
      if (results) budget.count++;
      return results;
    },
  });
  return { ...rebuilt, count: budget.count, nodes: limits.nodes - budget.nodes };
}

interface Budget {
  readonly trips: number;
  readonly steps?: number;
  readonly keepsChoices?: boolean;
  nodes: number;
  count: number;
}

function inlineNode(site: RebuildSite, budget: Budget): readonly ValueId[] | undefined {
  const { node } = site;
  if (node.op === "if") return inlineBranch(site, node, budget);
  if (node.op === "loop") return inlineLoop(site, node, budget);
  return node.op === "scan" ? inlineScan(site, node, budget) : undefined;
}

/** Takes the nodes of so many copies from the budget, if it has them. */
function affords(budget: Budget, trips: number, body: Graph): boolean {
  if (trips > budget.trips) return false;
  const nodes = trips * (nodeCount(body) + 4);
  if (nodes > budget.nodes) return false;
  budget.nodes -= nodes;
  return true;
}

function scalarOf(tensor: Tensor | undefined): number | undefined {
  return tensor && Number(toRef(tensor).data[0]);
}

function inlineBranch(
  { b, inputs }: RebuildSite,
  node: NodeOf<"if">,
  budget: Budget,
): readonly ValueId[] | undefined {
  const [condition, ...captures] = inputs;
  const known = scalarOf(b.constantOf(condition!));
  if (known !== undefined) {
    const taken = known ? node.attrs.then : node.attrs.else;
    if (!isCopyable(taken) || !affords(budget, 1, taken)) return undefined;
    return inlineSubgraph(b, taken, captures);
  }
  if (budget.keepsChoices) return undefined;
  const sides = [node.attrs.then, node.attrs.else];
  const typesOf = (g: Graph, o: number) => g.values[g.outputs[o]!]!.type;
  const alike = node.outputs.every((_, o) => {
    const [yes, no] = sides.map((g) =>
      typesOf(g, o)
        .shape.map((d) => d.key)
        .join(", "),
    );
    return yes === no;
  });
  // Both sides cost at most their sum; no target of ours runs the branch alone.
  if (!alike || !sides.every(isSpeculative)) return undefined;
  if (!sides.every((g) => affords(budget, 1, g))) return undefined;
  const [yes, no] = sides.map((g) => inlineSubgraph(b, g, captures));
  const scalar = b.reshape(condition!, []);
  return node.outputs.map((_, o) => b.select(scalar, yes![o]!, no![o]!));
}

/** What a loop's body does to its condition. */
export function conditionOf(body: Graph): "kept" | "true" | "false" | "computed" {
  const output = body.outputs[0]!;
  if (output === body.inputs[1]) return "kept";
  const source = body.weights.find((w) => w.value === output)?.source;
  if (source?.kind !== "inline") return "computed";
  return scalarOf(source.tensor) ? "true" : "false";
}

/** The most trips, and whether all are run: a computed condition or count may end the loop before. */
function loopTrips(
  { b, inputs }: RebuildSite,
  { attrs }: NodeOf<"loop">,
): { readonly trips: number; readonly certain: boolean } {
  const bound = rangeOf(attrs.maxTrips, b.ranges).max;
  const count = scalarOf(b.constantOf(inputs[0]!));
  const start = scalarOf(b.constantOf(inputs[1]!));
  if (start === 0) return { trips: 0, certain: true };
  const end = conditionOf(attrs.body);
  const most = Math.max(0, count ?? bound);
  const certain = count !== undefined && start !== undefined && end !== "computed";
  return { trips: end === "false" ? Math.min(1, most) : most, certain };
}

function inlineLoop(
  site: RebuildSite,
  node: NodeOf<"loop">,
  budget: Budget,
): readonly ValueId[] | undefined {
  const { b, inputs } = site;
  const { body, carried } = node.attrs;
  const { trips, certain } = loopTrips(site, node);
  const collects = node.outputs.length > carried;
  if (!certain && (budget.keepsChoices || collects || !isSpeculative(body))) return undefined;
  if (!isCopyable(body) || !affords(budget, trips, body)) return undefined;
  const captures = inputs.slice(2 + carried);
  let condition = inputs[1]!;
  let state = inputs.slice(2, 2 + carried);
  const slices: (readonly ValueId[])[] = [];
  for (let t = 0; t < trips; t++) {
    const iteration = b.scalar(BigInt(t), "i64");
    const results = inlineSubgraph(b, body, [iteration, condition, ...state, ...captures]);
    const next = results.slice(1, 1 + carried);
    slices.push(results.slice(1 + carried));
    if (certain) {
      condition = results[0]!;
      state = next;
      continue;
    }
    const runs = b.apply("and", condition, b.apply("less", iteration, inputs[0]!));
    state = next.map((value, i) => b.select(runs, value, state[i]!));
    condition = b.apply("and", runs, results[0]!);
  }
  const collected = node.outputs.slice(carried).map((_, c) => {
    const values = slices.map((slice) => slice[c]!);
    return stack(b, values, 0) ?? emptyOf(b, body, 1 + carried + c, 0);
  });
  return [...state, ...collected];
}

/** How a scan runs as copies of its body. */
interface Steps {
  /** Copies of the body. */
  readonly trips: number;
  /** Where only a bound of the number of steps is known: the number as an extent. */
  readonly extent: IndexExpr | undefined;
}

function scanSteps({ b, inputs }: RebuildSite, attrs: NodeOf<"scan">["attrs"]): Steps {
  const extent = b.shapeOf(inputs[attrs.carried]!)[attrs.inputAxes[0]!]!;
  const trips = constantValue(extent);
  if (trips !== undefined) return { trips, extent: undefined };
  return { trips: rangeOf(extent, b.ranges).max, extent };
}

function inlineScan(
  site: RebuildSite,
  { attrs }: NodeOf<"scan">,
  budget: Budget,
): readonly ValueId[] | undefined {
  const { b, inputs } = site;
  const { body, carried, sequences } = attrs;
  const { trips, extent } = scanSteps(site, attrs);
  const rows = inputs.slice(carried, carried + sequences);
  if (budget.steps !== undefined && trips > budget.steps && isCopyable(body)) return undefined;
  if (extent && !(isSpeculative(body) && sameExtents(b, rows, attrs.inputAxes))) return undefined;
  if (!isCopyable(body) || !affords(budget, trips, body)) return undefined;
  const captures = inputs.slice(carried + sequences);
  const elementsAt = sequenceReader(b, rows, attrs, { trips, extent });
  const length = extent && b.node("dimSize", [rows[0]!], { axis: attrs.inputAxes[0]! });
  let state = inputs.slice(0, carried);
  const slices: (readonly ValueId[])[] = [];
  for (let t = 0; t < trips; t++) {
    const results = inlineSubgraph(b, body, [...state, ...elementsAt(t), ...captures]);
    const next = results.slice(0, carried);
    slices.push(results.slice(carried));
    const runs = length !== undefined && b.apply("less", b.scalar(BigInt(t), "i64"), length);
    state = runs === false ? next : next.map((value, i) => b.select(runs, value, state[i]!));
  }
  const collected = attrs.outputAxes.map((axis, c) => {
    const values = slices.map((slice) => slice[c]!);
    if (attrs.outputReversed[c]) values.reverse();
    const all = stack(b, values, axis);
    if (all === undefined) return emptyOf(b, body, carried + c, axis);
    if (!extent) return all;
    // Reversed outputs have the steps past the end first.
    const start = attrs.outputReversed[c] ? sub(trips, extent) : 0;
    return b.sliceAxis(all, axis, start, extent);
  });
  return [...state, ...collected];
}

/** Whether the sequences have one length by how it is written, not by a constraint alone. */
function sameExtents(b: GraphBuilder, rows: readonly ValueId[], axes: readonly number[]): boolean {
  return new Set(rows.map((row, s) => b.shapeOf(row)[axes[s]!]!.key)).size === 1;
}

/** The elements of all sequences at a step. */
function sequenceReader(
  b: GraphBuilder,
  rows: readonly ValueId[],
  { inputAxes, inputReversed }: NodeOf<"scan">["attrs"],
  { trips, extent }: Steps,
): (step: number) => readonly ValueId[] {
  if (!extent) {
    return (t) =>
      rows.map((row, s) => pick(b, row, inputAxes[s]!, inputReversed[s] ? trips - 1 - t : t));
  }
  const ready = rows.map((row, s) => {
    const axis = inputAxes[s]!;
    const ordered = inputReversed[s] ? b.node("reverse", [row], { axes: [axis] }) : row;
    return padded(b, ordered, axis, trips);
  });
  return (t) => ready.map((row, s) => pick(b, row, inputAxes[s]!, t));
}

/** The value followed by zeros up to `extent` along an axis. */
function padded(b: GraphBuilder, value: ValueId, axis: number, extent: number): ValueId {
  const shape = b.shapeOf(value);
  const low = shape.map(() => toIndex(0));
  const high = shape.map((d, i) => (i === axis ? sub(extent, d) : toIndex(0)));
  return b.node("pad", [value, b.scalarLike(0, value)], { low, high, mode: "constant" });
}

/** The element at one position of an axis, which goes. */
function pick(b: GraphBuilder, row: ValueId, axis: number, at: number): ValueId {
  const slice = b.sliceAxis(row, axis, at, 1);
  return b.reshape(
    slice,
    b.shapeOf(slice).filter((_, i) => i !== axis),
  );
}

/** The values along a new axis; undefined when there are none. */
function stack(b: GraphBuilder, values: readonly ValueId[], axis: number): ValueId | undefined {
  if (values.length === 0) return undefined;
  const parts = values.map((value) => {
    const shape = b.shapeOf(value);
    return b.reshape(value, [...shape.slice(0, axis), 1, ...shape.slice(axis)]);
  });
  return b.concat(parts, axis);
}

/** What a body collects in no trips at all. */
function emptyOf(b: GraphBuilder, body: Graph, output: number, axis: number): ValueId {
  const { dtype, shape } = body.values[body.outputs[output]!]!.type;
  const extents = [...shape.slice(0, axis), toIndex(0), ...shape.slice(axis)];
  return b.node("broadcast", [b.scalar(0, dtype)], { shape: extents });
}
