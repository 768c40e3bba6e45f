/**
 * Kernels whose threads do not talk to each other: each runs its statements in order, and nothing
 * orders one thread (or grid instance) before another. Proved here, for all parameter values:
 * every access in bounds; inputs and weights not written; no element touched by two threads of which
 * one writes (separate.ts); nothing read before it is written (registers and locals flow-sensitively
 * by constant element, the rest by coverage, cover.ts).
 */
import {
  add,
  constant,
  type IndexExpr,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Buffer, Role } from "../program.ts";
import { printStatements } from "../program-text.ts";
import type { Expr, Statement } from "../statement.ts";
import { ownExprs, substituteStatements, visitExpr } from "../walk.ts";
import { type Box, buffersWritten, covers, negations } from "./cover.ts";
import type { Facts } from "./facts.ts";
import { type AccessPath, formOf, overwrites } from "./in-place.ts";
import { constantIndex, type LaunchView } from "./launch-view.ts";
import type { Report } from "./report.ts";
import { lieApart, originsOf, type Place, type SpreadVariable, signatureOf } from "./separate.ts";
import { isWithin, type WrittenRuns } from "./slabs.ts";
import { type World, worldsOf } from "./worlds.ts";

/** One access, with all that is known where it stands. */
export interface Access extends Place {
  readonly buffer: Buffer;
  readonly write: boolean;
  readonly text: () => string;
  readonly path: AccessPath;
}

/** A statement list on the way down to an access: what has run before it. */
interface Level {
  readonly body: readonly Statement[];
  position: number;
  readonly facts: Facts;
  /** The loop whose body this is. */
  readonly loop: Extract<Statement, { kind: "for" }> | undefined;
}

interface Walk {
  readonly levels: readonly Level[];
  readonly facts: Facts;
  readonly spread: readonly SpreadVariable[];
  /** Elements of private buffers surely written, as `name:i,j`. */
  readonly written: Set<string>;
  /** Variables that may differ between the threads of a warp, and whether control depends on one. */
  readonly varying: ReadonlySet<string>;
  readonly diverges: boolean;
}

/** Program buffers (roots) that a kernel touches. */
export interface Footprint {
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** Roots known to be written completely. */
  readonly covered?: ReadonlySet<string>;
  /** The stores into a buffer of the program, by its own name, for cover.ts; absent: nothing else is written completely. */
  readonly storesTo?: (buffer: string) => readonly Access[];
  /** Where coverage is asked, if not of the launch's own view. */
  readonly stores?: LaunchView;
  /** Whether `written` may stand in the bytes of `read`: each element is read for the last time first. */
  readonly mayOverwrite?: (read: string, written: string) => boolean;
}

/** Checks one launch; `ready` holds the roots that are fully written before it. */
/** What launches before have written. */
export interface BeforeLaunch {
  /** Roots of which nothing is missing. */
  readonly ready: ReadonlySet<string>;
  /** How far one is written that is not ready. */
  readonly runsOf: (root: string) => WrittenRuns | undefined;
}

export function checkSequential(view: LaunchView, before: BeforeLaunch, report: Report): Footprint {
  return new SequentialCheck(view, before, report).run();
}

class SequentialCheck {
  readonly #view: LaunchView;
  readonly #ready: ReadonlySet<string>;
  readonly #runsOf: BeforeLaunch["runsOf"];
  readonly #report: Report;
  readonly #accesses = new Map<string, Access[]>();
  readonly #reads = new Set<string>();
  readonly #writes = new Set<string>();
  #role = "";
  #warpIsRagged = false;

  constructor(view: LaunchView, { ready, runsOf }: BeforeLaunch, report: Report) {
    this.#view = view;
    this.#ready = ready;
    this.#runsOf = runsOf;
    this.#report = report;
  }

