import { expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { targets } from "../../target/index.ts";

/** A convolution over pictures of some open extent, `a 3 x 3 window`. */
function warningsOf(open: "width" | "batch" | "none", name = "h200") {
  const g = new GraphBuilder("pictures");
  const size = open === "none" ? 32 : g.symbol("N", 8, 32);
  const [batch, width] = open === "batch" ? [size, 32] : [2, size];
  const x = g.input("x", tensorType("bf16", batch, 64, 32, width));
  const w = g.input("w", tensorType("bf16", 128, 64, 3, 3));
  const window = { strides: [1, 1], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1] };
  const y = g.node("convolution", [x, w], { ...window, groups: 1 } as never);
  const graph = g.finish([g.apply("relu", y)]);
  const made = compileModel({ graph, weights: noWeights }, { target: targets.get(name)! });
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  return made.warnings.filter((d) => d.code === "SCH047");
}

it("products whose open extent stands inside of others are named, with what that costs (SCH047)", () => {
  const [told, ...others] = warningsOf("width");
  expect(others).toEqual([]);
  expect(told).toMatchObject({ severity: "warning", help: expect.stringContaining("--shape") });
  expect(told!.message).toMatch(/^1 products? .* (\d+\.\d) times as long/);
  expect(told!.notes[0]).toMatch(/^S\d+ \(convolution.*us as loops, .*us as tiles/);
});

it("nothing is said where tiles are made of them, nor of known sizes, nor of processors", () => {
  expect(warningsOf("batch")).toEqual([]);
  expect(warningsOf("none")).toEqual([]);
  expect(warningsOf("width", "wasm")).toEqual([]);
});
