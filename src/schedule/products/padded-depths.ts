/**
 * Products of 16 bits of a depth whose lines are no multiple of 16 bytes: tensor copies and asynchronous copies of vectors need
 * that they are. In: a product whose operands are read whole; out: the same over copies of both with zeros up to the
 * next multiple, each along the depth, or as it lies where its own lines are multiples. Zeros add nothing to sums.
 */
import type { Access, Loop, Region, RegionTensor, Statement } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { copiedBits, copyRegion, type TurnedProduct } from "./operand-copies.ts";
import { type ProductForm, productForm } from "./product-form.ts";

/** The product over padded copies; undefined where its lines are multiples, or where it has no such copies. */
export function paddedProduct(region: Region): TurnedProduct | undefined {
  const [statement, ...others] = region.statements;
  if (!statement || others.length > 0) return undefined;
  const form = productForm(region, statement);
  if (typeof form === "string" || form.picks.length > 0 || dtypes[form.dtype].bits !== 16)
    return undefined;
  const [deep, ...more] = form.depth.loops;
  const depth = constantValue(deep?.extent ?? constant(0));
  const unit = copiedBits / dtypes[form.dtype].bits;
  const isRagged = more.length === 0 && depth !== undefined && depth > unit && depth % unit !== 0;
  if (!isRagged || statement.guard.length > 0 || statement.indirects.length > 0) return undefined;
  const to = Math.ceil(depth / unit) * unit;
  const found = statement.reads.map((read) => paddedRead(read, { region, form, deep: deep!, to }));
  if (found.length !== 2 || found.includes(undefined)) return undefined;
  return overCopies(region, statement, { reads: found as readonly PaddedRead[], deep: deep!, to });
}

interface PaddedRead {
  readonly tensor: RegionTensor;
  readonly index: readonly IndexExpr[];
  /** Axes of the tensor in the copy's order. */
  readonly order: readonly number[];
  readonly copy: RegionTensor;
}

function paddedRead(
  { tensor: name, index, guard }: Access,
  at: {
    readonly region: Region;
    readonly form: ProductForm;
    readonly deep: Loop;
    readonly to: number;
  },
): PaddedRead | undefined {
  const { region, form, deep, to } = at;
  const tensor = region.tensors.get(name)!;
  const { loops } = region.statements[0]!;
  const isWhole = index.every(
    (e, axis) => loops.find((l) => l.name === e.key)?.extent.key === tensor.shape[axis]!.key,
  );
  const isPlain = isWhole && new Set(index.map((e) => e.key)).size === index.length;
  const own = index.findIndex((e) => e.key === deep.name);
  if (guard.length > 0 || !isPlain || own < 0) return undefined;
  const line = (constantValue(tensor.shape.at(-1)!) ?? 1) * dtypes[form.dtype].bits;
  const liesSo =
    own < index.length - 1 && dtypes[form.dtype].bits === 16 && line % copiedBits === 0;
  const before = index.flatMap((_, axis) => (axis === own && !liesSo ? [] : [axis]));
  const order = liesSo ? before : [...before, own];
  const shape = order.map((axis) => (axis === own ? constant(to) : tensor.shape[axis]!));
  const copy: RegionTensor = {
    ...tensor,
    ...{ name: `${name}.o${order.join("_")}.to${to}`, shape, role: "intermediate" },
  };
  return { tensor, index, order, copy };
}

function overCopies(
  region: Region,
  statement: Statement,
  at: { readonly reads: readonly PaddedRead[]; readonly deep: Loop; readonly to: number },
): TurnedProduct {
  const { reads, deep, to } = at;
  const made: Statement = {
    ...statement,
    loops: statement.loops.map((l) => (l.name === deep.name ? { ...l, extent: constant(to) } : l)),
    reads: reads.map(({ copy, order, index }) => ({
      ...{ tensor: copy.name, index: order.map((axis) => index[axis]!) },
      ...{ guard: [], fill: 0 },
    })),
  };
  const used = new Set([...made.finishReads, ...made.writes].map((a) => a.tensor));
  const kept = [...region.tensors].filter(([name]) => used.has(name));
  const tensors = new Map([...kept, ...reads.map(({ copy }) => [copy.name, copy] as const)]);
  const copies = new Map(
    reads.map((read) => {
      const origin = `lines of ${read.tensor.name}`;
      return [read.copy.name, copyRegion({ ...read, way: "pad", origin }, region)] as const;
    }),
  );
  return { product: { ...region, statements: [made], tensors }, copies: [...copies.values()] };
}
