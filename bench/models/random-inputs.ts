/** Seeded random inputs for a model case: the same seed gives the same tensors on every machine. */
import { Rng } from "../../src/support/rng.ts";
import type { ElementType, ModelHints, Tensor, Tensors } from "../sessions/session.ts";
import { modelPath } from "./fetch.ts";
import type { Fill, InputSpec, ModelCase, ModelRow } from "./table.ts";

export function randomInputs(modelCase: ModelCase, rng: Rng): Tensors {
  return Object.fromEntries(modelCase.inputs.map((spec) => [spec.name, randomTensor(spec, rng)]));
}

/** What is known of a model before it is opened: its shapes, inputs that never change, its place. */
export function hintsFor(row: ModelRow): ModelHints {
  const { shapes = {}, cases } = row;
  const specs = cases[0]!.inputs.filter((spec) => spec.fill.kind === "constant");
  const constants = specs.map((spec) => [spec.name, randomTensor(spec, new Rng(0))] as const);
  const path = modelPath(row);
  const known = { shapes, constants: Object.fromEntries(constants) };
  return path === undefined ? known : { ...known, path };
}

function randomTensor({ type, dims, fill }: InputSpec, rng: Rng): Tensor {
  const data = new arrays[type](dims.reduce((a, b) => a * b, 1));
  const next = drawing(fill, dims.at(-1) ?? 1, rng);
  if (data instanceof BigInt64Array) {
    for (let i = 0; i < data.length; i++) data[i] = BigInt(Math.trunc(next(i)));
  } else for (let i = 0; i < data.length; i++) data[i] = next(i);
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

/** The element at each place, for a last axis of that length; called in order. */
function drawing(fill: Fill, length: number, rng: Rng): (index: number) => number {
  switch (fill.kind) {
    case "normal":
      return () => rng.normal() * fill.deviation;
    case "uniform":
      return () => fill.low + rng.uniform() * (fill.high - fill.low);
    case "constant":
      return () => fill.value;
    case "count":
      return (index) => fill.from + (index % length);
    case "padding": {
      let ones = 0;
      return (index) => {
        if (index % length === 0) ones = rng.integer(Math.ceil(length / 2), length);
        return index % length < ones ? 1 : 0;
      };
    }
  }
}
