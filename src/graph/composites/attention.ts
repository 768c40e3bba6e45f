/** Scaled dot-product attention with grouped heads, and rotary position embedding. */
import { floorDiv, indexEquals, sub } from "../../semantics/index-expr.ts";
import { boolean, choice, integer, number, optional } from "../attr-schema.ts";
import type { AttentionAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";

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
  const scaled = b.applyNumber("mul", query, attrs.scale);
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
    definition: (b, [x, cos, sin], { interleaved, rotaryDims }) => {
      const shape = b.shapeOf(x!);
      const axis = shape.length - 1;
      const half = rotaryDims / 2;
      const rotated = b.sliceAxis(x!, axis, 0, rotaryDims);
      const outer = shape.slice(0, -1);
      const paired = interleaved
        ? b.reshape(rotated, [...outer, half, 2])
        : b.reshape(rotated, [...outer, 2, half]);
      const pairAxis = interleaved ? axis + 1 : axis;
      const part = (i: number) => b.reshape(b.sliceAxis(paired, pairAxis, i, 1), [...outer, half]);
      const [first, second] = [part(0), part(1)];
      const real = b.sub(b.mul(first, cos!), b.mul(second, sin!));
      const imaginary = b.add(b.mul(first, sin!), b.mul(second, cos!));
      const unit = interleaved ? [...outer, half, 1] : [...outer, 1, half];
      const joined = b.concat([b.reshape(real, unit), b.reshape(imaginary, unit)], pairAxis);
      const flat = b.reshape(joined, [...outer, rotaryDims]);
      const rest = sub(shape[axis]!, rotaryDims);
      if (rest.key === "0") return [flat];
      return [b.concat([flat, b.sliceAxis(x!, axis, rotaryDims, rest)], axis)];
    },
  },
} satisfies CompositeRows<"attention" | "rotaryEmbedding">;
