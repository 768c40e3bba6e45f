/**
 * Regions that may be computed together piece by piece: a softmax takes a maximum, an exponential, a sum and
 * a quotient of each row, attention two products around them. Where all of them run over the same outer
 * loops, what one makes and the next reads need never exist as a whole. In: regions of one statement each,
 * in execution order. Out: which of them hang together, and the region of several statements that such a
 * chain is, its common loops first in every statement. Whether that is worth it is schedule/'s question,
 * whether it is legal affine/'s.
 */
import { constantValue, type IndexExpr, variablesOf } from "../semantics/index-expr.ts";
import { dropUnitLoops } from "./coalesce.ts";
import { loopOf } from "./compose-epilogue.ts";
import { isContraction } from "./groups.ts";
import { ItemOrder } from "./item-order.ts";
import type { Access, Loop, NestItem, NestProgram, Region, Statement, Write } from "./nest.ts";
import { findUses, firstBehind, tensorsRead, type Uses, updatesInPlace } from "./uses.ts";

/** Members of a chain, at most: an attention block has six. */
const longestChain = 8;

/** A region of several statements with the loops that all of them share. */
export type ChainRegion = Region & { readonly sharedLoops: number };

export function isChain(region: Region): region is ChainRegion {
  return region.sharedLoops !== undefined;
}

/** Finds chains among the regions of one program. */
export class ChainFinder {
  readonly #regions: readonly Region[];
  readonly #order: ItemOrder;
  readonly #uses: Uses;
  /** Items before the first region's statement. */
  readonly #first: number;
  /** Tensors that have another name, that a routine touches, or that the caller has. */
  readonly #open: ReadonlySet<string>;
  /** Regions that may be part of a chain. */
  readonly #members: ReadonlySet<number>;
  /** By tensor, the regions that read it under that name, in order. */
  readonly #readers: ReadonlyMap<string, readonly number[]>;

