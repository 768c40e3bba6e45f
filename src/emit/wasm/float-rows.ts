/**
 * Library functions on scalar floats: operators of more than one instruction and conversions with the
 * exact rounding of semantics/float-codec.ts. f16 and bf16 go through the functions for four lanes
 * (half-rows.ts).
 */
import type { FunctionBuilder } from "./function-builder.ts";
import type { Library, LibraryRow } from "./library.ts";
import type { PlainOp, ValueType } from "./opcodes.ts";
import { tinyFloats } from "./tiny-float-rows.ts";

type Width = "f32" | "f64";

class FloatCode {
  readonly f: FunctionBuilder;
  readonly width: Width;

  constructor(f: FunctionBuilder, width: Width) {
    this.f = f;
    this.width = width;
  }

  constant(value: number): this {
    if (this.width === "f32") this.f.f32Const(value);
    else this.f.f64Const(value);
    return this;
  }

  op(op: string): this {
    this.f.op(`${this.width}.${op}` as PlainOp);
    return this;
  }

  get(n: number): this {
    this.f.get(this.f.param(n));
    return this;
  }
}

type Body = (c: FloatCode, library: Library) => void;

const unary: Record<string, Body> = {
  reciprocal: (c) => c.constant(1).get(0).op("div"),
  /** NaN stays; -0 becomes 0. */
  relu: (c) => c.get(0).constant(0).op("max"),
  /** NaN and zeros stay themselves. */
  sign: (c) => {
    c.constant(1).get(0).op("copysign").get(0);
    c.get(0).op("abs").constant(0).op("gt");
    c.f.op("select");
  },
};

const predicates: Record<string, Body> = {
  isNan: (c) => c.get(0).get(0).op("ne"),
};

const binary: Record<string, Body> = {
  mod: remainder,
  floorMod,
};

/** Sign of the divisor: the plain remainder where it is zero or has it already. */
function floorMod(c: FloatCode, library: Library): void {
  const { f, width } = c;
  const r = f.local(width);
  c.get(0).get(1);
  library.call(f, `mod.${width}`);
  f.tee(r).get(r);
  c.get(1).op("add");
  f.get(r);
  c.constant(0).op("eq");
  f.get(r);
  c.constant(0).op("lt").get(1).constant(0).op("lt");
  f.op("i32.eq").op("i32.or").op("select");
}

/**
 * The remainder of truncated division, exact: subtracts the largest halvings of b * 2^k that fit,
 * each of which is representable.
 */
function remainder(c: FloatCode): void {
  const { f, width } = c;
  const [rest, step] = [f.local(width), f.local(width)];
  c.get(0).op("abs");
  f.set(rest);
  c.get(1).op("abs");
  f.set(step).get(rest);
  c.constant(Number.POSITIVE_INFINITY).op("lt");
  f.get(step);
  c.constant(0).op("gt");
  f.op("i32.and").op("i32.eqz");
  f.if(() => {
    c.constant(Number.NaN);
    f.op("return");
  });
  f.get(step);
  c.constant(Number.POSITIVE_INFINITY).op("eq");
  f.if(() => {
    c.get(0);
    f.op("return");
  });
  f.loop((again) => {
    f.get(step).get(rest);
    c.constant(0.5).op("mul").op("le");
    f.if(() => {
      f.get(step).get(step);
      c.op("add");
      f.set(step).br(again);
    });
  });
  f.loop((again) => {
    f.get(step).get(rest);
    c.op("le");
    f.if(() => {
      f.get(rest).get(step);
      c.op("sub");
      f.set(rest);
    });
    f.get(step);
    c.constant(0.5).op("mul");
    f.tee(step);
    c.get(1).op("abs").op("ge");
    f.brIf(again);
  });
  f.get(rest);
  c.get(0).op("copysign");
}

/** An f64 modulo 2^64 as i64, truncated first; infinities and NaN give zero. */
function wrap(f: FunctionBuilder): void {
  const x = f.param(0);
  f.get(x)
    .op("f64.abs")
    .f64Const(2 ** 63)
    .op("f64.lt");
  f.if(() => {
    f.get(x).op("i64.trunc_sat_f64_s").op("return");
  });
  // A multiple of 2^11, so that the difference is exact.
  f.get(x)
    .get(x)
    .f64Const(2 ** -64)
    .op("f64.mul")
    .op("f64.floor");
  f.f64Const(2 ** 64)
    .op("f64.mul")
    .op("f64.sub")
    .op("i64.trunc_sat_f64_u");
}

/**
 * f64 to f32 rounded to odd, so that a second rounding to a narrower format is the right one (Boldo
 * and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
 */
