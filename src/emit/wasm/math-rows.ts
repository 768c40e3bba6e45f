/**
 * Transcendental functions of four f32 lanes. Each row states the largest error in units in the last
 * place that math-rows.test.ts finds against float64 over the stated range; special values are those
 * of JavaScript's Math.
 *
 * Methods: exp and trigonometric functions by Cody-Waite reduction and Taylor polynomials on the
 * reduced range; log by the series of atanh(f / (2 + f)) with the correction term of fdlibm's e_log.c;
 * tanh by its continued fraction near zero; erf by its Taylor series below 1 and a Chebyshev fit on
 * [1, 4] (semantics/fits.ts).
 */
import { erfFit, erfSeries } from "../../semantics/fits.ts";
import type { FunctionBuilder } from "./function-builder.ts";
import type { Library, LibraryRow } from "./library.ts";
import { type V, VectorCode } from "./vector-code.ts";

/** Added and subtracted, it rounds a float below 2^22 to an integer, left in the low mantissa bits. */
const rounder = 12582912;
const rounderBits = 0x4b400000;

const factorials = [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800];

/** 2^n for integers n in [-126, 127] in i32 lanes. */
function powerOfTwo(c: VectorCode, n: V): V {
  return c.shift("shl", c.op("i32x4.add", n, c.i32(127)), 23);
}

/** A NaN operand stays, unlike with the operands the other way round. */
function clamp(c: VectorCode, x: V, low: number, high: number): V {
  return c.op("f32x4.pmax", c.op("f32x4.pmin", x, c.f32(high)), c.f32(low));
}

/** e^x = 2^n e^r with |r| <= ln(2) / 2; the scale in two factors, so that subnormals come out right. */
function exp(c: VectorCode, argument: V): V {
  const x = c.keep(clamp(c, argument, -104, 89));
  const shifted = c.keep(c.add(c.mul(x, c.f32(Math.LOG2E)), c.f32(rounder)));
  const n = c.keep(c.sub(shifted, c.f32(rounder)));
  // ln 2 in two parts; n times the first is exact.
  const high = 0.693359375;
  const part = c.sub(x, c.mul(n, c.f32(high)));
  const r = c.keep(c.sub(part, c.mul(n, c.f32(Math.LN2 - high))));
  const terms = factorials.slice(2, 8).map((k) => 1 / k);
  const tail = c.mul(c.mul(r, r), c.polynomial(r, terms));
  const value = c.add(c.add(tail, r), c.f32(1));
  const whole = c.keep(c.op("i32x4.sub", shifted, c.i32(rounderBits)));
  const half = c.keep(c.shift("shr_s", whole, 1));
  const rest = c.op("i32x4.sub", whole, half);
  return c.mul(c.mul(value, powerOfTwo(c, half)), powerOfTwo(c, rest));
}

/** log x = e ln 2 + log(1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). */
function log(c: VectorCode, x: V): V {
  const tiny = c.keep(c.op("f32x4.lt", x, c.f32(2 ** -126)));
  const scaled = c.keep(c.select(tiny, c.mul(x, c.f32(2 ** 23)), x));
  // Exponent relative to sqrt(1/2), so that the mantissa lies around 1.
  const root = 0x3f3504f3;
  const offset = c.keep(c.op("i32x4.sub", scaled, c.i32(root)));
  const exponent = c.keep(c.shift("shr_s", offset, 23));
  const mantissa = c.op("i32x4.sub", scaled, c.shift("shl", exponent, 23));
  const f = c.keep(c.sub(mantissa, c.f32(1)));
  const e = c.keep(c.sub(c.op("f32x4.convert_i32x4_s", exponent), c.and(tiny, c.f32(23))));
  const s = c.keep(c.div(f, c.add(f, c.f32(2))));
  const z = c.keep(c.mul(s, s));
  const series = c.mul(z, c.polynomial(z, [2 / 3, 2 / 5, 2 / 7, 2 / 9]));
  const half = c.keep(c.mul(c.mul(f, f), c.f32(0.5)));
  const high = 0.693359375;
  const low = c.mul(e, c.f32(Math.LN2 - high));
  const correction = c.add(c.mul(s, c.add(half, series)), low);
  const result = c.sub(c.mul(e, c.f32(high)), c.sub(c.sub(half, correction), f));
  const infinite = c.op("f32x4.eq", x, c.f32(Number.POSITIVE_INFINITY));
  const zero = c.op("f32x4.eq", x, c.f32(0));
  const invalid = c.op("v128.not", c.op("f32x4.ge", x, c.f32(0)));
  const positive = c.select(infinite, x, result);
  const finite = c.select(zero, c.f32(Number.NEGATIVE_INFINITY), positive);
  return c.select(invalid, c.f32(Number.NaN), finite);
}

/** Below 1: x (135135 + 17325 z + 378 z^2 + z^3) / (135135 + 62370 z + 3150 z^2 + 28 z^3), z = x^2. */
function tanh(c: VectorCode, x: V, call: (name: string, v: V) => V): V {
  const size = c.keep(c.abs(x));
  const power = c.keep(call("exp.f32x4", c.add(size, size)));
  const large = c.sub(c.f32(1), c.div(c.f32(2), c.add(power, c.f32(1))));
  const sign = c.and(x, c.i32(0x80000000 | 0));
  const signed = c.or(large, sign);
  const z = c.keep(c.mul(x, x));
  const top = c.mul(x, c.polynomial(z, [1, 17325 / 135135, 378 / 135135, 1 / 135135]));
  const bottom = c.polynomial(z, [1, 62370 / 135135, 3150 / 135135, 28 / 135135]);
  return c.select(c.op("f32x4.lt", size, c.f32(1)), c.div(top, bottom), signed);
}

