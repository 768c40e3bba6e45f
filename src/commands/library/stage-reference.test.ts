import { expect, it, vi } from "vitest";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { runGraph } from "../../interp/graph.ts";
import { type Tensor, toRef } from "../../semantics/tensor.ts";

import { StageReference } from "./stage-reference.ts";
import { tensor } from "./tensor.ts";
import { unwrap } from "./wavetile-error.ts";

/** The sum, and so many places in it. */
const rows = (n: number): Tensor[] => [
  tensor("f32", [4, 2], Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8)),
  tensor(
    "i64",
    [n, 1],
    BigInt64Array.from({ length: n }, (_, i) => BigInt(3 - i)),
  ),
];

/** What an expert does: rows that are picked go through a product and are added to a sum. */
function expert() {
  const g = new GraphBuilder("expert");
  const n = g.symbol("N", 1, 4);
  const sum = g.input("sum", tensorType("f32", 4, 2));
  const places = g.input("places", tensorType("i64", n, 1));
  const weight = g.weight("w", tensorType("f32", 2, 2));
  const taken = g.node("gatherNd", [sum, places], { batchDims: 0 });
  const product = {
    lhs: ["i", "k"],
    rhs: ["k", "j"],
    output: ["i", "j"],
    accumulator: "f32",
  } as const;
  const made = g.node("softmax", [g.node("contract", [taken, weight], product)], { axis: 1 });
  const total = g.node("scatterNd", [sum, places, made], { reduction: "add" });
  return g.finish([total, made]);
}

it("computes what the oracle does, for as many elements as there are, and for none", () => {
  const graph = expert();
  const read = vi.fn(() => tensor("f32", [2, 2], Float32Array.of(1, -1, 0.5, 2)));
  const reference = new StageReference(graph, { read });
  const open = { ...graph, symbols: graph.symbols.map((s) => ({ ...s, min: 0 })) };
  for (const n of [2, 0, 3, 0, 0, 2]) {
    const feeds = rows(n);
    const wanted = unwrap(runGraph(open, feeds.map(toRef), { read }));
    read.mockClear();
    const found = unwrap(reference.run(feeds));
    expect(read).toHaveBeenCalledTimes(n === 0 ? 0 : 1);
    for (const [i, value] of found.entries()) {
      expect(value.shape).toEqual(wanted[i]!.shape);
      expect([...toRef(value).data].map(Number)).toEqual(
        [...wanted[i]!.data].map((v) => Math.fround(Number(v))),
      );
    }
  }
});

it("passes on what nothing is put into, from the second run of these shapes on", () => {
  const graph = expert();
  const read = vi.fn(() => tensor("f32", [2, 2], Float32Array.of(1, -1, 0.5, 2)));
  const reference = new StageReference(graph, { read });
  for (const run of [1, 2, 3]) {
    const feeds = rows(0);
    const found = unwrap(reference.run(feeds))[0];
    expect(found).toEqual(feeds[0]);
    if (run > 1) expect(found).toBe(feeds[0]);
  }
});

it("refuses a tensor that only the run tells to be too large (INT004)", () => {
  const g = new GraphBuilder("places");
  const x = g.input("x", tensorType("bool", g.symbol("N", 1, 2 ** 30)));
  const reference = new StageReference(g.finish([g.node("nonZero", [x], {})]), { read: vi.fn() });
  const few = unwrap(reference.run([tensor("bool", [3], Uint8Array.of(0, 1, 1))]));
  expect(few[0]!.shape).toEqual([1, 2]);
  const many = 2 ** 25 + 1;
  const found = reference.run([tensor("bool", [many], new Uint8Array(many))]);
  expect(found).toMatchObject({ ok: false, diagnostics: [{ code: "INT004" }] });
});
