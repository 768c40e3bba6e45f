/**
 * What extraction chooses from: classes, their nodes with costs, and the classes that each node needs,
 * as arrays. Made from an e-graph by `problemOf`, or by `makeProblem` from lists. A solution chooses one
 * node of every class that is needed from the roots, without a cycle; its DAG cost counts each
 * chosen node once, its tree cost as often as it is reached.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { EGraph } from "../e-graph.ts";
import type { NodeId } from "../node-store.ts";

export interface ExtractionProblem {
  readonly classCount: number;
  /** Nodes of class c: `classStart[c]` up to `classStart[c + 1]`. */
  readonly classStart: Int32Array;
  readonly nodeClass: Int32Array;
  readonly cost: Float64Array;
  /** Classes that node n needs, each once, ascending: `children[childStart[n]]` up to the next. */
  readonly childStart: Int32Array;
  readonly children: Int32Array;
  readonly roots: readonly number[];
}

export interface ProblemNode {
  readonly cost: number;
  readonly children: readonly number[];
}

/** The problem over lists of nodes by class; a child named twice counts once. */
export function makeProblem(
  classes: readonly (readonly ProblemNode[])[],
  roots: readonly number[],
): ExtractionProblem {
  const classStart = new Int32Array(classes.length + 1);
  const nodes = classes.flat();
  const nodeClass = new Int32Array(nodes.length);
  const cost = new Float64Array(nodes.length);
  const childStart = new Int32Array(nodes.length + 1);
  const children: number[] = [];
  let n = 0;
  for (const [c, members] of classes.entries()) {
    for (const node of members) {
      invariant(node.cost >= 0, () => `a node of class ${c} costs ${node.cost}`);
      nodeClass[n] = c;
      cost[n] = node.cost;
      children.push(...[...new Set(node.children)].sort((a, b) => a - b));
      childStart[++n] = children.length;
    }
    classStart[c + 1] = n;
  }
  return {
    classCount: classes.length,
    classStart,
    nodeClass,
    cost,
    childStart,
    children: Int32Array.from(children),
    roots: [...new Set(roots)].sort((a, b) => a - b),
  };
}

/** A problem made from an e-graph, with the way back. */
export interface GraphProblem {
  readonly problem: ExtractionProblem;
  /** E-node of each node of the problem. */
  readonly nodeIds: readonly NodeId[];
  /** Class of the problem, by the root id of the e-class. */
  readonly classOf: ReadonlyMap<NodeId, number>;
}

/**
 * The classes reachable from `roots`. @param cost of one node, without its children: at least 0;
 * Infinity leaves the node out; EGR005 where it is negative or no number
 */
export function problemOf<D>(
  graph: EGraph<D>,
  roots: readonly NodeId[],
  cost: (node: NodeId) => number,
): Result<GraphProblem> {
  const classOf = new Map<NodeId, number>();
  const order: NodeId[] = [];
  const visit = (id: NodeId): number => {
    const root = graph.find(id);
    const known = classOf.get(root);
    if (known !== undefined) return known;
    classOf.set(root, order.length);
    return order.push(root) - 1;
  };
  const rootClasses = roots.map(visit);
  const nodeIds: NodeId[] = [];
  const classes: ProblemNode[][] = [];
  for (let c = 0; c < order.length; c++) {
    const members: ProblemNode[] = [];
    for (const node of graph.nodes(order[c]!)) {
      const price = cost(node);
      if (!(price >= 0)) return fail(badCost(graph, node, price));
      if (price === Number.POSITIVE_INFINITY) continue;
      members.push({ cost: price, children: graph.children(node).map(visit) });
      nodeIds.push(node);
    }
    classes.push(members);
  }
  return ok({ problem: makeProblem(classes, rootClasses), nodeIds, classOf });
}

function badCost<D>(graph: EGraph<D>, node: NodeId, price: number) {
  return diagnostic("EGR005", `a node of "${graph.opName(node)}" costs ${price}`, {
    help: "give a cost of at least 0, or Infinity for a node that cannot be chosen",
  });
}

/** The chosen node of each class, -1 where none is needed. */
export type Choice = Int32Array;
