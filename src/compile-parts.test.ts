/** Models of thousands of nodes: no pass asks a question of every pair of them. */
import { describe, expect, it } from "vitest";
import { compileModel } from "./compile.ts";
import { GraphBuilder } from "./graph/builder.ts";
import { tensorType } from "./graph/tensor-type.ts";
import { noWeights } from "./interp/graph.ts";
import { targets } from "./target/index.ts";

const target = targets.get("wasm")!;

describe("a tensor in two thousand parts, put together again", () => {
  it("compiles in seconds", { timeout: 60_000 }, () => {
    const count = 2000;
    const b = new GraphBuilder("parts");
    const x = b.input("x", tensorType("f32", 3 * count));
    const parts = Array.from({ length: count }, (_, i) => b.sliceAxis(x, 0, 3 * i, 3));
    const y = b.concat(
      parts.map((part) => b.apply("tanh", part)),
      0,
    );
    const made = compileModel({ graph: b.finish([y]), weights: noWeights }, { target });
    expect(made.ok).toBe(true);
  });
});
