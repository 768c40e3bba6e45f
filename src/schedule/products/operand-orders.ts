/**
 * Products whose operands a kernel of its own turns first: bytes, floats of 8 bits and f32 on matrix units have
 * to lie along the depth (PTX ISA, "wgmma.mma_async", "ldmatrix"), and what comes at run time cannot be stored
 * so from the start. In: regions in order, prices (injected). Out: the regions, before some of them copies of
 * their operands with the axes in the order of the loops, where both together cost less. Products that read
 * the same operand share its copy.
 */
import type {
  Access,
  NestTensor,
  Region,
  RegionTensor,
  Statement,
  TensorRole,
} from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { loopOrder } from "../../region/weight-order.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { tf32Products } from "../../target/allowing.ts";
import type { Target } from "../../target/target.ts";
import { copiedBits, copyRegion, type TurnedProduct } from "./operand-copies.ts";
import { paddedProduct } from "./padded-depths.ts";
import { type ProductForm, type ProductSide, productForm } from "./product-form.ts";

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function operandOrders(priceOf: (region: Region) => number, target: Target): LayOut {
  return (regions) => {
    const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
    const made = regions.flatMap((region) => {
      const fresh = (copies: readonly Region[]) =>
        copies.filter(({ statements: [s] }) => !tensors.has(s!.writes[0]!.tensor));
      const padded = paddedProduct(region);
      const others = [...turnedProducts(region, target), ...(padded ? [padded] : [])];
      const ways = others.map(({ product, copies }) => {
        const all = [...fresh(copies), product];
        return { all, price: all.reduce((sum, r) => sum + priceOf(r), 0) };
      });
      const best = ways.sort((a, b) => a.price - b.price)[0];
      if (!best || best.price >= priceOf(region)) return [region];
      for (const { statements, tensors: own } of best.all.slice(0, -1)) {
        const copy = own.get(statements[0]!.writes[0]!.tensor)!;
        tensors.set(copy.name, { ...copy, role: "intermediate" });
      }
      return best.all;
    });
    return { regions: made, tensors };
  };
}

/** The product with one or both of its operands turned, those whose order keeps matrix units from them. */
export function turnedProducts(region: Region, target: Target): readonly TurnedProduct[] {
  const [statement, ...others] = region.statements;
  if (!statement || others.length > 0) return [];
  const form = productForm(region, statement);
  if (typeof form === "string" || form.picks.length > 0) return [];
  // Threads multiply either order, in loops over neighbouring columns for less.
  if (form.dtype === "f32" && !target.capabilities.has(tf32Products)) {
    const read = nearColumns(form, region);
    return read ? [turnedProduct(region, statement, [read])] : [];
  }
  const across = [form.rows, form.columns].filter((side) => isAcross(side));
  const turned = across.flatMap(({ access }) => turnedRead(region, access) ?? []);
  const [first, second] = turned;
  if (!first) return [];
  return (second ? [[first], [second], [first, second]] : [[first]]).map((chosen) =>
    turnedProduct(region, statement, chosen),
  );
}

/** Whether an operand does not lie along the depth, and is not of 16 bits in rows that tensor copies bring. */
function isAcross({ line, shape, dtype }: ProductSide): boolean {
  const row = (constantValue(shape.at(-1)!) ?? 1) * dtypes[dtype].bits;
  return line.along === "space" && !(dtypes[dtype].bits === 16 && row % copiedBits === 0);
}

interface TurnedRead {
  readonly read: Access;
  readonly tensor: RegionTensor;
  readonly order: readonly number[];
}

function turnedRead(region: Region, read: Access): TurnedRead | undefined {
  const tensor = region.tensors.get(read.tensor)!;
  const order = tensor.role === "weight" ? undefined : loopOrder(read, region);
  return order && { read, tensor, order };
}

/** The operand of the columns with columns as neighbours, where the depth is; undefined where it has them, or is a weight. */
function nearColumns({ columns, depth }: ProductForm, region: Region): TurnedRead | undefined {
  const { access, line } = columns;
  const tensor = region.tensors.get(access.tensor)!;
  const names = access.index.map((e) => e.key);
  const [own, deep] = [columns.loops.at(-1), depth.loops.at(-1)].map((l) =>
    names.indexOf(l?.name ?? ""),
  );
  const isPlain = access.guard.length === 0 && new Set(names).size === names.length;
  if (line.along !== "depth" || tensor.role === "weight" || !isPlain) return undefined;
  if (own! < 0 || deep !== names.length - 1 || depth.loops.length > 1) return undefined;
  const { loops } = region.statements[0]!;
  const isWhole = names.every((name, axis) => {
    return loops.find((l) => l.name === name)?.extent.key === tensor.shape[axis]!.key;
  });
  if (!isWhole) return undefined;
  const order = names.flatMap((_, axis) => (axis === own ? [] : [axis]));
  return { read: access, tensor, order: [...order, own!] };
}

function turnedProduct(
  region: Region,
  statement: Statement,
  chosen: readonly TurnedRead[],
): TurnedProduct {
  const tensors = new Map(region.tensors);
  const reads = statement.reads.map((access) => {
    const found = chosen.find((c) => c.read === access);
    if (!found) return access;
    const copy = copyOf(found);
    tensors.set(copy.name, copy);
    return { ...access, tensor: copy.name, index: found.order.map((axis) => access.index[axis]!) };
  });
  const made = { ...statement, reads };
  const used = new Set([...reads, ...made.finishReads, ...made.writes].map((a) => a.tensor));
  const kept = new Map([...tensors].filter(([name]) => used.has(name)));
  const copies = new Map(
    chosen.map((c) => {
      const copy = copyOf(c);
      const origin = `order of ${c.tensor.name}`;
      return [copy.name, copyRegion({ ...c, copy, way: "turn", origin }, region)] as const;
    }),
  );
  return {
    product: { ...region, statements: [made], tensors: kept },
    copies: [...copies.values()],
  };
}

function copyOf({ tensor, order }: TurnedRead): RegionTensor {
  const shape = order.map((axis) => tensor.shape[axis]!);
  return { ...tensor, name: `${tensor.name}.o${order.join("_")}`, shape, role: "intermediate" };
}
