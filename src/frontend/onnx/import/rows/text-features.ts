/** Counts of n-grams in rows of tokens (TfIdfVectorizer): comparisons and sums over positions. */
import { constant, sub } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { encodeAny, StringCodes } from "../string-codes.ts";
import { largestUnroll } from "./sequences.ts";
import { sliceAxis } from "./slicing.ts";

/** n-grams of one length: their tokens, and the column that each counts in. */
interface Grams {
  readonly length: number;
  readonly tokens: readonly (readonly number[])[];
  readonly columns: readonly number[];
}

/** The pool lists the tokens of all 1-grams, then of all 2-grams, …; counts say where each begins. */
function readGrams(node: NodeView, codes: StringCodes): readonly Grams[] {
  const { attributes } = node;
  const texts = attributes.strings("pool_strings")?.map((t) => codes.codeOf(t));
  const pool = attributes.ints("pool_int64s") ?? texts ?? [];
  const starts = attributes.ints("ngram_counts") ?? [];
  const columns = attributes.ints("ngram_indexes") ?? [];
  let used = 0;
  return starts.map((start, i) => {
    const length = i + 1;
    const count = Math.floor(((starts[i + 1] ?? pool.length) - start) / length);
    const tokens = Array.from({ length: Math.max(0, count) }, (_, g) =>
      pool.slice(start + g * length, start + (g + 1) * length),
    );
    const own = columns.slice(used, used + tokens.length);
    if (own.length < tokens.length || own.some((c) => c < 0 || c >= 2 ** 24)) {
      node.refuse(`ngram_indexes of length ${columns.length}`, "one column an n-gram");
    }
    used += tokens.length;
    return { length, tokens, columns: own };
  });
}

function tfIdf(node: NodeView): Operand {
  const { attributes } = node;
  const codes = new StringCodes();
  const given = node.cast(encodeAny(node.bound(0), codes, node), "i64");
  const rank = given.type.shape.length;
  if (rank !== 1 && rank !== 2) node.refuse(`tokens of rank ${rank}`, "rank 1 or 2");
  const x = rank === 1 ? node.reshape(given, [one, given.type.shape[0]!]) : given;
  const grams = readGrams(node, codes);
  const [low, high] = [attributes.int("min_gram_length")!, attributes.int("max_gram_length")!];
  const skips = attributes.int("max_skip_count") ?? 0;
  if (!(skips >= 0 && skips <= largestUnroll))
    attributes.refuse("max_skip_count", skips, `0 to ${largestUnroll}`);
  const mode = attributes.choice("mode", "TF", "IDF", "TFIDF");
  const weights = attributes.floats("weights");
  const counted = grams.flatMap((g) => g.columns);
  const columns = counted.reduce((most, c) => Math.max(most, c + 1), 0);
  node.checkTable(counted.length * columns, "a table of n-grams by columns");
  let total = node.splat("f32", 0, [1, columns]);
  for (const group of grams) {
    if (group.length < low || group.length > high || group.tokens.length === 0) continue;
    const found = countGrams(node, x, group, group.length === 1 ? 0 : skips);
    const place = node.emit("contract", [found, placement(group, columns)], {
      lhs: ["n", "g"],
      rhs: ["g", "c"],
      output: ["n", "c"],
      accumulator: "f32",
    });
    total = node.emit("add", [total, place], {});
  }
  const shape = rank === 1 ? [constant(columns)] : [x.type.shape[0]!, constant(columns)];
  const scale =
    weights && constantFromRef(refTensor("f32", [columns], spreadWeights(grams, weights, columns)));
  const seen = node.cast(node.emit("less", [node.splat("f32", 0), total], {}), "f32");
  const base = mode === "IDF" ? seen : total;
  return node.reshape(mode === "TF" || !scale ? base : node.emit("mul", [base, scale], {}), shape);
}

/** Weights are listed like the n-grams; a result column takes that of its n-gram. */
function spreadWeights(
  grams: readonly Grams[],
  weights: readonly number[],
  columns: number,
): readonly number[] {
  const result = new Array<number>(columns).fill(1);
  for (const [i, column] of grams.flatMap((g) => g.columns).entries()) {
    result[column] = weights[i] ?? 1;
  }
  return result;
}

function placement({ columns }: Grams, count: number): Operand {
  const values = new Array<number>(columns.length * count).fill(0);
  for (const [g, column] of columns.entries()) values[g * count + column] = 1;
  return constantFromRef(refTensor("f32", [columns.length, count], values));
}

/** How often each n-gram stands in each row, its tokens up to `skips` others apart: [n, grams]. */
function countGrams(node: NodeView, x: Operand, { length, tokens }: Grams, skips: number): Operand {
  const [rows, width] = x.type.shape;
  let total = node.splat("f32", 0, [1, tokens.length]);
  for (let skip = 0; skip <= skips; skip++) {
    const span = (length - 1) * (skip + 1);
    const places = sub(width!, span);
    if (node.fixedExtent(places, "the number of positions") <= 0) break;
    let all: Operand | undefined;
    for (let i = 0; i < length; i++) {
      const start = constant(i * (skip + 1));
      const part = sliceAxis(node, x, { axis: 1, start, step: 1, size: places });
      const column = node.reshape(part, [rows!, places, one]);
      const wanted = constantFromRef(
        refTensor(
          "i64",
          [1, 1, tokens.length],
          tokens.map((t) => t[i]!),
        ),
      );
      const equal = node.emit("equal", [column, wanted], {});
      all = all ? node.emit("and", [all, equal], {}) : equal;
    }
    const sum = { kind: "sum", axes: [1], keepDims: false } as const;
    total = node.emit("add", [total, node.emit("reduce", [node.cast(all!, "f32")], sum)], {});
  }
  return total;
}

export const textFeatureRows = {
  TfIdfVectorizer: { since: [9], convert: tfIdf },
} satisfies OperatorTable;
