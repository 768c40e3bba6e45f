/**
 * Matrix products: factoring of common operands, the order of a chain, distribution over sums, and the
 * merging of products and convolutions that read one operand (QKV, gates, parallel branches).
 */
import type { NodeId } from "../../egraph/index.ts";
import type { OpAttrs } from "../../graph/graph.ts";
import { add, type IndexExpr, toIndex } from "../../semantics/index-expr.ts";
import { type RuleRow, row } from "../rule-row.ts";
import type { Site } from "../site.ts";
import { leafOp } from "../terms.ts";

export const products: readonly RuleRow[] = [
  row(
    "factor-right",
    "reassociates",
    "(add (contract[?a] ?x ?v) (contract[?a] ?x ?w))",
    "(contract[?a] ?x (add ?v ?w))",
    "sameShape(v, w)",
  ),
  row(
    "factor-left",
    "reassociates",
    "(add (contract[?a] ?x ?w) (contract[?a] ?y ?w))",
    "(contract[?a] (add ?x ?y) ?w)",
    "sameShape(x, y)",
  ),
  row(
    "subtract-products",
    "reassociates",
    "(sub (contract[?a] ?x ?v) (contract[?a] ?x ?w))",
    "(contract[?a] ?x (sub ?v ?w))",
    "sameShape(v, w)",
  ),
  row(
    "subtract-products-left",
    "reassociates",
    "(sub (contract[?a] ?x ?w) (contract[?a] ?y ?w))",
    "(contract[?a] (sub ?x ?y) ?w)",
    "sameShape(x, y)",
  ),
  row(
    "factor-convolution",
    "reassociates",
    "(add (convolution[?a] ?x ?v) (convolution[?a] ?x ?w))",
    "(convolution[?a] ?x (add ?v ?w))",
    "sameShape(v, w)",
  ),
  row(
    "factor-convolution-data",
    "reassociates",
    "(add (convolution[?a] ?x ?w) (convolution[?a] ?y ?w))",
    "(convolution[?a] (add ?x ?y) ?w)",
    "sameShape(x, y)",
  ),
  row(
    "chain-to-the-right",
    "reassociates",
    "(contract[?a] (contract[?b] ?x ?y) ?z)",
    "(contract[?d] ?x (contract[?c] ?y ?z))",
    "sameDType(x, z); ownAccumulator(a, x); c = innerRight(a, b); d = outerRight(a, b)",
  ),
  row(
    "chain-to-the-left",
    "reassociates",
    "(contract[?a] ?x (contract[?b] ?y ?z))",
    "(contract[?d] (contract[?c] ?x ?y) ?z)",
    "sameDType(x, z); ownAccumulator(a, x); c = innerLeft(a, b); d = outerLeft(a, b)",
  ),
];

interface MergePlan {
  readonly op: "contract" | "convolution";
  /** Axis of the weights along which they are joined, and of the result along which it is cut. */
  readonly weightAxis: number;
  readonly resultAxis: number;
}

/**
 * Whether weights are those of the model as they are: alone, behind one another, with zeros around them.
 * What one product is computed from in two ways (by its weight, by the scaled weight) would otherwise be
 * merged with itself.
 */
function isGiven(site: Site, id: NodeId, depth = 0): boolean {
  const { graph } = site.match;
  return graph.nodes(id).some((node) => {
    const op = graph.opName(node);
    if (op === leafOp) return true;
    if (depth === deepestGiven) return false;
    const [first, second] = graph.children(node);
    if (op === "pad") return isGiven(site, first!, depth + 1);
    return op === "concat" && [first!, second!].every((part) => isGiven(site, part, depth + 1));
  });
}

const deepestGiven = 2;

/**
 * The operand classes of all nodes like the matched one that share its first operand: weights of the model
 * with their like, computed ones with theirs.
 */
function siblings(site: Site, { op, weightAxis }: MergePlan): readonly NodeId[] {
  const { graph } = site.match;
  const shared = site.id("x");
  const givenLike = isGiven(site, site.id("w"));
  const isMerged = (w: NodeId) =>
    graph.nodes(w).some((node) => {
      if (graph.opName(node) !== "concat") return false;
      return (graph.payloadValue(node) as OpAttrs["concat"]).axis === weightAxis;
    });
  const found = new Set<NodeId>();
  for (const user of site.users("x")) {
    if (graph.opName(user) !== op) continue;
    const [x, w] = graph.children(user) as [NodeId, NodeId];
    if (x !== shared || graph.vocabulary.payloadKey(graph.payload(user)) !== site.key("a"))
      continue;
    if (!graph.data(w).constant || isMerged(w)) continue;
    if (isGiven(site, w) === givenLike) found.add(w);
  }
  return [...found].sort((a, b) => a - b);
}

/** All siblings as one op over joined weights, and the part of the matched one. */
function merge(site: Site, plan: MergePlan): NodeId | undefined {
  const { op, weightAxis, resultAxis } = plan;
  const weights = siblings(site, plan).filter((w) => fits(site, w, weightAxis));
  if (weights.length < 2) return undefined;
  const own = weights.indexOf(site.id("w"));
  if (own < 0) return undefined;
  const extents = weights.map((w) => site.typeOf(w)!.shape[weightAxis]!);
  const joined = site.add("concat", weights, { axis: weightAxis });
  const whole = site.add(op, [site.id("x"), joined], site.attrs<typeof op>("a") as never);
  const { shape } = site.rootType();
  const start = extents.slice(0, own).reduce<IndexExpr>((sum, d) => add(sum, d), toIndex(0));
  return site.add("slice", [whole], {
    starts: shape.map((_, i) => (i === resultAxis ? start : toIndex(0))),
    steps: shape.map(() => 1),
    sizes: shape,
  });
}

/** Whether weights join those of the match: equal but along the axis. */
function fits(site: Site, id: NodeId, axis: number): boolean {
  const [own, other] = [site.type("w"), site.typeOf(id)!];
  return (
    own.dtype === other.dtype &&
    own.shape.length === other.shape.length &&
    own.shape.every((d, i) => i === axis || d.key === other.shape[i]!.key)
  );
}

function mergeProducts(site: Site): NodeId | undefined {
  const { lhs, rhs, output } = site.attrs<"contract">("a");
  const free = rhs.flatMap((label, i) =>
    output.includes(label) && !lhs.includes(label) ? [{ weightAxis: i, label }] : [],
  );
  const last = free.at(-1);
  if (!last) return undefined;
  const { weightAxis, label } = last;
  return merge(site, { op: "contract", weightAxis, resultAxis: output.indexOf(label) });
}

export const merges: readonly RuleRow[] = [
  {
    name: "merge-products",
    numerics: "exact",
    left: "(contract[?a] ?x ?w)",
    right: mergeProducts,
    where: "constant(w); computed(x)",
    beside: ["(contract[?a] ?x ?v)", "(contract[?a] ?x ?u)"],
  },
  {
    name: "merge-convolutions",
    numerics: "exact",
    left: "(convolution[?a] ?x ?w)",
    right: (site) => merge(site, { op: "convolution", weightAxis: 0, resultAxis: 1 }),
    where: "constant(w); computed(x); ungrouped(a)",
    beside: ["(convolution[?a] ?x ?v)", "(convolution[?a] ?x ?u)"],
  },
];
