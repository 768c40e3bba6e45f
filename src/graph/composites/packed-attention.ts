/**
 * Attention of tokens of several sequences behind each other. The definition puts them back to their places in
 * a padded batch; `attendPacked` lets every token meet the columns of its sequence where they stand.
 */
import { constant, type IndexExpr, mul } from "../../semantics/index-expr.ts";
import { number } from "../attr-schema.ts";
import type { CompositeAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";

type PackedAttrs = CompositeAttrs["packedAttention"];

/** Tokens [t, h, d] as [b, h, s, d], with zeros where the padding is. */
function padded(
  b: OpWriter,
  x: ValueId,
  { rows, length, places }: { rows: IndexExpr; length: IndexExpr; places: ValueId },
): ValueId {
  const [tokens, heads, depth] = b.shapeOf(x);
  const width = mul(heads!, depth!);
  const shape = [mul(rows, length), width];
  const empty = b.node("broadcast", [b.scalarLike(0, x)], { shape });
  const given = [empty, places, b.reshape(x, [tokens!, width])];
  const filled = b.node("scatterNd", given, { reduction: "none" });
  return b.transpose(b.reshape(filled, [rows, length, heads!, depth!]), [0, 2, 1, 3]);
}

export const packedAttentionForms = {
  packedAttention: {
    arity: [5, 5],
    schema: { scale: number },
    definition: (b, [query, key, value, offsets, sums], { scale }) => {
      const tokens = b.shapeOf(query!)[0]!;
      const [rows, length] = b.shapeOf(offsets!) as [IndexExpr, IndexExpr];
      const flat = b.reshape(b.cast(offsets!, "i64"), [mul(rows, length)]);
      const first = b.node("gather", [flat, b.iota([tokens], 0, "i64")], { axis: 0 });
      const places = b.reshape(first, [tokens, 1]);
      const parts = [query!, key!, value!].map((x) => padded(b, x, { rows, length, places }));
      const counts = b.sub(b.sliceAxis(sums!, 0, 1, rows), b.sliceAxis(sums!, 0, 0, rows));
      const limits = b.reshape(b.cast(counts, "i64"), [rows, 1, 1, 1]);
      const seen = b.apply("less", b.iota([1, 1, 1, length], 3, "i64"), limits);
      const attrs = { scale, causal: "none", mask: true, softcap: 0 } as const;
      const y = b.node("attention", [...parts, seen], attrs);
      const [, heads, , depth] = b.shapeOf(y);
      const lines = b.reshape(b.transpose(y, [0, 2, 1, 3]), [
        mul(rows, length),
        mul(heads!, depth!),
      ]);
      const found = b.node("gather", [lines, first], { axis: 0 });
      return [b.reshape(found, [tokens, heads!, depth!])];
    },
  },
} satisfies CompositeRows<"packedAttention">;

/** The same without padding: token r meets the columns from the last sum up to r to the first one behind it. */
export function attendPacked(
  b: OpWriter,
  [query, key, value, , sums]: readonly ValueId[],
  { scale }: PackedAttrs,
): readonly ValueId[] {
  const tokens = b.shapeOf(query!)[0]!;
  const cuts = b.reshape(b.cast(sums!, "i32"), [1, b.shapeOf(sums!)[0]!]);
  const isBefore = b.apply("lessEqual", cuts, b.iota([tokens, 1], 0, "i32"));
  const none = b.scalarLike(0, cuts);
  const all = b.cast(b.extentProduct(query!, [0], "i64"), "i32");
  const start = b.reduce("max", b.select(isBefore, cuts, none), [1], true);
  const end = b.reduce("min", b.select(isBefore, all, cuts), [1], true);
  const column = b.iota([1, tokens], 1, "i32");
  const isOwn = b.apply("and", b.apply("lessEqual", start, column), b.apply("less", column, end));
  const parts = [query!, key!, value!].map((x) => {
    const [t, heads, depth] = b.shapeOf(x);
    return b.transpose(b.reshape(x, [constant(1), t!, heads!, depth!]), [0, 2, 1, 3]);
  });
  const attrs = { scale, causal: "none", mask: true, softcap: 0 } as const;
  const y = b.transpose(b.node("attention", [...parts, isOwn], attrs), [0, 2, 1, 3]);
  return [b.reshape(y, b.shapeOf(y).slice(1))];
}
