/**
 * Mixtures of experts of com.microsoft (MoE, QMoE): a router picks k of the experts for each token, each
 * expert is two products with an activation between, and their results are summed with the router's
 * weights. Few known tokens fetch the weights of their experts; otherwise every expert sees every token
 * and the weight of those not picked is 0, which is two dense products. Definitions: ONNX Runtime's
 * ContribOperators page.
 */
import {
  constant,
  constantValue,
  type IndexExpr,
  indexEquals,
  mul,
} from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { dequantizedExperts } from "./packed-weights.ts";
import { sliceAxis } from "./slicing.ts";

interface Product {
  /** [e, out, in]; of chosen experts [t, k] theirs alone, [t, k, out, in]. */
  readonly weights: (chosen: Operand | undefined) => Operand;
  /** [e, out] */
  readonly bias: Operand | undefined;
}

interface Experts {
  readonly up: Product;
  readonly down: Product;
  /** A second product of the input, by which the activation is multiplied. */
  readonly gate: Product | undefined;
}

/** What the router says of each token: experts and their weights, [t, k] each. */
interface Routes {
  readonly chosen: Operand;
  readonly weights: Operand;
}

/** The k most likely experts of each token; `mixing` gives other weights for the experts so chosen. */
function readRoutes(node: NodeView, router: Operand, mixing: Operand | undefined): Routes {
  const { attributes } = node;
  node.checkRank(router, 2, "router_probs");
  if (attributes.flag("use_sparse_mixer", false)) attributes.refuse("use_sparse_mixer", 1, "0");
  const k = attributes.int("k") ?? 1;
  const experts = node.fixedExtent(router.type.shape[1]!, "the number of experts");
  if (k < 1 || k > experts) attributes.refuse("k", k, `1 to ${experts}`);
  const wide = node.cast(router, "f32");
  const scores = mixing ? wide : node.emit("softmax", [wide], { axis: 1 });
  const attrs = { axis: 1, k: constant(k), largest: true, sorted: true };
  const [values, chosen] = node.emitAll("topK", [scores], attrs) as [Operand, Operand];
  const picked = mixing
    ? node.emit("gatherElements", [node.cast(mixing, "f32"), chosen], { axis: 1 })
    : values;
  if (!attributes.flag("normalize_routing_weights", false)) return { chosen, weights: picked };
  const sum = node.emit("reduce", [picked], { kind: "sum", axes: [1], keepDims: true });
  return { chosen, weights: node.emit("div", [picked, sum], {}) };
}

/** Weights [t, e] of every expert, 0 for those that were not chosen. */
function spread(node: NodeView, { chosen, weights }: Routes, experts: IndexExpr): Operand {
  const shape = [weights.type.shape[0]!, experts];
  const empty = node.emit("broadcast", [node.splat("f32", 0)], { shape });
  return node.emit("scatterElements", [empty, chosen, weights], { axis: 1, reduction: "none" });
}

/** One of the products with x [t, in], as [t, e, out]; each token may have experts of its own. */
function project(
  node: NodeView,
  x: Operand,
  { weights, bias }: Product,
  chosen: Operand | undefined,
): Operand {
  const rhs = chosen ? ["t", "e", "n", "h"] : ["e", "n", "h"];
  const labels = { lhs: ["t", "h"], rhs, output: ["t", "e", "n"] };
  const attrs = { ...labels, accumulator: x.type.dtype };
  const y = node.emit("contract", [x, weights(chosen)], attrs);
  return bias ? node.emit("add", [y, fetched(node, bias, chosen)], {}) : y;
}

/** Gated by itself: clamp(g) * sigmoid(alpha clamp(g)) * (clamp(l) + beta). */
function swiGlu(node: NodeView, g: Operand, l: Operand): Operand {
  const { attributes } = node;
  const { dtype } = g.type;
  const number = (value: number) => node.splat(dtype, value);
  const limit = attributes.float("swiglu_limit") ?? Infinity;
  const bounded = (x: Operand, low: boolean) => {
    if (limit === Infinity) return x;
    const high = node.emit("min", [x, number(limit)], {});
    return low ? node.emit("max", [high, number(-limit)], {}) : high;
  };
  const gate = bounded(g, false);
  const alpha = attributes.float("activation_alpha") ?? 1;
  const beta = attributes.float("activation_beta") ?? 0;
  const steep = alpha === 1 ? gate : node.emit("mul", [gate, number(alpha)], {});
  const swish = node.emit("mul", [gate, node.emit("sigmoid", [steep], {})], {});
  const linear = bounded(l, true);
  return node.emit(
    "mul",
    [swish, beta === 0 ? linear : node.emit("add", [linear, number(beta)], {})],
    {},
  );
}

/** Gate and linear part of one product: alternating, or one behind the other. */
function fusedParts(node: NodeView, y: Operand, alternating: boolean): readonly [Operand, Operand] {
  const [t, e, n] = y.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  const half = node.fixedExtent(n, "the width of the experts") / 2;
  if (!Number.isInteger(half)) node.refuse(`${2 * half} channels of swiglu`, "an even number");
  const shape = alternating ? [constant(half), constant(2)] : [constant(2), constant(half)];
  const split = node.reshape(y, [t, e, ...shape]);
  const axis = alternating ? 3 : 2;
  const part = (i: number) => {
    const one = sliceAxis(node, split, { axis, start: constant(i), step: 1, size: constant(1) });
    return node.reshape(one, [t, e, constant(half)]);
  };
  return [part(0), part(1)];
}

