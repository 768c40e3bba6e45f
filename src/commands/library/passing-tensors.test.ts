import { expect, it } from "vitest";
import { makeTensor, type Tensor } from "../../semantics/tensor.ts";
import { PassingTensors } from "./passing-tensors.ts";

/** A tensor that one stage named and the last of its readers let go of. */
function passed(passing: PassingTensors, tensor: Tensor): Tensor {
  passing.name(tensor);
  passing.forget(tensor);
  return tensor;
}

it("makes a tensor in the memory of one that nobody reads any more, of any shape of that size", () => {
  const passing = new PassingTensors();
  const first = passed(passing, passing.make("f32", [4, 6]));
  const second = passing.make("f32", [24]);
  expect(second.data).toBe(first.data);
  expect(second.shape).toEqual([24]);
  expect(passing.make("f32", [4, 6]).data).not.toBe(first.data);
});

it("makes it there again, however often it was passed on", () => {
  const passing = new PassingTensors();
  const first = passed(passing, passing.make("f32", [4]));
  for (let i = 0; i < 3; i++) {
    const next = passing.make("f32", [4]);
    expect(next.data).toBe(first.data);
    passed(passing, next);
  }
});

it("keeps apart what differs in type or size", () => {
  const passing = new PassingTensors();
  passed(passing, passing.make("i32", [6]));
  const made = passing.make("f32", [6]);
  expect(made.data).toEqual(new Float32Array(6));
  passed(passing, made);
  expect(passing.make("f32", [7]).data.buffer).not.toBe(made.data.buffer);
});

it("leaves memory that may still be read: under another name, or a part of it", () => {
  for (const isPart of [false, true]) {
    const passing = new PassingTensors();
    const made = passing.make("f32", [8]);
    const part = { dtype: "f32", shape: [2], data: made.data.subarray(2, 4) } as Tensor;
    const other = isPart ? part : made;
    passing.name(made);
    passing.name(other);
    passing.forget(made);
    expect(passing.make("f32", [8]).data).not.toBe(made.data);
    passing.forget(other);
    expect(passing.make("f32", [isPart ? 2 : 8]).data.buffer).toBe(made.data.buffer);
  }
});

it("never hands out what it has not made: a caller's tensor, a weight", () => {
  const passing = new PassingTensors();
  const given = passed(passing, makeTensor("f32", [8]));
  expect(passing.make("f32", [8]).data).not.toBe(given.data);
});
