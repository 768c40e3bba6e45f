/**
 * Updates that may meet (ScatterElements, ScatterND), which one thread has to make in their order, in parts: the
 * updates of each part are made by themselves, into a part's own results, and what the parts have left is folded in
 * their order. In: regions in order, prices (injected). Out: the regions, some of them as several, where that costs
 * less.
 *
 *   combined     fill parts with the identity · update each part · fold the parts behind what was there before
 *   the last one wins     fill with zero · leave the number of the update (from one on) · the greatest of the parts ·
 *                         each element from the update of that number, or from before
 *
 * Numbers of updates have no axes along which indices are the same (trailing slices), so that they are few. Nothing
 * hangs on which thread is first: the bytes are the same in every run.
 */
import type {
  Access,
  Indirect,
  Loop,
  Region,
  RegionTensor,
  Statement,
  Write,
} from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import {
  substituteAccess,
  substituteConditions,
  substituteIndirect,
  substituteScalar,
} from "../../region/statement.ts";
import { tensorsRead } from "../../region/uses.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import type { ReduceKind } from "../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType, zeroOf } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  substitute,
  variable,
  variableName,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { identityElement, simpleMonoid } from "../../semantics/monoids.ts";
import {
  apply,
  argument,
  bindArguments,
  cast,
  indexValue,
  literal,
  mapScalar,
  type ScalarExpr,
} from "../../semantics/scalar-expr.ts";
import { scannedAs } from "../rows/scan-form.ts";

/** Into how many parts updates are dealt out, about. */
const partCounts = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] as const;
/** Updates that are one thread's in any case. */
const leastUpdates = 16;
/** Bytes that the results of all parts may take. */
const mostBytes = 2 ** 29;
/** Numbers of updates are i32. */
const mostNumber = 2 ** 31 - 2;

const kinds = { add: "sum", mul: "prod", max: "max", min: "min" } as const;

type Named = readonly [string, RegionTensor];

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function scattersFor(priceOf: (region: Region) => number): LayOut {
  return (regions) => {
    const made = [...regions];
    const tensors = new Map<string, Named[1] & { role: "intermediate" }>();
    for (let at = made.length - 1; at >= 0; at--) {
      const writers = writersBefore(made, at);
      const splits = partCounts.flatMap((parts) => splitScatter(made[at]!, writers, parts));
      if (splits.length === 0) continue;
      const costOf = (all: readonly Region[]): number => all.reduce((ns, r) => ns + priceOf(r), 0);
      const prices = splits.map(costOf);
      const least = Math.min(...prices);
      if (least >= costOf([...writers, made[at]!])) continue;
      const split = splits[prices.indexOf(least)]!;
      for (const [name, t] of split.flatMap((r) => [...r.tensors])) {
        const isKnown = made[at]!.tensors.has(name) || writers.some((w) => w.tensors.has(name));
        if (!isKnown) tensors.set(name, { ...t, role: "intermediate" });
      }
      const gone = new Set(writers);
      made.splice(at, 1, ...split);
      for (const writer of gone) made.splice(made.indexOf(writer), 1);
    }
    return { regions: made, tensors };
  };
}

/** The regions that make what updates are written over. */
function writersBefore(regions: readonly Region[], at: number): readonly Region[] {
  const [statement] = regions[at]!.statements;
  const tensor = statement!.writes[0]!.tensor;
  return regions
    .slice(0, at)
    .filter((r) => r.statements.some((s) => s.writes.some((w) => w.tensor === tensor)));
}

/**
 * What makes the tensor before and the updates, as regions that take about so many parts of the updates; none where
 * the region is no scatter or is not worth a price.
 */
function splitScatter(
  region: Region,
  writers: readonly Region[],
  parts: number,
): readonly (readonly Region[])[] {
  const [statement, ...others] = region.statements;
  if (!statement || others.length > 0 || writers.length === 0) return [];
  const dealt = dealtOut(statement, parts);
  if (!dealt || !isScatter(region, statement)) return [];
  const split = new ScatterSplit(region, statement, dealt);
  if (split.partsBytes() > mostBytes || split.updates > mostNumber) return [];
  return [split.regions(writers)];
}

