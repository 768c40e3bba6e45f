/**
 * Scans for programs that repeat the tasks of one step: constants leave the body, so that the graph around
 * it owns every weight, and a step becomes a graph of its own, in which the number of the step is a symbol
 * and what is carried over is an input. Values of the graph around keep their names there.
 */
import { type IndexExpr, sub } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph, NodeOf, ValueId } from "../graph.ts";
import { inlineSubgraph, isCopyable } from "./inline-subgraph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

type Scan = NodeOf<"scan">;

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

/** One step as a graph; its inputs and weights are values of the graph around it, or what is carried. */
export interface ScanSteps {
  readonly graph: Graph;
  /** The symbol that is the number of the step. */
  readonly variable: string;
  readonly count: IndexExpr;
  readonly carried: readonly CarriedValue[];
  readonly collected: readonly CollectedValue[];
}

/** Every scan takes the weights of its body from outside. */
export function hoistScanWeights(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => (site.node.op === "scan" ? hoisted(site, site.node) : undefined),
  });
}

function hoisted({ b, inputs }: RebuildSite, { attrs }: Scan): readonly ValueId[] | undefined {
  const { body } = attrs;
  if (body.weights.length === 0 || !isCopyable(body)) return undefined;
  const declared = [...body.inputs, ...body.weights.map((w) => w.value)].map((id) => {
    const { name, type } = body.values[id]!;
    return { name, type };
  });
  const weights = body.weights.map(({ value, source }) => {
    const { name, type } = body.values[value]!;
    return source.kind === "inline"
      ? b.constant(source.tensor, name)
      : b.weight(name, type, source.key);
  });
  const inner = b.nested(body.name);
  const ids = declared.map(({ name, type }) => inner.input(name, type));
  const open = { ...body, inputs: [...body.inputs, ...body.weights.map((w) => w.value)] };
  const results = inlineSubgraph(inner, { ...open, weights: [] }, ids);
  return b.nodes("scan", [...inputs, ...weights], { ...attrs, body: inner.finish(results) });
}

/** Whether steps of the scan can be tasks: shapes in the body are known outside, nothing is drawn. */
export function hasSteps({ attrs }: Scan): boolean {
  return isCopyable(attrs.body) && attrs.body.weights.length === 0;
}

/** One step of a scan whose body has no weights of its own. */
export function stepsOf(graph: Graph, node: Scan): ScanSteps {
  const { attrs, inputs, outputs } = node;
  const { carried, sequences, inputAxes, inputReversed, outputAxes, outputReversed } = attrs;
  const nameOf = (id: ValueId): string => graph.values[id]!.name;
  const count = graph.values[inputs[carried]!]!.type.shape[inputAxes[0]!]!;
  const b = new GraphBuilder(`${graph.name} ${nameOf(outputs[0]!)}`);
  const taken = new Set(graph.symbols.map((s) => s.name));
  const ranges = new Map(graph.symbols.map((s) => [s.name, s]));
  for (const { name, min, max } of graph.symbols) b.symbol(name, min, max);
  const variable = freeName(`step${node.id}`, taken);
  const number = b.symbol(variable, 0, Math.max(0, rangeOf(count, ranges).max - 1));
  const states = outputs.slice(0, carried);
  const outside = declare(b, graph, { states, operands: inputs.slice(carried) });
  const known = b.valueCount;
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
  const distinct = [...new Set(results)];
  const step = b.finish(distinct);
  const prefix = `${nameOf(outputs[0]!)}.`;
  const values = step.values.map((v) => (v.id < known ? v : { ...v, name: prefix + v.name }));
  return {
    graph: { ...step, values },
    variable,
    count,
    carried: states.map((id, i) => ({
      initial: nameOf(inputs[i]!),
      state: nameOf(id),
      next: distinct.indexOf(results[i]!),
    })),
    collected: outputs.slice(carried).map((id, i) => ({
      element: distinct.indexOf(results[carried + i]!),
      into: nameOf(id),
      axis: outputAxes[i]!,
      position: at(outputReversed[i]!),
    })),
  };
}

/** Values of the graph around under their names: inputs first, then what is a weight there. */
function declare(
  b: GraphBuilder,
  graph: Graph,
  of: { readonly states: readonly ValueId[]; readonly operands: readonly ValueId[] },
): ReadonlyMap<ValueId, ValueId> {
  const weights = new Map(graph.weights.map((w) => [w.value, w.source]));
  const ids = new Set([...of.states, ...of.operands]);
  const found = new Map<ValueId, ValueId>();
  for (const id of ids) {
    const { name, type } = graph.values[id]!;
    if (!weights.has(id)) found.set(id, b.input(name, type));
  }
  for (const id of ids) {
    const source = weights.get(id);
    if (!source) continue;
    const { name, type } = graph.values[id]!;
    found.set(
      id,
      source.kind === "inline" ? b.constant(source.tensor, name) : b.weight(name, type, source.key),
    );
  }
  return found;
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  let name = wanted;
  for (let n = 1; taken.has(name); n++) name = `${wanted}${n}`;
  return name;
}