  run(): Footprint {
    for (const role of this.#view.kernel.roles) this.#roleBody(role);
    this.#checkRaces();
    const mayOverwrite = (read: string, written: string): boolean => {
      const [old, fresh] = [read, written].map((root) => this.#accesses.get(root) ?? []);
      return !this.#writes.has(read) && !this.#reads.has(written) && overwrites(old!, fresh!);
    };
    const storesTo = (buffer: string): readonly Access[] =>
      [...this.#accesses.values()].flat().filter((a) => a.write && a.buffer.name === buffer);
    return { reads: this.#reads, writes: this.#writes, mayOverwrite, storesTo };
  }

  #roleBody(role: Role): void {
    this.#role = role.name;
    const isRows = this.#view.inRows.has(role.name);
    this.#warpIsRagged = (isRows ? role.copies * role.threads : role.threads) % 32 !== 0;
    let { facts } = this.#view;
    const spread: SpreadVariable[] = this.#view.kernel.grid.axes
      .filter((a) => a.extent.key !== "1")
      .map((a) => ({ name: a.name, identity: a.name, required: true }));
    const parts = [
      [role.copyVariable, role.copies, "copy"],
      [role.threadVariable, role.threads, "thread"],
    ] as const;
    for (const [given, count, what] of parts) {
      const name = given ?? `the ${what} without a variable`;
      if (given !== undefined) facts = facts.withVariable(name, constant(count));
      if (count > 1) spread.push({ name, identity: what, required: true });
    }
    // Rows that are no whole warps share one.
    const shared = isRows && role.threads % 32 !== 0 ? [role.copyVariable] : [];
    const parted = [role.threadVariable, ...shared].filter((name) => name !== undefined);
    const varying = new Set(parted);
    const start = { levels: [], facts, spread, varying, diverges: false };
    this.#list(role.body, undefined, { ...start, written: new Set() });
  }

  #list(body: readonly Statement[], loop: Level["loop"], outer: Walk): void {
    const level: Level = { body, position: 0, facts: outer.facts, loop };
    let walk: Walk = { ...outer, levels: [...outer.levels, level] };
    for (const [position, s] of body.entries()) {
      level.position = position;
      walk = this.#statement(s, walk);
    }
  }

  /** Gives the walk as the next statement sees it. */
  #statement(s: Statement, walk: Walk): Walk {
    for (const expr of ownExprs(s)) this.#loads(expr, s, walk);
    switch (s.kind) {
      case "for":
        this.#loop(s, walk);
        return walk;
      case "if":
        this.#branch(s, walk);
        return walk;
      case "when":
        this.#either([s.then, s.else], { ...walk, diverges: true }, [walk.facts, walk.facts]);
        return walk;
      case "letIndex": {
        const varying = new Set(walk.varying).add(s.name);
        return { ...walk, varying, facts: walk.facts.withVariable(s.name, s.extent) };
      }
      case "intrinsic":
        this.#exchange(s, walk);
        return walk;
      case "store":
        this.#store(s, walk);
        return walk;
      default:
        return walk;
    }
  }

  #loop(s: Extract<Statement, { kind: "for" }>, walk: Walk): void {
    const facts = walk.facts.withVariable(s.variable, s.extent);
    if (facts.isImpossible()) return;
    let { spread } = walk;
    if (s.mode.kind === "grid") {
      const { axis } = s.mode;
      const identity = `${axis}<${s.extent.key}`;
      // The iterations stand for the axis: equal iterations run on one instance.
      spread = spread.filter((v) => v.name !== axis);
      if (spread.length < walk.spread.length) {
        const single = walk.facts.atLeast(1, s.extent);
        spread = [...spread, { name: s.variable, identity, required: true, single }];
      }
    } else {
      const identity = `${s.variable}<${s.extent.key}`;
      spread = [...spread, { name: s.variable, identity, required: false }];
    }
    const written = new Set(walk.written);
    const diverges = walk.diverges || varies([s.extent], walk);
    this.#list(s.body, s, { ...walk, facts, spread, written, diverges });
    const runs = s.mode.kind !== "grid" && walk.facts.atLeast(s.extent, 1);
    if (runs) for (const key of written) walk.written.add(key);
  }

