/**
 * Joins that grow: a network that reads all that it has made so far joins it anew for each layer (DenseNet), and
 * each join begins with a copy of the one before. Where a region does nothing but copy a tensor to the begin of a
 * larger one, both are one tensor: who wrote the smaller one writes the begin of the larger one, who reads it reads
 * there, and the copy is gone. In: regions in execution order, as layouts have left them. Out: those regions over
 * fewer tensors; every element is still written once, before it is read.
 */
import { constantValue } from "../semantics/index-expr.ts";
import type { Access, NestProgram, Region, RegionTensor, Statement, Write } from "./nest.ts";
import type { LaidOutRegions } from "./regions-of.ts";

/** A region that copies a tensor to the begin of another one. */
interface Copy {
  readonly region: Region;
  readonly from: string;
  readonly to: string;
}

export function growInPlace(regions: readonly Region[], nests: NestProgram): LaidOutRegions {
  const open = openTensors(nests);
  const copies = regions.flatMap((region) => {
    const copy = copyOf(region);
    return copy && !open.has(copy.from) && !open.has(copy.to) ? [copy] : [];
  });
  const taken = new Map<string, Copy>();
  const touched = regions.map((region) => new Set(region.tensors.keys()));
  const storageOf = (tensor: string): string => {
    const copy = taken.get(tensor);
    return copy ? storageOf(copy.to) : tensor;
  };
  for (const copy of copies) {
    if (taken.has(copy.from) || storageOf(copy.to) === copy.from) continue;
    if (updates(regions, copy.from) || updates(regions, copy.to)) continue;
    taken.set(copy.from, copy);
    const gone = new Set([...taken.values()].map((c) => c.region));
    const storage = storageOf(copy.to);
    const mayStay = regions.every((region, i) => {
      if (gone.has(region)) return true;
      const parts = [...touched[i]!].filter((t) => storageOf(t) === storage);
      return parts.length < 2;
    });
    if (!mayStay) taken.delete(copy.from);
  }
  if (taken.size === 0) return { regions, tensors: new Map() };
  const gone = new Set([...taken.values()].map((c) => c.region));
  const tensors = new Map<string, RegionTensor>(regions.flatMap((r) => [...r.tensors]));
  return {
    regions: regions.flatMap((r) => (gone.has(r) ? [] : [stored(r, storageOf, tensors)])),
    tensors: new Map(),
  };
}

/** Tensors that the caller has, that a routine touches, or that have another name. */
function openTensors({ inputs, outputs, items }: NestProgram): ReadonlySet<string> {
  const open = new Set([...inputs, ...outputs]);
  for (const item of items) {
    if (item.kind === "view") open.add(item.view.tensor).add(item.view.of);
    if (item.kind !== "routine") continue;
    for (const tensor of [...item.routine.reads, ...item.routine.writes]) open.add(tensor);
  }
  return open;
}

/** Whether a region changes what others have written of a tensor. */
function updates(regions: readonly Region[], tensor: string): boolean {
  return regions.some(({ statements }) =>
    statements.some((s) =>
      s.writes.some(
        (w) => w.tensor === tensor && (w.combine !== "overwrite" || s.indirects.length > 0),
      ),
    ),
  );
}

function copyOf(region: Region): Copy | undefined {
  const [statement, ...others] = region.statements;
  if (!statement || others.length > 0 || !isPlainCopy(statement)) return undefined;
  const [read, write] = [statement.reads[0]!, statement.writes[0]!];
  const [from, to] = [read, write].map(({ tensor }) => region.tensors.get(tensor)!) as [
    RegionTensor,
    RegionTensor,
  ];
  const isApart = [from, to].every((t) => t.role === "intermediate" && !t.stored);
  if (!isApart || from.dtype !== to.dtype || !isWholeOf(from, read, statement)) return undefined;
  if (!isAtTheBegin(read, write) || !growsAlongOne(from, to)) return undefined;
  return { region, from: read.tensor, to: write.tensor };
}

function isPlainCopy({
  guard,
  indirects,
  reads,
  body,
  reduction,
  finish,
  writes,
}: Statement): boolean {
  const [value] = body;
  return (
    !reduction &&
    !finish &&
    guard.length + indirects.length === 0 &&
    reads.length === 1 &&
    reads[0]!.guard.length === 0 &&
    writes.length === 1 &&
    writes[0]!.combine === "overwrite" &&
    value?.kind === "argument"
  );
}

/** Each axis has a loop of its own, which goes along all of it. */
function isWholeOf({ shape }: RegionTensor, { index }: Access, { loops }: Statement): boolean {
  const extents = new Map(loops.map((l) => [l.name, l.extent.key]));
  const names = index.map((e, axis) => {
    const extent = shape[axis]!;
    if (constantValue(extent) === 1 && e.key === "0") return undefined;
    return extents.get(e.key) === extent.key ? e.key : "";
  });
  const own = names.filter((name) => name !== undefined);
  return own.every((name) => name !== "") && new Set(own).size === own.length;
}

function isAtTheBegin(read: Access, write: Write): boolean {
  return (
    read.index.length === write.index.length &&
    read.index.every((e, axis) => e.key === write.index[axis]!.key)
  );
}

function growsAlongOne(from: RegionTensor, to: RegionTensor): boolean {
  const other = from.shape.filter((extent, axis) => extent.key !== to.shape[axis]!.key);
  return other.length === 1;
}

function stored(
  region: Region,
  storageOf: (tensor: string) => string,
  tensors: ReadonlyMap<string, RegionTensor>,
): Region {
  if ([...region.tensors.keys()].every((t) => storageOf(t) === t)) return region;
  const moved = <T extends { readonly tensor: string }>(access: T): T => ({
    ...access,
    tensor: storageOf(access.tensor),
  });
  return {
    ...region,
    statements: region.statements.map((s) => ({
      ...s,
      reads: s.reads.map(moved),
      finishReads: s.finishReads.map(moved),
      indirects: s.indirects.map((i) => ({ ...i, access: moved(i.access) })),
      writes: s.writes.map(moved),
    })),
    tensors: new Map(
      [...region.tensors].map(([name, tensor]) => {
        const storage = storageOf(name);
        return [
          storage,
          storage === name ? tensor : { ...tensors.get(storage)!, role: tensor.role },
        ];
      }),
    ),
  };
}
