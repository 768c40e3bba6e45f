import { expect, it } from "vitest";
import { makeTensor, type Tensor } from "../../semantics/tensor.ts";
import { PassingTensors } from "./passing-tensors.ts";

it("makes a tensor in the memory of one that nobody reads any more, of any shape of that size", () => {
  const passing = new PassingTensors();
  const first = passing.make("f32", [4, 6]);
  passing.giveBack(first, []);
  const second = passing.make("f32", [24]);
  expect(second.data).toBe(first.data);
  expect(second.shape).toEqual([24]);
  expect(passing.make("f32", [4, 6]).data).not.toBe(first.data);
});

it("keeps apart what differs in type or size", () => {
  const passing = new PassingTensors();
  passing.giveBack(passing.make("i32", [6]), []);
  const made = passing.make("f32", [6]);
  expect(made.data).toEqual(new Float32Array(6));
  passing.giveBack(made, []);
  expect(passing.make("f32", [7]).data.buffer).not.toBe(made.data.buffer);
});

it("leaves memory that may still be read: under another name, or a part of it", () => {
  const passing = new PassingTensors();
  const made = passing.make("f32", [8]);
  const part = { dtype: "f32", shape: [2], data: made.data.subarray(2, 4) } as Tensor;
  for (const other of [made, part]) {
    passing.giveBack(made, [other]);
    expect(passing.make("f32", [8]).data).not.toBe(made.data);
  }
});

it("never hands out what it has not made: a caller's tensor, a weight", () => {
  const passing = new PassingTensors();
  const given = makeTensor("f32", [8]);
  passing.giveBack(given, []);
  expect(passing.make("f32", [8]).data).not.toBe(given.data);
});