  #branch(s: Extract<Statement, { kind: "if" }>, walk: Walk): void {
    const yes = walk.facts.withConditions(s.conditions);
    const [no] = negations(s.conditions);
    const single = s.conditions.length === 1 && s.conditions[0]!.kind === "nonNegative";
    const otherwise = single ? walk.facts.withNonNegative(no!) : this.#elseOf(s, walk.facts);
    const diverges =
      walk.diverges ||
      varies(
        s.conditions.map((c) => c.expr),
        walk,
      );
    this.#either([s.then, s.else], { ...walk, diverges }, [yes, otherwise]);
  }

  /** Registers exchanged by the threads of a warp, which must all be there with theirs written. */
  #exchange(s: Extract<Statement, { kind: "intrinsic" }>, walk: Walk): void {
    if (walk.diverges || this.#warpIsRagged) {
      const why = walk.diverges ? "where threads of a warp may part" : "in part of a warp";
      this.#report.add("PRG043", `${s.intrinsic} ${why}`, {
        ...this.#where(),
        help: "let no condition or extent around it depend on the thread, and give whole warps",
      });
    }
    const row = findTileIntrinsic(s.intrinsic)!;
    s.operands.forEach((o, i) => {
      if (o.kind !== "tile") return;
      const write = row.operands[i]!.access !== "read";
      const [count] = o.extents as readonly [number];
      const access = this.#access({ ...o, lanes: count }, s, walk, write);
      this.#bounds(access);
      if (row.operands[i]!.access !== "write") this.#isWritten(access, walk);
      if (write) for (const key of elementsOf(access) ?? []) walk.written.add(key);
    });
  }

  /** `i != 0` with i >= 0 means i >= 1; other negations say nothing that one expression can say. */
  #elseOf(s: Extract<Statement, { kind: "if" }>, facts: Facts): Facts {
    const [only] = s.conditions;
    if (s.conditions.length !== 1 || only?.kind !== "zero") return facts;
    if (facts.nonNegative(only.expr)) return facts.withNonNegative(sub(only.expr, 1));
    if (facts.atLeast(0, only.expr)) return facts.withNonNegative(sub(-1, only.expr));
    return facts;
  }

  #either(bodies: readonly (readonly Statement[])[], walk: Walk, facts: readonly Facts[]): void {
    const results = bodies.map((body, i) => {
      const written = new Set(walk.written);
      const impossible = body.length > 0 && facts[i]!.isImpossible();
      if (impossible) return undefined;
      this.#list(body, undefined, { ...walk, facts: facts[i]!, written });
      return facts[i]!.isImpossible() ? undefined : written;
    });
    const possible = results.filter((r) => r !== undefined);
    const [first] = possible;
    if (!first) return;
    for (const key of first) if (possible.every((r) => r.has(key))) walk.written.add(key);
  }

  #loads(expr: Expr, s: Statement, walk: Walk): void {
    visitExpr(expr, (e) => {
      if (e.kind !== "load") return;
      const facts = walk.facts.withConditions(e.guard);
      if (e.guard.length > 0 && facts.isImpossible()) return;
      const access = this.#access(e, s, { ...walk, facts });
      this.#bounds(access);
      this.#isWritten(access, walk);
      this.#remember(access);
    });
  }

  #store(s: Extract<Statement, { kind: "store" }>, walk: Walk): void {
    const access = this.#access({ ...s, lanes: s.value.lanes }, s, walk, true);
    this.#bounds(access);
    const { kind } = access.buffer;
    if (kind === "input" || kind === "weight") {
      this.#report.add("PRG012", `${access.text()} writes the ${kind} ${s.buffer}`, this.#where());
    }
    this.#remember(access);
    for (const key of elementsOf(access) ?? []) walk.written.add(key);
  }

  #where(): { readonly at: string } {
    return { at: `kernel ${this.#view.kernel.name} role ${this.#role}` };
  }

  #access(
    place: {
      readonly buffer: string;
      readonly index: readonly IndexExpr[];
      readonly lanes: number;
    },
    s: Statement,
    walk: Walk,
    write = false,
  ): Access {
    const buffer = this.#view.buffers.get(place.buffer)!;
    const last = place.index.length - 1;
    const span = place.lanes / buffer.lanes;
    const spans = place.index.map((_, axis) => (axis === last ? span : 1));
    const { facts, spread } = walk;
    const text = (): string => textOf(s);
    const path = walk.levels.map(({ body, position, loop }) => ({ body, position, loop }));
    const used = variablesOf(...place.index);
    const known = spread.map((v) =>
      !used.has(v.name) && isZero(v, facts) ? { ...v, single: true } : v,
    );
    return { buffer, index: place.index, spans, facts, spread: known, write, text, path };
  }

  #bounds({ buffer, index, spans, facts, text }: Access): void {
    for (const [axis, e] of index.entries()) {
      const extent = buffer.shape[axis]!;
      const span = spans[axis]!;
      if (facts.atLeast(e, 0) && facts.atLeast(extent, add(e, span))) continue;
      const private_ = buffer.scope === "register" && variablesOf(e).size > 0;
      if (private_) {
        this.#report.add(
          "PRG011",
          `index ${e.key} of register buffer ${buffer.name}`,
          this.#where(),
        );
        continue;
      }
      const note = `not proved: 0 <= ${e.key} and ${e.key} + ${span} <= ${extent.key}`;
      const known = facts.conditions.map((c) => `known: ${c.key} >= 0`);
      this.#report.add("PRG010", `axis ${axis} of ${buffer.name} in ${text()}`, {
        ...this.#where(),
        notes: [note, ...witnessOf(e, sub(sub(extent, span), e), facts), ...known],
        help: "guard the access or shorten the loop around it",
      });
    }
    if (buffer.scope === "register" && !constantIndex(index)) {
      const keys = index.map((e) => e.key).join(", ");
      this.#report.add(
        "PRG011",
        `index [${keys}] of register buffer ${buffer.name}`,
        this.#where(),
      );
    }
  }

  /** Roots behind a name; private buffers have none. */
  #rootsOf(buffer: Buffer): readonly string[] {
    return this.#view.roots.get(buffer.name) ?? [];
  }

  #remember(access: Access): void {
    for (const root of this.#rootsOf(access.buffer)) {
      (access.write ? this.#writes : this.#reads).add(root);
      const list = this.#accesses.get(root);
      if (list) list.push(access);
      else this.#accesses.set(root, [access]);
    }
  }

  #isWritten(access: Access, walk: Walk): void {
    const roots = this.#rootsOf(access.buffer);
    if (roots.length > 0 && roots.every((root) => this.#hasWritten(root, access))) return;
    const keys = elementsOf(access);
    if (keys?.every((key) => walk.written.has(key))) return;
    if (coveredBefore(access, walk.levels)) return;
    this.#report.add("PRG021", `${access.buffer.name} in ${access.text()}`, {
      ...this.#where(),
      notes: ["not proved: every element read has been written before, whatever the parameters"],
      help: "initialise the buffer, or write it in the same order as it is read",
    });
  }

  #hasWritten(root: string, access: Access): boolean {
    if (this.#ready.has(root)) return true;
    const runs = this.#runsOf(root);
    return runs !== undefined && isWithin(runs, access);
  }

  #checkRaces(): void {
    for (const [root, accesses] of this.#accesses) {
      if (!accesses.some((a) => a.write)) continue;
      if (accesses.every((a) => a.spread.every((v) => !v.required))) continue;
      // Views of one type and shape have their elements at the same places.
      const forms = new Set(accesses.map((a) => formOf(a.buffer)));
      const fixed = signaturesOf(accesses, []);
      const isOne = forms.size === 1;
      if (isOne && areSeparate(fixed)) continue;
      if (isOne && areApartInWorlds({ accesses, launch: this.#view.facts })) continue;
      const signatures = isOne ? signaturesOf(accesses, originsOf(accesses)) : fixed;
      const [one, other] = [...signatures];
      const notes = [one, other].flatMap((x) =>
        x ? [`${x[1].text()}: ${x[0] ?? "not separated"}`] : [],
      );
      this.#report.add("PRG030", `two instances or threads may touch one element of ${root}`, {
        ...this.#where(),
        notes: [
          ...notes,
          ...(forms.size > 1 ? [`accessed as ${[...forms].join(" and as ")}`] : []),
        ],
        help: "let every instance write a window of its own, and read only that",
      });
    }
  }
}

