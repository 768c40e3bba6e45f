/** Attention of sequences behind each other: both of its forms against a formula, and as one kernel of a GPU. */
import { expect, test } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { attendPacked } from "../../src/graph/composites/packed-attention.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { packAttention } from "../../src/graph/transforms/pack-attention.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { type RefTensor, randomRef, refTensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

interface Size {
  readonly counts: readonly number[];
  readonly heads: number;
  readonly depth: number;
}

const scale = 0.3;
const tokensOf = ({ counts }: Size): number => counts.reduce((a, b) => a + b, 0);

type Make = (b: GraphBuilder, inputs: readonly ValueId[]) => ValueId;

const composite: Make = (b, inputs) => b.node("packedAttention", inputs, { scale });
const apart: Make = (b, inputs) => attendPacked(b, inputs, { scale })[0]!;

function graphOf(size: Size, dtype: "f64" | "bf16", make: Make): Graph {
  const b = new GraphBuilder("packed");
  const tokens = tokensOf(size);
  const shape = [tokens, size.heads, size.depth].map((n) => constant(n));
  const rows = size.counts.length;
  const inputs = ["q", "k", "v"].map((name) => b.input(name, { dtype, shape }));
  const places = { dtype: "i32", shape: [rows, Math.max(...size.counts)].map((n) => constant(n)) };
  inputs.push(b.input("places", places as never));
  inputs.push(b.input("sums", { dtype: "i32", shape: [constant(rows + 1)] }));
  return b.finish([make(b, inputs)]);
}

function operandsOf(size: Size): readonly RefTensor[] {
  const { counts, heads, depth } = size;
  const rng = new Rng(7);
  const longest = Math.max(...counts);
  const all = counts.flatMap((n, row) =>
    Array.from({ length: longest }, (_, i) => ({ at: row * longest + i, isToken: i < n })),
  );
  const places = [true, false].flatMap((is) => all.filter((p) => p.isToken === is));
  const sums = [0];
  for (const n of counts) sums.push(sums.at(-1)! + n);
  return [
    ...[1, 2, 3].map(() => randomRef("f64", [tokensOf(size), heads, depth], rng)),
    refTensor(
      "i32",
      [counts.length, longest],
      places.map((p) => p.at),
    ),
    refTensor("i32", [counts.length + 1], sums),
  ];
}

/** Each token over those of its sequence. */
function formula(size: Size, [q, k, v]: readonly RefTensor[]): readonly number[] {
  const { counts, heads, depth } = size;
  const at = (x: RefTensor, token: number, head: number, e: number): number =>
    Number(x.data[(token * heads + head) * depth + e]);
  const each = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);
  let start = 0;
  return counts.flatMap((count) => {
    const own = each(count).map((i) => start + i);
    start += count;
    return own.flatMap((row) =>
      each(heads).flatMap((head) => {
        const scores = own.map((c) =>
          each(depth).reduce((s, e) => s + at(q!, row, head, e) * at(k!, c, head, e), 0),
        );
        const most = Math.max(...scores);
        const weights = scores.map((s) => Math.exp(scale * (s - most)));
        const total = weights.reduce((a, b) => a + b, 0);
        return each(depth).map(
          (e) => own.reduce((s, c, i) => s + weights[i]! * at(v!, c, head, e), 0) / total,
        );
      }),
    );
  });
}

test.each([[[4]], [[1, 1, 1]], [[3, 0, 5, 2]], [[2, 6, 1]]])(
  "sequences of %s tokens meet themselves alone",
  (counts) => {
    const size = { counts, heads: 2, depth: 3 };
    const operands = operandsOf(size);
    const want = formula(size, operands);
    for (const make of [composite, apart]) {
      const found = runGraph(graphOf(size, "f64", make), operands);
      if (!found.ok) throw new Error(found.diagnostics.map((d) => d.message).join());
      Array.from(found.value[0]!.data, Number).forEach((x, i) => {
        expect(x).toBeCloseTo(want[i]!, 12);
      });
    }
  },
);

test("where rows leave columns out every layer is one kernel over the tokens, without a mask of all pairs", () => {
  const size = { counts: [20, 3, 25], heads: 2, depth: 16 };
  const graph = graphOf(size, "bf16", (b, [q, ...others]) =>
    composite(b, [composite(b, [q!, ...others]), ...others]),
  );
  const kinds = packAttention(graph).graph.nodes.map((n) => n.op);
  expect(kinds.filter((op) => op === "attention")).toHaveLength(2);
  expect(kinds).not.toContain("scatterNd");
  const target = targets.get("h200")!;
  const compiled = compileModel({ graph, weights: noWeights }, { target });
  if (!compiled.ok) throw new Error(compiled.diagnostics.map((d) => d.message).join());
  const { regions } = compiled.value;
  const forms = regions.flatMap((r) => r.scheduled.attention?.form ?? []);
  expect(forms.map((f) => [f.rows, f.reach?.ends[0]?.ofRow])).toEqual([
    [48, true],
    [48, true],
  ]);
  // Beside them where sequences begin and end.
  expect(regions).toHaveLength(3);
});

test("elsewhere they are attention over the padded batch", () => {
  const size = { counts: [2, 3], heads: 1, depth: 16 };
  const kinds = (dtype: "f64" | "bf16") =>
    packAttention(graphOf(size, dtype, composite)).graph.nodes.map((n) => n.op);
  expect(kinds("f64")).toEqual(["packedAttention"]);
});
