/**
 * Maps that only products read as part of these: what a map makes of an operand (a conversion, a dequantisation, a
 * relu) becomes of its elements on their way to the multiplication (product-operands.ts), so that they are read as
 * they are stored, once, and no kernel writes what is made of them. In: regions in order, prices (injected). Out: the
 * regions, products with what makes their operands, where that costs less than both apart.
 *
 * What is made of weights alone costs nothing apart, since it is computed before the program runs (compile.ts); then
 * a product that reads fewer bytes of it is all that a prologue can gain by.
 */
import { type AnalysedProgram, analyseProgram } from "../../region/form-region.ts";
import { inlineProducer } from "../../region/inline-producer.ts";
import type { NestProgram, NestTensor, Region, Statement, TensorRole } from "../../region/nest.ts";
import { type LayOut, type ProgramRegions, regionsThatRead } from "../../region/regions-of.ts";
import { tensorsRead, updatesInPlace } from "../../region/uses.ts";
import { orderWeights } from "../../region/weight-order.ts";
import { hasPrologue, productForm } from "./product-form.ts";

type RegionTensor = NestTensor & { readonly role: TensorRole };

/**
 * @param priceOf nanoseconds of a region by its cheapest schedule
 * @param next what becomes of products afterwards, which is priced with them
 */
export function prologuesFor(priceOf: (region: Region) => number, next: LayOut): LayOut {
  return (regions, nests) => new Prologues(regions, nests, { priceOf, next }).layOut();
}

interface Pricing {
  readonly priceOf: (region: Region) => number;
  readonly next: LayOut;
}

class Prologues {
  readonly #regions: Region[];
  readonly #nests: NestProgram;
  readonly #analysed: AnalysedProgram;
  readonly #readers: ReadonlyMap<string, readonly number[]>;
  readonly #pricing: Pricing;
  readonly #gone = new Set<number>();
  readonly #tensors = new Map<string, RegionTensor>();

  constructor(regions: readonly Region[], nests: NestProgram, pricing: Pricing) {
    this.#regions = [...regions];
    this.#nests = nests;
    this.#analysed = analyseProgram(nests);
    this.#readers = regionsThatRead(regions);
    this.#pricing = pricing;
  }

