/**
 * The families one by one, as whole phases find them: a graph as a model spells it, and the form that has to
 * be equal to it when saturation ends.
 */
import { expect, it } from "vitest";
import { EGraph, saturate } from "../../egraph/index.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { toIndex } from "../../semantics/index-expr.ts";
import { type Facts, factsAnalysis, scopeOf } from "../facts.ts";
import { compilePhases } from "../rewrite-part.ts";
import { addGraph } from "../terms.ts";
import { defaultPhases } from "./index.ts";

/** Leaves are asked for by name; both forms ask for the same. */
class Leaves {
  readonly b = new GraphBuilder("found");

  input(name: string, ...shape: number[]): ValueId {
    return this.b.input(name, tensorType("f32", ...shape));
  }

  weight(name: string, ...shape: number[]): ValueId {
    return this.b.weight(name, tensorType("f32", ...shape));
  }
}

/** A number of single precision. */
const epsilon = 2 ** -10;

type Write = (b: GraphBuilder, leaves: readonly ValueId[]) => ValueId;

interface Family {
  readonly leaves: (l: Leaves) => readonly ValueId[];
  readonly from: Write;
  readonly to: Write;
}

function graphOf({ leaves }: Family, write: Write): Graph {
  const l = new Leaves();
  return l.b.finish([write(l.b, leaves(l))]);
}

const window = (kernel: number, groups = 1) => ({
  strides: [1, 1],
  dilations: [1, 1],
  padLow: [(kernel - 1) / 2, (kernel - 1) / 2],
  padHigh: [(kernel - 1) / 2, (kernel - 1) / 2],
  groups,
});
const convolve = (b: GraphBuilder, x: ValueId, w: ValueId, kernel = 1) =>
  b.node("convolution", [x, w], { ...window(kernel) });
const product = (l: Leaves) => [l.input("x", 3, 4), l.weight("v", 4, 5), l.weight("w", 4, 5)];
const picture = (l: Leaves) => [
  l.input("x", 1, 4, 5, 5),
  l.weight("v", 6, 4, 1, 1),
  l.weight("w", 6, 4, 3, 3),
];
const mean = (b: GraphBuilder, x: ValueId, n: number) =>
  b.applyNumber("div", b.reduce("sum", x, [1], true), n);

