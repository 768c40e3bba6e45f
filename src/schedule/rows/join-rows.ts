/**
 * Statistics of rows and the passes over the same rows, each a region of its own, as one region: what is
 * between them need not go to memory. In: regions in order, prices (injected). Out: the regions, some
 * joined, where one kernel over rows (rows-form.ts) costs less than the kernels apart. What only the members
 * read becomes local.
 */
import { coalesceRegion } from "../../region/coalesce.ts";
import { type AnalysedProgram, analyseProgram } from "../../region/form-region.ts";
import type { Region, Statement } from "../../region/nest.ts";
import { type LayOut, regionsThatRead } from "../../region/regions-of.ts";
import { rowsForm } from "./rows-form.ts";

/** Statements of one kernel, at most, beside folds behind the first few: of a selection by digits a bit is a fold. */
const mostStatements = 8;
const mostFolds = 40;

/**
 * @param priceOf nanoseconds of a region by its cheapest schedule
 * @param splits lays out what may become of a region that stays by itself
 */
export function joinRows(priceOf: (region: Region) => number, splits: LayOut): LayOut {
  return (regions, nests) => {
    const alone = (region: Region): number =>
      splits([region], nests).regions.reduce((ns, r) => ns + priceOf(r), 0);
    const analysed = analyseProgram(nests);
    const readers = regionsThatRead(regions);
    const taken = new Set<number>();
    const joinedAt = new Map<number, Region>();
    for (const first of regions.keys()) {
      if (taken.has(first)) continue;
      const members = chainFrom(first, regions, { analysed, readers, taken });
      if (members.length < 2) continue;
      const joined = join(members, regions, { analysed, readers });
      const apart = members.reduce((sum, at) => sum + alone(regions[at]!), 0);
      if (priceOf(joined) >= apart) continue;
      for (const at of members) taken.add(at);
      joinedAt.set(members.at(-1)!, joined);
    }
    const laidOut = regions.flatMap((region, at) => {
      return joinedAt.get(at) ?? (taken.has(at) ? [] : region);
    });
    return { regions: laidOut, tensors: new Map() };
  };
}

function tensorsRead({ reads, finishReads, indirects }: Region["statements"][number]) {
  return [...reads, ...finishReads, ...indirects.map((v) => v.access)].map((a) => a.tensor);
}

interface Program {
  readonly analysed: AnalysedProgram;
  /** Regions that read a tensor, by number. */
  readonly readers: ReadonlyMap<string, readonly number[]>;
}

interface Search extends Program {
  readonly taken: ReadonlySet<number>;
}

/** Members by their numbers: each reads what one before it makes, and nothing between needs them earlier. */
function chainFrom(
  first: number,
  regions: readonly Region[],
  { analysed, readers, taken }: Search,
): readonly number[] {
  const one = regions[first]!;
  if (one.statements.length !== 1) return [];
  const made = new Set(one.statements[0]!.writes.map((w) => w.tensor));
  const folded = ({ reduction, loops }: Statement): number =>
    reduction || loops.some((l) => l.kind === "scan") ? 1 : 0;
  let [members, folds] = [[first], folded(one.statements[0]!)];
  const hasRoom = (): boolean =>
    members.length < mostStatements ||
    (members.length - folds < mostStatements / 2 && folds < mostFolds);
  for (let at = first + 1; at < regions.length && hasRoom(); at++) {
    const next = regions[at]!;
    const reads = next.statements.flatMap(tensorsRead);
    const follows = reads.some((t) => made.has(t));
    const [statement, ...others] = next.statements;
    if (!follows) continue;
    if (readsView(reads, made, analysed)) break;
    if (!statement || others.length > 0 || taken.has(at)) break;
    const longer = [...members, at];
    const isForm =
      typeof rowsForm(coalesceRegion(join(longer, regions, { analysed, readers })).region) !==
      "string";
    if (!isForm || isOvertaken(longer, regions, analysed)) break;
    members = longer;
    folds += folded(statement);
    for (const w of statement.writes) made.add(w.tensor);
  }
  return folds > 0 ? members : [];
}

/** Whether something made is read under another name, at places of rows that may not be done yet. */
function readsView(
  reads: readonly string[],
  made: ReadonlySet<string>,
  { uses: { roots } }: AnalysedProgram,
): boolean {
  const rootOf = (tensor: string): string => roots.get(tensor) ?? tensor;
  const stored = new Set([...made].map(rootOf));
  return reads.some((t) => !made.has(t) && stored.has(rootOf(t)));
}

/** Items of the program that the members are; undefined where one is none. */
function itemsOf(
  members: readonly number[],
  regions: readonly Region[],
  { uses }: AnalysedProgram,
): ReadonlySet<number> | undefined {
  const items = members.map((at) => uses.statementAt.get(regions[at]!.statements[0]!.name));
  // A conversion between layouts is a region of its own, and nothing of the program.
  return items.includes(undefined) ? undefined : new Set(items as readonly number[]);
}

/** Whether something between the members would come too early, or they too late. */
function isOvertaken(
  members: readonly number[],
  regions: readonly Region[],
  analysed: AnalysedProgram,
): boolean {
  const items = itemsOf(members, regions, analysed);
  return !items || analysed.order.overtaken(items, [], Math.max(...items)) !== undefined;
}

function join(
  members: readonly number[],
  regions: readonly Region[],
  { analysed, readers }: Program,
): Region {
  const { uses } = analysed;
  const items = itemsOf(members, regions, analysed);
  const parts = members.map((at) => regions[at]!);
  const last = parts.at(-1)!;
  const statements = parts.flatMap((r) => r.statements);
  const written = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
  const isLocal = (tensor: string): boolean => {
    const inside =
      (uses.readers.get(tensor) ?? []).every((at) => items?.has(at) ?? false) &&
      (readers.get(tensor) ?? []).every((at) => members.includes(at));
    return written.has(tensor) && inside && !uses.aliased.has(tensor);
  };
  const tensors: Region["tensors"] = new Map(
    parts
      .flatMap((r) => [...r.tensors])
      .map(([name, tensor]) => {
        const mayBe = tensor.role === "intermediate" && isLocal(name);
        return [name, mayBe ? { ...tensor, role: "local" as const } : tensor];
      }),
  );
  const inlined = [...new Set(parts.flatMap((r) => r.group.inlined))];
  const anchor = last.group.anchor;
  const before = parts
    .slice(0, -1)
    .flatMap((r) => [...r.group.inlined, r.group.anchor, ...r.group.epilogue]);
  return {
    ...last,
    group: { ...last.group, anchor, inlined: [...new Set([...before, ...inlined])] },
    statements,
    tensors,
    overRows: true,
  };
}
