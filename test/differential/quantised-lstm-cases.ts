/** Layers of DynamicQuantizeLSTM: operands of one node each, with weights in full bytes of either sign. */
import type { OperandSpec, OperatorCase } from "../../campaign/operators/operator-case.ts";

interface Layer {
  readonly direction: "forward" | "reverse" | "bidirectional";
  readonly steps: number;
  readonly rows: number;
  readonly hidden: number;
  readonly signed?: boolean;
  /** A scale for each column. */
  readonly byColumn?: boolean;
  readonly bias?: boolean;
  readonly initial?: boolean;
  readonly peepholes?: boolean;
}

function layer(l: Layer): OperatorCase {
  const { direction, steps, rows, hidden, signed = true } = l;
  const d = direction === "bidirectional" ? 2 : 1;
  const width = 6;
  const dtype = signed ? "i8" : "u8";
  const range = signed ? ([-127, 127] as const) : ([0, 255] as const);
  const bytes = (n: number): OperandSpec => {
    return { shape: [d, n, 4 * hidden], dtype, range, weight: true };
  };
  const shape = l.byColumn ? [d, 4 * hidden] : [d];
  const count = shape.reduce((a, b) => a * b);
  const scale = (first: number): OperandSpec => {
    const values = Array.from({ length: count }, (_, i) => first * (1 + (i % 5) / 8));
    return { shape, values, weight: true };
  };
  const middle = signed ? 0 : 128;
  const zero: OperandSpec = {
    shape,
    dtype,
    values: new Array<number>(count).fill(middle),
    weight: true,
  };
  const state = l.initial ? [d, rows, hidden] : undefined;
  return {
    node: { op: "DynamicQuantizeLSTM", attributes: { hidden_size: BigInt(hidden), direction } },
    operands: [
      [steps, rows, width],
      bytes(width),
      bytes(hidden),
      l.bias ? { shape: [d, 8 * hidden], weight: true } : undefined,
      undefined,
      state,
      state,
      l.peepholes ? { shape: [d, 3 * hidden], weight: true } : undefined,
      scale(0.006),
      zero,
      scale(0.004),
      zero,
    ],
    outputs: [
      ["y", "f32", 4],
      ["hidden", "f32", 3],
      ["cell", "f32", 3],
    ],
  };
}

export const quantisedLstmCases: readonly OperatorCase[] = [
  layer({ direction: "forward", steps: 12, rows: 1, hidden: 8, bias: true }),
  layer({ direction: "bidirectional", steps: 9, rows: 3, hidden: 5, signed: false, initial: true }),
  layer({ direction: "reverse", steps: 7, rows: 2, hidden: 8, byColumn: true, peepholes: true }),
  layer({ direction: "forward", steps: 3, rows: 2, hidden: 4, initial: true, bias: true }),
];
