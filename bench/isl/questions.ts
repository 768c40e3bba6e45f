/**
 * The questions that the `affine` campaign and bench put to both libraries: for every operation how its
 * operands are drawn, what isl is asked, and what ours answers. Operands are text, read by each side
 * with its own parser. How answers are compared is in judge.ts.
 */

import type { Answer, IntegerMap, IntegerSet, SetOrMap, Truth } from "../../src/affine/index.ts";
import * as affine from "../../src/affine/index.ts";
import type { Result } from "../../src/support/diagnostic.ts";
import { DiagnosticError } from "../../src/support/diagnostic.ts";
import type { Rng } from "../../src/support/rng.ts";
import {
  drawContext,
  drawMap,
  drawSet,
  drawSpace,
  drawTuples,
  type Space,
  type Style,
} from "./random-notation.ts";

/** What ours says; a question whose two answers need another look says how to compare them. */
export type Reply =
  | { readonly kind: "points"; readonly value: Answer<SetOrMap> }
  | { readonly kind: "truth"; readonly value: Truth }
  | { readonly kind: "number"; readonly value: Answer<number> }
  /** An extreme as isl spells it. */
  | { readonly kind: "text"; readonly value: Answer<string> }
  /** One point of the operand, or none when it is empty. */
  | { readonly kind: "member"; readonly value: Answer<IntegerSet> }
  /** A set that contains the operand, and equals isl's result where that is the operand itself. */
  | { readonly kind: "hull"; readonly value: Answer<IntegerSet> }
  /** A set that contains the operand and lies within isl's result. */
  | { readonly kind: "tight hull"; readonly value: Answer<IntegerSet> };

export interface Question {
  /** The driver's operation. */
  readonly name: string;
  /** false where isl answers a smaller question, so that times say nothing. */
  readonly timed?: false;
  /** Texts of the operands. */
  draw(rng: Rng): readonly string[];
  /** Ours: reads the same texts, anew each time, and gives the run that answers. */
  prepare(operands: readonly string[]): () => Reply;
}

export function readSet(text: string): IntegerSet {
  return unwrap(affine.parseSet(text));
}

export function readMap(text: string): IntegerMap {
  return unwrap(affine.parseMap(text));
}

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

const known = (value: SetOrMap): Reply => ({ kind: "points", value: { kind: "known", value } });
const points = (value: Answer<SetOrMap>): Reply => ({ kind: "points", value });
const truth = (value: Truth): Reply => ({ kind: "truth", value });
const number = (value: Answer<number>): Reply => ({ kind: "number", value });

type Draw = (rng: Rng) => readonly string[];

const oneSet: Draw = (rng) => [drawSet(rng, drawSpace(rng))];
const twoSets: Draw = (rng) => {
  const space = drawSpace(rng);
  return [drawSet(rng, space), drawSet(rng, space)];
};
const plainSet: Draw = (rng) => [drawSet(rng, drawSpace(rng), { plain: true })];
const oneTuple: Draw = (rng) => [drawSet(rng, drawSpace(rng, { mostTuples: 1 }))];

/** A set in one tuple without parameters, between constants in every dimension. */
function finiteSet(style: Style = {}, mostDims = 3): Draw {
  return (rng) => {
    const space = drawSpace(rng, { params: false, mostTuples: 1, mostDims });
    return [drawSet(rng, space, { ...style, bounded: true })];
  };
}

/** Source and target tuples, which sometimes coincide. */
function ends(rng: Rng): [Space, Space] {
  const from = drawSpace(rng, { mostDims: 2 });
  if (rng.uniform() < 0.4) return [from, from];
  return [from, { params: from.params, tuples: drawTuples(rng, ["A", "B"], 2) }];
}

const oneMap: Draw = (rng) => {
  const [from, to] = ends(rng);
  return [drawMap(rng, from.params, [from.tuples, to.tuples])];
};
/** Between tuples of one space, of one tuple. */
const ownMap: Draw = (rng) => {
  const { params, tuples } = drawSpace(rng, { mostDims: 2, mostTuples: 1 });
  return [drawMap(rng, params, [tuples, tuples])];
};
const twoMaps: Draw = (rng) => {
  const [from, to] = ends(rng);
  const draw = (): string => drawMap(rng, from.params, [from.tuples, to.tuples]);
  return [draw(), draw()];
};
const chainedMaps: Draw = (rng) => {
  const [from, to] = ends(rng);
  const last = drawTuples(rng, ["C"], 2);
  const { params } = from;
  return [drawMap(rng, params, [from.tuples, to.tuples]), drawMap(rng, params, [to.tuples, last])];
};
/** From one space to anonymous tuples. */
const productMaps: Draw = (rng) => {
  const from = drawSpace(rng, { mostDims: 2 });
  const draw = (): string => {
    return drawMap(rng, from.params, [from.tuples, [{ name: "", size: rng.integer(1, 2) }]]);
  };
  return [draw(), draw()];
};
const mapAndSource: Draw = (rng) => {
  const [from, to] = ends(rng);
  return [drawMap(rng, from.params, [from.tuples, to.tuples]), drawSet(rng, from)];
};
const mapAndTarget: Draw = (rng) => {
  const [from, to] = ends(rng);
  return [drawMap(rng, from.params, [from.tuples, to.tuples]), drawSet(rng, to)];
};
const setAndContext: Draw = (rng) => {
  const space = drawSpace(rng);
  return [drawSet(rng, space), drawContext(rng, space.params)];
};

