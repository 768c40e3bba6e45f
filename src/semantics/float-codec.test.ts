import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes, type DType, dtypes } from "./dtype.ts";
import {
  decodeFloat,
  decodeFloatArray,
  decodeTableOf,
  encodeExponent,
  encodeFloat,
  encodeFloatArray,
  roundArrayToFloat,
  roundHalfEven,
  roundToFloat,
} from "./float-codec.ts";

const narrow = allDTypes.filter((d) => dtypes[d].kind === "float" && dtypes[d].bits <= 16);

/** All finite values of a format in rising order with their patterns, read off the definition. */
function finiteValues(dtype: DType): { value: number; bits: number }[] {
  const { format, bits } = dtypes[dtype];
  const values: { value: number; bits: number }[] = [];
  for (let pattern = 0; pattern < 2 ** (bits - 1); pattern++) {
    const field = pattern >> format!.mantissaBits;
    const mantissa = (pattern & (2 ** format!.mantissaBits - 1)) / 2 ** format!.mantissaBits;
    const top = 2 ** format!.exponentBits - 1;
    if (format!.nan === "ieee" && field === top) continue;
    if (format!.nan === "allOnes" && pattern === 2 ** (bits - 1) - 1) continue;
    const value =
      field === 0
        ? 2 ** (1 - format!.bias) * mantissa
        : 2 ** (field - format!.bias) * (1 + mantissa);
    values.push({ value, bits: pattern });
  }
  return values;
}

/** Nearest-even by search: an independent judge of encodeFloat on positive finite numbers. */
function nearestBits(table: { value: number; bits: number }[], x: number): number | "overflow" {
  let low = 0;
  let high = table.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (table[middle]!.value <= x) low = middle;
    else high = middle - 1;
  }
  const below = table[low]!;
  const last = table.length - 1;
  const step = low === last ? table[last]!.value - table[last - 1]!.value : 0;
  const aboveValue = low === last ? below.value + step : table[low + 1]!.value;
  const toBelow = x - below.value;
  const toAbove = aboveValue - x;
  const takesBelow = toBelow < toAbove || (toBelow === toAbove && below.bits % 2 === 0);
  if (takesBelow) return below.bits;
  return low === last ? "overflow" : table[low + 1]!.bits;
}

describe("float formats", () => {
  it("have the ranges their specifications state", () => {
    const maxima = Object.fromEntries(narrow.map((d) => [d, dtypes[d].max]));
    expect(maxima).toEqual({
      f16: 65504,
      bf16: 3.3895313892515355e38,
      f8e4m3fn: 448,
      f8e4m3fnuz: 240,
      f8e5m2: 57344,
      f8e5m2fnuz: 57344,
      f4e2m1: 6,
    });
    expect(dtypes.f64.max).toBe(Number.MAX_VALUE);
    expect(dtypes.f32.max).toBe(3.4028234663852886e38);
  });

  it("lists f4e2m1 as the OCP specification does", () => {
    expect([...decodeTableOf("f4e2m1").slice(0, 8)]).toEqual([0, 0.5, 1, 1.5, 2, 3, 4, 6]);
  });
});

describe.each(narrow)("%s", (dtype) => {
  const table = finiteValues(dtype);
  const signBit = 2 ** (dtypes[dtype].bits - 1);

  it("decodes and encodes every pattern to itself", () => {
    for (let bits = 0; bits < 2 * signBit; bits++) {
      const value = decodeFloat(dtype, bits);
      if (Number.isNaN(value)) expect(decodeFloat(dtype, encodeFloat(dtype, value))).toBeNaN();
      else if (encodeFloat(dtype, value) !== bits) expect.fail(`${bits} -> ${value}`);
    }
  });

  it("decodes finite patterns to the defining formula", () => {
    for (const { value, bits } of table) {
      if (decodeFloat(dtype, bits) !== value) expect.fail(`${bits}`);
    }
  });

  it("rounds midpoints, their neighbours and random numbers to the nearest, ties to even", () => {
    const inputs: number[] = [];
    const stride = Math.max(1, Math.floor(table.length / 500));
    for (let i = 0; i + 1 < table.length; i += stride) {
      const middle = (table[i]!.value + table[i + 1]!.value) / 2;
      inputs.push(middle, middle * (1 + 2 ** -52), middle * (1 - 2 ** -53));
    }
    const { max } = dtypes[dtype];
    const lastStep = max - table[table.length - 2]!.value;
    inputs.push(max + lastStep / 2, (max + lastStep / 2) * (1 - 2 ** -53), max * 2, 1e300, 5e-324);
    for (const x of inputs) check(x);
    fc.assert(fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), check));
    fc.assert(fc.property(fc.double({ min: 0, max: 2, noNaN: true }), check));
  });

  function check(x: number): void {
    const expected = nearestBits(table, Math.abs(x));
    if (expected === "overflow") {
      expect(roundToFloat(dtype, x, "saturate")).toBe(Math.sign(x) * dtypes[dtype].max);
      const special = roundToFloat(dtype, x);
      if (dtypes[dtype].format!.hasInfinity) expect(special).toBe(Math.sign(x) * Infinity);
      else if (dtypes[dtype].format!.nan === "none") expect(Math.abs(special)).toBe(6);
      else expect(special).toBeNaN();
      return;
    }
    const negative = x < 0 || Object.is(x, -0);
    const hasNegativeZero = dtypes[dtype].format!.nan !== "negativeZero";
    const sign = negative && (expected !== 0 || hasNegativeZero) ? signBit : 0;
    expect(encodeFloat(dtype, x)).toBe(sign + expected);
    expect(encodeFloat(dtype, x, "saturate")).toBe(sign + expected);
    expect(roundToFloat(dtype, x)).toBe(decodeFloat(dtype, sign + expected));
  }
});

