/**
 * Four lanes between f32 and the patterns of f16 and bf16 (in the low 16 bits of i32 lanes), rounding
 * to nearest even. `load` widens, `store` narrows, `round` brings f32 values onto the narrow grid.
 * f16 subnormals are made and read by a multiplication or an addition that the hardware rounds
 * (F. Giesen, "Float->half variants").
 */
import type { LibraryRow } from "./library.ts";
import { type V, VectorCode } from "./vector-code.ts";

const f32Infinity = 0x7f800000;

function vectorRow(body: (c: VectorCode, x: V) => V): LibraryRow {
  return {
    signature: { params: ["v128"], results: ["v128"] },
    body: (f) => {
      const c = new VectorCode(f);
      body(c, c.param(0))();
    },
  };
}

function loadHalf(c: VectorCode, h: V): V {
  const magnitude = c.keep(c.and(h, c.i32(0x7fff)));
  const scaled = c.mul(c.shift("shl", magnitude, 13), c.f32(2 ** 112));
  const special = c.op("i32x4.ge_s", magnitude, c.i32(0x7c00));
  const body = c.or(scaled, c.and(special, c.i32(f32Infinity)));
  return c.or(body, c.shift("shl", c.and(h, c.i32(0x8000)), 16));
}

function storeHalf(c: VectorCode, x: V): V {
  const bits = c.keep(c.and(x, c.i32(0x7fffffff)));
  const odd = c.and(c.shift("shr_u", bits, 13), c.i32(1));
  const rebiased = c.op("i32x4.add", bits, c.i32(((15 - 127) << 23) + 0xfff));
  const normal = c.shift("shr_u", c.op("i32x4.add", rebiased, odd), 13);
  const small = c.op("i32x4.sub", c.add(bits, c.f32(0.5)), c.f32(0.5));
  const finite = c.select(c.op("i32x4.lt_s", bits, c.i32(0x38800000)), small, normal);
  const isNan = c.op("i32x4.gt_s", bits, c.i32(f32Infinity));
  const special = c.select(isNan, c.i32(0x7e00), c.i32(0x7c00));
  const overflows = c.op("i32x4.ge_s", bits, c.i32(0x47800000));
  const result = c.select(overflows, special, finite);
  return c.or(result, c.and(c.shift("shr_u", x, 16), c.i32(0x8000)));
}

function storeBrain(c: VectorCode, x: V): V {
  const odd = c.and(c.shift("shr_u", x, 16), c.i32(1));
  const rounded = c.op("i32x4.add", c.op("i32x4.add", x, c.i32(0x7fff)), odd);
  const quiet = c.or(x, c.i32(0x400000));
  const isNan = c.op("f32x4.ne", x, x);
  return c.shift("shr_u", c.select(isNan, quiet, rounded), 16);
}

export const halfRows: readonly (readonly [string, LibraryRow])[] = [
  ["load.f16x4", vectorRow(loadHalf)],
  ["store.f16x4", vectorRow(storeHalf)],
  ["round.f16x4", vectorRow((c, x) => loadHalf(c, c.keep(storeHalf(c, x))))],
  ["load.bf16x4", vectorRow((c, h) => c.shift("shl", h, 16))],
  ["store.bf16x4", vectorRow(storeBrain)],
  ["round.bf16x4", vectorRow((c, x) => c.shift("shl", c.keep(storeBrain(c, x)), 16))],
];
