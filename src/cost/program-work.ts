/**
 * What a kernel of a CPU executes, counted from its program: for every straight run of statements the
 * instructions that its expressions become, how often it runs, what control costs around it, and the chain of
 * operations that wait for each other. Nothing is executed and nothing is emitted: trips and branches are
 * counted from the bounds of loops, with sizes at their upper ends. In: a kernel. Out: runs of code with
 * counts; what they cost is mix-price.ts.
 */
import { type Kernel, threadCountName } from "../program/program.ts";
import type { Expr, Statement } from "../program/statement.ts";
import { exprOperands } from "../program/walk.ts";
import type { Condition } from "../semantics/condition.ts";
import { type DType, dtypes, isIntegerDType } from "../semantics/dtype.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  type IndexTerm,
  variablesOf,
} from "../semantics/index-expr.ts";
import { scalarOps } from "../semantics/scalar-expr.ts";

/** Instructions of one straight run, by what executes them. */
export interface RunMix {
  readonly loads: number;
  readonly stores: number;
  readonly arithmetic: number;
  /** Multiply-adds that a function evaluated by a series comes to, by vector. */
  readonly series: number;
  readonly splats: number;
  /** Elements that are brought into a lane, or taken out of one. */
  readonly laneMoves: number;
  /** Conditions that are tested. */
  readonly tests: number;
  /** Values that found no register: each is stored and loaded again. */
  readonly spills: number;
  /** Vectors that are alive at once. */
  readonly alive: number;
  /** Pointers that a trip moves, and the loop's own counter. */
  readonly control: number;
  /** Operations one after the other on the same accumulator, and those of them that multiply nothing. */
  readonly chain: number;
  readonly additions: number;
}

export interface CodeRun {
  readonly mix: RunMix;
  readonly executions: number;
  /** How often its chains begin anew. */
  readonly chains: number;
  /** How often a loop of it is entered. */
  readonly entries: number;
}

/** Trips of a loop with branches inside that are looked at; of longer loops both ends and some between. */
const mostTrips = 24;
const endTrips = 8;

type Body = readonly Statement[];

const controlKinds: ReadonlySet<Statement["kind"]> = new Set(["for", "if", "when", "letIndex"]);

interface ListWork {
  readonly mix: RunMix;
  /** Its statements that others hang on, in order: of the many of a tile there are few. */
  readonly control: Body;
  /** It sets accumulators to their neutral element. */
  readonly begins: boolean;
  executions: number;
  chains: number;
  entries: number;
}

export interface WorkOptions {
  /** Registers for vectors. */
  readonly registers: number;
  /** Elements of a vector register. */
  readonly lanes: number;
  /** The code generator puts the loads of a straight run before its arithmetic. */
  readonly loadsFirst: boolean;
}

/** @param symbols the sizes that a program is counted at */
export function kernelWork(
  kernel: Kernel,
  symbols: ReadonlyMap<string, number>,
  options: WorkOptions,
): readonly CodeRun[] {
  const counter = new WorkCounter(kernel, symbols, options);
  for (const role of kernel.roles) counter.walk(role.body, 1, 1);
  return [...counter.lists.values()]
    .filter((run) => run.executions > 0)
    .map(({ mix, executions, chains, entries }) => ({ mix, executions, chains, entries }));
}

class WorkCounter {
  readonly lists = new Map<Body, ListWork>();
  readonly #env: Map<string, number>;
  readonly #registers: ReadonlySet<string>;
  readonly #options: WorkOptions;
  readonly #mentions = new Map<Body, ReadonlySet<string>>();
  readonly #bound: string[] = [];