function isScatter({ tensors }: Region, statement: Statement): boolean {
  const { writes, reads, body, indirects, guard, reduction, finish, finishReads } = statement;
  const [write] = writes;
  const isPlain = !reduction && !finish && finishReads.length === 0 && guard.length === 0;
  if (!write || writes.length > 1 || body.length !== 1 || !isPlain || indirects.length === 0)
    return false;
  if (tensorsRead(statement).has(write.tensor)) return false;
  const loaded = new Set(indirects.map((v) => v.name));
  const used = [...reads.flatMap((a) => a.index), ...indirects.flatMap((v) => v.access.index)];
  if (used.some((e) => [...variablesOf(e)].some((name) => loaded.has(name)))) return false;
  const places = write.index.map(variableName);
  const space = statement.loops.filter((l) => l.kind === "space");
  // Each axis is a loop or a number that is loaded, each loop an axis.
  const isPlaced = new Set(places).size === places.length && !places.includes(undefined);
  const isWhole = space.every((l) => places.includes(l.name));
  const isOpen = tensors.get(write.tensor)!.shape.some((e) => constantValue(e) === undefined);
  return isPlaced && isWhole && !isOpen && dtypes[tensors.get(write.tensor)!.dtype].bits >= 8;
}

/** How the loops along which updates meet are dealt out: the outermost whole, one of them in parts. */
interface Dealt {
  readonly whole: readonly Loop[];
  readonly cut: Loop;
  readonly part: Loop;
  /** Trips of a part. */
  readonly length: number;
  readonly rest: readonly Loop[];
}

function dealtOut({ loops }: Statement, parts: number): Dealt | undefined {
  if (loops.some((l) => constantValue(l.extent) === undefined)) return undefined;
  const scans = loops.filter((l) => l.kind === "scan");
  const extentOf = (l: Loop): number => constantValue(l.extent)!;
  const count = scans.reduce((n, l) => n * extentOf(l), 1);
  let whole = 0;
  let taken = 1;
  while (whole < scans.length - 1 && taken * extentOf(scans[whole]!) <= parts)
    taken *= extentOf(scans[whole++]!);
  const cut = scans[whole];
  if (!cut || count < parts * leastUpdates) return undefined;
  const length = Math.ceil(extentOf(cut) / Math.max(1, Math.floor(parts / taken)));
  const name = `${cut.name}_part`;
  const part: Loop = { name, extent: constant(Math.ceil(extentOf(cut) / length)), kind: "space" };
  if (taken * constantValue(part.extent)! < 2) return undefined;
  return { whole: scans.slice(0, whole), cut, part, length, rest: scans.slice(whole + 1) };
}

class ScatterSplit {
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #dealt: Dealt;
  readonly #tensor: RegionTensor;
  readonly #dtype: DType;
  /** Loops over the parts, and over the places of the tensor. */
  readonly #parts: readonly Loop[];
  readonly #places: readonly Loop[];
  /** By axis of the tensor, whether indices hang on it. */
  readonly #isKeyed: readonly boolean[];
  /** The statement's loops and loaded numbers at a place of the tensor. */
  readonly #atPlace: ReadonlyMap<string, IndexExpr>;
  readonly updates: number;

  constructor(region: Region, statement: Statement, dealt: Dealt) {
    this.#region = region;
    this.#statement = statement;
    this.#dealt = dealt;
    const write = statement.writes[0]!;
    this.#tensor = region.tensors.get(write.tensor)!;
    const isLast = write.combine === "overwrite";
    this.#dtype = isLast ? "i32" : scannedAs(this.#tensor.dtype);
    this.#parts = [...dealt.whole.map((l): Loop => ({ ...l, kind: "space" })), dealt.part];
    const { shape } = this.#tensor;
    this.#places = shape.map((extent, a) => ({ name: `at${a}`, extent, kind: "space" }));
    const deciding = variablesOf(...statement.indirects.flatMap((v) => v.access.index));
    const loaded = new Set(statement.indirects.map((v) => v.name));
    const names = write.index.map((e) => variableName(e)!);
    this.#isKeyed = names.map((n) => !isLast || loaded.has(n) || deciding.has(n));
    this.#atPlace = new Map(names.map((n, a) => [n, variable(this.#places[a]!.name)]));
    const scans = statement.loops.filter((l) => l.kind === "scan");
    this.updates = scans.reduce((n, l) => n * constantValue(l.extent)!, 1);
  }

