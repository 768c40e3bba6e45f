/** Activations: each an elementwise formula, written above its row. */
import { boolean, choice, number } from "../attr-schema.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";

const alpha = { alpha: number } as const;

/** max(0, min(1, alpha x + beta)) */
function hardSigmoid(b: OpWriter, x: ValueId, slope: number, offset: number): ValueId {
  const line = b.applyNumber("add", b.applyNumber("mul", x, slope), offset);
  return b.applyNumber("max", b.applyNumber("min", line, 1), 0);
}

/** max(x, 0) + log(1 + exp(-|x|)), which does not overflow. */
function softplus(b: OpWriter, x: ValueId): ValueId {
  const tail = b.apply("exp", b.apply("neg", b.apply("abs", x)));
  return b.add(b.apply("relu", x), b.apply("log", b.applyNumber("add", tail, 1)));
}

/** exp(x) - 1 where x < 0; the operand is clamped so that the unused side stays finite. */
function expMinusOne(b: OpWriter, x: ValueId): ValueId {
  return b.applyNumber("sub", b.apply("exp", b.applyNumber("min", x, 0)), 1);
}

/** x where x > 0, else `other`. */
function positiveOr(b: OpWriter, x: ValueId, other: ValueId): ValueId {
  return b.select(b.apply("less", b.scalarLike(0, x), x), x, other);
}

/** x * (1 + erf(x / sqrt 2)) / 2, or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) for erf. */
function gelu(b: OpWriter, x: ValueId, approximate: "none" | "tanh"): ValueId {
  const half = b.applyNumber("mul", x, 0.5);
  if (approximate === "none") {
    const erf = b.apply("erf", b.applyNumber("mul", x, Math.SQRT1_2));
    return b.mul(half, b.applyNumber("add", erf, 1));
  }
  const cube = b.applyNumber("mul", b.mul(b.mul(x, x), x), 0.044715);
  const inner = b.applyNumber("mul", b.add(x, cube), Math.sqrt(2 / Math.PI));
  return b.mul(half, b.applyNumber("add", b.apply("tanh", inner), 1));
}

export const activations = {
  silu: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => [b.mul(x!, b.apply("sigmoid", x!))],
  },
  gelu: {
    arity: [1, 1],
    schema: { approximate: choice("none", "tanh") },
    definition: (b, [x], { approximate }) => [gelu(b, x!, approximate)],
  },
  hardSigmoid: {
    arity: [1, 1],
    schema: { alpha: number, beta: number },
    definition: (b, [x], attrs) => [hardSigmoid(b, x!, attrs.alpha, attrs.beta)],
  },
  hardSwish: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => [b.mul(x!, hardSigmoid(b, x!, 1 / 6, 0.5))],
  },
  // x where x >= 0, else alpha x
  leakyRelu: {
    arity: [1, 1],
    schema: alpha,
    definition: (b, [x], attrs) => {
      const negative = b.apply("less", x!, b.scalarLike(0, x!));
      return [b.select(negative, b.applyNumber("mul", x!, attrs.alpha), x!)];
    },
  },
  // x where x >= 0, else slope x
  prelu: {
    arity: [2, 2],
    schema: {},
    definition: (b, [x, slope]) => {
      const negative = b.apply("less", x!, b.scalarLike(0, x!));
      return [b.select(negative, b.mul(x!, slope!), x!)];
    },
  },
  // x where x > 0, else alpha (exp(x) - 1)
  elu: {
    arity: [1, 1],
    schema: alpha,
    definition: (b, [x], attrs) => [
      positiveOr(b, x!, b.applyNumber("mul", expMinusOne(b, x!), attrs.alpha)),
    ],
  },
  // gamma * elu(x)
  selu: {
    arity: [1, 1],
    schema: { alpha: number, gamma: number },
    definition: (b, [x], attrs) => {
      const elu = positiveOr(b, x!, b.applyNumber("mul", expMinusOne(b, x!), attrs.alpha));
      return [b.applyNumber("mul", elu, attrs.gamma)];
    },
  },
  // max(0, x) + min(0, alpha (exp(x / alpha) - 1))
  celu: {
    arity: [1, 1],
    schema: alpha,
    definition: (b, [x], attrs) => {
      const scaled = expMinusOne(b, b.applyNumber("div", x!, attrs.alpha));
      return [positiveOr(b, x!, b.applyNumber("mul", scaled, attrs.alpha))];
    },
  },
  softplus: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => [softplus(b, x!)],
  },
  // x / (1 + |x|)
  softsign: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => [b.div(x!, b.applyNumber("add", b.apply("abs", x!), 1))],
  },
  // x tanh(softplus(x))
  mish: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => [b.mul(x!, b.apply("tanh", softplus(b, x!)))],
  },
  // x where x > alpha, else 0
  thresholdedRelu: {
    arity: [1, 1],
    schema: alpha,
    definition: (b, [x], attrs) => {
      const above = b.apply("less", b.scalarLike(attrs.alpha, x!), x!);
      return [b.select(above, x!, b.scalarLike(0, x!))];
    },
  },
  // min(max(x, low), high)
  clip: {
    arity: [1, 3],
    schema: { low: boolean, high: boolean },
    definition: (b, [x, ...bounds], attrs) => {
      const raised = attrs.low ? b.apply("max", x!, bounds[0]!) : x!;
      return [attrs.high ? b.apply("min", raised, bounds[attrs.low ? 1 : 0]!) : raised];
    },
  },
} satisfies CompositeRows<
  | "silu"
  | "gelu"
  | "hardSigmoid"
  | "hardSwish"
  | "leakyRelu"
  | "prelu"
  | "elu"
  | "selu"
  | "celu"
  | "softplus"
  | "softsign"
  | "mish"
  | "thresholdedRelu"
  | "clip"
>;