/** Numbers for all parameters, as a context. */
function andValues(rng: Rng, style: Style): readonly string[] {
  const space = drawSpace(rng);
  const values = space.params.map((p) => `${p} = ${rng.integer(-3, 9)}`).join(" and ");
  const context = `[${space.params.join(", ")}] -> { : ${values || "true"} }`;
  return [drawSet(rng, space, style), context];
}

const setAndValues: Draw = (rng) => andValues(rng, {});
const finiteAndValues: Draw = (rng) => andValues(rng, { finite: true });

/** The count for all parameter values, taken at some; isl counts at those alone. */
function countByFormula(set: IntegerSet, values: Readonly<Record<string, number>>): Answer<number> {
  const count = affine.countInParams(set);
  return count.kind === "known" ? affine.evaluateCount(count.value, values) : count;
}

function valuesIn(context: IntegerSet): Readonly<Record<string, number>> {
  const found = affine.samplePoint(context);
  return found.kind === "known" && found.value ? found.value.params : {};
}

function sampleAsSet(set: IntegerSet): Answer<IntegerSet> {
  const found = affine.samplePoint(set);
  if (found.kind === "unknown") return found;
  const { value: point } = found;
  if (point === null) return { kind: "known", value: affine.emptySet(set.params) };
  const dims = point.values.map((_, k) => `x${k}`);
  const where = [
    ...set.params.map((p) => affine.equals(p, point.params[p]!)),
    ...point.values.map((v, k) => affine.equals(dims[k]!, v)),
  ];
  return {
    kind: "known",
    value: affine.makeSet({ params: set.params, tuple: point.tuple, dims, where }),
  };
}

function extremeText(found: Answer<affine.Extreme>, unbounded: string): Answer<string> {
  if (found.kind === "unknown") return found;
  const { value } = found;
  if (value.kind === "value") return { kind: "known", value: String(value.value) };
  return { kind: "known", value: value.kind === "empty" ? "NaN" : unbounded };
}

function onSet(name: string, draw: Draw, reply: (a: IntegerSet) => Reply): Question {
  return {
    name,
    draw,
    prepare: ([a]) => {
      const value = readSet(a!);
      return () => reply(value);
    },
  };
}

function onSets(
  name: string,
  draw: Draw,
  reply: (a: IntegerSet, b: IntegerSet) => Reply,
): Question {
  return {
    name,
    draw,
    prepare: ([a, b]) => {
      const [first, second] = [readSet(a!), readSet(b!)];
      return () => reply(first, second);
    },
  };
}

function onMap(name: string, reply: (a: IntegerMap) => Reply): Question {
  return {
    name,
    draw: oneMap,
    prepare: ([a]) => {
      const value = readMap(a!);
      return () => reply(value);
    },
  };
}

function onMaps(
  name: string,
  draw: Draw,
  reply: (a: IntegerMap, b: IntegerMap) => Reply,
): Question {
  return {
    name,
    draw,
    prepare: ([a, b]) => {
      const [first, second] = [readMap(a!), readMap(b!)];
      return () => reply(first, second);
    },
  };
}

function onBoth(
  name: string,
  draw: Draw,
  reply: (a: IntegerMap, b: IntegerSet) => Reply,
): Question {
  return {
    name,
    draw,
    prepare: ([a, b]) => {
      const [first, second] = [readMap(a!), readSet(b!)];
      return () => reply(first, second);
    },
  };
}

const setQuestions: readonly Question[] = [
  onSets("s_intersect", twoSets, (a, b) => known(affine.intersect(a, b))),
  onSets("s_union", twoSets, (a, b) => known(affine.union(a, b))),
  onSets("s_subtract", twoSets, (a, b) => points(affine.subtract(a, b))),
  onSets("s_subset", twoSets, (a, b) => truth(affine.isSubset(a, b))),
  onSets("s_equal", twoSets, (a, b) => truth(affine.isEqual(a, b))),
  onSets("s_disjoint", twoSets, (a, b) => truth(affine.isDisjoint(a, b))),
  onSet("s_empty", oneSet, (a) => truth(affine.isEmpty(a))),
  onSet("s_lexmin", oneSet, (a) => points(affine.lexMin(a))),
  onSet("s_lexmax", oneSet, (a) => points(affine.lexMax(a))),
  onSet("s_project_params", oneSet, (a) => known(affine.projectParams(a, a.params))),
  onSet("s_params", oneSet, (a) => known(affine.paramsOf(a))),
  onSets("s_intersect_params", setAndContext, (a, b) => known(affine.intersectParams(a, b))),
  onSet("s_coalesce", oneSet, (a) => points(affine.coalesce(a))),
  onSet("s_remove_redundancies", oneSet, (a) => points(affine.removeRedundancies(a))),
  onSet("s_disjoint_pieces", oneSet, (a) => points(affine.makeDisjoint(a))),
  onSet("s_affine_hull", oneSet, (a) => points(affine.affineHull(a))),
  onSet("s_simple_hull", plainSet, (a) => ({ kind: "hull", value: affine.simpleHull(a) })),
  onSet("s_convex_hull", plainSet, (a) => ({
    kind: "tight hull",
    value: affine.polyhedralHull(a),
  })),
  onSet("s_sample", oneSet, (a) => ({ kind: "member", value: sampleAsSet(a) })),
  onSets("s_at", setAndValues, (a, b) => known(affine.fixParams(a, valuesIn(b)))),
  onSet("s_identity", oneSet, (a) => known(affine.identityMap(a))),
  onSets("s_pairs", twoSets, (a, b) => known(affine.pairsOf(a, b))),
  onSet("s_read", oneSet, (a) => known(a)),
  onSets("s_count_at", finiteAndValues, (a, b) =>
    number(affine.countPoints(affine.fixParams(a, valuesIn(b)))),
  ),
  {
    ...onSets("s_count_at", finiteAndValues, (a, b) => number(countByFormula(a, valuesIn(b)))),
    timed: false,
  },
  onSet("s_count", finiteSet(), (a) => number(affine.countPoints(a))),
];