  layOut(): ReturnType<LayOut> {
    for (const at of this.#regions.keys()) this.#fuse(at);
    const regions = this.#regions.filter((_, at) => !this.#gone.has(at));
    return { regions, tensors: this.#tensors };
  }

  /** Puts a map into the products that read it: into all of them, or, where it costs nothing apart, into each that gains. */
  #fuse(at: number): void {
    const producer = this.#regions[at]!;
    const tensor = this.#resultOf(producer);
    const readers = tensor === undefined ? [] : (this.#readers.get(tensor) ?? []);
    if (tensor === undefined || readers.length === 0) return;
    const products = readers.map((reader) => this.#withPrologue(reader, producer, tensor));
    const isConstant = readsOnlyWeights(
      producer.statements,
      (name) => producer.tensors.get(name)!.role,
    );
    const apart = readers.map((reader) => {
      const region = this.#regions[reader]!;
      return this.#best(isConstant ? asWeight(region, tensor) : region).price;
    });
    const isCheaper = (i: number): boolean => products[i]!.price < apart[i]!;
    const sum = (prices: readonly number[]): number => prices.reduce((a, b) => a + b, 0);
    const all = sum(products.map((p) => p.price));
    const isTaken = isConstant
      ? isCheaper
      : () => all < sum(apart) + this.#pricing.priceOf(producer);
    const taken = readers.filter((_, i) => isTaken(i));
    for (const [i, reader] of readers.entries()) {
      if (taken.includes(reader)) this.#take(reader, products[i]!.region);
    }
    if (taken.length === readers.length) this.#gone.add(at);
  }

  #take(at: number, region: Region): void {
    this.#regions[at] = region;
    for (const [name, { role, ...rest }] of region.tensors) {
      if (role !== "local" && !this.#nests.tensors.has(name)) {
        this.#tensors.set(name, { ...rest, role });
      }
    }
  }

  /** The one tensor that a map makes of each place by itself and that regions alone read, as the program has it. */
  #resultOf({ statements }: Region): string | undefined {
    const [statement, ...others] = statements;
    const { uses, program } = this.#analysed;
    if (!statement || others.length > 0 || !uses.statementAt.has(statement.name)) return undefined;
    if (!isMap(statement)) return undefined;
    const { tensor } = statement.writes[0]!;
    const isOwn = program.tensors.get(tensor)?.role === "intermediate" && !uses.aliased.has(tensor);
    const readers = uses.readers.get(tensor) ?? [];
    const isPlain = readers.every((at) => program.items[at]?.kind === "statement");
    return isOwn && isPlain && uses.writers.get(tensor)?.length === 1 ? tensor : undefined;
  }

  /** A product with a map as its prologue, in the cheaper order of its weights; none costs Infinity. */
  #withPrologue(at: number, producer: Region, tensor: string): Priced {
    const product = this.#regions[at]!;
    const none = { region: product, price: Infinity };
    const [statement, ...others] = product.statements;
    if (!statement || others.length > 0) return none;
    if (typeof productForm(product, statement) === "string") return none;
    if (statement.finishReads.some((r) => r.tensor === tensor)) return none;
    const { uses, order } = this.#analysed;
    const [own, makes] = [statement.name, producer.statements[0]!.name].map((name) =>
      uses.statementAt.get(name),
    );
    if (own === undefined || makes === undefined) return none;
    if (order.overtaken(new Set([own]), [makes], own) !== undefined) return none;
    const composed = inlineProducer(this.#nests, statement, producer.statements[0]!);
    if (composed.kind === "refused") return none;
    const region = withMembers(product, producer, composed.statement);
    const form = productForm(region, composed.statement);
    return typeof form === "string" || !hasPrologue(form) ? none : this.#best(region);
  }

  /** The region with its weights as they are or in the order of its loops, whichever is cheaper. */
  #best(region: Region): Priced {
    const ordered = orderWeights(region);
    const ways = [region, ...(ordered ? [ordered] : [])].map((way) => {
      const { regions } = this.#pricing.next([way], this.#nests);
      return { region: way, price: regions.reduce((sum, r) => sum + this.#pricing.priceOf(r), 0) };
    });
    return ways.reduce((a, b) => (b.price < a.price ? b : a));
  }
}

interface Priced {
  readonly region: Region;
  readonly price: number;
}

/** Whether every element of one tensor is made by itself. */
function isMap(statement: Statement): boolean {
  const { reduction, finish, finishReads, guard, loops, indirects, writes } = statement;
  const isPlain = !reduction && !finish && finishReads.length + guard.length === 0;
  const isOne = writes.length === 1 && indirects.length === 0 && !updatesInPlace(statement);
  return isPlain && isOne && loops.every((l) => l.kind === "space");
}

/** What the regions of a program leave in memory that is the same in every run. */
export function constantResults({ regions, nests, rootOf }: ProgramRegions): ReadonlySet<string> {
  const roleOf = (tensor: string): TensorRole | undefined =>
    nests.tensors.get(rootOf(tensor))?.role;
  const made = new Set<string>();
  // Regions are in order: what one makes of constants, others read as such.
  for (const { statements } of regions) {
    const own = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
    const read = statements.flatMap((s) => [...tensorsRead(s)]).filter((t) => !own.has(t));
    if (!read.every((t) => roleOf(t) === "weight" || made.has(rootOf(t)))) continue;
    for (const tensor of own) {
      if (roleOf(tensor) === "intermediate") made.add(rootOf(tensor));
    }
  }
  return made;
}

function readsOnlyWeights(
  statements: readonly Statement[],
  roleOf: (tensor: string) => RegionTensor["role"] | "local" | undefined,
): boolean {
  const read = statements.flatMap((s) => [...tensorsRead(s)]);
  return read.length > 0 && read.every((name) => roleOf(name) === "weight");
}

/** The region as if a tensor that it reads were stored. */
function asWeight(region: Region, tensor: string): Region {
  const tensors = new Map(region.tensors);
  tensors.set(tensor, { ...tensors.get(tensor)!, role: "weight" });
  return { ...region, tensors };
}

function withMembers(product: Region, producer: Region, composed: Statement): Region {
  const { inlined, anchor, epilogue } = producer.group;
  const members = [...inlined, anchor, ...epilogue, ...product.group.inlined];
  const touched = new Set([...tensorsRead(composed), ...composed.writes.map((w) => w.tensor)]);
  const all = [...product.tensors, ...producer.tensors].filter(([name]) => touched.has(name));
  const origins = [producer.statements[0]!, composed].flatMap((s) => s.origin.split(" + "));
  return {
    ...product,
    group: { ...product.group, inlined: [...new Set(members)] },
    statements: [{ ...composed, origin: [...new Set(origins)].join(" + ") }],
    tensors: new Map(all),
  };
}
