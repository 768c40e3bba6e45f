/** Seeded random inputs for a model case: the same seed gives the same tensors on every machine. */
import type { Rng } from "../../src/support/rng.ts";
import type { Tensor, Tensors } from "../sessions/session.ts";
import type { Fill, InputSpec, ModelCase } from "./table.ts";

export function randomInputs(modelCase: ModelCase, rng: Rng): Tensors {
  return Object.fromEntries(modelCase.inputs.map((spec) => [spec.name, randomTensor(spec, rng)]));
}

function randomTensor(spec: InputSpec, rng: Rng): Tensor {
  const count = spec.dims.reduce((a, b) => a * b, 1);
  const values = Array.from({ length: count }, () => draw(spec.fill, rng));
  const { type, dims } = spec;
  switch (type) {
    case "float32":
      return { type, dims, data: Float32Array.from(values) };
    case "float64":
      return { type, dims, data: Float64Array.from(values) };
    case "int32":
      return { type, dims, data: Int32Array.from(values) };
    case "int64":
      return { type, dims, data: BigInt64Array.from(values, (v) => BigInt(Math.trunc(v))) };
    case "int8":
      return { type, dims, data: Int8Array.from(values) };
    case "uint8":
    case "bool":
      return { type, dims, data: Uint8Array.from(values) };
  }
}

function draw(fill: Fill, rng: Rng): number {
  switch (fill.kind) {
    case "normal":
      return rng.normal() * fill.deviation;
    case "uniform":
      return fill.low + rng.uniform() * (fill.high - fill.low);
    case "constant":
      return fill.value;
  }
}