const mapQuestions: readonly Question[] = [
  onMaps("m_intersect", twoMaps, (a, b) => known(affine.intersect(a, b))),
  onMaps("m_union", twoMaps, (a, b) => known(affine.union(a, b))),
  onMaps("m_subtract", twoMaps, (a, b) => points(affine.subtract(a, b))),
  onMaps("m_subset", twoMaps, (a, b) => truth(affine.isSubset(a, b))),
  onMaps("m_equal", twoMaps, (a, b) => truth(affine.isEqual(a, b))),
  onMaps("m_disjoint", twoMaps, (a, b) => truth(affine.isDisjoint(a, b))),
  onMap("m_empty", (a) => truth(affine.isEmpty(a))),
  onMap("m_lexmin", (a) => points(affine.lexMinMap(a))),
  onMap("m_lexmax", (a) => points(affine.lexMaxMap(a))),
  onMap("m_project_params", (a) => known(affine.projectParams(a, a.params))),
  onMap("m_coalesce", (a) => points(affine.coalesce(a))),
  onMap("m_inverse", (a) => known(affine.inverse(a))),
  onMap("m_domain", (a) => known(affine.domain(a))),
  onMap("m_range", (a) => known(affine.range(a))),
  onMap("m_wrap", (a) => known(affine.wrap(a))),
  onMap("m_domain_map", (a) => known(affine.domainMap(a))),
  onMap("m_range_map", (a) => known(affine.rangeMap(a))),
  onMaps("m_flat_range_product", productMaps, (a, b) => known(affine.flatRangeProduct(a, b))),
  { ...onMap("m_deltas", (a) => known(affine.deltas(a))), draw: ownMap },
  onMap("m_read", (a) => known(a)),
  onMaps("m_compose", chainedMaps, (a, b) => known(affine.compose(a, b))),
  onBoth("m_intersect_domain", mapAndSource, (a, b) => known(affine.intersectDomain(a, b))),
  onBoth("m_intersect_range", mapAndTarget, (a, b) => known(affine.intersectRange(a, b))),
  onBoth("m_apply", mapAndSource, (a, b) => known(affine.applyMap(a, b))),
];

/** Questions with a position among the operands. */
const positionQuestions: readonly Question[] = [
  {
    name: "s_project_out",
    draw: (rng) => {
      const [set] = oneTuple(rng);
      const size = readSet(set!).pieces[0]?.output.dims.length ?? 0;
      const first = rng.integer(0, Math.max(0, size - 1));
      return [set!, String(first), String(rng.integer(0, size - first))];
    },
    prepare: ([text, first, count]) => {
      const set = readSet(text!);
      const positions = Array.from({ length: Number(count) }, (_, k) => Number(first) + k);
      return () => known(affine.projectOut(set, positions));
    },
  },
];

/** The first dimension's least and greatest value. */
const extremeQuestions = (["s_dim_min", "s_dim_max"] as const).map((name): Question => {
  const find = name === "s_dim_min" ? affine.minimum : affine.maximum;
  const unbounded = name === "s_dim_min" ? "-infty" : "infty";
  return {
    name,
    draw: (rng) => {
      const space = { params: [], tuples: [{ name: "S", size: rng.integer(1, 3) }] };
      const pieces = drawSet(rng, space);
      return [pieces.includes("S[") ? pieces : "{ S[i0] : false }", "0"];
    },
    prepare: ([text]) => {
      const set = readSet(text!);
      const named = {
        ...set,
        pieces: set.pieces.map((p) => ({
          ...p,
          output: { ...p.output, dims: p.output.dims.map((_, k) => `i${k}`) },
        })),
      };
      return () => ({ kind: "text", value: extremeText(find(named, "i0"), unbounded) });
    },
  };
});

export const questions: readonly Question[] = [
  ...setQuestions,
  ...mapQuestions,
  ...positionQuestions,
  ...extremeQuestions,
];
