/** Replaces composites by their definitions, which may hold composites themselves. */
import { type CompositeKind, compositeTable } from "../composite-table.ts";
import type { Graph, Node, NodeOf } from "../graph.ts";
import { isComposite, subgraphsOf } from "../op-table.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

export interface ExpandOptions {
  /** Which composites to expand; absent: all, also those inside definitions. */
  readonly select?: (node: Node) => boolean;
}

export function expandComposites(graph: Graph, { select }: ExpandOptions = {}): Rebuilt {
  let current: Rebuilt = { graph, constants: new Map() };
  while (someNode(current.graph, (node) => isComposite(node.op) && (select?.(node) ?? true))) {
    const next = expandOnce(current.graph, select);
    current = {
      graph: next.graph,
      constants: new Map([...current.constants, ...next.constants]),
    };
  }
  return current;
}

/** Whether any node, also of subgraphs, satisfies the test. */
function someNode(graph: Graph, test: (node: Node) => boolean): boolean {
  return graph.nodes.some(
    (node) => test(node) || subgraphsOf(node).some((inner) => someNode(inner, test)),
  );
}

function expandOnce(graph: Graph, select: ExpandOptions["select"]): Rebuilt {
  return rebuildGraph(graph, {
    node: ({ b, node, inputs }) => {
      if (!isComposite(node.op) || !(select?.(node) ?? true)) return undefined;
      const { op, attrs } = node as NodeOf<CompositeKind>;
      return compositeTable[op].definition(b, inputs, attrs as never);
    },
  });
}