  constructor(kernel: Kernel, symbols: ReadonlyMap<string, number>, options: WorkOptions) {
    this.#options = options;
    this.#env = new Map([...symbols, [threadCountName, 1]]);
    for (const axis of kernel.grid.axes) {
      this.#env.set(axis.name, 0);
      this.#bound.push(axis.name);
    }
    this.#registers = new Set(
      kernel.buffers.filter((b) => b.scope === "register").map((b) => b.name),
    );
  }

  walk(body: Body, weight: number, starts: number): void {
    if (weight === 0) return;
    const work = this.#list(body);
    const begun = work.begins ? weight : starts;
    work.executions += weight;
    work.chains += begun;
    for (const s of work.control) {
      if (s.kind === "for") this.#loop(s, weight, begun);
      else if (s.kind === "if") {
        const taken = s.conditions.every((c) => this.#holds(c)) ? s.then : s.else;
        this.walk(taken, weight, begun);
      } else if (s.kind === "when") {
        this.walk(s.then, weight / 2, begun);
        this.walk(s.else, weight / 2, begun);
      } else if (s.kind === "letIndex") this.#env.set(s.name, 0);
    }
  }

  #loop(s: Extract<Statement, { kind: "for" }>, weight: number, starts: number): void {
    const trips = this.#value(s.extent);
    if (trips <= 0) return;
    this.#bound.push(s.variable);
    this.#list(s.body, s.variable).entries += weight;
    if (!this.#mentioned(s.body).has(s.variable)) {
      this.#env.set(s.variable, 0);
      this.walk(s.body, weight * trips, starts);
    } else {
      const looked = tripsLookedAt(trips);
      const total = looked.reduce((n, t) => n + t.weight, 0);
      for (const t of looked) {
        this.#env.set(s.variable, t.trip);
        this.walk(s.body, weight * t.weight, (starts * t.weight) / total);
      }
    }
    this.#bound.pop();
  }

  #value(e: IndexExpr): number {
    return constantValue(e) ?? evaluate(e, this.#env);
  }

  #holds({ kind, expr }: Condition): boolean {
    const value = this.#value(expr);
    return kind === "zero" ? value === 0 : value >= 0;
  }

  /** Names that bounds and branches inside depend on. */
  #mentioned(body: Body): ReadonlySet<string> {
    const known = this.#mentions.get(body);
    if (known) return known;
    const names = new Set<string>();
    for (const s of body) {
      if (s.kind === "for") {
        for (const name of variablesOf(s.extent)) names.add(name);
        for (const name of this.#mentioned(s.body)) names.add(name);
      } else if (s.kind === "if") {
        for (const name of variablesOf(...s.conditions.map((c) => c.expr))) names.add(name);
      }
      if (s.kind === "if" || s.kind === "when") {
        for (const part of [s.then, s.else]) {
          for (const name of this.#mentioned(part)) names.add(name);
        }
      }
    }
    this.#mentions.set(body, names);
    return names;
  }

  #list(body: Body, loop?: string): ListWork {
    const known = this.lists.get(body);
    if (known) return known;
    const control = body.filter((s) => controlKinds.has(s.kind));
    const counted = this.#count(body, loop);
    const made: ListWork = { ...counted, control, executions: 0, chains: 0, entries: 0 };
    this.lists.set(body, made);
    return made;
  }

  #count(body: Body, loop: string | undefined): { mix: RunMix; begins: boolean } {
    const mix = new MixCounter(this.#registers, this.#options);
    for (const s of body) mix.statement(s);
    const control = loop === undefined ? 0 : 2 + this.#pointers(body, loop);
    return { mix: mix.finish(control), begins: mix.begins };
  }

  /** Addresses that a trip of a loop moves: different sums of what is settled by then. */
  #pointers(body: Body, loop: string): number {
    const bound = new Set(this.#bound);
    const sums = new Set<string>();
    // Accesses of a tile share their terms.
    const products = new Map<string, Product>();
    const productOf = (t: IndexTerm): Product => {
      const known = products.get(t.key);
      if (known) return known;
      const names = variablesOf({ constant: 0, terms: [t], key: t.key });
      const isSettled = [...names].every((n) => bound.has(n));
      const made = { moves: names.has(loop), isSettled };
      products.set(t.key, made);
      return made;
    };
    const see = (buffer: string, index: readonly IndexExpr[]): void => {
      if (this.#registers.has(buffer)) return;
      let moves = false;
      let sum = buffer;
      for (const e of index) {
        sum += " ";
        for (const t of e.terms) {
          const product = productOf(t);
          moves ||= product.moves;
          if (product.isSettled) sum += `${t.coefficient}${t.key}+`;
        }
      }
      if (moves) sums.add(sum);
    };
    const visit = (e: Expr): void => {
      if (e.kind === "load") see(e.buffer, e.index);
      for (const o of exprOperands(e)) visit(o);
    };
    const visitBody = (list: Body): void => {
      for (const s of list) {
        if (s.kind === "store") see(s.buffer, s.index);
        if (s.kind === "store" || s.kind === "let" || s.kind === "letIndex") visit(s.value);
        if (s.kind === "for") visitBody(s.body);
        if (s.kind === "if" || s.kind === "when") {
          visitBody(s.then);
          visitBody(s.else);
        }
      }
    };
    visitBody(body);
    return sums.size;
  }
}

