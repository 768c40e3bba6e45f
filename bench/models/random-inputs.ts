/** Seeded random inputs for a model case: the same seed gives the same tensors on every machine. */
import { Rng } from "../../src/support/rng.ts";
import type { ElementType, ModelHints, Tensor, Tensors } from "../sessions/session.ts";
import type { Fill, InputSpec, ModelCase, ModelRow } from "./table.ts";

export function randomInputs(modelCase: ModelCase, rng: Rng): Tensors {
  return Object.fromEntries(modelCase.inputs.map((spec) => [spec.name, randomTensor(spec, rng)]));
}

/** What is known of a model before it is opened: its shapes, and inputs that never change. */
export function hintsFor({ shapes = {}, cases }: ModelRow): ModelHints {
  const specs = cases[0]!.inputs.filter((spec) => spec.fill.kind === "constant");
  const constants = specs.map((spec) => [spec.name, randomTensor(spec, new Rng(0))] as const);
  return { shapes, constants: Object.fromEntries(constants) };
}

function randomTensor({ type, dims, fill }: InputSpec, rng: Rng): Tensor {
  const data = new arrays[type](dims.reduce((a, b) => a * b, 1));
  if (data instanceof BigInt64Array) {
    for (let i = 0; i < data.length; i++) data[i] = BigInt(Math.trunc(draw(fill, rng)));
  } else for (let i = 0; i < data.length; i++) data[i] = draw(fill, rng);
  return { type, dims, data } as Tensor;
}

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  int8: Int8Array,
  bool: Uint8Array,
} as const satisfies Record<ElementType, unknown>;

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