const families: Readonly<Record<string, Family>> = {
  "a scale behind a convolution in its filter": {
    leaves: (l) => [...picture(l), l.weight("s", 6, 1, 1)],
    from: (b, [x, v, , s]) => b.mul(convolve(b, x!, v!), s!),
    to: (b, [x, v, , s]) => convolve(b, x!, b.mul(v!, b.reshape(s!, [6, 1, 1, 1]))),
  },
  "products of one operand as a part of one product": {
    leaves: product,
    from: (b, [x, v, w]) =>
      b.add(b.apply("relu", b.matMul(x!, v!)), b.apply("tanh", b.matMul(x!, w!))),
    to: (b, [x, v, w]) => {
      const whole = b.matMul(x!, b.concat([v!, w!], 1));
      const [p, q] = [b.sliceAxis(whole, 1, 0, 5), b.sliceAxis(whole, 1, 5, 5)];
      return b.add(b.apply("relu", p), b.apply("tanh", q));
    },
  },
  "a chain of products in the other order": {
    leaves: (l) => [l.input("x", 3, 4), l.input("y", 4, 5), l.input("z", 5, 6)],
    from: (b, [x, y, z]) => b.matMul(b.matMul(x!, y!), z!),
    to: (b, [x, y, z]) => b.matMul(x!, b.matMul(y!, z!)),
  },
  "a common factor": {
    leaves: product,
    from: (b, [x, v, w]) => b.add(b.matMul(x!, v!), b.matMul(x!, w!)),
    to: (b, [x, v, w]) => b.matMul(x!, b.add(v!, w!)),
  },
  "transposes that cancel around an elementwise operator": {
    leaves: (l) => [l.input("x", 3, 4, 5)],
    from: (b, [x]) => b.transpose(b.apply("tanh", b.transpose(x!, [2, 0, 1])), [1, 2, 0]),
    to: (b, [x]) => b.apply("tanh", x!),
  },
  "a slice of a concatenation": {
    leaves: (l) => [l.input("x", 3, 4), l.input("y", 3, 5)],
    from: (b, [x, y]) => b.sliceAxis(b.reshape(b.concat([x!, y!], 1), [3, 9]), 1, 5, 3),
    to: (b, [, y]) => b.sliceAxis(y!, 1, 1, 3),
  },
  "parallel convolutions of one size": {
    leaves: (l) => [l.input("x", 1, 4, 5, 5), l.weight("v", 6, 4, 3, 3), l.weight("w", 2, 4, 3, 3)],
    from: (b, [x, v, w]) =>
      b.concat(
        [v!, w!].map((f) => convolve(b, x!, f, 3)),
        1,
      ),
    to: (b, [x, v, w]) => convolve(b, x!, b.concat([v!, w!], 0), 3),
  },
  "layer norm": {
    leaves: (l) => [l.input("x", 3, 4), l.weight("s", 4), l.weight("b", 4)],
    from: (b, [x, s, bias]) => {
      const low = b.sub(x!, mean(b, x!, 4));
      const deviation = b.apply("sqrt", b.applyNumber("add", mean(b, b.mul(low, low), 4), epsilon));
      return b.add(b.mul(b.div(low, deviation), s!), bias!);
    },
    to: (b, leaves) => b.node("layerNorm", leaves, { axis: 1, epsilon }),
  },
  "the scale of a norm in the weights behind it": {
    leaves: (l) => [l.input("x", 3, 4), l.weight("s", 4), l.weight("w", 4, 5)],
    from: (b, [x, s, w]) => {
      const root = b.apply("sqrt", b.applyNumber("add", mean(b, b.mul(x!, x!), 4), epsilon));
      return b.matMul(b.mul(b.div(x!, root), s!), w!);
    },
    to: (b, [x, s, w]) => {
      const root = b.apply("sqrt", b.applyNumber("add", mean(b, b.mul(x!, x!), 4), epsilon));
      return b.matMul(b.div(x!, root), b.mul(w!, b.reshape(s!, [4, 1])));
    },
  },
  "the norm by the root of the mean square": {
    leaves: (l) => [l.input("x", 3, 4), l.weight("s", 4)],
    from: (b, [x, s]) => {
      const root = b.apply("sqrt", b.applyNumber("add", mean(b, b.mul(x!, x!), 4), epsilon));
      return b.mul(b.div(x!, root), s!);
    },
    to: (b, leaves) => b.node("rmsNorm", leaves, { axis: 1, epsilon }),
  },
  GELU: {
    leaves: (l) => [l.input("x", 3, 4)],
    from: (b, [x]) => {
      const erf = b.apply("erf", b.applyNumber("div", x!, Math.SQRT2));
      return b.applyNumber("mul", b.mul(x!, b.applyNumber("add", erf, 1)), 0.5);
    },
    to: (b, leaves) => b.node("gelu", leaves, { approximate: "none" }),
  },
  SiLU: {
    leaves: (l) => [l.input("x", 3, 4)],
    from: (b, [x]) => b.div(x!, b.applyNumber("add", b.apply("exp", b.apply("neg", x!)), 1)),
    to: (b, leaves) => b.node("silu", leaves, {}),
  },
  "rotary positions": {
    leaves: (l) => [l.input("x", 3, 8), l.weight("c", 3, 4), l.weight("s", 3, 4)],
    from: (b, [x, c, s]) => {
      const [low, high] = [b.sliceAxis(x!, 1, 0, 4), b.sliceAxis(x!, 1, 4, 4)];
      const turned = b.concat([b.apply("neg", high), low], 1);
      return b.add(b.mul(x!, b.concat([c!, c!], 1)), b.mul(turned, b.concat([s!, s!], 1)));
    },
    to: (b, leaves) => b.node("rotaryEmbedding", leaves, { interleaved: false, rotaryDims: 8 }),
  },
  attention: {
    leaves: (l) => ["q", "k", "v"].map((name) => l.input(name, 1, 2, 3, 4)),
    from: (b, [q, k, v]) => {
      const scores = b.applyNumber("div", b.matMul(q!, b.transpose(k!, [0, 1, 3, 2])), 2);
      const low = b.sub(scores, b.reduce("max", scores, [3], true));
      const powers = b.apply("exp", low);
      return b.matMul(b.div(powers, b.reduce("sum", powers, [3], true)), v!);
    },
    to: (b, leaves) =>
      b.node("attention", leaves, { scale: 0.5, causal: "none", mask: false, softcap: 0 }),
  },
  "a sum over what is repeated": {
    leaves: (l) => [l.input("x", 3, 1)],
    from: (b, [x]) =>
      b.reduce("sum", b.node("broadcast", [x!], { shape: [toIndex(3), toIndex(7)] }), [1], false),
    to: (b, [x]) => b.applyNumber("mul", b.reshape(x!, [3]), 7),
  },
};

it.each(Object.entries(families))("%s", (_, family) => {
  const graph = graphOf(family, family.from);
  const scope = scopeOf(graph);
  const egraph = new EGraph<Facts>({ analysis: factsAnalysis(scope) });
  const root = addGraph(egraph, graph).get(graph.outputs[0]!)!;
  const phases = compilePhases(defaultPhases, scope);
  if (!phases.ok) throw new Error(phases.diagnostics[0]!.message);
  saturate(egraph, phases.value);
  const other = graphOf(family, family.to);
  const wanted = addGraph(egraph, other).get(other.outputs[0]!)!;
  egraph.rebuild();
  expect(egraph.equal(root, wanted)).toBe(true);
});