describe("special values", () => {
  it("follow the ONNX Cast table", () => {
    const pattern = (d: DType, x: number) =>
      [encodeFloat(d, x, "saturate"), encodeFloat(d, x)].map((b) => b.toString(16));
    expect(pattern("f8e4m3fn", Infinity)).toEqual(["7e", "7f"]);
    expect(pattern("f8e4m3fnuz", -Infinity)).toEqual(["ff", "80"]);
    expect(pattern("f8e5m2", Infinity)).toEqual(["7b", "7c"]);
    expect(pattern("f8e5m2fnuz", Infinity)).toEqual(["7f", "80"]);
    expect(pattern("f8e5m2", Number.NaN)).toEqual(["7e", "7e"]);
    expect(pattern("f4e2m1", Number.NaN)).toEqual(["8", "8"]);
    expect(pattern("f4e2m1", -Infinity)).toEqual(["f", "f"]);
    expect(pattern("f8e4m3fnuz", -0)).toEqual(["0", "0"]);
    expect(pattern("f8e4m3fn", -0)).toEqual(["80", "80"]);
  });

  it("does not round twice: f64 just above an f16 tie goes up", () => {
    // 1 + 2^-11 is the tie between 1 and 1 + 2^-10; f32 would drop the last bit and round to even.
    expect(roundToFloat("f16", 1 + 2 ** -11 + 2 ** -40)).toBe(1 + 2 ** -10);
    expect(roundToFloat("f16", 1 + 2 ** -11)).toBe(1);
    expect(roundToFloat("bf16", 1 + 2 ** -8 + 2 ** -40)).toBe(1 + 2 ** -7);
  });

  it("encodes f32 patterns as Float32Array does", () => {
    const single = new Float32Array(1);
    const word = new Uint32Array(single.buffer);
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (x) => {
        single[0] = x;
        expect(encodeFloat("f32", x)).toBe(word[0]);
        expect(decodeFloat("f32", word[0]!)).toBe(single[0]);
      }),
    );
  });
});

describe("e8m0", () => {
  it("round-trips powers of two and NaN", () => {
    for (let bits = 0; bits < 255; bits++) {
      expect(encodeFloat("e8m0", decodeFloat("e8m0", bits))).toBe(bits);
    }
    expect(decodeFloat("e8m0", 0xff)).toBeNaN();
    expect(encodeFloat("e8m0", Number.NaN)).toBe(0xff);
  });

  it.each([
    [1, 127],
    [1.0001, 128],
    [-0.75, 127],
    [0, 0],
    [2 ** -140, 0],
    [2 ** -127 * 1.5, 1],
    [2 ** 127 * 1.9, 0xff],
    [Infinity, 0xff],
  ])("%d rounds up to pattern %d", (x, bits) => {
    expect(encodeExponent(x, "special")).toBe(bits);
  });

  it("saturates at 2^127", () => {
    expect(encodeExponent(2 ** 130, "saturate")).toBe(254);
  });
});

describe("bulk paths", () => {
  it.each(["f16", "bf16", "f8e4m3fn", "e8m0"] as const)("%s agree with one at a time", (dtype) => {
    const from = Float32Array.from({ length: 400 }, (_, i) => Math.sin(i) * 2 ** ((i % 60) - 30));
    const bits = new Uint16Array(400);
    encodeFloatArray(dtype, from, bits);
    expect([...bits]).toEqual([...from].map((x) => encodeFloat(dtype, x)));
    const back = new Float64Array(400);
    decodeFloatArray(dtype, bits, back);
    expect([...back]).toEqual([...bits].map((b) => decodeFloat(dtype, b)));
  });
});

describe("roundArrayToFloat", () => {
  it.each([...narrow, "e8m0", "f32", "f64"] as const)("%s agrees with one at a time", (dtype) => {
    const inputs = [0, -0, 1.3, -1e-40, 1e30, Infinity, -Infinity, Number.NaN, 5e-324, 0.1, -7.77];
    const rounded = Float64Array.from(inputs);
    roundArrayToFloat(dtype, rounded);
    expect([...rounded]).toEqual(inputs.map((x) => roundToFloat(dtype, x)));
  });
});

describe("roundHalfEven", () => {
  it.each([
    [0.5, 0],
    [1.5, 2],
    [-0.5, -0],
    [-2.5, -2],
    [2 ** 53, 2 ** 53],
    [Infinity, Infinity],
    [-0, -0],
    [0.49999999999999994, 0],
  ])("%d -> %d", (x, expected) => {
    expect(roundHalfEven(x)).toBe(expected);
  });
});
