/** Activations of recurrent layers. Formulas: the ONNX operator pages of LSTM, GRU and RNN. */
import { invariant } from "../../support/invariant.ts";
import type { RecurrentActivation, RecurrentAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";

type Parameter = "alpha" | "beta";

/** The parameters that an activation takes. */
export const activationParameters = {
  sigmoid: [],
  tanh: [],
  relu: [],
  softsign: [],
  softplus: [],
  hardSigmoid: ["alpha", "beta"],
  affine: ["alpha", "beta"],
  leakyRelu: ["alpha"],
  thresholdedRelu: ["alpha"],
  scaledTanh: ["alpha", "beta"],
  elu: ["alpha"],
} as const satisfies Record<RecurrentActivation, readonly Parameter[]>;

export function takesParameter(activation: RecurrentActivation, parameter: Parameter): boolean {
  return (activationParameters[activation] as readonly Parameter[]).includes(parameter);
}

/** The activation at place `at` of the list of `attrs`. */
export function activate(b: OpWriter, attrs: RecurrentAttrs, at: number, x: ValueId): ValueId {
  const name = attrs.activations[at]!;
  const given = (parameter: Parameter): number => {
    const value = attrs[parameter]?.[at];
    invariant(value !== undefined, () => `activation ${at}, ${name}, has no ${parameter}`);
    return value;
  };
  switch (name) {
    case "softsign":
    case "softplus":
      return b.node(name, [x], {});
    case "hardSigmoid":
      return b.node(name, [x], { alpha: given("alpha"), beta: given("beta") });
    case "leakyRelu":
    case "thresholdedRelu":
    case "elu":
      return b.node(name, [x], { alpha: given("alpha") });
    case "affine":
      return b.applyNumber("add", b.applyNumber("mul", x, given("alpha")), given("beta"));
    case "scaledTanh": {
      const tanh = b.apply("tanh", b.applyNumber("mul", x, given("beta")));
      return b.applyNumber("mul", tanh, given("alpha"));
    }
    default:
      return b.apply(name, x);
  }
}