function demoteOdd(f: FunctionBuilder): void {
  const [near, bits] = [f.local("f32"), f.local("i32")];
  f.get(f.param(0)).op("f32.demote_f64").tee(near).op("i32.reinterpret_f32").set(bits);
  // Exact, infinite or NaN: as it is.
  f.get(near).op("f64.promote_f32").get(f.param(0)).op("f64.eq");
  f.get(near).op("f32.abs").f32Const(Number.POSITIVE_INFINITY).op("f32.lt").op("i32.eqz");
  f.op("i32.or");
  f.if(() => {
    f.get(near).op("return");
  });
  // One step back towards zero where the rounding went outwards, then the last bit set.
  f.get(bits);
  f.get(near).op("f64.promote_f32").op("f64.abs").get(f.param(0)).op("f64.abs").op("f64.gt");
  f.op("i32.sub").i32Const(1).op("i32.or").op("f32.reinterpret_i32");
}

function row(params: ValueType[], result: ValueType, body: LibraryRow["body"]): LibraryRow {
  return { signature: { params, results: [result] }, body };
}

/** A scalar function made from the one for four lanes. */
function throughVector(name: string): LibraryRow {
  return row(["f32"], "f32", (f, library) => {
    f.get(f.param(0)).op("f32x4.splat");
    library.call(f, name);
    f.lane("f32x4.extract_lane", 0);
  });
}

const narrowFloats = ["f16", "bf16", ...tinyFloats, "e8m0"] as const;

const narrow = narrowFloats.flatMap((dtype): (readonly [string, LibraryRow])[] => [
  [`round.${dtype}`, throughVector(`round.${dtype}x4`)],
  [
    `load.${dtype}`,
    row(["i32"], "f32", (f, library) => {
      f.get(f.param(0)).op("i32x4.splat");
      library.call(f, `load.${dtype}x4`);
      f.lane("f32x4.extract_lane", 0);
    }),
  ],
  [
    `store.${dtype}`,
    row(["f32"], "i32", (f, library) => {
      f.get(f.param(0)).op("f32x4.splat");
      library.call(f, `store.${dtype}x4`);
      f.lane("i32x4.extract_lane", 0);
    }),
  ],
]);

const saturating = [...tinyFloats, "e8m0"].map((dtype): readonly [string, LibraryRow] => [
  `saturate.${dtype}`,
  throughVector(`saturate.${dtype}x4`),
]);

const byWidth = (["f32", "f64"] as const).flatMap((width): (readonly [string, LibraryRow])[] => [
  ...Object.entries(unary).map(([op, body]): readonly [string, LibraryRow] => [
    `${op}.${width}`,
    row([width], width, (f, library) => body(new FloatCode(f, width), library)),
  ]),
  ...Object.entries(predicates).map(([op, body]): readonly [string, LibraryRow] => [
    `${op}.${width}`,
    row([width], "i32", (f, library) => body(new FloatCode(f, width), library)),
  ]),
  ...Object.entries(binary).map(([op, body]): readonly [string, LibraryRow] => [
    `${op}.${width}`,
    row([width, width], width, (f, library) => body(new FloatCode(f, width), library)),
  ]),
]);

/** Two f32 through a function on f64. */
function mathOfTwo(name: string): LibraryRow {
  return row(["f32", "f32"], "f32", (f, library) => {
    for (const p of f.params) f.get(p).op("f64.promote_f32");
    library.call(f, name);
    f.op("f32.demote_f64");
  });
}

/** The magnitude's bits, negative where the number is; NaN above all. */
function orderKey(f: FunctionBuilder): void {
  const [bits, sign] = [f.local("i32"), f.local("i32")];
  f.get(f.param(0)).op("i32.reinterpret_f32").tee(bits);
  f.i32Const(31).op("i32.shr_s").set(sign);
  f.get(bits).i32Const(0x7fffffff).op("i32.and").get(sign).op("i32.xor").get(sign).op("i32.sub");
  f.i32Const(0x7fffffff);
  f.get(f.param(0)).get(f.param(0)).op("f32.eq").op("select");
}

export const floatRows: readonly (readonly [string, LibraryRow])[] = [
  ...byWidth,
  ...narrow,
  ...saturating,
  ["orderKey.f32", row(["f32"], "i32", orderKey)],
  ["wrap.f64", row(["f64"], "i64", wrap)],
  ["demoteOdd", row(["f64"], "f32", demoteOdd)],
  ["pow.f32", mathOfTwo("pow.f64")],
  ["atan2.f32", mathOfTwo("math.atan2")],
  [
    // Math.pow gives NaN for 1^NaN and 1^infinity, where IEEE 754 and the oracle have 1.
    "pow.f64",
    row(["f64", "f64"], "f64", (f, library) => {
      f.f64Const(1).get(f.param(0)).get(f.param(1));
      library.call(f, "math.pow");
      f.get(f.param(0)).f64Const(1).op("f64.eq").op("select");
    }),
  ],
  [
    "sigmoid.f64",
    row(["f64"], "f64", (f, library) => {
      f.f64Const(1).f64Const(1).get(f.param(0)).op("f64.neg");
      library.call(f, "math.exp");
      f.op("f64.add").op("f64.div");
    }),
  ],
];
