/**
 * Which tensors share storage: reshapes are views of the same bytes, and a statement may write its
 * result over an operand that dies there when it reads that operand only at the element it writes.
 */
import type { NestProgram, Region, TensorRole } from "../region/nest.ts";
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
 * Operands that the region may overwrite with `output`: read by its only writer at exactly the element
 * written, in a statement that reads nothing else of them.
 */
export function inPlaceOperands(scheduled: ScheduledRegion, output: string): readonly string[] {
  const { statements } = scheduled.region;
  const writers = statements.filter((s) => s.writes.some((w) => w.tensor === output));
  const [writer] = writers;
  if (!writer || writers.length > 1 || statements.length > 1) return [];
  if (writer.writes.length > 1 || writer.indirects.length > 0) return [];
  if (writer.loops.some((l) => l.kind === "scan")) return [];
  const [write] = writer.writes;
  if (write!.combine !== "overwrite") return [];
  const target = write!.index.map((e) => e.key).join();
  const bodyReads = writer.reduction ? writer.reads : [];
  const lateReads = writer.reduction
    ? writer.finishReads
    : [...writer.reads, ...writer.finishReads];
  const same = lateReads.filter((r) => r.index.map((e) => e.key).join() === target);
  return same
    .map((r) => r.tensor)
    .filter((t) => lateReads.every((r) => r.tensor !== t || same.includes(r)))
    .filter((t) => bodyReads.every((r) => r.tensor !== t))
    .filter((t) => sameBytes(scheduled.region, t, output));
}

function sameBytes(region: Region, a: string, b: string): boolean {
  const [x, y] = [region.tensors.get(a), region.tensors.get(b)];
  if (!x || !y || x.dtype !== y.dtype || x.shape.length !== y.shape.length) return false;
  return x.shape.every((e, axis) => e.key === y.shape[axis]!.key);
}
