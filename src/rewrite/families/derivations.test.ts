/** What saturation finds by several rules together, with no rule that says it. */
import { expect, it } from "vitest";
import { EGraph, saturate } from "../../egraph/index.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { ValueId } from "../../graph/graph.ts";
import { expandComposites } from "../../graph/transforms/expand-composites.ts";
import { toIndex } from "../../semantics/index-expr.ts";
import { zeroRef } from "../../semantics/tensor.ts";
import { compileRows } from "../compile-rows.ts";
import { type Facts, factsAnalysis, scopeOf } from "../facts.ts";
import { exactJudge, judgeGraph } from "../prove/judge.ts";
import type { RuleRow } from "../rule-row.ts";
import { addGraph } from "../terms.ts";
import { families } from "./index.ts";

const rowsNamed = (...names: readonly string[]): readonly RuleRow[] =>
  names.map(
    (name) =>
      Object.values(families)
        .flat()
        .find((r) => r.name === name)!,
  );

type Write = (b: GraphBuilder, leaves: readonly ValueId[]) => ValueId;

interface Question {
  readonly leaves: (b: GraphBuilder) => readonly ValueId[];
  readonly from: Write;
  readonly phases: readonly (readonly [rules: readonly RuleRow[], iterations: number])[];
}

function graphOf({ leaves }: Question, write: Write) {
  const b = new GraphBuilder("derived");
  return expandComposites(b.finish([write(b, leaves(b))])).graph;
}

/** Saturates the first term and says whether the others are equal to it then. */
function derive(question: Question, wanted: readonly Write[]) {
  const graph = graphOf(question, question.from);
  const scope = scopeOf(graph);
  const egraph = new EGraph<Facts>({ analysis: factsAnalysis(scope) });
  const root = addGraph(egraph, graph).get(graph.outputs[0]!)!;
  const phases = question.phases.map(([rows, iterations], i) => {
    const rules = compileRows(rows, scope);
    if (!rules.ok) throw new Error(rules.diagnostics[0]!.message);
    return { name: `${i}`, rules: rules.value, iterations };
  });
  saturate(egraph, phases);
  const equal = wanted.map((write) => {
    const other = graphOf(question, write);
    return egraph.equal(root, addGraph(egraph, other).get(other.outputs[0]!)!);
  });
  return { egraph, graph, equal };
}

const lowest = -3.4028234663852886e38;

/** Two blocks of scores and values: each alone, then joined at the larger maximum. */
const inBlocks: Write = (b, [s1, s2, v1, v2]) => {
  const block = (s: ValueId, v: ValueId) => {
    const top = b.applyNumber("max", b.reduce("max", s, [3], true), lowest);
    const powers = b.apply("exp", b.sub(s, top));
    return { top, sum: b.reduce("sum", powers, [3], true), mixed: mix(b, powers, v) };
  };
  const [p, q] = [block(s1!, v1!), block(s2!, v2!)];
  const top = b.apply("max", p.top, q.top);
  const join = (x: ValueId, y: ValueId) => {
    const [ex, ey] = [p, q].map((own) => b.apply("exp", b.sub(own.top, top))) as [ValueId, ValueId];
    return b.add(b.mul(x, ex), b.mul(y, ey));
  };
  return b.div(join(p.mixed, q.mixed), join(p.sum, q.sum));
};

const mix = (b: GraphBuilder, weights: ValueId, v: ValueId) =>
  b.einsum("b h s t, b h t e -> b h s e", weights, v);

const attention: Question = {
  leaves: (b) =>
    [
      [2, 1, 3, 4],
      [2, 1, 3, 5],
      [2, 1, 4, 3],
      [2, 1, 5, 3],
    ].map((shape, i) => b.input(`x${i}`, { dtype: "f32", shape: shape.map(toIndex) })),
  from: (b, [s1, s2, v1, v2]) => {
    const weights = b.node("softmax", [b.concat([s1!, s2!], 3)], { axis: 3 });
    return mix(b, weights, b.concat([v1!, v2!], 2));
  },
  phases: [
    [rowsNamed("softmax"), 1],
    [
      [
        ...families.online!,
        ...rowsNamed("max-over-concat", "sum-over-concat", "map-of-concat", "max-commutes"),
        ...rowsNamed("reshape-identity"),
      ],
      12,
    ],
  ],
};

it("online softmax: attention over two blocks of keys, each with its own maximum and sum", () => {
  const { egraph, graph, equal } = derive(attention, [inBlocks]);
  expect(equal).toEqual([true]);
  // A block that is masked whole has no maximum: its rows are those of the other block.
  const shapes = new Map(
    graph.inputs.map((id) => [graph.values[id]!.name, graph.values[id]!.type.shape] as const),
  );
  const values = new Map(
    [...shapes].map(([name, shape]) => {
      const zeros = zeroRef(
        "f32",
        shape.map((d) => Number(d.key)),
      );
      const data = (zeros.data as Float64Array).map((_, i) =>
        name === "x1" && i < 10 ? -Infinity : name === "x3" ? 1 : (i % 3) - 1,
      );
      return [name, { ...zeros, data }] as const;
    }),
  );
  const close = {
    ...exactJudge,
    agree: (a: { data: ArrayLike<number | bigint> }, c: { data: ArrayLike<number | bigint> }) => {
      const gaps = Array.from(a.data, (x, i) => Math.abs(Number(x) - Number(c.data[i])));
      return gaps.some((gap) => gap > 1e-5) ? `${a.data} and ${c.data}` : undefined;
    },
  };
  expect(judgeGraph(egraph, graph, values, close as never)).toBeUndefined();
});

const window = (pad: number) => ({
  strides: [1, 1],
  dilations: [1, 1],
  padLow: [pad, pad],
  padHigh: [pad, pad],
  groups: 1,
});

it("parallel convolutions of 1 x 1 and 3 x 3 become one of 3 x 3", () => {
  const question: Question = {
    leaves: (b) => [
      b.input("x", { dtype: "f32", shape: [1, 3, 5, 5].map(toIndex) }),
      b.weight("v", { dtype: "f32", shape: [2, 3, 1, 1].map(toIndex) }),
      b.weight("w", { dtype: "f32", shape: [4, 3, 3, 3].map(toIndex) }),
    ],
    from: (b, [x, v, w]) =>
      b.concat(
        [b.node("convolution", [x!, v!], window(0)), b.node("convolution", [x!, w!], window(1))],
        1,
      ),
    phases: [
      [families.enlargements!, 1],
      [[...rowsNamed("concat-of-convolutions"), ...families.merges!], 1],
    ],
  };
  const one: Write = (b, [x, v, w]) => {
    const amounts = [0, 0, 1, 1].map(toIndex);
    const zero = b.scalar(0, "f32");
    const large = b.node("pad", [v!, zero], { low: amounts, high: amounts, mode: "constant" });
    return b.node("convolution", [x!, b.concat([large, w!], 0)], window(1));
  };
  expect(derive(question, [one]).equal).toEqual([true]);
});
