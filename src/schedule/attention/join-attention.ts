/**
 * The two products of attention and the softmax between them, each a region of its own, as one region, so
 * that no tensor of all scores need be. In: regions in order, prices (injected). Out: the regions, some
 * joined, where one kernel (attention-form.ts) costs less than the kernels apart. Reads go through other
 * names (views), and operands of the first product through what only moves or scales them for it.
 */
import { coalesceRegion } from "../../region/coalesce.ts";
import { type AnalysedProgram, analyseProgram } from "../../region/form-region.ts";
import { isContraction } from "../../region/groups.ts";
import type { Access, NestProgram, Region, Statement, Write } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import { type LayOut, regionsThatRead } from "../../region/regions-of.ts";
import { statementRanges, substituteAccess, substituteScalar } from "../../region/statement.ts";
import { tensorsRead } from "../../region/uses.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mod,
  mul,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import {
  apply,
  argument,
  bindArguments,
  literal,
  type ScalarExpr,
} from "../../semantics/scalar-expr.ts";
import { type BlockPrice, cheapestNs } from "../blocks/priced-schedules.ts";
import type { PricingOptions } from "../states/region-prices.ts";
import { attentionForm } from "./attention-form.ts";

/** Statements from one product to the other, at most. */
const mostStatements = 10;
/** Statements that an operand is read through, at most. */
const mostMoves = 6;

/** `apart` lays out the regions that are not joined. */
export function joinAttention(pricing: PricingOptions, apart: LayOut): LayOut {
  const known = new Map<string, number>();
  const cheapest = (source: Region, isMeant: (p: BlockPrice) => boolean): number => {
    const { key } = regionClass(source);
    const price = known.get(key) ?? cheapestNs(coalesceRegion(source).region, isMeant, pricing);
    known.set(key, price);
    return price;
  };
  return (regions, nests) => {
    const finder = new AttentionFinder(regions, nests);
    const gone = new Set<number>();
    const joinedAt = new Map<number, Region>();
    const lent = new Set<number>();
    for (const last of regions.keys()) {
      const found = finder.find(last);
      if (!found || found.members.some((at) => gone.has(at))) continue;
      const parts = found.members.map((at) => regions[at]!);
      const before = apart(parts, nests).regions.reduce((ns, r) => ns + cheapest(r, () => true), 0);
      if (cheapest(found.region, (p) => p.isAttention) >= before) continue;
      for (const at of found.members) gone.add(at);
      for (const at of found.lent) lent.add(at);
      joinedAt.set(last, found.region);
    }
    dropUnread(regions, { lent, gone, joinedAt, rootOf: (tensor) => finder.rootOf(tensor) });
    const laidOut = regions.flatMap((region, at) => {
      const joined = joinedAt.get(at);
      if (joined) return [joined];
      return gone.has(at) ? [] : [region];
    });
    return apart(laidOut, nests);
  };
}

/** Regions of places that nobody reads any more are part of the first that has them inside. */
function dropUnread(
  regions: readonly Region[],
  {
    lent,
    gone,
    joinedAt,
    rootOf,
  }: {
    readonly lent: ReadonlySet<number>;
    readonly gone: Set<number>;
    readonly joinedAt: Map<number, Region>;
    readonly rootOf: (tensor: string) => string;
  },
): void {
  // The last ones first: what they read may be read by them alone.
  for (const at of [...lent].sort((a, b) => b - a)) {
    const kept = regions.map((r, i) => joinedAt.get(i) ?? (gone.has(i) ? undefined : r));
    const written = new Set(regions[at]!.statements[0]!.writes.map((w) => rootOf(w.tensor)));
    const reads = (r: Region): boolean =>
      r.statements.some((s) => [...tensorsRead(s)].some((t) => written.has(rootOf(t))));
    const isRead = kept.some((r, i) => i !== at && r && reads(r));
    const [first] = joinedAt;
    if (isRead || !first) continue;
    gone.add(at);
    const [last, region] = first;
    const { anchor, inlined, epilogue } = regions[at]!.group;
    const all = [...new Set([...inlined, anchor, ...epilogue, ...region.group.inlined])];
    joinedAt.set(last, { ...region, group: { ...region.group, inlined: all } });
  }
}

