import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { targets } from "../../target/index.ts";
import { emittedCounts } from "./emitted-counts.ts";
import { probeNativeFeatures } from "./features.ts";

/** Sums of `count` vectors that are all alive until the end. */
function program(count: number) {
  const rows = Array.from({ length: count }, (_, i) => i);
  const loads = rows.map((i) => `let v${i} = load.f32x8 x[${8 * i} + i * ${8 * count}]`);
  const squares = rows.map((i) => `let s${i} = mul(v${i}, v${(i + 1) % count})`);
  const stores = rows.map(
    (i) => `store y[${8 * i} + i * ${8 * count}] = add(s${i}, v${count - 1 - i})`,
  );
  const parsed = parseProgram(`program p for "x64-avx2" {
    buffer x : input memory f32 [${64 * count}] source "x"
    buffer y : output memory f32 [${64 * count}] source "y"
    kernel k region "k" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < 8 over t {
          ${[...loads, ...squares, ...stores].join("\n")}
        }
      }
    }
    tasks { launch k after previous }
  }`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  return parsed.value;
}

describe.skipIf(!probeNativeFeatures().ok)("counts of the emitter", () => {
  const [few, many] = [program(3), program(30)];
  const x64 = targets.get("x64-avx2")!;

  it("are a row a kernel", () => {
    const nothing = { kernel: "k", spills: 0, vectorSpills: 0, reloads: 0 };
    expect(emittedCounts(few, x64)).toEqual([nothing]);
    const [found] = emittedCounts(many, x64);
    expect(found!.vectorSpills + found!.reloads).toBeGreaterThan(0);
    expect(found!.spills).toBeGreaterThanOrEqual(found!.vectorSpills);
  });

  it("are none of what is no machine code", () => {
    expect(emittedCounts(many, targets.get("wasm")!)).toEqual([]);
  });
});
