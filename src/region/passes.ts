/**
 * Passes over memory: regions that read and write tensors and fold nothing, each with the reasons why nobody
 * else computes it. In: the regions of a program as they were chosen, what was refused on the way to them. The
 * reasons are those that were given there; a neighbour that nobody asked about is named as such.
 */
import { constantValue, type IndexExpr, variablesOf } from "../semantics/index-expr.ts";
import type { Access, NestProgram, Region, Statement } from "./nest.ts";
import type { ApartKind, ApartPrices, Fusion, Refusal, RegionNote } from "./refusals.ts";
import { tensorsRead, updatesInPlace } from "./uses.ts";

export type PassKind =
  | "elementwise"
  | "conversion"
  | "copy"
  | "transpose"
  | "pad"
  | "gather"
  | "fill"
  | "pack"
  | "unpack"
  | "turn";

export interface PassReason {
  /** Whom it might have been computed with; absent: its own neighbours, as a whole. */
  readonly side?: "producer" | "consumer";
  /** What passes between them. */
  readonly tensor?: string;
  /** Those regions on the other side that this is the reason of; absent for the caller. */
  readonly regions?: readonly string[];
  readonly kind: ApartKind | "apart";
  readonly reason: string;
  readonly prices?: ApartPrices;
}

export interface MemoryPass {
  readonly region: string;
  readonly kind: PassKind;
  readonly why: readonly PassReason[];
}

export interface PassesOf {
  readonly nests: Pick<NestProgram, "inputs" | "outputs">;
  readonly rootOf: (tensor: string) => string;
  readonly fusion: Fusion;
}

/** Of the regions of one graph, in their order. */
export function memoryPasses(
  regions: readonly Region[],
  { nests, rootOf, fusion }: PassesOf,
): readonly MemoryPass[] {
  const teller = new Teller(regions, { nests, rootOf, fusion });
  return regions.filter(isPass).map((region) => teller.passOf(region));
}

/** Whether a region only maps what it reads: a fold, a scan or an update does more. */
function isPass({ statements }: Region): boolean {
  return statements.every(
    (s) =>
      !s.reduction &&
      s.loops.every((l) => l.kind === "space") &&
      s.writes.every((w) => w.combine === "overwrite") &&
      !updatesInPlace(s),
  );
}

type Uses = "reads" | "writes";

function tensorsOf(region: Region, which: Uses): readonly string[] {
  const of = (s: Statement): Iterable<string> =>
    which === "reads" ? tensorsRead(s) : s.writes.map((w) => w.tensor);
  const names = new Set(region.statements.flatMap((s) => [...of(s)]));
  return [...names].filter((t) => region.tensors.get(t)!.role !== "local");
}

class Teller {
  readonly #rootOf: PassesOf["rootOf"];
  readonly #reasons: Reasons;
  readonly #notes: ReadonlyMap<string, readonly RegionNote[]>;
  /** By the storage of a tensor. */
  readonly #writers: ReadonlyMap<string, readonly Region[]>;
  readonly #readers: ReadonlyMap<string, readonly Region[]>;
  readonly #inputs: ReadonlySet<string>;
  readonly #outputs: ReadonlySet<string>;

  constructor(regions: readonly Region[], { nests, rootOf, fusion }: PassesOf) {
    this.#rootOf = rootOf;
    this.#reasons = new Reasons(fusion);
    const notes = new Map<string, RegionNote[]>();
    for (const note of fusion.notes)
      notes.set(note.region, [...(notes.get(note.region) ?? []), note]);
    this.#notes = notes;
    this.#writers = byStorage(regions, "writes", rootOf);
    this.#readers = byStorage(regions, "reads", rootOf);
    this.#inputs = new Set(nests.inputs.map(rootOf));
    this.#outputs = new Set(nests.outputs.map(rootOf));
  }

  passOf(region: Region): MemoryPass {
    const notes = this.#notes.get(region.name) ?? [];
    const own = notes.map(
      ({ kind, reason, prices }): PassReason => ({ kind, reason, ...(prices && { prices }) }),
    );
    const brought = notes.find((n) => n.brought)?.brought;
    // A conversion is there because of its neighbours, which its own note says.
    const isAsked = brought === undefined;
    const before = this.#storages(region, "reads").flatMap((t) => this.#behind(region, t, isAsked));
    const after = this.#storages(region, "writes").flatMap((t) => this.#before(region, t, isAsked));
    return {
      region: region.name,
      kind: brought ?? kindOf(region),
      why: [...own, ...before, ...after],
    };
  }

  #storages(region: Region, which: Uses): readonly string[] {
    return [...new Set(tensorsOf(region, which).map(this.#rootOf))];
  }

  #behind(region: Region, tensor: string, isAsked: boolean): readonly PassReason[] {
    const side = { side: "producer", tensor } as const;
    if (this.#inputs.has(tensor)) {
      return [{ ...side, kind: "input", reason: `${tensor} is an input` }];
    }
    if (!isAsked) return [];
    const all = this.#writers.get(tensor) ?? [];
    const isMade = [...region.tensors.values()].some(
      (t) => t.role === "intermediate" && this.#rootOf(t.name) === tensor,
    );
    if (all.length === 0 && isMade) {
      return [{ ...side, kind: "illegal", reason: `${tensor} is made by what is no nest` }];
    }
    const given = (other: Region): Given => this.#reasons.behind(other, region);
    return byReason(
      all.filter((other) => other !== region),
      given,
    ).map((reason) => ({ ...side, ...reason }));
  }

  #before(region: Region, tensor: string, isAsked: boolean): readonly PassReason[] {
    const side = { side: "consumer", tensor } as const;
    const told: PassReason[] = this.#outputs.has(tensor)
      ? [{ ...side, kind: "output", reason: `${tensor} is an output` }]
      : [];
    if (!isAsked) return told;
    const all = this.#readers.get(tensor) ?? [];
    const others = all.filter((other) => other !== region);
    const refused = all.length === 0 && told.length === 0 && this.#reasons.ofAll(region);
    if (refused) return [{ ...side, ...refused }];
    const given = (other: Region): Given => this.#reasons.before(region, other);
    return [...told, ...byReason(others, given).map((reason) => ({ ...side, ...reason }))];
  }
}

