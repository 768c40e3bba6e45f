/**
 * Models that are large in one way: many nodes, or many bytes of weights beside the model file. The
 * weights lie in a file with holes, longer than a 32-bit offset reaches; each has a few numbers drawn at
 * drawn places, so that what is read can be checked.
 */
import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type NodeSpec, tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { writeExternalTensorProto } from "../../src/frontend/onnx/tensor-proto.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import type { Rng } from "../../src/support/rng.ts";

const integers = (...values: readonly bigint[]): Tensor =>
  tensorOf("i64", [values.length], BigInt64Array.from(values));

class Nodes {
  readonly all: NodeSpec[] = [];

  add(op: string, inputs: readonly string[], attributes: NodeSpec["attributes"] = {}): string {
    const name = `${op}_${this.all.length}`;
    this.all.push({ op, name, inputs, outputs: [name], attributes });
    return name;
  }
}

/** Layers of a product and a softmax over heads, with shapes computed as exporters write it. */
export function manyNodes(least: number, rng: Rng): Uint8Array {
  const nodes = new Nodes();
  const width = 8 * rng.integer(2, 12);
  const weights: Record<string, Tensor> = {
    batch: integers(0n),
    length: integers(1n),
    heads: integers(8n, BigInt(width / 8)),
    width: integers(BigInt(width)),
  };
  const matrix = tensorOf("f32", [width, width], new Float32Array(width * width).fill(0.01));
  const row = tensorOf("f32", [width], new Float32Array(width).fill(0.5));
  const order = { perm: [0n, 2n, 1n, 3n] };
  let x = "x";
  for (let layer = 0; nodes.all.length < least; layer++) {
    weights[`matrix_${layer}`] = matrix;
    weights[`row_${layer}`] = row;
    let y = nodes.add("Add", [nodes.add("MatMul", [x, `matrix_${layer}`]), `row_${layer}`]);
    const shape = nodes.add("Shape", [y]);
    const ends = ["batch", "length"].map((axis) =>
      nodes.add("Gather", [shape, axis], { axis: 0n }),
    );
    const split = nodes.add("Concat", [...ends, "heads"], { axis: 0n });
    y = nodes.add("Transpose", [nodes.add("Reshape", [y, split])], order);
    y = nodes.add("Transpose", [nodes.add("Softmax", [y], { axis: -1n })], order);
    const joined = nodes.add("Concat", [...ends, "width"], { axis: 0n });
    y = nodes.add("Add", [nodes.add("Reshape", [y, joined]), x]);
    x = nodes.add(rng.integer(0, 1) === 0 ? "Relu" : "Tanh", [y]);
  }
  const shape = ["N", "T", width];
  return writeModel({
    name: "manyNodes",
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape }],
    outputs: [{ name: x, dtype: "f32", shape }],
    weights,
    nodes: nodes.all,
  });
}

/** A number that stands in a weight. */
export interface Mark {
  readonly weight: string;
  readonly element: number;
  readonly value: number;
}

export interface LargeFile {
  readonly path: string;
  readonly marks: readonly Mark[];
}

export const rows = 4096;
export const columns = 8192;
const weightBytes = rows * columns * 4;

/** Writes a model whose nodes use the weights `used` of `count`; 128 MiB each. */
export function writeLargeFile(
  folder: string,
  { count, used, rng }: { count: number; used: readonly number[]; rng: Rng },
): LargeFile {
  const location = "weights.bin";
  const marks: Mark[] = [];
  const file = openSync(join(folder, location), "w");
  try {
    ftruncateSync(file, count * weightBytes);
    for (const number of used) {
      for (const element of [0, rng.integer(1, rows * columns - 2), rows * columns - 1]) {
        const value = Math.fround(1 + rng.uniform());
        marks.push({ weight: `w${number}`, element, value });
        const at = number * weightBytes + element * 4;
        writeSync(file, new Uint8Array(Float32Array.of(value).buffer), 0, 4, at);
      }
    }
  } finally {
    closeSync(file);
  }
  const type = { dtype: "f32" as const, shape: [rows, columns] };
  const tensors = Array.from({ length: count }, (_, i) =>
    writeExternalTensorProto(`w${i}`, type, {
      location,
      offset: i * weightBytes,
      length: weightBytes,
    }),
  );
  const nodes = new Nodes();
  const products = used.map((number) => nodes.add("MatMul", ["x", `w${number}`]));
  const sum = nodes.add("Sum", products);
  const path = join(folder, "model.onnx");
  const model = writeModel({
    name: "largeFile",
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: ["N", rows] }],
    outputs: [{ name: sum, dtype: "f32", shape: ["N", columns] }],
    tensors,
    nodes: nodes.all,
  });
  writeFileSync(path, model);
  return { path, marks };
}

/** Of one weight above 2 GiB. */
export const table = { rows: 1_100_000, width: 512 } as const;

export interface TableFile {
  readonly path: string;
  /** Rows with numbers by their index; all others are zeros. */
  readonly filled: ReadonlyMap<number, Float32Array>;
}

/** Writes a model that gathers rows of one table; some rows are drawn, the first, the last and those around 2 GiB too. */
export function writeTableFile(folder: string, rng: Rng): TableFile {
  const location = "table.bin";
  const rowBytes = table.width * 4;
  const chosen = [0, Math.floor(2 ** 31 / rowBytes), table.rows - 1];
  while (chosen.length < 12) chosen.push(rng.integer(1, table.rows - 2));
  const filled = new Map<number, Float32Array>();
  const file = openSync(join(folder, location), "w");
  try {
    ftruncateSync(file, table.rows * rowBytes);
    for (const row of chosen) {
      const values = Float32Array.from({ length: table.width }, () => 1 + rng.uniform());
      filled.set(row, values);
      writeSync(file, new Uint8Array(values.buffer), 0, rowBytes, row * rowBytes);
    }
  } finally {
    closeSync(file);
  }
  const type = { dtype: "f32" as const, shape: [table.rows, table.width] };
  const path = join(folder, "model.onnx");
  const model = writeModel({
    name: "table",
    opset: 17,
    inputs: [{ name: "x", dtype: "i64", shape: ["N"] }],
    outputs: [{ name: "y", dtype: "f32", shape: ["N", table.width] }],
    tensors: [
      writeExternalTensorProto("table", type, {
        location,
        offset: 0,
        length: table.rows * rowBytes,
      }),
    ],
    nodes: [{ op: "Gather", inputs: ["table", "x"], outputs: ["y"], attributes: { axis: 0n } }],
  });
  writeFileSync(path, model);
  return { path, filled };
}