/** A product of variables in an index: whether a loop moves it, and whether all its variables are bound. */
interface Product {
  readonly moves: boolean;
  readonly isSettled: boolean;
}

function tripsLookedAt(trips: number): readonly { trip: number; weight: number }[] {
  if (trips <= mostTrips) return Array.from({ length: trips }, (_, trip) => ({ trip, weight: 1 }));
  const found: { trip: number; weight: number }[] = [];
  const between = trips - 2 * endTrips;
  const samples = mostTrips - 2 * endTrips;
  for (let i = 0; i < endTrips; i++) found.push({ trip: i, weight: 1 });
  for (let i = 0; i < samples; i++) {
    const trip = endTrips + Math.floor(((i + 0.5) * between) / samples);
    found.push({ trip, weight: between / samples });
  }
  for (let i = trips - endTrips; i < trips; i++) found.push({ trip: i, weight: 1 });
  return found;
}

/** Operators from this cost on are functions evaluated by series. */
const leastSeriesCost = 10;

/** How often a straight run of code updates one accumulator. */
interface Updates {
  readonly all: number;
  readonly additions: number;
}

const noUpdates: Updates = { all: 0, additions: 0 };

/** A use of a value that wants a register, in program order. */
interface RegisterUse {
  readonly value: string;
  readonly defines: boolean;
}

class MixCounter {
  begins = false;
  #loads = 0;
  #stores = 0;
  #arithmetic = 0;
  #series = 0;
  #splats = 0;
  #laneMoves = 0;
  #tests = 0;
  readonly #updates = new Map<string, Updates>();
  /** Uses up to the last store to memory, and after it: those of loads that go first, and the others. */
  readonly #done: RegisterUse[] = [];
  #ahead: RegisterUse[] = [];
  #aheadBefore = 0;
  #uses: RegisterUse[] = [];
  readonly #registers: ReadonlySet<string>;
  readonly #options: WorkOptions;

  constructor(registers: ReadonlySet<string>, options: WorkOptions) {
    this.#registers = registers;
    this.#options = options;
  }

  statement(s: Statement): void {
    if (s.kind === "let") {
      this.#expr(s.value);
      this.#define(s.name, s.value);
    } else if (s.kind === "letIndex") this.#expr(s.value);
    else if (s.kind === "store") this.#store(s);
    else if (s.kind === "if") this.#tests += s.conditions.length;
    else if (s.kind === "when") {
      this.#expr(s.condition);
      this.#tests++;
    }
  }