  partsBytes(): number {
    const shape = [...this.#parts, ...this.#keyed()].map((l) => constantValue(l.extent)!);
    return shape.reduce((n, e) => n * e, dtypes[this.#dtype].bits / 8);
  }

  regions(writers: readonly Region[]): readonly Region[] {
    const { name } = this.#region;
    const write = this.#statement.writes[0]!;
    const before = this.#before(writers);
    const results = `${name}.parts`;
    const type = { dtype: this.#dtype, role: "intermediate" } as const;
    const keyed = this.#keyed().map((l) => l.extent);
    const shape = [...this.#parts.map((l) => l.extent), ...keyed];
    const made: Named[] = [[results, { ...type, name: results, shape }]];
    const fill = this.#lone(`${name}.fill`, made, this.#fill(results));
    if (write.combine !== "overwrite") {
      const fold = this.#foldParts(results, before, kinds[write.combine]);
      return [
        ...before.regions,
        fill,
        this.#lone(name, made, this.#update(results)),
        this.#lone(`${name}.fold`, [...made, ...before.tensors], fold),
      ];
    }
    const last = `${name}.last`;
    made.push([last, { ...type, name: last, shape: keyed }]);
    const chosen = this.#choose(last, before);
    return [
      ...before.regions,
      fill,
      this.#lone(name, made, this.#mark(results)),
      this.#lone(`${name}.fold`, made, this.#greatest(results, last)),
      this.#lone(`${name}.choose`, [...made, ...before.tensors], chosen),
    ];
  }

  /** Loops over the places that parts tell apart. */
  #keyed(): readonly Loop[] {
    return this.#places.filter((_, a) => this.#isKeyed[a]);
  }

  /** What is there before the updates at a place of the tensor: computed from what it is a copy of, where it is one. */
  #before(writers: readonly Region[]): Before {
    const { name } = this.#tensor;
    const [only, ...others] = writers;
    const [statement, ...more] = only!.statements;
    if (others.length === 0 && more.length === 0 && isMap(statement!)) {
      const names = statement!.writes[0]!.index.map(variableName);
      const at = new Map(names.map((n, a) => [n!, variable(this.#places[a]!.name)]));
      const tensors = [...only!.tensors].filter(([tensor]) => tensor !== name);
      const reads = statement!.reads.map((a) => substituteAccess(a, at));
      return { reads, value: substituteScalar(statement!.body[0]!, at), regions: [], tensors };
    }
    const base = `${this.#region.name}.base`;
    const regions = writers.map((w) => withTensorNamed(w, name, base));
    const tensors: Named[] = [[base, { ...this.#tensor, name: base, role: "intermediate" }]];
    const index = this.#places.map((l) => variable(l.name));
    const reads = [{ tensor: base, index, guard: [], fill: 0 }];
    return { reads, value: argument(0, this.#tensor.dtype), regions, tensors };
  }

  #fill(to: string): Statement {
    const { combine } = this.#statement.writes[0]!;
    const dtype = this.#dtype;
    const value = combine === "overwrite" ? 0 : identityElement(kinds[combine], dtype);
    return {
      ...this.#plain("fill"),
      loops: [...this.#parts, ...this.#keyed()],
      body: [literal(value, dtype)],
      writes: [
        { tensor: to, index: this.#index(this.#parts, this.#keyed()), combine: "overwrite" },
      ],
    };
  }

  /** The updates of each part behind each other. */
  #update(to: string): Statement {
    const { writes, reads, body, loops } = this.#statement;
    const index = [...this.#index(this.#parts), ...writes[0]!.index];
    return {
      ...this.#statement,
      ...this.#inParts(loops.filter((l) => l.kind === "space")),
      reads: reads.map((a) => substituteAccess(a, this.#whole())),
      body: body.map((e) => cast(substituteScalar(e, this.#whole()), this.#dtype, false)),
      writes: [{ ...writes[0]!, tensor: to, index }],
    };
  }

  /** The number of the last update of each part, from one on. */
  #mark(to: string): Statement {
    const { writes, loops } = this.#statement;
    const index = writes[0]!.index.filter((_, a) => this.#isKeyed[a]);
    const used = variablesOf(...index);
    const space = loops.filter((l) => l.kind === "space" && used.has(l.name));
    const scans = loops.filter((l) => l.kind === "scan");
    const number = scans.reduce<IndexExpr>(
      (n, l) => add(mul(n, l.extent), substitute(variable(l.name), this.#whole())),
      constant(0),
    );
    return {
      ...this.#plain("mark"),
      name: this.#statement.name,
      ...this.#inParts(space),
      body: [indexValue(add(number, 1), "i32")],
      writes: [
        { tensor: to, index: [...this.#index(this.#parts), ...index], combine: "overwrite" },
      ],
    };
  }

  /** Loops, guard and indices of the updates in parts. */
  #inParts(space: readonly Loop[]): Pick<Statement, "loops" | "guard" | "indirects"> {
    const { cut, length, rest, part } = this.#dealt;
    const own: Loop = { ...cut, extent: constant(length) };
    const isEven = constantValue(part.extent)! * length === constantValue(cut.extent)!;
    // The last part ends with the updates.
    const end: readonly Condition[] = isEven
      ? []
      : substituteConditions([less(variable(cut.name), cut.extent)], this.#whole());
    return {
      loops: [...this.#parts, own, ...rest, ...space],
      guard: end,
      indirects: this.#statement.indirects.map((v) => substituteIndirect(v, this.#whole())),
    };
  }

  /** The loop that is cut, by part and step of the part. */
  #whole(): ReadonlyMap<string, IndexExpr> {
    const { cut, part, length } = this.#dealt;
    return new Map([[cut.name, add(mul(length, variable(part.name)), variable(cut.name))]]);
  }

  /** What was there before with what the parts have in their order. */
  #foldParts(from: string, before: Before, kind: ReduceKind): Statement {
    const dtype = this.#dtype;
    const monoid = simpleMonoid(kind, dtype);
    const [all, first] = [argument(0, dtype), this.#behind(before, 1)];
    const both = bindArguments(monoid.combine[0]!, [cast(first, dtype, false), all]);
    const together = cast(both, this.#tensor.dtype, false);
    // Zero changes nothing but the sign of a zero.
    const isNothing = apply("equal", all, literal(0, dtype));
    const isSum = kind === "sum" && isFloatDType(dtype);
    return {
      ...this.#plain("fold"),
      loops: [...this.#places, ...this.#parts.map((l): Loop => ({ ...l, kind: "reduce" }))],
      reads: [this.#readParts(from)],
      body: [all],
      reduction: { monoid, numericClass: monoid.exact ? "exact" : "reassociates" },
      finishReads: before.reads,
      finish: [isSum ? apply("select", isNothing, first, together) : together],
      writes: [this.#writeAll()],
    };
  }

  #greatest(from: string, to: string): Statement {
    const monoid = simpleMonoid("max", "i32");
    return {
      ...this.#plain("fold"),
      loops: [...this.#keyed(), ...this.#parts.map((l): Loop => ({ ...l, kind: "reduce" }))],
      reads: [this.#readParts(from)],
      body: [argument(0, "i32")],
      reduction: { monoid, numericClass: "exact" },
      writes: [{ tensor: to, index: this.#index(this.#keyed()), combine: "overwrite" }],
    };
  }

  /** Each place has the update of the number that is left there, or what was there before. */
  #choose(last: string, before: Before): Statement {
    const { reads, body, loops } = this.#statement;
    const number = "last";
    const access = { tensor: last, index: this.#index(this.#keyed()), guard: [], fill: 0 };
    const loaded: Indirect = {
      ...{ name: number, access, extent: constant(this.updates + 1), wraps: false },
      range: "proved",
    };
    const at = new Map(this.#atPlace);
    let left = add(variable(number), -1);
    const scans = loops.filter((l) => l.kind === "scan");
    for (const [n, { name, extent }] of [...scans.entries()].reverse()) {
      at.set(name, n === 0 ? left : mod(left, extent));
      left = floorDiv(left, extent);
    }
    const inside = [
      less(0, variable(number)),
      ...loops.flatMap((l) => (l.kind === "space" ? [less(at.get(l.name)!, l.extent)] : [])),
    ];
    const bound = (a: Access): Access => {
      const moved = substituteAccess(a, at);
      return { ...moved, guard: [...inside, ...moved.guard] };
    };
    const isUpdated = apply("less", literal(0, "i32"), indexValue(variable(number), "i32"));
    const update = substituteScalar(body[0]!, at);
    return {
      ...this.#plain("choose"),
      loops: this.#places,
      indirects: [loaded],
      reads: [...reads.map(bound), ...before.reads],
      body: [apply("select", isUpdated, update, this.#behind(before, reads.length))],
      writes: [this.#writeAll()],
    };
  }

  /** What was there before, whose reads stand behind so many arguments. */
  #behind({ value, reads }: Before, count: number): ScalarExpr {
    return mapScalar(value, (leaf) =>
      leaf.kind === "argument" && leaf.index < reads.length
        ? argument(leaf.index + count, leaf.dtype)
        : leaf,
    );
  }

  #readParts(tensor: string): Access {
    const index = this.#index(this.#parts, this.#keyed());
    return { tensor, index, guard: [], fill: zeroOf(this.#dtype) };
  }

  #writeAll(): Write {
    const index = this.#index(this.#places);
    return { tensor: this.#tensor.name, index, combine: "overwrite" };
  }

  #index(...loops: readonly (readonly Loop[])[]): readonly IndexExpr[] {
    return loops.flat().map((l) => variable(l.name));
  }

  /** What statements that are made here have in common. */
  #plain(
    name: string,
  ): Pick<Statement, "name" | "origin" | "guard" | "indirects" | "reads" | "finishReads"> {
    const { origin } = this.#statement;
    const empty = { guard: [], indirects: [], reads: [], finishReads: [] };
    return { name: `${this.#statement.name}.${name}`, origin, ...empty };
  }

  #lone(name: string, made: readonly Named[], statement: Statement): Region {
    const written = statement.writes.map((w) => w.tensor);
    const touched = new Set([...tensorsRead(statement), ...written]);
    const all: Region["tensors"] = new Map([...this.#region.tensors, ...made]);
    return {
      ...this.#region,
      name,
      group: { ...this.#region.group, name },
      statements: [statement],
      tensors: new Map([...all].filter(([tensor]) => touched.has(tensor))),
    };
  }
}

/** What a tensor holds before it is updated, at one of its places. */
interface Before {
  readonly reads: readonly Access[];
  /** Arguments are the reads. */
  readonly value: ScalarExpr;
  /** What the reads name. */
  readonly tensors: readonly Named[];
  /** Regions that make it; none where `value` does. */
  readonly regions: readonly Region[];
}

/** Whether a statement makes each element of its tensor by itself. */
function isMap(statement: Statement): boolean {
  const { reduction, finish, finishReads, guard, indirects, loops, writes } = statement;
  const isPlain = !reduction && !finish && finishReads.length + guard.length === 0;
  const places = writes[0]!.index.map(variableName);
  return (
    isPlain &&
    indirects.length === 0 &&
    writes.length === 1 &&
    loops.every((l) => l.kind === "space" && places.includes(l.name)) &&
    new Set(places).size === loops.length &&
    places.length === loops.length
  );
}

/** The region with another name for a tensor that it writes. */
function withTensorNamed(region: Region, from: string, to: string): Region {
  const named = <T extends { readonly tensor: string }>(a: T): T =>
    a.tensor === from ? { ...a, tensor: to } : a;
  const statements = region.statements.map((s) => ({
    ...s,
    reads: s.reads.map(named),
    finishReads: s.finishReads.map(named),
    writes: s.writes.map(named),
  }));
  const tensors = [...region.tensors].map(([name, t]): Named => {
    return name === from ? [to, { ...t, name: to, role: "intermediate" }] : [name, t];
  });
  return { ...region, statements, tensors: new Map(tensors) };
}
