/**
 * A graph cut where sizes are decided by data (positions of non-zero elements, boxes that survive), or how much
 * is read for an element (samples of a box), where numbers are drawn and where control flow is left that no program holds: parts that run one after another, each a graph of its own. A
 * part of kind `data` is one such node; in the parts behind it the size is a symbol of the inputs' shapes
 * like any other, from 1 up to the bound that the node gives. Values go from part to part under their names.
 * What has different sizes of that kind stands in different parts: where nothing was found for one of them
 * (an expert without tokens), the others' programs run all the same.
 */
import { variablesOf } from "../../semantics/index-expr.ts";
import { type AnyAttrs, attrParts } from "../attr-schema.ts";
import type { Graph, Node, ValueId } from "../graph.ts";
import { schemaOf, traitsOf } from "../op-table.ts";
import { eliminateDeadCode } from "./clean.ts";
import { symbolsIntroduced } from "./rebuild.ts";

export interface GraphPart {
  readonly kind: "program" | "data";
  readonly graph: Graph;
}

/** In the order they run; undefined where there is nothing to cut at. */
export function splitAtData(
  graph: Graph,
  hasProgram: (node: Node) => boolean,
): readonly GraphPart[] | undefined {
  const cuts = new Set(graph.nodes.filter((node) => isCut(node, graph) && !hasProgram(node)));
  if (cuts.size === 0) return undefined;
  const levels = levelsOf(graph, cuts);
  const last = Math.max(...levels.values());
  const decided = new Set(graph.nodes.flatMap((n) => symbolsIntroduced(n, graph)));
  const sizesOf = (node: Node): string =>
    symbolsOf([node], graph)
      .filter((name) => decided.has(name))
      .sort()
      .join();
  const parts: GraphPart[] = [];
  for (let level = 0; level <= last; level++) {
    const nodes = graph.nodes.filter((n) => levels.get(n) === level);
    const straight = nodes.filter((n) => !cuts.has(n));
    for (const alike of bySizes(straight, sizesOf)) {
      parts.push({ kind: "program", graph: partOf(graph, alike) });
    }
    for (const node of nodes) {
      if (cuts.has(node)) parts.push({ kind: "data", graph: partOf(graph, [node]) });
    }
  }
  return parts;
}

/**
 * Nodes with the same sizes together, in an order in which they can run: first those whose nodes are all
 * ready, so that few are cut apart by others in between.
 */
function bySizes(
  nodes: readonly Node[],
  sizesOf: (node: Node) => string,
): readonly (readonly Node[])[] {
  const sizes = new Map(nodes.map((node) => [node, sizesOf(node)]));
  let left = nodes;
  const parts: (readonly Node[])[] = [];
  while (left.length > 0) {
    const waiting = new Set(left.flatMap((n) => n.outputs));
    const ready = left.filter((n) => !n.inputs.some((id) => waiting.has(id)));
    const choices = [...new Set(ready.map((n) => sizes.get(n)!))].map((key) => {
      const missing = new Set(waiting);
      const alike = left.filter((n) => sizes.get(n) === key);
      const runs = alike.filter((n) => {
        if (n.inputs.some((id) => missing.has(id))) return false;
        for (const id of n.outputs) missing.delete(id);
        return true;
      });
      return { runs, isWhole: runs.length === alike.length };
    });
    const { runs } = choices.find((c) => c.isWhole) ?? choices[0]!;
    parts.push(runs);
    const done = new Set(runs);
    left = left.filter((n) => !done.has(n));
  }
  return parts;
}

/** Whether a graph is cut at a node, unless a program holds it all the same. */
export function isCut(node: Node, graph: Graph): boolean {
  const traits = traitsOf(node, graph);
  const { dataDependentShape, dataDependentWork, hasSubgraph, random } = traits;
  return [dataDependentShape, dataDependentWork, hasSubgraph, random].includes(true);
}

