/**
 * What the bodies of control flow take in one run: data may end a loop late, and loops in loops multiply. Counted
 * by nodes, elements and operations, in about nanoseconds of a reference, so that the same run always gets as far.
 */
import { flopsOf } from "../graph/counts.ts";
import type { Graph, Node } from "../graph/graph.ts";
import { subgraphsOf } from "../graph/op-table.ts";
import { evaluate, type IndexExpr } from "../semantics/index-expr.ts";
import type { RefTensor } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";

/** A body of one node takes about ten microseconds. */
const unitsOfNode = 2 ** 13;
const unitsOfElement = 16;

/** Of a stage of a run: one to three seconds. */
export const mostBodyWork = 2 ** 31;

export class BodyWork {
  readonly #most: number;
  readonly #flops = new WeakMap<Node, IndexExpr>();
  #done = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Notes a node of a body that has run; RUN007 where that is more than there may be. */
  add(node: Node, graph: Graph, made: readonly RefTensor[], symbols: ReadonlyMap<string, number>) {
    const elements = made.reduce((sum, { data }) => sum + data.length, 0);
    this.#done += unitsOfNode + unitsOfElement * elements + this.#operations(node, graph, symbols);
    if (this.#done <= this.#most) return;
    reject("RUN007", `loops took more work than they may, ${this.#most} operations`, {
      help: "let their conditions end them sooner, or split the model before them",
    });
  }

  /** Bodies inside of the node have counted theirs. */
  #operations(node: Node, graph: Graph, symbols: ReadonlyMap<string, number>): number {
    if (subgraphsOf(node).length > 0) return 0;
    const known = this.#flops.get(node) ?? flopsOf(node, graph);
    this.#flops.set(node, known);
    return evaluate(known, symbols);
  }
}
