/**
 * The smallest change that makes a refused schedule legal: sets of edits (edits.ts), those of one edit
 * first, then those of two and so on, each judged like any schedule, so that what is suggested is legal for
 * sure. A schedule without directives is legal, so there always is a change. The search is counted in
 * schedules judged; where it ends early, what comes out is the fewest directives to leave out, and is said to
 * be no more than that.
 */
import type { TreeDirective } from "./directive.ts";
import { printTreeDirective } from "./directive-text.ts";
import {
  areCompatible,
  describeEdits,
  type Edit,
  editDirectives,
  editsOf,
  leaveOut,
  type ProposedDirective,
} from "./edits.ts";
import type { Nest } from "./nest-program.ts";
import { PlanPrefixes } from "./plan-prefixes.ts";

export interface Change {
  readonly directives: readonly TreeDirective[];
  /** In words: `shift T:i by 1 behind fuse S into T at i`. */
  readonly text: string;
  /** Whether all changes of fewer edits were judged. */
  readonly smallest: boolean;
}

/** What is known of a schedule with edits. */
export interface Judgement {
  readonly legal: boolean;
  /** It was refused without a proof, by a pair that refused another one. */
  readonly quick?: boolean;
  /** The first directives, so many, have no place or meaning, whatever stands behind them. */
  readonly stuck?: number | undefined;
}

export type Judge<D> = (directives: readonly (D | ProposedDirective)[]) => Judgement;

/** Schedules that one search proves, or the like: what takes less counts as the part of a proof that it takes. */
const mostJudged = 6000;
const [skippedPerJudged, quickPerJudged] = [200, 20];

/** Directives of which all sets are left out in turn: a thousand schedules. */
const mostSubsets = 10;

/** Undefined when the schedule without directives is not known to be legal either. */
export function smallestChange(
  nest: Nest,
  directives: readonly TreeDirective[],
  limit = mostJudged,
): Change | undefined {
  const plans = new PlanPrefixes(nest);
  const judge: Judge<TreeDirective> = (edited) => {
    const before = plans.quick;
    const verdict = plans.schedule(edited);
    const stuck = verdict.kind === "malformed" ? verdict.at + 1 : undefined;
    return { legal: verdict.kind === "legal", stuck, quick: plans.quick > before };
  };
  const found = smallestEdits(directives, judge, limit);
  return (
    found && {
      directives: editDirectives<TreeDirective>(directives, found.edits),
      text: describeEdits<TreeDirective>(found.edits, directives, printTreeDirective),
      smallest: found.smallest,
    }
  );
}

export interface FoundEdits {
  readonly edits: readonly Edit[];
  /** Whether all sets of fewer edits were judged. */
  readonly smallest: boolean;
}

/** The first legal set of edits, from few to many. Undefined where even no directives are not legal. */
export function smallestEdits<D extends TreeDirective | { readonly kind: string }>(
  directives: readonly D[],
  judge: Judge<D>,
  limit = mostJudged,
): FoundEdits | undefined {
  const candidates = new Candidates(directives, judge, limit);
  const single = candidates.firstLegal(editsOf(directives), 1);
  if (single) return { edits: single, smallest: true };
  const removed = candidates.fewestLeftOut();
  if (!removed) return undefined;
  const small = [...editsOf(directives)].filter((e) => e.size === 1);
  for (let size = 2; size <= removed.length; size++) {
    const found = candidates.firstLegal(small, size);
    if (found) return { edits: found, smallest: true };
    if (candidates.isOver) return { edits: removed, smallest: false };
  }
  return { edits: removed, smallest: true };
}

/** Judges schedules with edits; those that begin like one which made no sense are skipped. */
class Candidates<D extends TreeDirective | { readonly kind: string }> {
  readonly #directives: readonly D[];
  readonly #judge: Judge<D>;
  #left: number;
  readonly #stuck = new Set<string>();
  readonly #ids = new Map<unknown, number>();

  constructor(directives: readonly D[], judge: Judge<D>, limit: number) {
    this.#directives = directives;
    this.#judge = judge;
    this.#left = limit * skippedPerJudged;
  }

  /** Whether the limit is passed. */
  get isOver(): boolean {
    return this.#left < 0;
  }

  firstLegal(edits: Iterable<Edit>, size: number): readonly Edit[] | undefined {
    const sets = size === 1 ? oneByOne(edits) : setsOf([...edits], size);
    for (const set of sets) {
      if (this.#isLegal(set)) return set;
      if (size > 1 && this.isOver) return undefined;
    }
    return undefined;
  }

  #isLegal(edits: readonly Edit[]): boolean {
    const edited = editDirectives(this.#directives, edits);
    const beginnings = this.#beginnings(edited);
    this.#left--;
    if (beginnings.some((b) => this.#stuck.has(b))) return false;
    const { legal, stuck, quick } = this.#judge(edited);
    this.#left -= (quick ? skippedPerJudged / quickPerJudged : skippedPerJudged) - 1;
    const bad = stuck === undefined ? undefined : beginnings[stuck - 1];
    if (bad !== undefined) this.#stuck.add(bad);
    return legal;
  }

  /** Keys of the first directive, of the first two, …: what they mean may depend on which kinds there are. */
  #beginnings(edited: readonly (D | ProposedDirective)[]): readonly string[] {
    const kinds = [...new Set(edited.map((d) => d.kind))].sort().join();
    let key = kinds;
    return edited.map((d) => {
      const id = this.#ids.get(d) ?? this.#ids.size;
      this.#ids.set(d, id);
      key = `${key}/${id}`;
      return key;
    });
  }

  /** The fewest directives to leave out; of very many, some of which none can stay by itself. */
  fewestLeftOut(): readonly Edit[] | undefined {
    const all: readonly Edit[] = this.#directives.map((_, at) => leaveOut(at));
    if (!this.#isLegal(all)) return undefined;
    for (let size = 2; size < all.length && all.length <= mostSubsets; size++) {
      const fewest = this.firstLegal(all, size);
      if (fewest) return fewest;
    }
    return all.length <= mostSubsets ? all : this.#putBack(all);
  }

  /** Without those that can stay, one by one. */
  #putBack(all: readonly Edit[]): readonly Edit[] {
    let out = all;
    for (const { at } of all) {
      const fewer = out.filter((e) => e.at !== at);
      if (fewer.length > 0 && this.#isLegal(fewer)) out = fewer;
    }
    return out;
  }
}

function* oneByOne(edits: Iterable<Edit>): Generator<readonly Edit[]> {
  for (const edit of edits) yield [edit];
}

/** All sets of `size` edits that can be made together, in the order of their edits. */
function* setsOf(
  all: readonly Edit[],
  size: number,
  chosen: readonly Edit[] = [],
  from = 0,
): Generator<readonly Edit[]> {
  if (chosen.length === size) {
    yield chosen;
    return;
  }
  for (let i = from; i < all.length; i++) {
    const edit = all[i]!;
    const fits = chosen.every((c) => areCompatible(c, edit));
    if (fits) yield* setsOf(all, size, [...chosen, edit], i + 1);
  }
}