function activated(node: NodeView, y: Operand, gate: Operand | undefined): Operand {
  const { attributes } = node;
  const name = attributes.choice("activation_type", "relu", "gelu", "silu", "swiglu", "identity");
  const fusion = attributes.int("swiglu_fusion") ?? 0;
  if (name === "swiglu") {
    if (![0, 1, 2].includes(fusion)) attributes.refuse("swiglu_fusion", fusion, "0, 1, 2");
    if (fusion > 0) return swiGlu(node, ...fusedParts(node, y, fusion === 1));
    return gate ? swiGlu(node, y, gate) : node.refuse("swiglu of one product", "fc3, or fusion");
  }
  attributes.ignore("activation_alpha", "activation_beta", "swiglu_limit");
  const plain = {
    relu: () => node.emit("relu", [y], {}),
    gelu: () => node.emit("gelu", [y], { approximate: "tanh" }),
    silu: () => node.emit("silu", [y], {}),
    identity: () => y,
  }[name]();
  return gate ? node.emit("mul", [plain, gate], {}) : plain;
}

/** What belongs to the chosen experts, if some are chosen. */
function fetched(node: NodeView, x: Operand, chosen: Operand | undefined): Operand {
  return chosen ? node.emit("gather", [x, chosen], { axis: 0 }) : x;
}

/** Whether fetching the chosen experts' weights reads less than all experts have. */
function isFew(tokens: IndexExpr, chosen: Operand, experts: IndexExpr): boolean {
  const [t, k] = [tokens, chosen.type.shape[1]!].map(constantValue);
  const all = constantValue(experts);
  return t !== undefined && k !== undefined && all !== undefined && t * k < all;
}

function mixture(node: NodeView, routes: Routes, experts: Experts): Operand {
  const input = node.input(0);
  const { shape, dtype } = input.type;
  const rank = shape.length;
  if (rank !== 2 && rank !== 3) node.refuse(`tokens of rank ${rank}`, "rank 2 or 3");
  const x = node.reshape(input, [mul(...shape.slice(0, -1)), shape.at(-1)!]);
  const tokens = routes.chosen.type.shape[0]!;
  if (!indexEquals(x.type.shape[0]!, tokens))
    node.refuse(`${x.type.shape[0]!.key} tokens, ${tokens.key} routes`, "a route for each token");
  const all = node.input(1).type.shape[1]!;
  const chosen = isFew(tokens, routes.chosen, all) ? routes.chosen : undefined;
  const weights = chosen ? routes.weights : spread(node, routes, all);
  const gate = experts.gate && project(node, x, experts.gate, chosen);
  const y = activated(node, project(node, x, experts.up, chosen), gate);
  const share = node.cast(weights, dtype);
  const [t, e] = share.type.shape as [IndexExpr, IndexExpr];
  const weighted = node.emit("mul", [y, node.reshape(share, [t, e, constant(1)])], {});
  const mixed = chosen ? weighted : onlyChosen(node, weighted, weights);
  const { down } = experts;
  const own = chosen ? ["t", "e"] : ["e"];
  const labels = { lhs: ["t", "e", "n"], rhs: [...own, "h", "n"], output: ["t", "h"] };
  const attrs = { ...labels, accumulator: dtype };
  const sum = node.emit("contract", [mixed, down.weights(chosen)], attrs);
  if (!down.bias) return node.reshape(sum, shape);
  const biasLabels = { lhs: ["t", "e"], rhs: [...own, "h"], output: ["t", "h"] };
  const bias = node.emit("contract", [share, fetched(node, down.bias, chosen)], {
    ...biasLabels,
    accumulator: dtype,
  });
  return node.reshape(node.emit("add", [sum, bias], {}), shape);
}

/** Zero where an expert was not chosen, whatever it computed there. */
function onlyChosen(node: NodeView, y: Operand, weights: Operand): Operand {
  const [t, e] = weights.type.shape as [IndexExpr, IndexExpr];
  const used = node.emit("less", [node.splat("f32", 0), weights], {});
  const mask = node.reshape(used, [t, e, constant(1)]);
  return node.emit("select", [mask, y, node.splat(y.type.dtype, 0)], {});
}

function mixtureOfExperts(node: NodeView): Operand {
  const product = (at: number): Product => ({
    weights: (chosen) => fetched(node, node.input(at), chosen),
    bias: node.optional(at + 1),
  });
  for (const at of [2, 4]) node.checkRank(node.input(at), 3, "weights of experts");
  return mixture(node, readRoutes(node, node.input(1), undefined), {
    up: product(2),
    down: product(4),
    gate: node.inputs[6] ? product(6) : undefined,
  });
}

/** The same with weights of 2, 4 or 8 bits that have a scale for each row, or for each block of it. */
function quantizedMixtureOfExperts(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("accuracy_level");
  const type = attributes.string("quant_type") ?? "int";
  if (type !== "int") attributes.refuse("quant_type", type, "int");
  const prepacked = attributes.int("weights_prepacked") ?? -1;
  if (prepacked > 0) attributes.refuse("weights_prepacked", prepacked, "0");
  const bits = attributes.int("expert_weight_bits") ?? 4;
  const blockSize = attributes.int("block_size") ?? 0;
  const product = (at: number, zeros: number): Product => ({
    weights: dequantizedExperts(node, { weights: at, scales: at + 1, zeros, bits, blockSize }),
    bias: node.optional(at + 2),
  });
  return mixture(node, readRoutes(node, node.input(1), node.optional(14)), {
    up: product(2, 11),
    down: product(5, 12),
    gate: node.inputs[8] ? product(8, 13) : undefined,
  });
}

export const microsoftExpertRows = {
  MoE: { since: [1], convert: mixtureOfExperts },
  QMoE: { since: [1], convert: quantizedMixtureOfExperts },
} satisfies OperatorTable;
