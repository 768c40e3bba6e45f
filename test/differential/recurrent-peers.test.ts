/** LSTM, GRU and RNN in the corners of their pages, oracle and WebAssembly against onnxruntime. */
import { expect, test } from "vitest";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { disagreement, draw, type OperandSpec } from "../../campaign/operators/operator-case.ts";
import { exportOnnx } from "../../src/frontend/onnx/export/export-model.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";

type Attributes = Readonly<Record<string, number | bigint | string | readonly (string | number)[]>>;

const gatesOf = { LSTM: 4, GRU: 3, RNN: 1 } as const;
const [steps, batch, size, hidden] = [3, 2, 2, 2];

interface Layer {
  readonly op: keyof typeof gatesOf;
  readonly attributes: Attributes;
  readonly lengths?: readonly number[];
  /** Range of the first cell. */
  readonly cell?: readonly [number, number];
  readonly peepholes?: boolean;
}

function layerCase({ op, attributes, lengths, cell, peepholes }: Layer) {
  const d = attributes.direction === "bidirectional" ? 2 : 1;
  const n = gatesOf[op] * hidden;
  const range = [-1.5, 1.5] as const;
  const operand = (...shape: readonly number[]): OperandSpec => ({ shape, range });
  const sequence: OperandSpec | undefined = lengths && {
    ...{ shape: [batch], dtype: "i32", values: lengths },
  };
  const lstmOnly = [
    cell && { shape: [d, batch, hidden], range: cell },
    peepholes ? operand(d, 3 * hidden) : undefined,
  ];
  const operands = [
    operand(steps, batch, size),
    operand(d, n, size),
    operand(d, n, hidden),
    operand(d, 2 * n),
    sequence,
    operand(d, batch, hidden),
    ...(op === "LSTM" ? lstmOnly : []),
  ];
  const states = [["h", "f32", 3] as const, ...(op === "LSTM" ? [["c", "f32", 3] as const] : [])];
  return {
    node: { op, attributes: { hidden_size: BigInt(hidden), ...attributes } },
    operands,
    outputs: [["y", "f32", 4] as const, ...states],
  };
}

const layer = (op: Layer["op"], attributes: Attributes, more: Partial<Layer> = {}): Layer => ({
  ...{ op, attributes },
  ...more,
});

const activated = (names: string, alpha?: readonly number[], beta?: readonly number[]) => ({
  activations: names.split(" "),
  ...(alpha && { activation_alpha: alpha }),
  ...(beta && { activation_beta: beta }),
});

const bidirectional = { direction: "bidirectional" };

const activations: readonly Layer[] = [
  layer("LSTM", activated("HardSigmoid Tanh Tanh", [0.2], [0.5])),
  layer("LSTM", activated("HardSigmoid LeakyRelu ScaledTanh", [0.3, 0.2, 0.7], [0.4, 1.5])),
  layer("GRU", activated("Sigmoid Affine", [1.5], [0.1])),
  layer("GRU", {
    ...bidirectional,
    ...activated("HardSigmoid Elu Sigmoid ScaledTanh", [0.3, 0.6, 0.8], [0.4, 0.9]),
  }),
  layer("RNN", activated("ThresholdedRelu", [0.5])),
  layer("RNN", activated("ScaledTanh", [1.7], [0.6])),
  layer("RNN", activated("Elu", [0.7])),
  layer("RNN", activated("Elu")),
  layer("RNN", activated("LeakyRelu")),
  // The first number is LeakyRelu's: Relu takes none; the second is no one's.
  layer("RNN", { ...bidirectional, ...activated("Relu LeakyRelu", [0, 0.3]) }),
  layer("RNN", { ...bidirectional, ...activated("HardSigmoid HardSigmoid", [0.3], [0.4, 0.1]) }),
];

const clipped: readonly Layer[] = [
  layer("LSTM", { clip: 0.5 }, { cell: [-30, 30] }),
  layer("LSTM", { clip: 0.5, input_forget: 1n }, { cell: [-2, 2], peepholes: true }),
  layer("LSTM", { clip: 0.5, ...bidirectional }, { cell: [-2, 2], lengths: [3, 1] }),
  layer("GRU", { clip: 0.5 }),
  layer("RNN", { clip: 0.5 }),
];

const ended: readonly Layer[] = [
  layer("LSTM", bidirectional, { cell: [5, 9], lengths: [0, 2] }),
  layer("GRU", { direction: "reverse" }, { lengths: [3, 0] }),
  layer("RNN", {}, { lengths: [0, 0] }),
];

const titled = (kind: string, layers: readonly Layer[]) =>
  layers.map((c, i) => [`${kind} ${i}: ${c.op}`, c] as const);

test.each([
  ...titled("activations", activations),
  ...titled("clip", clipped),
  ...titled("ended", ended),
])("%s", async (_title, c) => {
  expect(await disagreement(layerCase(c), 1)).toBeUndefined();
});

const outside: readonly Layer[] = [
  layer("RNN", {}, { lengths: [1, -1] }),
  layer("GRU", {}, { lengths: [4, 1] }),
];

test.each(titled("lengths out of range", outside))("%s", async (_title, c) => {
  const { bytes, feeds } = draw(layerCase(c), 1);
  const session = await wavetileRuntime("wasm", 1).open(bytes, {});
  await expect(session.run(feeds)).rejects.toThrow("RUN006");
  await session.release();
  const oracle = await oracleRuntime.open(bytes, {});
  await expect(oracle.run(feeds)).rejects.toThrow("SEM001");
  await oracle.release();
});

test.each(titled("constant lengths out of range", outside))("%s", (_title, c) => {
  const { operands, ...rest } = layerCase(c);
  const fixed = operands.map((o) => o && { ...o, weight: o.dtype === "i32" });
  const imported = importOnnx(draw({ ...rest, operands: fixed }, 1).bytes);
  expect(imported).toMatchObject({ ok: false, diagnostics: [{ code: "ONX009" }] });
});

test("an activation without a default asks for its number", () => {
  const imported = importOnnx(draw(layerCase(layer("RNN", activated("Affine", [1]))), 1).bytes);
  expect(imported).toMatchObject({ ok: false, diagnostics: [{ code: "ONX009" }] });
});

test("activations and their numbers are written as they were read", () => {
  const { attributes } = activations[3]!;
  const { graph, weights } = unwrap(importOnnx(draw(layerCase(activations[3]!), 1).bytes));
  const written = unwrap(exportOnnx({ graph, weights }));
  const again = unwrap(importOnnx(written.bytes)).graph;
  expect(attributes.activation_alpha).toEqual([0.3, 0.6, 0.8]);
  const layerOf = (g: typeof graph) => g.nodes.find((n) => n.op === "gru")!.attrs;
  expect(layerOf(again)).toEqual(layerOf(graph));
});