/** Each reason once, with the regions that it is of. */
function byReason(
  others: readonly Region[],
  given: (other: Region) => Given,
): readonly (Given & { readonly regions: readonly string[] })[] {
  const found = new Map<string, Given & { readonly regions: string[] }>();
  for (const other of others) {
    const reason = given(other);
    const key = `${reason.kind} ${reason.reason}`;
    const known = found.get(key);
    if (known) known.regions.push(other.name);
    else found.set(key, { regions: [other.name], ...reason });
  }
  return [...found.values()];
}

function byStorage(
  regions: readonly Region[],
  which: Uses,
  rootOf: PassesOf["rootOf"],
): ReadonlyMap<string, readonly Region[]> {
  const found = new Map<string, Region[]>();
  for (const region of regions) {
    for (const root of new Set(tensorsOf(region, which).map(rootOf))) {
      const known = found.get(root);
      if (known) known.push(region);
      else found.set(root, [region]);
    }
  }
  return found;
}

type Given = Pick<PassReason, "kind" | "reason">;

/** Refusals by those whom they are about; groups that became one region are all of them. */
class Reasons {
  readonly #refusals = new Map<string, Refusal>();
  readonly #brought: ReadonlyMap<string, RegionNote>;

  constructor({ refusals, notes }: Fusion) {
    for (const r of refusals) this.#refusals.set(`${r.as} ${r.statement} ${r.into ?? ""}`, r);
    this.#brought = new Map(notes.flatMap((n) => (n.brought ? [[n.region, n] as const] : [])));
  }

  /** Why `consumer`, a pass, does not run behind what it reads, or take it over. */
  behind(producer: Region, consumer: Region): Given {
    return (
      this.#conversion(producer) ??
      this.#find("epilogue", consumer, producer) ??
      this.#find("producer", producer, consumer) ??
      untold(producer)
    );
  }

  /** Why `producer`, a pass, is not computed by who reads it, or them by it. */
  before(producer: Region, consumer: Region): Given {
    return (
      this.#conversion(consumer) ??
      this.#find("producer", producer, consumer) ??
      this.#find("epilogue", consumer, producer) ??
      untold(consumer)
    );
  }

  /** Why nobody at all reads it from where it is computed. */
  ofAll(producer: Region): Given | undefined {
    for (const name of membersOf(producer)) {
      const found = this.#refusals.get(`producer ${name} `);
      if (found) return { kind: found.kind, reason: found.reason };
    }
    return undefined;
  }

  /** A neighbour that stands there because of a decision of its own. */
  #conversion({ name }: Region): Given | undefined {
    const note = this.#brought.get(name);
    return note && { kind: note.kind, reason: `${name} stands between: ${note.reason}` };
  }

  #find(as: Refusal["as"], statement: Region, into: Region): Given | undefined {
    for (const name of membersOf(statement)) {
      for (const other of ["", ...membersOf(into)]) {
        const found = this.#refusals.get(`${as} ${name} ${other}`);
        if (found) return { kind: found.kind, reason: found.reason };
      }
    }
    return undefined;
  }
}

function untold({ name }: Region): Given {
  return { kind: "apart", reason: `${name} was formed by itself` };
}

function membersOf({ group }: Region): readonly string[] {
  return [...new Set([group.name, group.anchor, ...group.epilogue, ...group.inlined])];
}

function kindOf({ statements }: Region): PassKind {
  const kinds = new Set(statements.map(kindOfStatement));
  const [only, ...others] = kinds;
  return others.length === 0 ? only! : "elementwise";
}

function kindOfStatement({ body, reads, indirects, writes, finish }: Statement): PassKind {
  if (indirects.length > 0) return "gather";
  if (reads.length === 0) return "fill";
  const results = finish ?? body;
  const isConversion = results.every(
    (e) => e.kind === "argument" || (e.kind === "cast" && e.operand.kind === "argument"),
  );
  if (!isConversion) return "elementwise";
  if (results.some((e) => e.kind === "cast")) return "conversion";
  if (reads.some((r) => r.guard.length > 0)) return "pad";
  const isInOrder = reads.every((r) => writes.some((w) => runsAlike(r, w.index)));
  return isInOrder ? "copy" : "transpose";
}

/** Whether loops stand on the axes of both in one order. */
function runsAlike({ index }: Access, other: readonly IndexExpr[]): boolean {
  const order = (axes: readonly IndexExpr[]): readonly string[] => [
    ...new Set(axes.flatMap((e) => (constantValue(e) === undefined ? [...variablesOf(e)] : []))),
  ];
  const [a, b] = [order(index), order(other)];
  const common = new Set(a.filter((v) => b.includes(v)));
  const kept = (all: readonly string[]): string => all.filter((v) => common.has(v)).join();
  return kept(a) === kept(b);
}