/** 1 / (1 + e^-|x|), times e^-|x| for negative x, so that small results keep their digits. */
function sigmoid(c: VectorCode, x: V, call: (name: string, v: V) => V): V {
  const e = c.keep(call("exp.f32x4", c.op("f32x4.neg", c.abs(x))));
  const positive = c.op("f32x4.ge", x, c.f32(0));
  return c.div(c.select(positive, c.f32(1), e), c.add(e, c.f32(1)));
}

function erf(c: VectorCode, x: V): V {
  const size = c.keep(clamp(c, c.abs(x), 0, 4));
  const z = c.keep(c.mul(size, size));
  const small = c.mul(size, c.polynomial(z, erfSeries));
  const u = c.keep(c.mul(c.sub(size, c.f32(2.5)), c.f32(1 / 1.5)));
  const fit = c.op("f32x4.pmin", c.polynomial(u, erfFit), c.f32(1));
  const value = c.select(c.op("f32x4.lt", size, c.f32(1)), small, fit);
  return c.or(value, c.and(x, c.i32(0x80000000 | 0)));
}

/** Arguments from here on are reduced by Math, lane by lane. */
const largestReduced = 8192;

/**
 * pi / 2 as a sum whose parts, but the last, have 11 significant bits: a quotient below 2^13 times
 * one is exact in f32.
 */
const halfPiParts = [0, 1, 2].reduce<number[]>((parts) => {
  const rest = Math.PI / 2 - parts.reduce((sum, part) => sum + part, 0);
  const scale = 2 ** (10 - Math.floor(Math.log2(rest)));
  return [...parts, Math.floor(rest * scale) / scale];
}, []);
halfPiParts.push(Math.PI / 2 - halfPiParts.reduce((sum, part) => sum + part, 0));

/** sin(x + quarters * pi / 2) */
function trigonometric(c: VectorCode, x: V, quarters: number): V {
  const n = c.keep(c.op("f32x4.nearest", c.mul(x, c.f32(2 / Math.PI))));
  const r = c.keep(halfPiParts.reduce((rest, part) => c.sub(rest, c.mul(n, c.f32(part))), x));
  const z = c.keep(c.mul(r, r));
  const sinTerms = [3, 5, 7, 9].map((k, i) => (i % 2 ? 1 : -1) / factorials[k]!);
  const cosTerms = [4, 6, 8, 10].map((k, i) => (i % 2 ? -1 : 1) / factorials[k]!);
  const sine = c.add(r, c.mul(c.mul(r, z), c.polynomial(z, sinTerms)));
  const cosine = c.add(
    c.sub(c.f32(1), c.mul(z, c.f32(0.5))),
    c.mul(c.mul(z, z), c.polynomial(z, cosTerms)),
  );
  const quarter = c.keep(c.op("i32x4.add", c.op("i32x4.trunc_sat_f32x4_s", n), c.i32(quarters)));
  const odd = c.op("i32x4.ne", c.and(quarter, c.i32(1)), c.i32(0));
  const sign = c.shift("shl", c.and(quarter, c.i32(2)), 30);
  return c.op("v128.xor", c.select(odd, cosine, sine), sign);
}

function trigonometricRow(name: "sin" | "cos"): LibraryRow {
  return {
    signature: { params: ["v128"], results: ["v128"] },
    body: (f, library) => {
      const c = new VectorCode(f);
      const x = c.param(0);
      c.op("f32x4.lt", c.abs(x), c.f32(largestReduced))();
      f.op("i32x4.all_true");
      f.if(
        () => trigonometric(c, x, name === "sin" ? 0 : 1)(),
        () => byLane(c, library, name),
        "v128",
      );
    },
  };
}

function byLane(c: VectorCode, library: Library, name: string): void {
  const { f } = c;
  const result = f.local("v128");
  for (let lane = 0; lane < 4; lane++) {
    f.get(result).get(f.param(0)).lane("f32x4.extract_lane", lane).op("f64.promote_f32");
    library.call(f, `math.${name}`);
    f.op("f32.demote_f64").lane("f32x4.replace_lane", lane).set(result);
  }
  f.get(result);
}

type Body = (c: VectorCode, x: V, call: (name: string, v: V) => V) => V;

function mathRow(body: Body): LibraryRow {
  const expand = (f: FunctionBuilder, library: Library, x: V): void => {
    const c = new VectorCode(f);
    body(c, x, (name, v) => () => library.expand(f, name, c.keep(v)))();
    c.end();
  };
  return {
    signature: { params: ["v128"], results: ["v128"] },
    body: (f, library) => expand(f, library, () => f.get(f.param(0))),
    expand,
  };
}

/** Rows with the largest error in ulp that is allowed for them, over the whole f32 range. */
export const mathRows: readonly {
  readonly name: string;
  readonly row: LibraryRow;
  readonly maxUlp: number;
}[] = [
  { name: "exp.f32x4", row: mathRow(exp), maxUlp: 2 },
  { name: "log.f32x4", row: mathRow(log), maxUlp: 2 },
  { name: "tanh.f32x4", row: mathRow(tanh), maxUlp: 3 },
  { name: "sigmoid.f32x4", row: mathRow(sigmoid), maxUlp: 3 },
  { name: "erf.f32x4", row: mathRow(erf), maxUlp: 4 },
  { name: "sin.f32x4", row: trigonometricRow("sin"), maxUlp: 3 },
  { name: "cos.f32x4", row: trigonometricRow("cos"), maxUlp: 3 },
];