interface Found {
  readonly region: Region;
  /** Regions that it takes the place of, by number, ascending. */
  readonly members: readonly number[];
  /** Regions of places that it has inside and others read as well, by number. */
  readonly lent: readonly number[];
}

/** Finds attention among the regions of one program. */
export class AttentionFinder {
  readonly #regions: readonly Region[];
  readonly #program: NestProgram;
  readonly #analysed: AnalysedProgram;
  readonly #views: ReadonlyMap<string, string>;
  /** Regions of one statement by what they write, all of it. */
  readonly #makers = new Map<string, number>();
  /** Regions that read a tensor, by number. */
  readonly #readers: ReadonlyMap<string, readonly number[]>;

  constructor(regions: readonly Region[], nests: NestProgram) {
    this.#regions = regions;
    this.#program = nests;
    this.#analysed = analyseProgram(nests);
    this.#readers = regionsThatRead(regions);
    this.#views = new Map(
      nests.items.flatMap((item) =>
        item.kind === "view" ? [[item.view.tensor, item.view.of] as const] : [],
      ),
    );
    for (const [at, { statements }] of regions.entries()) {
      if (statements.length !== 1) continue;
      for (const w of statements[0]!.writes) this.#makers.set(w.tensor, at);
    }
  }

  /** The attention whose second product is the region, if it is one that may run as a whole. */
  find(last: number): Found | undefined {
    const region = this.#regions[last]!;
    const [statement] = region.statements;
    if (region.statements.length !== 1 || !isContraction(statement!)) return undefined;
    for (const { tensor } of this.#plainly(statement!).reads) {
      const kept = this.#between(last, tensor);
      const found = kept && this.#joined(kept, last);
      if (found) return found;
    }
    return undefined;
  }

  /** The tensor that a name is a view of, or itself. */
  rootOf(tensor: string): string {
    const { roots } = this.#analysed.uses;
    return roots.get(tensor) ?? tensor;
  }

  #joined(kept: readonly number[], last: number): Found | undefined {
    const first = kept.find((at) => at !== last && isContraction(this.#statement(at)));
    const moves = new Set<number>();
    const places = this.#places(kept);
    const statements = kept.map((at) => {
      const plain = this.#plainly(this.#statement(at));
      const own = at === last ? plain : this.#withPlaces(plain, places);
      return at === first || at === last ? this.#throughMoves(own, moves) : own;
    });
    const isStillRead = (tensor: string): boolean => places.has(this.#makers.get(tensor) ?? -1);
    if (statements.some((s) => [...tensorsRead(s)].some(isStillRead))) return undefined;
    const own = this.#ownPlaces(places, kept.slice(0, -1));
    const lent = [...places].filter((at) => !own.has(at));
    const members = [...new Set([...moves, ...own, ...kept])].sort((a, b) => a - b);
    if (!this.#mayJoin(members, last)) return undefined;
    const region = this.#join(members, last, statements);
    const form = attentionForm(coalesceRegion(region).region);
    return typeof form === "string" ? undefined : { region, members, lent };
  }

  #statement(at: number): Statement {
    return this.#regions[at]!.statements[0]!;
  }

  /** All that is made from the results of another product on the way to one operand of the last, with both. */
  #between(last: number, operand: string): readonly number[] | undefined {
    const members = new Set([last]);
    const open = [operand];
    let products = 0;
    for (let tensor = open.pop(); tensor !== undefined; tensor = open.pop()) {
      const maker = this.#makers.get(tensor);
      if (maker === undefined || maker >= last || members.has(maker)) continue;
      if (!this.#leadsToScores(maker, mostStatements)) continue;
      members.add(maker);
      if (members.size > mostStatements) return undefined;
      if (isContraction(this.#statement(maker))) products++;
      else open.push(...tensorsRead(this.#plainly(this.#statement(maker))));
    }
    return products === 1 ? [...members].sort((a, b) => a - b) : undefined;
  }

  /** Statements that are computed from places and lengths: which columns a row meets. */
  #places(kept: readonly number[]): ReadonlySet<number> {
    // Beside the last one, whose operands are read from memory.
    const readers = new Set(kept.slice(0, -1));
    const places = new Set<number>();
    const open = [...readers];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const tensor of tensorsRead(this.#plainly(this.#statement(at)))) {
        const maker = this.#makers.get(tensor);
        if (maker === undefined || readers.has(maker) || maker >= kept.at(-1)!) continue;
        if (!this.#isPlace(maker)) continue;
        readers.add(maker);
        places.add(maker);
        open.push(maker);
      }
    }
    return places;
  }

  /** Those of the places that nobody else reads. */
  #ownPlaces(places: ReadonlySet<number>, kept: readonly number[]): ReadonlySet<number> {
    const own = new Set(places);
    for (let size = -1; size !== own.size; ) {
      size = own.size;
      const members = new Set([...kept, ...own]);
      for (const at of own) if (!this.#isWithin(at, members)) own.delete(at);
    }
    return own;
  }

  /** The statement with such statements put in where it reads what they make. */
  #withPlaces(statement: Statement, places: ReadonlySet<number>): Statement {
    const { reads, body, finish, finishReads, reduction } = statement;
    const made = reduction ? reduction.monoid.components : body;
    const results = made.map(({ dtype }, i) => argument(i, dtype));
    const [own, end] = [this.#putIn(reads, [], places), this.#putIn(finishReads, results, places)];
    return {
      ...statement,
      reads: own.reads,
      body: body.map((e) => bindArguments(e, own.values)),
      finishReads: end.reads,
      ...(finish && { finish: finish.map((e) => bindArguments(e, end.values)) }),
    };
  }

  /** Reads from outside the places, numbered behind what is given, and what was read by them. */
  #putIn(accesses: readonly Access[], given: readonly ScalarExpr[], places: ReadonlySet<number>) {
    const reads: Access[] = [];
    const valueRead = (access: Access): ScalarExpr => {
      const at = this.#makers.get(access.tensor);
      const isPlace = at !== undefined && places.has(at) && access.guard.length === 0;
      const { dtype } = this.#program.tensors.get(access.tensor)!;
      if (!isPlace) return argument(given.length + reads.push(access) - 1, dtype);
      const place = this.#statement(at);
      const where = new Map<string, IndexExpr>();
      const which = place.writes.findIndex((w) => w.tensor === access.tensor);
      place.writes[which]!.index.forEach((e, axis) => {
        where.set(e.key, access.index[axis]!);
      });
      const { reads: inner, body } = this.#plainly(place);
      const values = inner.map((a) => valueRead(substituteAccess(a, where)));
      return bindArguments(substituteScalar(body[which]!, where), values);
    };
    return { values: [...given, ...accesses.map(valueRead)], reads };
  }

  /** Whether a statement maps integers or truths. */
  #isPlace(at: number): boolean {
    const { reduction, finish, guard, indirects, loops, writes } = this.#statement(at);
    const isMap = !reduction && !finish && guard.length === 0 && indirects.length === 0;
    if (!isMap || loops.some((l) => l.kind !== "space") || !this.#isOwn(at)) return false;
    // Each loop is the place along one axis: what is read elsewhere is made there.
    const isPlain = ({ index }: Write): boolean => {
      const axes = index.filter((e) => constantValue(e) === undefined).map((e) => e.key);
      return axes.length === loops.length && loops.every((l) => axes.includes(l.name));
    };
    return writes.every((w) => {
      const { kind } = dtypes[this.#program.tensors.get(w.tensor)!.dtype];
      return isPlain(w) && (kind === "int" || kind === "bool");
    });
  }

  /** Whether members alone read what a statement makes. */
  #isWithin(at: number, members: ReadonlySet<number>): boolean {
    const { uses } = this.#analysed;
    const items = new Set([...members].map((m) => uses.statementAt.get(this.#statement(m).name)));
    return this.#statement(at).writes.every(({ tensor }) => {
      const within = (this.#readers.get(tensor) ?? []).every((r) => members.has(r));
      const readers = uses.readers.get(uses.roots.get(tensor) ?? tensor) ?? [];
      return within && readers.every((r) => items.has(r));
    });
  }

  /** Whether a statement folds or maps what a product makes, within some statements, before anything else multiplies. */
  #leadsToScores(at: number, steps: number): boolean {
    const statement = this.#statement(at);
    if (isContraction(statement)) return this.#isOwn(at);
    if (steps === 0 || statement.indirects.length > 0 || !this.#isOwn(at)) return false;
    return [...tensorsRead(this.#plainly(statement))].some((tensor) => {
      const maker = this.#makers.get(tensor);
      return maker !== undefined && maker < at && this.#leadsToScores(maker, steps - 1);
    });
  }

  /** Whether nobody but later items of the program reads what a region makes: not the caller, no routine. */
  #isOwn(at: number): boolean {
    const { uses, program } = this.#analysed;
    return this.#statement(at).writes.every(({ tensor }) => {
      const readers = uses.readers.get(uses.roots.get(tensor) ?? tensor) ?? [];
      return readers.every((r) => program.items[r]?.kind === "statement");
    });
  }

  /** Every reader of what the members make is one, but of the last; and nothing between needs them earlier. */
  #mayJoin(members: readonly number[], last: number): boolean {
    const { uses, order } = this.#analysed;
    const items = new Set<number>();
    for (const at of members) {
      const item = uses.statementAt.get(this.#statement(at).name);
      // A conversion between layouts is a region of its own, and nothing of the program.
      if (item === undefined) return false;
      items.add(item);
    }
    const isInside = members
      .filter((at) => at !== last)
      .every((at) =>
        this.#statement(at).writes.every(
          ({ tensor }) =>
            (uses.readers.get(uses.roots.get(tensor) ?? tensor) ?? []).every((r) => items.has(r)) &&
            (this.#readers.get(tensor) ?? []).every((r) => members.includes(r)),
        ),
      );
    return isInside && order.overtaken(items, [], Math.max(...items)) === undefined;
  }

  /** The statement with its reads under the names by which tensors are written. */
  #plainly(statement: Statement): Statement {
    const ranges = statementRanges(statement, this.#program.symbols);
    const plain = (access: Access): Access => this.#unview(access, ranges);
    return {
      ...statement,
      reads: statement.reads.map(plain),
      finishReads: statement.finishReads.map(plain),
    };
  }

  #unview(access: Access, ranges: IndexRanges): Access {
    const of = this.#views.get(access.tensor);
    if (of === undefined || access.guard.length > 0) return access;
    const [from, to] = [access.tensor, of].map((t) => this.#program.tensors.get(t)!.shape) as [
      readonly IndexExpr[],
      readonly IndexExpr[],
    ];
    // Axes that both have on the outside stay, open ones among them, whose places no division finds.
    const common = (at: (shape: readonly IndexExpr[], i: number) => IndexExpr): number => {
      const most = Math.min(from.length, to.length);
      let n = 0;
      while (n < most && at(from, n).key === at(to, n).key) n++;
      return n;
    };
    const first = common((shape, i) => shape[i]!);
    const last = Math.min(
      common((shape, i) => shape.at(-1 - i)!),
      Math.min(from.length, to.length) - first,
    );
    const inner = access.index.slice(first, access.index.length - last);
    let rest = inner.reduce<IndexExpr>(
      (at, e, i) => add(mul(at, from[first + i]!), e),
      constant(0),
    );
    const index: IndexExpr[] = [];
    for (const extent of to.slice(first, to.length - last).toReversed()) {
      index.unshift(simplify(mod(rest, extent), ranges));
      rest = simplify(floorDiv(rest, extent), ranges);
    }
    const around = [access.index.slice(0, first), access.index.slice(access.index.length - last)];
    const whole = [...around[0]!, ...index, ...around[1]!];
    return this.#unview({ ...access, tensor: of, index: whole }, ranges);
  }

  /** The product over what its operands are moved or scaled from, the scales in its finish. */
  #throughMoves(product: Statement, moves: Set<number>): Statement {
    const ranges = statementRanges(product, this.#program.symbols);
    let scale = 1;
    const reads = product.reads.map((source) => {
      let access = source;
      for (let n = 0; n < mostMoves; n++) {
        const at = this.#makers.get(access.tensor);
        const next = at === undefined ? undefined : this.#moved(at, access, product, moves);
        if (!next) break;
        moves.add(at!);
        scale *= next.scale;
        const index = next.access.index.map((e) => simplify(e, ranges));
        access = this.#unview({ ...next.access, index }, ranges);
      }
      return access;
    });
    if (scale === 1) return { ...product, reads };
    const { writes, finish } = product;
    const sum = apply("mul", argument(0, "f32"), literal(scale, "f32"));
    const types = product.finishReads.map((a) => this.#program.tensors.get(a.tensor)!.dtype);
    const others = types.map((dtype, i) => argument(i + 1, dtype));
    const given = finish ?? writes.map(() => argument(0, "f32"));
    return { ...product, reads, finish: given.map((e) => bindArguments(e, [sum, ...others])) };
  }

  /** Where an element comes from that a statement only moves, or multiplies by a constant, for the product. */
  #moved(at: number, access: Access, product: Statement, moves: ReadonlySet<number>) {
    const { reads, body, writes, loops, guard, reduction, finish, indirects } = this.#statement(at);
    const { uses } = this.#analysed;
    const [write] = writes;
    const isPlain = guard.length === 0 && indirects.length === 0 && !reduction && !finish;
    if (!isPlain || writes.length !== 1 || loops.some((l) => l.kind !== "space")) return undefined;
    const own = new Set([product.name, ...[...moves].map((m) => this.#statement(m).name)]);
    const readers = uses.readers.get(uses.roots.get(write!.tensor) ?? write!.tensor) ?? [];
    const { items } = this.#program;
    const within = (this.#readers.get(write!.tensor) ?? []).every((r) =>
      own.has(this.#regions[r]!.statements[0]!.name),
    );
    const isOwn = readers.every((r) => {
      const item = items[r];
      return item?.kind === "statement" && own.has(item.statement.name);
    });
    const factor = factorOf(body[0]!);
    if (!isOwn || !within || factor === undefined || reads.length !== 1 || access.guard.length > 0)
      return undefined;
    const [read] = reads;
    if (read!.guard.length > 0) return undefined;
    const places = new Map<string, IndexExpr>();
    for (const [axis, e] of write!.index.entries()) {
      const loop = loops.find((l) => l.name === e.key);
      if (loop && !places.has(loop.name)) places.set(loop.name, access.index[axis]!);
      else if (!indexEquals(e, access.index[axis]!)) return undefined;
    }
    if (loops.some((l) => !places.has(l.name))) return undefined;
    return { access: substituteAccess(read!, places), scale: factor };
  }

  #join(members: readonly number[], last: number, statements: readonly Statement[]): Region {
    const parts = members.map((at) => this.#regions[at]!);
    const { group, ...rest } = this.#regions[last]!;
    const written = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
    const used = new Set(statements.flatMap((s) => [...tensorsRead(s), ...written]));
    const results = new Set(statements.at(-1)!.writes.map((w) => w.tensor));
    const tensors: Region["tensors"] = new Map(
      [...used].map((name) => {
        const tensor = this.#program.tensors.get(name)!;
        const isLocal = written.has(name) && !results.has(name);
        return [name, isLocal ? { ...tensor, role: "local" as const } : tensor];
      }),
    );
    const before = parts
      .slice(0, -1)
      .flatMap((r) => [...r.group.inlined, r.group.anchor, ...r.group.epilogue]);
    const inlined = [...new Set([...before, ...group.inlined])];
    return { ...rest, group: { ...group, inlined }, statements, tensors };
  }
}

/** By what a body multiplies its one read, in its float type or a wider one; 1 where it moves it. */
function factorOf(body: ScalarExpr): number | undefined {
  if (body.kind === "argument") return 1;
  const inner = uncast(body, body.dtype);
  if (inner.kind !== "apply" || inner.op !== "mul") return undefined;
  const number = inner.operands.find((o) => o.kind === "literal");
  const read = inner.operands.map((o) => uncast(o, body.dtype)).find((o) => o.kind === "argument");
  return number?.kind === "literal" && read?.dtype === body.dtype
    ? Number(number.value)
    : undefined;
}

/** What is converted between a float type and f32. */
function uncast(e: ScalarExpr, dtype: DType): ScalarExpr {
  const isBetween = (t: DType): boolean => t === dtype || t === "f32";
  if (e.kind !== "cast" || !isFloatDType(dtype)) return e;
  return isBetween(e.dtype) && isBetween(e.operand.dtype) ? e.operand : e;
}