  finish(control: number): RunMix {
    let longest: Updates = noUpdates;
    for (const one of this.#updates.values()) if (one.all > longest.all) longest = one;
    const uses = [...this.#done, ...this.#ahead, ...this.#uses];
    const { registers, loadsFirst } = this.#options;
    const alive = mostAlive(uses);
    const wanted = Math.max(alive - keptBack, this.#updates.size + this.#mostAhead());
    return {
      loads: this.#loads,
      stores: this.#stores,
      arithmetic: this.#arithmetic,
      series: this.#series,
      splats: this.#splats,
      laneMoves: this.#laneMoves,
      tests: this.#tests,
      spills: loadsFirst ? crowdedOut(wanted, registers) : spillsOf(uses, registers - 1),
      alive,
      control,
      chain: longest.all,
      additions: longest.additions,
    };
  }

  /** Loads that stand before all arithmetic of a stretch without stores. */
  #mostAhead(): number {
    const last = this.#ahead.filter((use) => use.defines).length;
    return Math.max(this.#aheadBefore, last);
  }

  #chunks(lanes: number, dtype: DType = "f32"): number {
    // Bytes and numbers of 16 bits are held as they are, and so are operands of dot products of bf16.
    const { bits } = dtypes[dtype];
    const isNarrow = isIntegerDType(dtype) && bits < 32;
    const share = isNarrow || this.#arePairs(lanes, dtype) ? bits / 32 : 1;
    return Math.max(1, (share * lanes) / this.#options.lanes);
  }

  /** bf16 of two elements for each lane of results. */
  #arePairs(lanes: number, dtype: DType): boolean {
    return dtype === "bf16" && lanes > this.#options.lanes;
  }

  #define(name: string, value: Expr): void {
    const { dtype } = value;
    const isHeld = ["f32", "f64", "i16"].includes(dtype) || this.#arePairs(value.lanes, dtype);
    if (!isHeld) return;
    const uses = this.#options.loadsFirst && this.#isFetched(value) ? this.#ahead : this.#uses;
    uses.push({ value: name, defines: true });
  }

  /** Loaded from memory, or spread over the lanes right after. */
  #isFetched(e: Expr): boolean {
    if (e.kind === "load") return !this.#registers.has(e.buffer);
    const isWidened = e.kind === "cast" && e.dtype === "i16";
    if (e.kind !== "splat" && !isWidened) return false;
    const [from] = exprOperands(e);
    return from!.kind === "local" || this.#isFetched(from!);
  }

  #store(s: Extract<Statement, { kind: "store" }>): void {
    this.#expr(s.value);
    if (!this.#registers.has(s.buffer)) {
      this.#stores += this.#chunks(s.value.lanes);
      // No load passes a store.
      this.#done.push(...this.#ahead, ...this.#uses);
      this.#aheadBefore = this.#mostAhead();
      this.#ahead = [];
      this.#uses = [];
      return;
    }
    const key = `${s.buffer}[${s.index.map((e) => e.key).join()}]`;
    this.#uses.push({ value: key, defines: true });
    if (s.value.kind === "literal" || s.value.kind === "splat") {
      this.begins = true;
      this.#updates.set(key, noUpdates);
    } else {
      const { all, additions } = this.#updates.get(key) ?? noUpdates;
      const isAddition = s.value.kind === "call" ? 0 : 1;
      this.#updates.set(key, { all: all + 1, additions: additions + isAddition });
    }
  }

  #expr(e: Expr): void {
    for (const o of exprOperands(e)) this.#expr(o);
    const chunks = this.#chunks(e.lanes, e.dtype);
    switch (e.kind) {
      case "load":
        if (this.#registers.has(e.buffer)) {
          const value = `${e.buffer}[${e.index.map((i) => i.key).join()}]`;
          this.#uses.push({ value, defines: false });
        } else {
          this.#loads += chunks;
          this.#tests += e.guard.length;
        }
        return;
      case "local":
        this.#uses.push({ value: e.name, defines: false });
        return;
      case "apply": {
        const { cost } = scalarOps[e.op];
        if (cost >= leastSeriesCost) this.#series += chunks * cost;
        else this.#arithmetic += chunks * cost;
        return;
      }
      case "call":
        this.#arithmetic += isOfPairs(e.intrinsic) ? dotArithmetic(this.#options) * chunks : chunks;
        return;
      case "cast":
        if (e.operand.dtype === "bf16") this.#arithmetic += 2 * chunks;
        else if (e.dtype !== "i16" || e.operand.kind !== "load") this.#arithmetic += chunks;
        else this.#arithmetic += widenedLoadArithmetic(this.#options) * chunks;
        return;
      case "splat":
        this.#splats += chunks;
        return;
      case "pack":
        this.#laneMoves += e.operands.length;
        return;
      case "extract":
        this.#laneMoves++;
        return;
      default:
    }
  }
}