/** How many cuts lie before each node, on the path with the most. */
function levelsOf(graph: Graph, cuts: ReadonlySet<Node>): ReadonlyMap<Node, number> {
  const levels = new Map<Node, number>();
  const ofValue = new Map<ValueId, number>();
  const ofSymbol = new Map<string, number>();
  for (const node of graph.nodes) {
    const introduced = new Set(symbolsIntroduced(node, graph));
    const before = [
      ...node.inputs.map((id) => ofValue.get(id) ?? 0),
      ...symbolsOf([node], graph).map((s) => (introduced.has(s) ? 0 : (ofSymbol.get(s) ?? 0))),
    ];
    const level = Math.max(0, ...before);
    levels.set(node, level);
    const after = cuts.has(node) ? level + 1 : level;
    for (const id of node.outputs) ofValue.set(id, after);
    for (const name of introduced) ofSymbol.set(name, after);
  }
  return levels;
}

/** Symbols that nodes mention, in their bodies too. */
function symbolsOf(nodes: readonly Node[], graph: Graph): readonly string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    const { dims, graphs } = attrParts(schemaOf(node.op), node.attrs as AnyAttrs);
    const ids = [...node.inputs, ...node.outputs];
    const shapes = ids.flatMap((id) => graph.values[id]!.type.shape);
    for (const name of variablesOf(...shapes, ...dims)) found.add(name);
    for (const body of graphs) {
      const own = new Set(body.symbols.map((s) => s.name));
      for (const name of symbolsOf(body.nodes, body)) if (!own.has(name)) found.add(name);
    }
  }
  return [...found];
}

/** These nodes as a graph: what they take from outside goes in, what is used outside comes out. */
function partOf(graph: Graph, nodes: readonly Node[]): Graph {
  const inside = new Set(nodes);
  const weights = new Set(graph.weights.map((w) => w.value));
  const made = new Set(nodes.flatMap((n) => n.outputs));
  const used = new Set([
    ...graph.outputs,
    ...graph.nodes.flatMap((n) => (inside.has(n) ? [] : n.inputs)),
  ]);
  const taken = new Set(
    nodes.flatMap((n) => n.inputs).filter((id) => !made.has(id) && !weights.has(id)),
  );
  const mentioned = new Set(symbolsOf(nodes, graph));
  for (const name of mentioned) addCarrier(name, { graph, made, taken });
  const known = new Set([
    ...mentioned,
    ...[...taken].flatMap((id) => [...variablesOf(...graph.values[id]!.type.shape)]),
  ]);
  const introduced = new Set(graph.nodes.flatMap((n) => symbolsIntroduced(n, graph)));
  const own = new Set(nodes.flatMap((n) => symbolsIntroduced(n, graph)));
  return eliminateDeadCode({
    ...graph,
    symbols: graph.symbols
      .filter((s) => known.has(s.name))
      // An empty result is the caller's to compute: there is nothing to run.
      .map((s) =>
        introduced.has(s.name) && !own.has(s.name) ? { ...s, min: Math.min(1, s.max) } : s,
      ),
    constraints: graph.constraints.filter(({ left, right }) =>
      [...variablesOf(left, right)].every((name) => known.has(name)),
    ),
    nodes,
    inputs: [...taken].sort((a, b) => a - b),
    outputs: [...made].filter((id) => used.has(id)),
    states: [],
  });
}

interface Part {
  readonly graph: Graph;
  readonly made: ReadonlySet<ValueId>;
  readonly taken: Set<ValueId>;
}

/** A symbol is known from the shape of an input: one that has it as an extent of its own joins them. */
function addCarrier(name: string, { graph, made, taken }: Part): void {
  const carries = (id: ValueId): boolean =>
    graph.values[id]!.type.shape.some((extent) => extent.key === name);
  if ([...taken].some(carries)) return;
  const produced = graph.nodes.flatMap((n) =>
    symbolsIntroduced(n, graph).includes(name) ? n.outputs : [],
  );
  const carrier = [...graph.inputs, ...produced].find((id) => carries(id) && !made.has(id));
  if (carrier !== undefined) taken.add(carrier);
}