/** A condition lets only the first of the threads (or instances) here. */
function isZero({ name, required }: SpreadVariable, facts: Facts): boolean {
  return required && facts.has(name) && facts.atLeast(0, variable(name));
}

function varies(exprs: readonly IndexExpr[], { varying }: Walk): boolean {
  return [...variablesOf(...exprs)].some((name) => varying.has(name));
}

const mostPairs = 20_000;

/** Whether no two threads or instances touch an element of which one writes. */
function areApart(accesses: readonly Access[]): boolean {
  if (!accesses.some((a) => a.write)) return true;
  return areSeparate(signaturesOf(accesses, originsOf(accesses))) || haveOwnWindows(accesses);
}

/** The same where launches may have to be told apart first; each world has fewer accesses than the one around it. */
function areApartInWorlds({ accesses, launch }: World<Access>): boolean {
  if (areApart(accesses)) return true;
  const worlds = worldsOf(accesses, launch);
  return worlds.length > 0 && worlds.every(areApartInWorlds);
}

/** Each access in a window of its own origin; those with others lie apart wherever they are. */
function haveOwnWindows(accesses: readonly Access[]): boolean {
  if (accesses.length ** 2 > mostPairs) return false;
  const signed = accesses.map((a) => ({ a, signature: signatureOf(a, originsOf([a])) }));
  if (signed.some((s) => s.signature === undefined)) return false;
  return signed.every((x, i) =>
    signed
      .slice(i + 1)
      .every((y) => x.signature === y.signature || !(x.a.write || y.a.write) || lieApart(x.a, y.a)),
  );
}

