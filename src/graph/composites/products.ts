/** Einstein sums of any number of operands, and integer products with zero points. */
import { boolean, integer, integers, labelLists, labels } from "../attr-schema.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";

interface Labelled {
  readonly value: ValueId;
  readonly labels: readonly string[];
}

/** Keeps one of each repeated label. */
function takeDiagonals(b: OpWriter, operand: Labelled): Labelled {
  const other = operand.labels.findIndex((label, i) => operand.labels.indexOf(label) < i);
  if (other < 0) return operand;
  const axis = operand.labels.indexOf(operand.labels[other]!);
  const value = b.node("diagonal", [operand.value], { axis, other });
  return takeDiagonals(b, { value, labels: operand.labels.filter((_, i) => i !== other) });
}

/** Labels of the two that the output or a later operand needs. */
function neededLabels(
  pair: readonly Labelled[],
  rest: readonly Labelled[],
  output: readonly string[],
): string[] {
  const wanted = new Set([...output, ...rest.flatMap((o) => o.labels)]);
  return [...new Set(pair.flatMap((o) => o.labels))].filter((label) => wanted.has(label));
}

/** Left to right; each step sums what no later operand and not the output mentions. */
function contractChain(
  b: OpWriter,
  operands: readonly Labelled[],
  output: readonly string[],
): Labelled {
  const [first, second, ...rest] = operands as [Labelled, Labelled?, ...Labelled[]];
  if (!second) return first;
  const kept = neededLabels([first, second], rest, output);
  const value = b.node("contract", [first.value, second.value], {
    lhs: first.labels,
    rhs: second.labels,
    output: rest.length === 0 ? output : kept,
    accumulator: b.dtypeOf(first.value),
  });
  return contractChain(b, [{ value, labels: rest.length === 0 ? output : kept }, ...rest], output);
}

/** A zero point as i32, shaped to broadcast: one per entry of the axis from the end. */
function centred(b: OpWriter, x: ValueId, zero: ValueId | undefined, axisFromEnd: number): ValueId {
  const wide = b.cast(x, "i32");
  if (zero === undefined) return wide;
  const point = b.cast(zero, "i32");
  if (b.rankOf(zero) !== 1) return b.sub(wide, point);
  const shape = [...b.shapeOf(zero), ...new Array<number>(axisFromEnd - 1).fill(1)];
  return b.sub(wide, b.reshape(point, shape));
}

export const products = {
  einsum: {
    arity: [1, Infinity],
    schema: { operands: labelLists, output: labels },
    definition: (b, inputs, { operands, output }) => {
      const labelled = inputs.map((value, i) => takeDiagonals(b, { value, labels: operands[i]! }));
      const result = contractChain(b, labelled, output);
      const summed = result.labels.flatMap((label, i) => (output.includes(label) ? [] : [i]));
      const value = summed.length > 0 ? b.reduce("sum", result.value, summed, false) : result.value;
      const left = result.labels.filter((label) => output.includes(label));
      return [
        b.transpose(
          value,
          output.map((label) => left.indexOf(label)),
        ),
      ];
    },
  },
  matMulInteger: {
    arity: [2, 4],
    schema: { aZero: boolean, bZero: boolean },
    definition: (b, [x, y, ...zeros], { aZero, bZero }) => {
      // One zero point per row of a, per column of b.
      const left = centred(b, x!, aZero ? zeros[0] : undefined, 2);
      const right = centred(b, y!, bZero ? zeros[aZero ? 1 : 0] : undefined, 1);
      return [b.matMul(left, right, "i32")];
    },
  },
  convInteger: {
    arity: [2, 4],
    schema: {
      strides: integers,
      dilations: integers,
      padLow: integers,
      padHigh: integers,
      groups: integer,
      xZero: boolean,
      wZero: boolean,
    },
    definition: (b, [x, w, ...zeros], { xZero, wZero, ...attrs }) => {
      const data = centred(b, x!, xZero ? zeros[0] : undefined, 1);
      const weights = centred(b, w!, wZero ? zeros[xZero ? 1 : 0] : undefined, b.rankOf(w!));
      return [b.node("convolution", [data, weights], attrs)];
    },
  },
  // scale = (max(x, 0) - min(x, 0)) / 255; zero point = round(-min / scale), saturated
  dynamicQuantizeLinear: {
    arity: [1, 1],
    schema: {},
    definition: (b, [x]) => {
      const axes = b.shapeOf(x!).map((_, axis) => axis);
      const low = b.applyNumber("min", b.reduce("min", x!, axes, false), 0);
      const high = b.applyNumber("max", b.reduce("max", x!, axes, false), 0);
      const scale = b.applyNumber("div", b.sub(high, low), 255);
      const empty = b.apply("equal", scale, b.scalarLike(0, scale));
      const divisor = b.select(empty, b.scalarLike(1, scale), scale);
      const start = b.apply("round", b.div(b.apply("neg", low), divisor));
      const zero = b.cast(start, "u8");
      const values = b.node("quantize", [x!, divisor, zero], { to: "u8", saturate: true });
      return [values, divisor, zero];
    },
  },
} satisfies CompositeRows<"einsum" | "matMulInteger" | "convInteger" | "dynamicQuantizeLinear">;
