/**
 * Which tensors share storage: reshapes are views of the same bytes, and a statement may write its
 * result over an operand that dies there when each of its elements is read only by the instance that
 * writes over it, which affine/ decides.
 */
import * as affine from "../affine/index.ts";
import { type BridgedRegion, bridgeRegion } from "../region/affine-bridge.ts";
import type { NestProgram, Region, Statement, TensorRole } from "../region/nest.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";

/** Tensor name -> the tensor whose bytes it is. */
export type Aliases = ReadonlyMap<string, string>;

export interface ViewPlan {
  readonly root: Aliases;
  /** Views that must be copied: both ends own storage (an input given back as an output). */
  readonly copies: readonly { readonly from: string; readonly to: string }[];
}

const ownsStorage: Readonly<Record<TensorRole, boolean>> = {
  input: true,
  weight: true,
  output: true,
  intermediate: false,
};

/** Joins views to one root each; a root that must have storage of its own wins. */
export function planViews(nests: NestProgram): ViewPlan {
  const root = new Map<string, string>();
  const find = (name: string): string => {
    let at = name;
    for (let next = root.get(at); next !== undefined; next = root.get(at)) at = next;
    return at;
  };
  const copies: { from: string; to: string }[] = [];
  for (const item of nests.items) {
    if (item.kind !== "view") continue;
    const { of, tensor } = item.view;
    const source = find(of);
    const fixed = (name: string): boolean => ownsStorage[nests.tensors.get(name)!.role];
    if (!fixed(tensor)) root.set(tensor, source);
    else if (!fixed(source)) root.set(source, tensor);
    else copies.push({ from: of, to: tensor });
  }
  const flat = new Map([...root.keys()].map((name) => [name, find(name)]));
  return { root: flat, copies };
}

/**
 * Operands that the region may overwrite with `output`: those of which no instance of the only writer
 * reads an element that another instance writes, in whatever order they run. A body inside a reduction
 * runs many times before its result is written, what finishes a result once. Scans read their own
 * output, and what goes through an index or combines may touch an element twice: never in place. Nor is an
 * operand that the statement also reads in another shape: elements of views (of one `owner`) are not compared.
 */
export function inPlaceOperands(
  scheduled: ScheduledRegion,
  output: string,
  owner: (tensor: string) => string = (tensor) => tensor,
): readonly string[] {
  const { region, products } = scheduled;
  // Cooperative kernels are proved where they read no memory that they write (validate/split-proof.ts).
  if (products.length > 0) return [];
  const [writer, ...others] = region.statements;
  if (!writer || others.length > 0 || writer.writes.length !== 1) return [];
  if (writer.indirects.length > 0 || writer.loops.some((l) => l.kind === "scan")) return [];
  const [write] = writer.writes;
  if (write!.tensor !== output || write!.combine !== "overwrite") return [];
  const operands = [...new Set([...writer.finishReads, ...writer.reads].map((r) => r.tensor))];
  const isOwn = (t: string): boolean => operands.every((o) => o === t || owner(o) !== owner(t));
  const candidates = operands.filter((t) => sameBytes(region, t, output) && isOwn(t));
  if (candidates.length === 0) return [];
  const bridged = bridgeRegion(region);
  return candidates.filter((t) => isReadWhereWritten(writer, bridged, t));
}

function isReadWhereWritten(
  { name, loops, reads, finishReads }: Statement,
  { statements, context }: BridgedRegion,
  tensor: string,
): boolean {
  const { domain, reads: maps, writes } = statements.get(name)!;
  const results = loops.flatMap((l, at) => (l.kind === "reduce" ? [] : [at]));
  return [...reads, ...finishReads].every((access, at) => {
    if (access.tensor !== tensor) return true;
    const element = affine.renameTuple(maps[at]!, "element");
    const written = affine.renameTuple(writes[0]!, "element");
    const meeting = affine.compose(element, affine.inverse(written));
    const within = affine.intersectRange(affine.intersectDomain(meeting, domain), domain);
    const pairs = affine.intersectParams(within, context);
    const compared = at < reads.length ? loops.map((_, i) => i) : results;
    return compared.every((dim) => differsNowhere(pairs, loops, dim));
  });
}

/** Whether the two instances of every pair have the same value of a loop. */
function differsNowhere(pairs: affine.IntegerMap, loops: Statement["loops"], dim: number): boolean {
  const [from, to] = [loops.map((_, i) => `r${i}`), loops.map((_, i) => `w${i}`)];
  const tuple = pairs.pieces[0]?.output.name ?? "";
  const orders = [affine.below(from[dim]!, to[dim]!), affine.below(to[dim]!, from[dim]!)];
  return orders.every((order) => {
    const parts = { from: { tuple, dims: from }, to: { tuple, dims: to }, where: [order] };
    return affine.isEmpty(affine.intersect(pairs, affine.makeRelation(parts))) === "yes";
  });
}

function sameBytes(region: Region, a: string, b: string): boolean {
  const [x, y] = [region.tensors.get(a), region.tensors.get(b)];
  if (!x || !y || x.dtype !== y.dtype || x.shape.length !== y.shape.length) return false;
  return x.shape.every((e, axis) => e.key === y.shape[axis]!.key);
}