type Signatures = ReadonlyMap<string | undefined, Access>;

function signaturesOf(accesses: readonly Access[], origins: readonly number[]): Signatures {
  return new Map(accesses.map((a) => [signatureOf(a, origins), a] as const));
}

function areSeparate(signatures: Signatures): boolean {
  return signatures.size === 1 && !signatures.has(undefined);
}

function textOf(s: Statement): string {
  const text = printStatements([s]).split("\n")[0]!;
  return text.length > 90 ? `${text.slice(0, 87)}...` : text;
}

/** Values of the index variables for which the index leaves its range, where some are known. */
function witnessOf(e: IndexExpr, room: IndexExpr, facts: Facts): readonly string[] {
  const at = facts.counterexample(e) ?? facts.counterexample(room);
  if (!at) return [];
  const names = [...variablesOf(e, room)].sort();
  if (names.length === 0) return [`reached, and ${e.key} is outside`];
  return [`outside at ${names.map((name) => `${name} = ${at.get(name)}`).join(", ")}`];
}

const mostElements = 256;

/** Names of the elements that an access with constant index touches. */
function elementsOf({ buffer, index, spans }: Access): readonly string[] | undefined {
  const at = constantIndex(index);
  const span = spans.at(-1) ?? 1;
  if (!at || span > mostElements) return undefined;
  const lead = at.slice(0, -1).join();
  const last = at.at(-1) ?? 0;
  return Array.from({ length: span }, (_, i) => `${buffer.name}:${lead},${last + i}`);
}

/**
 * Whether what ran before the access has written all it reads: earlier statements of an enclosing
 * list, or an earlier trip (the previous or the first) of an enclosing loop.
 */
function coveredBefore(access: Access, levels: readonly Level[]): boolean {
  const { buffer, index, spans, facts } = access;
  const box: Box = { lo: index, hi: index.map((e, axis) => add(e, spans[axis]!)) };
  for (const level of levels.toReversed()) {
    const before = level.body.slice(0, level.position);
    if (
      before.some((s) => buffersWritten(s).has(buffer.name)) &&
      covers(before, buffer, box, facts)
    ) {
      return true;
    }
    const { loop } = level;
    // Earlier trips of a dealt-out loop may have run on another instance.
    if (loop?.mode.kind === "grid") continue;
    if (!loop?.body.some((s) => buffersWritten(s).has(buffer.name))) continue;
    const previous = sub(variable(loop.variable), 1);
    if (!facts.atLeast(previous, 0)) continue;
    for (const trip of [previous, constant(0)]) {
      const body = substituteStatements(loop.body, new Map([[loop.variable, trip]]));
      if (covers(body, buffer, box, facts)) return true;
    }
  }
  return false;
}
