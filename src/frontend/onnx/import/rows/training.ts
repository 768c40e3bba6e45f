/**
 * Steps of optimizers (ai.onnx.preview.training) and Gradient, which differentiates the nodes before it
 * backwards through elementwise ops; others are refused by name.
 */
import type { Node, NodeOf, OpKind, ValueId } from "../../../../graph/graph.ts";
import { constantValue } from "../../../../semantics/index-expr.ts";
import type { ScalarOp } from "../../../../semantics/scalar-expr.ts";
import type { NodeView } from "../node-view.ts";
import { type Bound, isOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** Arithmetic that reads like a formula. */
function formulas(node: NodeView) {
  const emit = (op: ScalarOp, ...operands: readonly Operand[]) => node.emit(op, operands, {});
  const like = (x: Operand, value: number) => node.splat(x.type.dtype, value);
  return {
    add: (a: Operand, b: Operand) => emit("add", a, b),
    sub: (a: Operand, b: Operand) => emit("sub", a, b),
    mul: (a: Operand, b: Operand) => emit("mul", a, b),
    div: (a: Operand, b: Operand) => emit("div", a, b),
    scale: (a: Operand, by: number) => emit("mul", a, like(a, by)),
    sqrt: (a: Operand) => emit("sqrt", a),
    like,
  };
}

/** Inputs: rate, step, then for n tensors all X, all G, and all of each further state. */
function readTensors(node: NodeView, states: number): readonly (readonly Operand[])[] {
  const operands = node.allInputs().slice(2);
  const count = operands.length / (states + 2);
  if (!Number.isInteger(count) || count < 1) {
    node.refuse(`${operands.length} tensors`, `a multiple of ${states + 2}`);
  }
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: states + 2 }, (_s, s) => operands[s * count + i]!),
  );
}

/** Results come grouped, too: all new X, then all of each new state. */
function grouped(results: readonly (readonly Operand[])[]): readonly Operand[] {
  return results[0]!.flatMap((_, s) => results.map((r) => r[s]!));
}

function adagrad(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const { add, sub, mul, div, scale, sqrt, like } = formulas(node);
  const [rate, step] = [node.input(0), node.cast(node.input(1), node.input(0).type.dtype)];
  const decay = attributes.float("decay_factor") ?? 0;
  const epsilon = attributes.float("epsilon") ?? 0;
  const norm = attributes.float("norm_coefficient") ?? 0;
  const slowed = div(rate, add(scale(step, decay), like(step, 1)));
  return grouped(
    readTensors(node, 1).map(([x, g, h]) => {
      const gradient = add(scale(x!, norm), g!);
      const squared = add(h!, mul(gradient, gradient));
      const adaptive = add(sqrt(squared), like(squared, epsilon));
      return [sub(x!, div(mul(slowed, gradient), adaptive)), squared];
    }),
  );
}

function adam(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const { add, sub, mul, div, scale, sqrt, like } = formulas(node);
  const alpha = attributes.float("alpha") ?? 0.9;
  const beta = attributes.float("beta") ?? 0.999;
  const epsilon = attributes.float("epsilon") ?? 0;
  const norm = attributes.float("norm_coefficient") ?? 0;
  const after = attributes.float("norm_coefficient_post") ?? 0;
  const rate = adjustedRate(node, alpha, beta);
  return grouped(
    readTensors(node, 2).map(([x, g, v, h]) => {
      const gradient = add(scale(x!, norm), g!);
      const mean = add(scale(v!, alpha), scale(gradient, 1 - alpha));
      const square = add(scale(h!, beta), scale(mul(gradient, gradient), 1 - beta));
      const adaptive = add(sqrt(square), like(square, epsilon));
      const stepped = sub(x!, div(mul(rate, mean), adaptive));
      return [scale(stepped, 1 - after), mean, square];
    }),
  );
}

/** rate * sqrt(1 - beta^t) / (1 - alpha^t), but the plain rate at the first step. */
function adjustedRate(node: NodeView, alpha: number, beta: number): Operand {
  const { sub, mul, div, sqrt, like } = formulas(node);
  const rate = node.input(0);
  const step = node.cast(node.input(1), rate.type.dtype);
  const power = (base: number) => node.emit("pow", [like(rate, base), step], {});
  const one = like(rate, 1);
  const adjusted = div(mul(rate, sqrt(sub(one, power(beta)))), sub(one, power(alpha)));
  const started = node.emit("less", [like(rate, 0), step], {});
  return node.emit("select", [started, adjusted, rate], {});
}

function momentum(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const { add, sub, mul, scale, like } = formulas(node);
  const alpha = attributes.float("alpha") ?? 0;
  const beta = attributes.float("beta") ?? 0;
  const norm = attributes.float("norm_coefficient") ?? 0;
  const mode = attributes.choice("mode", "standard", "nesterov");
  const rate = node.input(0);
  const step = node.cast(node.input(1), rate.type.dtype);
  const started = node.emit("less", [like(step, 0), step], {});
  const factor = node.emit("select", [started, like(rate, beta), like(rate, 1)], {});
  return grouped(
    readTensors(node, 1).map(([x, g, v]) => {
      const gradient = add(scale(x!, norm), g!);
      const velocity = add(scale(v!, alpha), mul(factor, gradient));
      const ahead = mode === "standard" ? velocity : add(gradient, scale(velocity, alpha));
      return [sub(x!, mul(rate, ahead)), velocity];
    }),
  );
}

