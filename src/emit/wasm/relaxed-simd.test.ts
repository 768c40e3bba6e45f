/**
 * Apart from the other encoder tests because V8 of Node 20 reads the relaxed SIMD flag only once, before
 * the first compilation in the process.
 */
import { setFlagsFromString } from "node:v8";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { ModuleBuilder } from "./module-builder.ts";
import { moduleOfRows, opcodeRows } from "./opcode-check.ts";

beforeAll(() => setFlagsFromString("--experimental-wasm-relaxed-simd"));

const rows = opcodeRows().filter((r) => r.opcode >= 0xfd100 && r.opcode < 0xfe000);

describe("relaxed SIMD", () => {
  it.each(rows)("$name is valid with its signature", (row) => {
    expect(WebAssembly.validate(moduleOfRows([row]))).toBe(true);
  });

  it("relaxed_madd gives the fused or the twice-rounded result", () => {
    const module = new ModuleBuilder();
    const signature = { params: ["f32", "f32", "f32"], results: ["f32"] } as const;
    const { index } = module.function("madd", signature, (f) => {
      for (const p of f.params) f.get(p).op("f32x4.splat");
      f.op("f32x4.relaxed_madd").lane("f32x4.extract_lane", 2);
    });
    module.exportFunction("madd", index);
    const instance = new WebAssembly.Instance(new WebAssembly.Module(module.encode().bytes));
    const madd = instance.exports.madd as (a: number, b: number, c: number) => number;
    const f32 = fc.float({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 });
    fc.assert(
      fc.property(f32, f32, f32, (a, b, c) => {
        const twice = Math.fround(Math.fround(a * b) + c);
        // The product of two f32 is exact in f64; one double rounding remains, at most one f32 ulp.
        const fused = Math.fround(a * b + c);
        const result = madd(a, b, c);
        const ulp = 2 ** Math.max(Math.floor(Math.log2(Math.abs(fused) || 1e-45)) - 23, -149);
        expect(result === twice || Math.abs(result - fused) <= ulp).toBe(true);
      }),
    );
  });
});
