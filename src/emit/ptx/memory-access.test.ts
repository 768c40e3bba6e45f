/** Vectors in memory: in how many pieces, by what divides their places. */
import { describe, expect, it, test } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import * as ix from "../../semantics/index-expr.ts";
import { architectures } from "../../target/architectures/index.ts";
import { targets } from "../../target/index.ts";
import { emitPtx } from "./emit-program.ts";
import { emittedText } from "./emitted-text.test-support.ts";
import { alignmentOf } from "./memory-access.ts";

describe("what divides an address", () => {
  const t = ix.variable("t");
  const base = ix.variable("base");
  const cases = [
    [ix.mul(16, t), 16],
    [ix.add(ix.mul(32, t), 8), 8],
    [ix.add(base, ix.mul(4, t)), 4],
    // Panels of 64 elements of 16 bits: neighbours of a thread lie within one.
    [ix.mul(2, ix.mod(ix.mul(8, ix.mod(t, 16)), 64)), 16],
    [ix.mod(ix.mul(8, t), 12), 4],
    [ix.mod(ix.add(ix.mul(8, t), 2), 64), 2],
    [ix.mul(2, ix.min(ix.mul(4, t), 24)), 8],
    [ix.mul(2, ix.floorDiv(t, 3)), 2],
    [ix.mul(ix.mul(4, t), ix.mod(ix.mul(2, t), 8)), 8],
  ] as const;

  it.each(cases.map(([address, bytes]) => [address.key, bytes, address] as const))(
    "%s: %d bytes",
    (_, bytes, address) => expect(alignmentOf(address, "base")).toBe(bytes),
  );
});

describe("places in swizzled shared memory", () => {
  /** Stores of a thread to rows of a tile, of as many bytes as the swizzle spans. */
  const textOf = (span: number, rows: readonly number[]): string => {
    const stores = rows.map((row) => `store tile[${row}, 2*mod(t, 8)] = load.f32x2 x[2*t]`);
    return emittedText(`program p for "h200" {
      buffer x : input memory f32 [64] at caller + (0) source "x"
      kernel k region "k" {
        grid blocks (b < 1)
        buffer tile : scratch shared f32 [64, ${span / 4}] swizzle ${span}
        role main copies 1 threads 32 as t { ${stores.join("\n")} }
      }
      tasks { launch k after previous }
    }`);
  };

  it.each([32, 64, 128])("share a register every eight rows of %d bytes", (span) => {
    const text = textOf(span, [0, 3, 8, 11, 40]);
    expect(text.match(/xor\.b32/g)).toHaveLength(2);
    const places = [...text.matchAll(/st\.shared\S* \[(%r\d+)(?:\+(\d+))?\]/g)];
    const [first, second] = [places[0]![1], places[1]![1]];
    expect(second).not.toBe(first);
    expect(places.map(([, register, offset]) => [register, Number(offset ?? 0)])).toEqual([
      [first, 0],
      [second, 0],
      [first, 8 * span],
      [second, 8 * span],
      [first, 40 * span],
    ]);
  });
});

test("what is read behind a fold over the block is not loaded in front of its barrier", () => {
  const g = new GraphBuilder("norm");
  const x = g.input("x", tensorType("f32", 256, 4096));
  const vectors = ["s", "b"].map((name) => g.input(name, tensorType("f32", 4096)));
  const graph = g.finish([g.node("layerNorm", [x, ...vectors], { axis: 1, epsilon: 1e-5 })]);
  const made = compileModel({ graph, weights: noWeights }, { target: targets.get("h200")! });
  if (!made.ok) throw new Error(JSON.stringify(made.diagnostics));
  const emitted = emitPtx(made.value.plan.program, architectures.get("sm_90a")!);
  if (!emitted.ok) throw new Error(JSON.stringify(emitted.diagnostics));
  const parts = emitted.value.text.split("bar.sync");
  expect(parts.length).toBeGreaterThan(1);
  expect(parts[0]).toContain("ld.global.nc");
  expect(parts.at(-1)).toMatch(/ld\.global\.v/);
  expect(parts.at(-1)).not.toContain("ld.global.nc");
});
