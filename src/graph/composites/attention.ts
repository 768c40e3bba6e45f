/** Scaled dot-product attention with grouped heads, and rotary position embedding. */
import { constantValue, floorDiv, indexEquals, sub, toIndex } from "../../semantics/index-expr.ts";
import { roundNumber } from "../../semantics/scalar-meaning.ts";
import { boolean, choice, integer, number, optional } from "../attr-schema.ts";
import type { AttentionAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";

/**
 * x times a number: in f32 where the type of x is narrower and does not have the number, which would be off by as much
 * in every element (1 / sqrt(112) in bf16: by 0.25 %).
 */
function scaledBy(b: OpWriter, x: ValueId, factor: number): ValueId {
  const dtype = b.dtypeOf(x);
  const isExact = roundNumber(dtype, factor) === factor;
  const isNarrow = dtype === "bf16" || dtype === "f16";
  if (isExact || !isNarrow) return b.applyNumber("mul", x, factor);
  return b.cast(b.applyNumber("mul", b.cast(x, "f32"), factor), dtype);
}

/** scale * query · key, capped; [b, h, s, t]. */
function attentionScores(
  b: OpWriter,
  query: ValueId,
  key: ValueId,
  attrs: AttentionAttrs,
): ValueId {
  const [batch, heads, rows, depth] = b.shapeOf(query);
  const groups = b.shapeOf(key)[1]!;
  const columns = b.shapeOf(key)[2]!;
  const scaled = scaledBy(b, query, attrs.scale);
  const raw = indexEquals(heads!, groups)
    ? b.einsum("b h s d, b h t d -> b h s t", scaled, key)
    : b.einsum(
        "b g r s d, b g t d -> b g r s t",
        b.reshape(scaled, [batch!, groups, floorDiv(heads!, groups), rows!, depth!]),
        key,
      );
  const scores = b.reshape(raw, [batch!, heads!, rows!, columns]);
  if (attrs.softcap === 0) return scores;
  const small = b.apply("tanh", b.applyNumber("div", scores, attrs.softcap));
  return b.applyNumber("mul", small, attrs.softcap);
}

/** Scores with minus infinity where position i may not attend to j. */
function maskCausal(
  b: OpWriter,
  scores: ValueId,
  { causal, behind }: Pick<AttentionAttrs, "causal" | "behind">,
): ValueId {
  if (causal === "none") return scores;
  const [rows, columns] = b.shapeOf(scores).slice(-2);
  const row = b.iota([rows!, 1], 0, "i64");
  const column = b.iota([1, columns!], 1, "i64");
  const past = b.sub(b.extentProduct(scores, [3], "i64"), b.extentProduct(scores, [2], "i64"));
  const last = causal === "start" ? row : b.add(row, past);
  const upTo = b.apply("lessEqual", column, last);
  const isNear =
    behind !== undefined && b.apply("lessEqual", b.applyNumber("sub", last, behind), column);
  const allowed = isNear ? b.apply("and", upTo, isNear) : upTo;
  return b.select(allowed, scores, b.scalarLike(-Infinity, scores));
}

function applyMask(b: OpWriter, scores: ValueId, mask: ValueId | undefined): ValueId {
  if (mask === undefined) return scores;
  if (b.dtypeOf(mask) !== "bool") return b.add(scores, mask);
  return b.select(mask, scores, b.scalarLike(-Infinity, scores));
}

interface Rotation {
  readonly cos: ValueId;
  readonly sin: ValueId;
  readonly rotaryDims: number;
}

/** Both elements of a pair, turned. */
function turned(
  b: OpWriter,
  [first, second]: readonly [ValueId, ValueId],
  { cos, sin }: Pick<Rotation, "cos" | "sin">,
): readonly [ValueId, ValueId] {
  return [
    b.sub(b.mul(first, cos), b.mul(second, sin)),
    b.add(b.mul(first, sin), b.mul(second, cos)),
  ];
}

/**
 * Pairs are (i, half + i). What is not rotated is parts of the same length beside the two halves, where it is so
 * many whole ones: then all results stand along one axis of parts.
 */
function rotateHalves(b: OpWriter, x: ValueId, { rotaryDims, ...angles }: Rotation): ValueId {
  const shape = b.shapeOf(x);
  const axis = shape.length - 1;
  const half = rotaryDims / 2;
  const outer = shape.slice(0, -1);
  const parts = (constantValue(shape[axis]!) ?? 0) / half;
  const isWhole = Number.isInteger(parts) && parts >= 2;
  const from = isWhole ? x : b.sliceAxis(x, axis, 0, rotaryDims);
  const paired = b.reshape(from, [...outer, isWhole ? parts : 2, half]);
  const part = (i: number) => b.reshape(b.sliceAxis(paired, axis, i, 1), [...outer, half]);
  const results = turned(b, [part(0), part(1)], angles);
  const both = results.map((y) => b.reshape(y, [...outer, 1, half]));
  const rest = isWhole && parts > 2 ? [b.sliceAxis(paired, axis, 2, parts - 2)] : [];
  const joined = b.concat([...both, ...rest], axis);
  if (isWhole) return b.reshape(joined, shape);
  const flat = b.reshape(joined, [...outer, rotaryDims]);
  const left = sub(shape[axis]!, rotaryDims);
  if (left.key === "0") return flat;
  return b.concat([flat, b.sliceAxis(x, axis, rotaryDims, left)], axis);
}

/** Pairs are (2 i, 2 i + 1); those that are not rotated are what they were. */
function rotatePairs(b: OpWriter, x: ValueId, { rotaryDims, cos, sin }: Rotation): ValueId {
  const shape = b.shapeOf(x);
  const axis = shape.length - 1;
  const [half, whole] = [rotaryDims / 2, constantValue(shape[axis]!)];
  const isAll = indexEquals(shape[axis]!, toIndex(rotaryDims));
  const outer = shape.slice(0, -1);
  if (!isAll && (whole === undefined || whole % 2 !== 0)) {
    const some = b.sliceAxis(x, axis, 0, rotaryDims);
    const rest = b.sliceAxis(x, axis, rotaryDims, sub(shape[axis]!, rotaryDims));
    return b.concat([rotatePairs(b, some, { rotaryDims, cos, sin }), rest], axis);
  }
  const pairs = isAll ? half : whole! / 2;
  const paired = b.reshape(x, [...outer, pairs, 2]);
  const part = (i: number) => b.reshape(b.sliceAxis(paired, axis + 1, i, 1), [...outer, pairs]);
  const elements = [part(0), part(1)] as const;
  const longer = (table: ValueId): ValueId => {
    const of = b.shapeOf(table);
    // A table of one angle is the same everywhere.
    if (isAll || !indexEquals(of.at(-1)!, toIndex(half))) return table;
    const high = of.map((_, i) => (i === of.length - 1 ? pairs - half : 0));
    return b.node("pad", [table, b.scalarLike(0, table)], {
      low: high.map(() => toIndex(0)),
      high: high.map(toIndex),
      mode: "constant",
    });
  };
  const made = turned(b, elements, { cos: longer(cos), sin: longer(sin) });
  const place = b.iota([pairs], 0, "i64");
  const isTurned = isAll || b.apply("less", place, b.scalar(half, "i64"));
  const results = made.map((y, i) => (isTurned === true ? y : b.select(isTurned, y, elements[i]!)));
  const joined = results.map((y) => b.reshape(y, [...outer, pairs, 1]));
  return b.reshape(b.concat(joined, axis + 1), shape);
}

export const attentionForms = {
  attention: {
    arity: [3, 4],
    schema: {
      scale: number,
      causal: choice("none", "start", "end"),
      behind: optional(integer),
      mask: boolean,
      softcap: number,
    },
    definition: (b, [query, key, value, mask], attrs) => {
      const raw = attentionScores(b, query!, key!, attrs);
      const scores = applyMask(b, maskCausal(b, raw, attrs), attrs.mask ? mask : undefined);
      const weights = b.node("softmax", [scores], { axis: 3 });
      const [batch, heads, rows, columns] = b.shapeOf(weights);
      const [, groups, , depth] = b.shapeOf(value!);
      if (indexEquals(heads!, groups!)) {
        return [b.einsum("b h s t, b h t e -> b h s e", weights, value!)];
      }
      const ratio = floorDiv(heads!, groups!);
      const grouped = b.reshape(weights, [batch!, groups!, ratio, rows!, columns!]);
      const mixed = b.einsum("b g r s t, b g t e -> b g r s e", grouped, value!);
      return [b.reshape(mixed, [batch!, heads!, rows!, depth!])];
    },
  },
  // (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos)
  rotaryEmbedding: {
    arity: [3, 3],
    schema: { interleaved: boolean, rotaryDims: integer },
    definition: (b, [x, cos, sin], attrs) => [
      attrs.interleaved
        ? rotatePairs(b, x!, { cos: cos!, sin: sin!, ...attrs })
        : rotateHalves(b, x!, { cos: cos!, sin: sin!, ...attrs }),
    ],
  },
} satisfies CompositeRows<"attention" | "rotaryEmbedding">;
