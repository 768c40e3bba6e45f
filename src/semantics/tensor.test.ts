import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { allDTypes, dtypes, storageBytes } from "./dtype.ts";
import { packBits, unpackBits } from "./packing.ts";
import {
  broadcastShapes,
  broadcastStrides,
  forEachIndex,
  offsetOf,
  rowMajorStrides,
  splitAtAxis,
  viewOffsets,
} from "./shape.ts";
import {
  fromRef,
  makeTensor,
  randomRef,
  refTensor,
  refTensorsEqual,
  tensorBytes,
  tensorFromBytes,
  tensorOnBytes,
  toRef,
} from "./tensor.ts";

describe.each(allDTypes)("storage of %s", (dtype) => {
  it("round-trips every byte pattern that means a value", () => {
    const count = 1024;
    const bytes = new Uint8Array(storageBytes(dtype, count));
    const rng = new Rng(7);
    for (let i = 0; i < bytes.length; i++) {
      bytes[i] = dtype === "bool" ? rng.integer(0, 1) : rng.integer(0, 255);
    }
    const tensor = tensorFromBytes(dtype, [count], bytes);
    const ref = toRef(tensor);
    expect(refTensorsEqual(toRef(fromRef(ref)), ref)).toBe(true);
    if (dtypes[dtype].kind === "float") return; // NaN payloads are not kept
    expect(tensorBytes(fromRef(ref))).toEqual(bytes);
  });

  it("is read on the bytes themselves where it may begin there", () => {
    const shape = [16];
    const size = storageBytes(dtype, 16);
    const memory = new Uint8Array(size + 16).map((_, i) => i & 1);
    const { BYTES_PER_ELEMENT: step } = makeTensor(dtype, [1]).data;
    for (const at of [0, step, 1]) {
      const bytes = memory.subarray(at, at + size);
      const found = tensorOnBytes(dtype, shape, bytes);
      expect(tensorBytes(found)).toEqual(bytes);
      expect(found.data.buffer === memory.buffer).toBe(at % step === 0);
    }
    expect(() => tensorOnBytes(dtype, [17 * 8], memory.subarray(0, size))).toThrow(/needs/);
  });

  it("fills with values on the grid, the same for the same seed", () => {
    const a = randomRef(dtype, [5, 7], new Rng(1));
    expect(refTensorsEqual(a, randomRef(dtype, [5, 7], new Rng(1)))).toBe(true);
    expect(refTensorsEqual(a, randomRef(dtype, [5, 7], new Rng(2)))).toBe(false);
    expect(refTensorsEqual(a, toRef(fromRef(a)))).toBe(true);
  });
});

describe("packing", () => {
  it("puts the first element in the low bits", () => {
    expect([...packBits([1, 2, 3], 4)]).toEqual([0x21, 0x03]);
    expect([...packBits([1, 2, 3, 0, 2], 2)]).toEqual([0b00111001, 0b10]);
    expect([...tensorBytes(fromRef(refTensor("i4", [2], [-1, 7])))]).toEqual([0x7f]);
  });

  it("round-trips", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 })), fc.constantFrom(2, 4), (xs, bits) => {
        expect([...unpackBits(packBits(xs, bits), bits, xs.length)]).toEqual(xs);
      }),
    );
  });

  it("sizes odd counts up", () => {
    expect(makeTensor("u4", [3]).data.byteLength).toBe(2);
    expect(makeTensor("i2", [5]).data.byteLength).toBe(2);
  });
});

describe("shapes", () => {
  it("broadcast like numpy", () => {
    expect(broadcastShapes([3, 1], [4])).toEqual([3, 4]);
    expect(broadcastShapes([2, 3], [3, 3])).toBeNull();
    expect(broadcastShapes([], [0, 1])).toEqual([0, 1]);
    expect(broadcastShapes([1], [0])).toEqual([0]);
    expect(broadcastStrides([3, 1], [2, 3, 4])).toEqual([0, 1, 0]);
  });

  it("viewOffsets is the strided walk", () => {
    const shape = [2, 3, 4];
    const strides = [5, -2, 7];
    const offsets = viewOffsets(shape, strides, 11);
    forEachIndex(shape, (index, at) => {
      expect(offsets[at]).toBe(11 + offsetOf(index, strides));
    });
    expect(viewOffsets([], [], 3)).toEqual(Int32Array.of(3));
    expect(viewOffsets([2, 0], [1, 1]).length).toBe(0);
  });

  it("splits around an axis", () => {
    expect(splitAtAxis([2, 3, 5], 1)).toEqual({ outer: 2, extent: 3, inner: 5 });
    expect(rowMajorStrides([2, 3, 5])).toEqual([15, 5, 1]);
  });
});