/** Sums of pairs of products: one instruction for the products, one for the sum. */
function isOfPairs(intrinsic: string): boolean {
  return intrinsic.startsWith("vpdpwssd.");
}

/** Values between their first and last use at one place; what lives on around the loop always is. */
function mostAlive(uses: readonly RegisterUse[]): number {
  const last = new Map<string, number>();
  for (const [i, { value }] of uses.entries()) last.set(value, i);
  const held = new Set<string>();
  for (const name of last.keys()) if (name.endsWith("]")) held.add(name);
  let most = held.size;
  for (const [i, { value }] of uses.entries()) {
    held.add(value);
    most = Math.max(most, held.size);
    if (last.get(value) === i && !value.endsWith("]")) held.delete(value);
  }
  return most;
}

/**
 * Values that an engine's fast allocator puts away and fetches again in each trip. It splits the lives of values
 * without looking ahead: once they are too many, more are moved than do not fit.
 *
 * @param wanted sums and operands that are alive at once
 */
export function crowdedOut(wanted: number, registers: number): number {
  const room = registers - keptBack;
  return wanted > room ? wanted - room + keptBack : 0;
}

/**
 * Arithmetic of a sum of pairs, in multiply-adds: the products and the addition. A core has twice as many units for
 * these as for multiply-adds of floats; what an engine compiles waits for its instructions instead.
 */
export function dotArithmetic({ loadsFirst }: Pick<WorkOptions, "loadsFirst">): number {
  return loadsFirst ? 2 : 1;
}

/** The same of bytes that are widened as they are loaded: an engine's loads do that by themselves. */
export function widenedLoadArithmetic({ loadsFirst }: Pick<WorkOptions, "loadsFirst">): number {
  return loadsFirst ? 0 : 0.5;
}

/** Registers that a product and its sum pass through. */
const keptBack = 2;

/** Values that are put away and fetched again when the one used last is always put away (Belady). */
function spillsOf(uses: readonly RegisterUse[], registers: number): number {
  const next: number[] = new Array(uses.length);
  const seen = new Map<string, number>();
  for (let i = uses.length - 1; i >= 0; i--) {
    const { value } = uses[i]!;
    next[i] = seen.get(value) ?? (value.endsWith("]") ? uses.length : Infinity);
    seen.set(value, i);
  }
  const held = new Map<string, number>();
  const away = new Set<string>();
  let spills = 0;
  for (const [i, { value, defines }] of uses.entries()) {
    if (!held.has(value)) {
      if (!defines && away.delete(value)) spills++;
      if (held.size >= registers) {
        let worst = "";
        let far = -1;
        for (const [name, at] of held) {
          if (at > far) {
            worst = name;
            far = at;
          }
        }
        held.delete(worst);
        if (far < Infinity) away.add(worst);
      }
    }
    if (next[i] === Infinity) held.delete(value);
    else held.set(value, next[i]!);
  }
  // What lives on around the loop is fetched again in the next trip.
  for (const name of away) if (name.endsWith("]")) spills++;
  return spills;
}