type Backward = (
  node: NodeView,
  call: { readonly inputs: readonly Operand[]; readonly output: Operand; readonly grad: Operand },
) => readonly (Operand | undefined)[];

/** Derivatives with respect to each operand, before they are summed over broadcast axes. */
const backward: Partial<Record<OpKind, Backward>> = {
  add: (_node, { grad }) => [grad, grad],
  sub: (node, { grad }) => [grad, node.emit("neg", [grad], {})],
  neg: (node, { grad }) => [node.emit("neg", [grad], {})],
  mul: (node, { inputs: [a, b], grad }) => {
    const { mul } = formulas(node);
    return [mul(grad, b!), mul(grad, a!)];
  },
  div: (node, { inputs: [, b], output, grad }) => {
    const { mul, div } = formulas(node);
    return [div(grad, b!), node.emit("neg", [div(mul(grad, output), b!)], {})];
  },
  exp: (node, { output, grad }) => [formulas(node).mul(grad, output)],
  log: (node, { inputs: [x], grad }) => [formulas(node).div(grad, x!)],
  sqrt: (node, { output, grad }) => [formulas(node).div(grad, formulas(node).scale(output, 2))],
  tanh: (node, { output, grad }) => {
    const { sub, mul, like } = formulas(node);
    return [mul(grad, sub(like(output, 1), mul(output, output)))];
  },
  sigmoid: (node, { output, grad }) => {
    const { sub, mul, like } = formulas(node);
    return [mul(grad, mul(output, sub(like(output, 1), output)))];
  },
};

/** Reverse accumulation over the nodes between the inputs named by `xs` and the value named by `y`. */
function gradient(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const names = attributes.strings("xs") ?? [];
  const target = valueNamed(node, attributes.string("y") ?? "");
  attributes.ignore("zs");
  const { assembly } = node.emitter;
  const grads = new Map<ValueId, Operand>();
  grads.set(
    target.id,
    node.emit("broadcast", [node.splat(target.type.dtype, 1)], {
      shape: target.type.shape,
    }),
  );
  const sources = names.map((name) => valueNamed(node, name));
  const wanted = dependents(assembly.nodes, new Set(sources.map((s) => s.id)));
  for (const past of [...assembly.nodes].reverse()) {
    const grad = grads.get(past.outputs[0]!);
    if (!grad || !wanted.has(past.outputs[0]!)) continue;
    for (const [i, part] of derive(node, past, grad).entries()) {
      const id = past.inputs[i]!;
      if (!part || !wanted.has(id)) continue;
      const fitted = sumToShape(node, part, operandOf(node, id));
      const before = grads.get(id);
      grads.set(id, before ? formulas(node).add(before, fitted) : fitted);
    }
  }
  return sources.map(
    (s) =>
      grads.get(s.id) ??
      node.emit("broadcast", [node.splat(s.type.dtype, 0)], { shape: s.type.shape }),
  );
}

function derive(node: NodeView, past: Node, grad: Operand): readonly (Operand | undefined)[] {
  const { op, inputs, outputs } = past as NodeOf<OpKind>;
  const rule = backward[op];
  if (!rule) node.refuse(`the derivative of ${op}`, `those of ${Object.keys(backward).join(", ")}`);
  const operands = inputs.map((id) => operandOf(node, id));
  return rule(node, { inputs: operands, output: operandOf(node, outputs[0]!), grad });
}

function operandOf(node: NodeView, id: ValueId): Operand {
  const { assembly } = node.emitter;
  return { kind: "value", type: assembly.typeOf(id), home: assembly, id };
}

function valueNamed(node: NodeView, name: string) {
  const bound: Bound | undefined = node.subgraphs.find(name);
  if (bound && isOperand(bound) && bound.kind === "value") return bound;
  return node.refuse(`the gradient of or by ${JSON.stringify(name)}`, "computed values and inputs");
}

/** Values that follow from the sources, and these. */
function dependents(nodes: readonly Node[], sources: ReadonlySet<ValueId>): Set<ValueId> {
  const found = new Set(sources);
  for (const { inputs, outputs } of nodes) {
    if (inputs.some((id) => found.has(id))) for (const id of outputs) found.add(id);
  }
  return found;
}

/** A derivative summed over the axes along which the operand was repeated. */
function sumToShape(node: NodeView, grad: Operand, x: Operand): Operand {
  const extra = grad.type.shape.length - x.type.shape.length;
  const axes = grad.type.shape.flatMap((d, i) => {
    const own = x.type.shape[i - extra];
    const repeated = !own || (constantValue(own) === 1 && constantValue(d) !== 1);
    return repeated ? [i] : [];
  });
  if (axes.length === 0) return grad;
  const sum = node.emit("reduce", [grad], { kind: "sum", axes, keepDims: false });
  return node.reshape(sum, x.type.shape);
}

export const trainingRows = {
  Adagrad: { since: [1], convert: adagrad },
  Adam: { since: [1], convert: adam },
  Momentum: { since: [1], convert: momentum },
  Gradient: { since: [1], convert: gradient },
} satisfies OperatorTable;
