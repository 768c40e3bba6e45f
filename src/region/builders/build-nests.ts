/**
 * From a graph of core ops to its nests: one builder per node in the graph's order, then a copy for
 * each output that is an input, a weight or an earlier output, so that every output has elements of
 * its own. Composites must have been replaced by their definitions.
 */
import type { Graph, Node } from "../../graph/graph.ts";
import type { CoreOpKind } from "../../semantics/core-ops.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import type { NestProgram } from "../nest.ts";
import { pruneProgram } from "../prune.ts";
import { readThroughViews } from "../views.ts";
import { NestContext, type NestOptions } from "./context.ts";
import { type NestBuilder, nestBuilders } from "./table.ts";

/** The nests of a graph; diagnostics name nodes that have none. */
export function buildNests(graph: Graph, options: NestOptions = {}): Result<NestProgram> {
  return attempt(() => {
    const context = new NestContext(graph, options);
    for (const node of graph.nodes) buildNode(context, node);
    const outputs = ownOutputs(context);
    const inputs = graph.inputs.map((v) => context.name(v));
    const symbols = graph.symbols.map(({ name, min, max }) => ({ name, range: { min, max } }));
    const { tensors, items } = context;
    const program = { name: graph.name, symbols, tensors, items, inputs, outputs };
    return pruneProgram(readThroughViews(program));
  });
}

function buildNode(context: NestContext, node: Node): void {
  if (!isCore(node)) {
    reject("REG002", `composite ${node.op} reached the nest builders`, {
      at: node.origin ?? context.name(node.outputs[0]!),
      help: "expand composites into their definitions first",
    });
  }
  const build = nestBuilders[node.op] as NestBuilder<CoreOpKind>;
  build(context, node);
}

function isCore(node: Node): node is Extract<Node, { op: CoreOpKind }> {
  return Object.hasOwn(nestBuilders, node.op);
}

/** The output tensors; one that another role or an earlier output has already gets a copy. */
function ownOutputs(context: NestContext): readonly string[] {
  const seen = new Set<string>();
  return context.graph.outputs.map((value) => {
    const name = context.name(value);
    const owned = context.tensor(name).role === "output" && !seen.has(name);
    seen.add(name);
    return owned ? name : context.copyOutput(name);
  });
}
