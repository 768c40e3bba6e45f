/** Reductions of an elementwise function, and the mean. */
import { boolean, integers } from "../attr-schema.ts";
import type { ReduceFormAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeInfo, CompositeRows } from "./composite.ts";

const schema = { axes: integers, keepDims: boolean } as const;

/** sum / count */
export function mean(b: OpWriter, x: ValueId, axes: readonly number[], keepDims: boolean): ValueId {
  return b.div(b.reduce("sum", x, axes, keepDims), b.extentProduct(x, axes, b.dtypeOf(x)));
}

/** log(sum(exp(x - max))) + max; a maximum that is not finite is replaced by 0, as the sum decides. */
function logSumExp(b: OpWriter, x: ValueId, { axes, keepDims }: ReduceFormAttrs): ValueId {
  const peak = b.reduce("max", x, axes, true);
  const infinite = b.node("isInf", [peak], { detectNegative: true, detectPositive: true });
  const shift = b.select(infinite, b.scalarLike(0, x), peak);
  const total = b.reduce("sum", b.apply("exp", b.sub(x, shift)), axes, true);
  const result = b.add(b.apply("log", total), shift);
  if (keepDims) return result;
  return b.reshape(
    result,
    b.shapeOf(result).filter((_, axis) => !axes.includes(axis)),
  );
}

type Form =
  | "logSumExp"
  | "reduceMean"
  | "reduceL1"
  | "reduceL2"
  | "reduceSumSquare"
  | "reduceLogSum";

/** The forms have equal attributes, so that one row type serves all. */
type ReduceForm = CompositeInfo<Form> & CompositeRows<Form>[Form];

function row(definition: (b: OpWriter, x: ValueId, attrs: ReduceFormAttrs) => ValueId): ReduceForm {
  return { arity: [1, 1], schema, definition: (b, [x], attrs) => [definition(b, x!, attrs)] };
}

function sumOf(b: OpWriter, x: ValueId, { axes, keepDims }: ReduceFormAttrs): ValueId {
  return b.reduce("sum", x, axes, keepDims);
}

export const reductionForms = {
  logSumExp: row(logSumExp),
  reduceMean: row((b, x, { axes, keepDims }) => mean(b, x, axes, keepDims)),
  reduceL1: row((b, x, attrs) => sumOf(b, b.apply("abs", x), attrs)),
  reduceL2: row((b, x, attrs) => {
    // Integers have no square root: as f32 and back.
    const sum = sumOf(b, b.mul(x, x), attrs);
    const dtype = b.dtypeOf(x);
    const float = ["f64", "f32", "f16", "bf16"].includes(dtype) ? dtype : "f32";
    return b.cast(b.apply("sqrt", b.cast(sum, float)), dtype);
  }),
  reduceSumSquare: row((b, x, attrs) => sumOf(b, b.mul(x, x), attrs)),
  reduceLogSum: row((b, x, attrs) => b.apply("log", sumOf(b, x, attrs))),
  globalAveragePool: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => {
      const axes = b.shapeOf(x!).flatMap((_, axis) => (axis < 2 ? [] : [axis]));
      return [mean(b, x!, axes, true)];
    },
  },
} satisfies CompositeRows<Form | "globalAveragePool">;