  constructor(regions: readonly Region[], nests: NestProgram) {
    this.#regions = regions;
    this.#members = new Set([...regions.keys()].filter((at) => isMember(regions[at]!)));
    this.#readers = readersByTensor(regions);
    const open = new Set([...nests.inputs, ...nests.outputs]);
    const views: NestItem[] = [];
    for (const item of nests.items) {
      if (item.kind === "view") {
        views.push(item);
        open.add(item.view.tensor).add(item.view.of);
      } else if (item.kind === "routine") {
        for (const t of [...item.routine.reads, ...item.routine.writes]) open.add(t);
      }
    }
    const statements = regions.map(
      ({ statements: [statement] }): NestItem => ({ kind: "statement", statement: statement! }),
    );
    const tensors = new Map(nests.tensors);
    for (const region of regions) {
      for (const [name, tensor] of region.tensors) {
        if (tensor.role !== "local") tensors.set(name, { ...tensor, role: tensor.role });
      }
    }
    const program = { ...nests, tensors, items: [...views, ...statements] };
    this.#first = views.length;
    this.#uses = findUses(program);
    this.#order = new ItemOrder(program, this.#uses);
    for (const root of this.#uses.aliased) open.add(root);
    this.#open = open;
  }

  /** The longest chains, as positions of regions; no region is in two. */
  longest(): readonly (readonly number[])[] {
    const taken = new Set<number>();
    const found: (readonly number[])[] = [];
    for (const at of this.#regions.keys()) {
      if (taken.has(at) || !this.#members.has(at)) continue;
      const chain = this.#grow(at, taken);
      if (chain.length < 2) continue;
      found.push(chain);
      for (const member of chain) taken.add(member);
    }
    return found;
  }

  /** Regions as one, if they hang together; they run where the last of them stands. */
  join(members: readonly number[]): ChainRegion | undefined {
    const regions = members.map((at) => this.#regions[at]!);
    if (!this.#hangTogether(members) || this.#isCrossed(members)) return undefined;
    const sources = regions.map((r) => dropUnitLoops(r.statements[0]!));
    const statements = withSharedLoops(sources);
    if (!statements?.list.some((s) => s.reduction)) return undefined;
    const inner = new Set(members);
    const last = regions.at(-1)!;
    const tensors = new Map<
      string,
      Region["tensors"] extends ReadonlyMap<string, infer T> ? T : never
    >();
    for (const region of regions) {
      for (const [name, tensor] of region.tensors) {
        const isLocal = this.livesIn(name, inner);
        tensors.set(name, isLocal ? { ...tensor, role: "local" } : tensor);
      }
    }
    const group = {
      ...last.group,
      inlined: regions
        .slice(0, -1)
        .flatMap((r) => [...r.group.inlined, r.group.anchor, ...r.group.epilogue]),
    };
    if (![...tensors.values()].some((t) => t.role === "local")) return undefined;
    return { ...last, group, statements: statements.list, tensors, sharedLoops: statements.shared };
  }

  #grow(first: number, taken: ReadonlySet<number>): readonly number[] {
    let chain = [first];
    let at = this.#nextReader(chain, first);
    for (; at !== undefined && chain.length < longestChain; at = this.#nextReader(chain, at)) {
      if (taken.has(at) || !this.#members.has(at)) continue;
      const longer = [...chain, at];
      if (this.#joins(longer)) chain = longer;
    }
    return chain;
  }

  /** The first region behind `after` that reads, under its own name, what the chain makes. */
  #nextReader(chain: readonly number[], after: number): number | undefined {
    let next: number | undefined;
    for (const member of chain) {
      for (const { tensor } of this.#regions[member]!.statements[0]!.writes) {
        const found = firstBehind(this.#readers.get(tensor) ?? [], after);
        if (found !== undefined && (next === undefined || found < next)) next = found;
      }
    }
    return next;
  }

  #joins(members: readonly number[]): boolean {
    if (!this.#hangTogether(members) || this.#isCrossed(members)) return false;
    const sources = members.map((at) => dropUnitLoops(this.#regions[at]!.statements[0]!));
    return withSharedLoops(sources) !== undefined;
  }

  /** Every member but the first reads, under its own name, what one before it makes. */
  #hangTogether(members: readonly number[]): boolean {
    const made = new Set<string>();
    return members.every((at, i) => {
      const [statement] = this.#regions[at]!.statements;
      const read = [...tensorsRead(statement!)];
      const hangs = i === 0 || read.some((t) => made.has(t));
      const aliased = read.some((t) => !made.has(t) && made.has(this.#uses.roots.get(t) ?? t));
      for (const { tensor } of statement!.writes) made.add(tensor);
      return hangs && !aliased;
    });
  }

  /** Whether a region in between depends on a member, which would run behind it. */
  #isCrossed(members: readonly number[]): boolean {
    const items = members.map((at) => this.#first + at);
    return this.#order.overtaken(new Set(items), [], items.at(-1)!) !== undefined;
  }

  /** Nobody but the members meets the tensor, and one of them alone writes it. */
  livesIn(tensor: string, members: ReadonlySet<number>): boolean {
    const writers = this.#uses.writers.get(tensor) ?? [];
    const users = [...writers, ...(this.#uses.readers.get(tensor) ?? [])];
    if (this.#open.has(tensor) || writers.length !== 1) return false;
    const writer = this.#regions[writers[0]! - this.#first];
    const isIntermediate = writer?.tensors.get(tensor)?.role === "intermediate";
    return isIntermediate && users.every((u) => members.has(u - this.#first));
  }
}

function readersByTensor(regions: readonly Region[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [at, { statements }] of regions.entries()) {
    for (const tensor of tensorsRead(statements[0]!)) {
      const known = found.get(tensor);
      if (known) known.push(at);
      else found.set(tensor, [at]);
    }
  }
  return found;
}

/** One plain statement whose results are elements of their own. */
function isMember({ statements }: Region): boolean {
  const [statement, ...others] = statements;
  if (!statement || others.length > 0 || statement.indirects.length > 0) return false;
  if (statement.loops.some((l) => l.kind === "scan") || updatesInPlace(statement)) return false;
  return true;
}

/**
 * The statements with the loops that stand for the same axis of what they hand on first, in one order;
 * undefined where they share none, or where one reads what belongs to another iteration of these loops.
 */
function withSharedLoops(
  statements: readonly Statement[],
): { readonly list: readonly Statement[]; readonly shared: number } | undefined {
  const classes = new LoopClasses(statements);
  const shared = classes.shared();
  const extent = shared.reduce((n, l) => n * (constantValue(l.extent) ?? Infinity), 1);
  if (shared.length === 0 || extent < 2) return undefined;
  const names = shared.map((loop) => classes.namesIn(loop));
  const isOwn = (at: number): boolean => classes.staysInside(at, names);
  if (
    !statements.every(
      (s, at) =>
        isOwn(at) &&
        productsMove(
          s,
          names.map((n) => n[at]!),
        ),
    )
  ) {
    return undefined;
  }
  const list = statements.map((s, at) => {
    const first = names.map((n) => s.loops.find((l) => l.name === n[at])!);
    return { ...s, loops: [...first, ...s.loops.filter((l) => !first.includes(l))] };
  });
  return { list, shared: shared.length };
}

/** An operand of a product that no shared loop moves would be read anew for each piece. */
function productsMove(statement: Statement, shared: readonly string[]): boolean {
  if (!isContraction(statement)) return true;
  return statement.reads.every(({ index }) => {
    const used = variablesOf(...index);
    return shared.some((name) => used.has(name));
  });
}

interface LoopOf {
  readonly statement: number;
  readonly loop: Loop;
}

/** Which loops of the statements stand for the same axis of a tensor that they hand on. */
class LoopClasses {
  readonly #statements: readonly Statement[];
  readonly #parent = new Map<string, string>();
  readonly #writes = new Map<string, { readonly at: number; readonly write: Write }>();

  constructor(statements: readonly Statement[]) {
    this.#statements = statements;
    for (const [at, s] of statements.entries()) {
      for (const access of accessesOf(s)) this.#unify(at, access);
      for (const write of s.writes) this.#writes.set(write.tensor, { at, write });
    }
  }

  /** Loops of the last statement that every statement has exactly one of, over results. */
  shared(): readonly Loop[] {
    const last = this.#statements.length - 1;
    return this.#statements[last]!.loops.filter((loop) => {
      const of = this.#members({ statement: last, loop });
      const extent = loop.extent.key;
      return this.#statements.every((_, at) => {
        const own = of.filter((m) => m.statement === at);
        return (
          own.length === 1 && own[0]!.loop.kind === "space" && own[0]!.loop.extent.key === extent
        );
      });
    });
  }

  /** What a shared loop is called in each statement. */
  namesIn(loop: Loop): readonly string[] {
    const of = this.#members({ statement: this.#statements.length - 1, loop });
    return this.#statements.map((_, at) => of.find((m) => m.statement === at)!.loop.name);
  }

  /** Whether a statement reads of the others only what the same iteration of the shared loops made. */
  staysInside(at: number, shared: readonly (readonly string[])[]): boolean {
    return accessesOf(this.#statements[at]!).every(({ tensor, index }) => {
      const made = this.#writes.get(tensor);
      if (!made || made.at >= at) return made === undefined;
      return shared.every((names) => {
        const axis = made.write.index.findIndex((e) => e.key === names[made.at]);
        return axis >= 0 && index[axis]!.key === names[at];
      });
    });
  }

  #members({ statement, loop }: LoopOf): readonly LoopOf[] {
    const root = this.#find(keyOf(statement, loop.name));
    return this.#statements.flatMap((s, at) =>
      s.loops
        .filter((l) => this.#find(keyOf(at, l.name)) === root)
        .map((l) => ({ statement: at, loop: l })),
    );
  }

  #unify(at: number, { tensor, index }: Access): void {
    const made = this.#writes.get(tensor);
    if (!made) return;
    const [mine, theirs] = [at, made.at].map((s) => loopNames(this.#statements[s]!));
    for (const [axis, e] of index.entries()) {
      const [a, b] = [loopOf(e, mine!), loopOf(made.write.index[axis]!, theirs!)];
      if (a === undefined || b === undefined) continue;
      this.#parent.set(this.#find(keyOf(at, a)), this.#find(keyOf(made.at, b)));
    }
  }

  #find(key: string): string {
    const parent = this.#parent.get(key);
    return parent === undefined || parent === key ? key : this.#find(parent);
  }
}

function keyOf(statement: number, loop: string): string {
  return `${statement} ${loop}`;
}

function loopNames({ loops }: Statement): ReadonlyMap<string, IndexExpr> {
  return new Map(loops.map((l) => [l.name, l.extent]));
}

function accessesOf({ reads, finishReads }: Statement): readonly Access[] {
  return [...reads, ...finishReads];
}
