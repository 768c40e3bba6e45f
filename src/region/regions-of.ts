/**
 * The regions of a whole program: its nests grouped, laid out in memory as the caller says, the loops of
 * each group joined where they run on, and the program with the views that joining makes. In: nests. Out:
 * regions in execution order, and the nests that lower/ makes buffers from.
 */
import { isChain } from "./chains.ts";
import { coalesceRegion } from "./coalesce.ts";
import { analyseProgram, applyGroups, formRegion } from "./form-region.ts";
import { defaultGroupOptions, planGroups } from "./groups.ts";
import type { NestProgram, NestTensor, Region, TensorRole, View } from "./nest.ts";
import type { Fusion, RegionNote } from "./refusals.ts";
import { tensorsRead } from "./uses.ts";

export interface ProgramRegions {
  readonly regions: readonly Region[];
  /** The grouped program with every view. */
  readonly nests: NestProgram;
  /** The tensor whose storage a name stands for, through all views. */
  readonly rootOf: (tensor: string) => string;
  /** Why regions are not fewer. */
  readonly fusion: Fusion;
}

/** Regions over tensors that may be stored in another way than the program says. */
export interface LaidOutRegions {
  readonly regions: readonly Region[];
  /** Tensors that no region had before. */
  readonly tensors: ReadonlyMap<string, NestTensor & { readonly role: TensorRole }>;
  /** Names, of those tensors, for elements of others; views of views behind these. */
  readonly views?: readonly View[];
  /** Why there are regions of their own that prices decided about. */
  readonly notes?: readonly RegionNote[];
}

/** Decides how the tensors of a program's regions are stored. */
export type LayOut = (regions: readonly Region[], nests: NestProgram) => LaidOutRegions;

const asTheyAre: LayOut = (regions) => ({ regions, tensors: new Map() });

/** A region as a program by itself: what it reads comes in, what others would read of it goes out. */
export function programOf({ name, statements, symbols, tensors: all }: Region): NestProgram {
  const written = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
  const roleOf = (tensor: string, role: TensorRole | "local"): TensorRole => {
    if (role === "local") return "intermediate";
    if (written.has(tensor)) return "output";
    return role === "weight" ? role : "input";
  };
  const tensors = new Map([...all].map(([t, x]) => [t, { ...x, role: roleOf(t, x.role) }]));
  const named = (role: TensorRole): readonly string[] =>
    [...tensors].flatMap(([t, x]) => (x.role === role ? [t] : []));
  return {
    name,
    symbols,
    tensors,
    items: statements.map((statement) => ({ kind: "statement", statement })),
    inputs: named("input"),
    outputs: named("output"),
  };
}

/** By tensor, the regions that take it, by number: of those too that layouts have brought in. */
export function regionsThatRead(
  regions: readonly Region[],
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [at, { statements }] of regions.entries()) {
    for (const tensor of new Set(statements.flatMap((s) => [...tensorsRead(s)]))) {
      const known = found.get(tensor);
      if (known) known.push(at);
      else found.set(tensor, [at]);
    }
  }
  return found;
}

/** One after the other, those that are there. */
export function inTurn(...all: readonly (LayOut | undefined)[]): LayOut {
  return (regions, nests) =>
    all.reduce<LaidOutRegions>(
      (made, layOut) => {
        if (!layOut) return made;
        const next = layOut(made.regions, nests);
        return {
          ...next,
          tensors: new Map([...made.tensors, ...next.tensors]),
          views: [...(made.views ?? []), ...(next.views ?? [])],
          notes: [...(made.notes ?? []), ...(next.notes ?? [])],
        };
      },
      { regions, tensors: new Map(), notes: [] },
    );
}

export interface RegionForms {
  /** Default: as the program says. */
  readonly layOut?: LayOut;
  /**
   * Whether regions are for machines of blocks: folds see their tensors without axes of one element, floats of
   * 16 bits stay so in memory, products and maps take operands by number and from where they were, products leave
   * their results at one place (`keepsHalves`, `picksOperands`, `repeatsGathers`, `repeatsMoves`, `writesTogether`
   * of groups.ts).
   * Default: no.
   */
  readonly forBlocks?: boolean;
}

export function regionsOf(
  nests: NestProgram,
  { layOut = asTheyAre, forBlocks = false }: RegionForms = {},
): ProgramRegions {
  const analysed = analyseProgram(nests);
  const { groups, refusals } = planGroups(analysed, {
    ...defaultGroupOptions,
    keepsHalves: forBlocks,
    picksOperands: forBlocks,
    writesTogether: forBlocks,
    repeatsGathers: forBlocks,
    repeatsMoves: forBlocks,
  });
  const grouped = applyGroups(analysed, groups);
  const formed = groups.map((g) => formRegion(analysed, g));
  const laidOut = layOut(formed, grouped);
  const regions: Region[] = [];
  const made = new Map(laidOut.tensors);
  const views = [...new Map((laidOut.views ?? []).map((v) => [v.tensor, v])).values()];
  for (const region of laidOut.regions) {
    if (isChain(region)) {
      regions.push(region);
      continue;
    }
    const coalesced = coalesceRegion(region, forBlocks);
    views.push(...coalesced.views.filter((v) => !made.has(v.tensor)));
    for (const { tensor } of coalesced.views) {
      const { role, ...rest } = coalesced.region.tensors.get(tensor)!;
      // What is local to a region has a name in the program, and no bytes where nothing puts it there.
      made.set(tensor, { ...rest, role: role === "local" ? "intermediate" : role });
    }
    regions.push(coalesced.region);
  }
  return {
    regions,
    nests: withViews(grouped, views, made),
    rootOf: rootsOf(grouped, views),
    fusion: { refusals, notes: laidOut.notes ?? [] },
  };
}

function rootsOf(nests: NestProgram, views: readonly View[]): (tensor: string) => string {
  const of = new Map(views.map((v) => [v.tensor, v.of]));
  for (const item of nests.items) if (item.kind === "view") of.set(item.view.tensor, item.view.of);
  const root = (tensor: string): string => {
    const next = of.get(tensor);
    return next === undefined ? tensor : root(next);
  };
  return root;
}

function withViews(
  nests: NestProgram,
  views: readonly View[],
  tensors: ReadonlyMap<string, NestTensor & { readonly role: TensorRole }>,
): NestProgram {
  return {
    ...nests,
    tensors: new Map([...nests.tensors, ...tensors]),
    items: [...nests.items, ...views.map((view) => ({ kind: "view", view }) as const)],
  };
}
