/**
 * Scans of lines that are too few to fill a machine of blocks: a line is cut in parts whose elements are
 * combined first, what is before each part is a scan of those few results, and then each part is scanned by
 * itself and combined with it (Blelloch 1990; "reduce, then scan"). The last part may be shorter. In: regions in order, prices (injected).
 * Out: the regions, some as three, with tensors of a value for each part between them, where that costs less.
 */
import { coalesceRegion } from "../../region/coalesce.ts";
import type { Access, Loop, Region, RegionTensor, Statement, View } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import {
  substituteAccess,
  substituteConditions,
  substituteScalar,
} from "../../region/statement.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import type { DType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  sub,
  substitute,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import { argument, bindArguments } from "../../semantics/scalar-expr.ts";
import type { BlockLimits } from "../../target/target.ts";
import { enumerateRows } from "./rows-candidates.ts";
import { type ScanForm, scanForm } from "./scan-form.ts";

/** Into how many parts a line is cut. */
const partCounts = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384] as const;
/** The least elements of a part, and the most that a block keeps of one in registers. */
const leastPart = 256;
const mostPart = 16_384;
/** What the length of a part is a multiple of: whole turns of the threads of a row. */
const wholeTurns = 256;
/** Lines, of a block each, that every multiprocessor has at least where none is cut; beside each other, of a block. */
const blocksPerCore = 4;
const linesBeside = 32;

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function scansFor(priceOf: (region: Region) => number, limits: BlockLimits): LayOut {
  return (regions) => {
    const tensors = new Map<string, NonNullable<ReturnType<Region["tensors"]["get"]>>>();
    const views: View[] = [];
    const laidOut = regions.flatMap((region) => {
      if (!isScan(region)) return [region];
      // Axes of one element hide which axis is the nearest, and are loops over lines that a grid has no axis for.
      const joined = coalesceRegion(region, true);
      const cuts = partCounts
        .flatMap((parts) => splitScan(joined.region, parts, limits.cores))
        .filter(([, , scans]) => enumerateRows(scans, limits, false).length > 0);
      if (cuts.length === 0) return [region];
      const prices = cuts.map((cut) => cut.reduce((sum, r) => sum + priceOf(r), 0));
      const least = Math.min(...prices);
      if (least >= priceOf(region)) return [region];
      const cut = cuts[prices.indexOf(least)]!;
      for (const [name, tensor] of cut.flatMap((r) => [...r.tensors])) {
        if (tensor.role !== "local" && !region.tensors.has(name)) tensors.set(name, tensor);
      }
      for (const view of joined.views) {
        tensors.set(view.tensor, joined.region.tensors.get(view.tensor)!);
        views.push(view);
      }
      return cut;
    });
    const between = [...tensors].map(
      ([name, t]) => [name, { ...t, role: "intermediate" as const }] as const,
    );
    return { regions: laidOut, tensors: new Map(between), views };
  };
}

function isScan({ statements: [statement, ...others] }: Region): boolean {
  return others.length === 0 && statement!.loops.some((l) => l.kind === "scan");
}

/** The region as folds of parts, what is before them, and scans of them; none where that is not worth a price. */
export function splitScan(
  region: Region,
  parts: number,
  cores: number,
): readonly (readonly [Region, Region, Region])[] {
  const [statement] = region.statements;
  if (!statement || !isScan(region)) return [];
  if (statement.guard.length > 0 || statement.indirects.length > 0) return [];
  const form = scanForm(statement);
  if (typeof form === "string") return [];
  const extents = statement.loops.map((l) => constantValue(l.extent));
  if (extents.includes(undefined)) return [];
  const elements = constantValue(form.loop.extent)!;
  const lines = extents.reduce<number>((n, e) => n * e!, 1) / elements;
  const isEven = elements % parts === 0 && (elements / parts) % wholeTurns === 0;
  const length = isEven ? elements / parts : wholeTurns * Math.ceil(elements / parts / wholeTurns);
  const isCut = elements >= parts * leastPart && length < elements && length <= mostPart;
  const blocks = lines / (isAlongNearest(statement, form.loop) ? 1 : linesBeside);
  return isCut && blocks < blocksPerCore * cores
    ? [new ScanCut(region, statement, form, length).regions()]
    : [];
}

/** Whether neighbours in a line are neighbours in memory. */
function isAlongNearest({ writes }: Statement, { name }: Loop): boolean {
  return variablesOf(writes[0]!.index.at(-1)!).has(name);
}

/**
 * A scan whose loop is cut in parts of a length, the last of which ends with the line; parts are counted along memory,
 * steps within one as the scan does. Parts lie beside the elements of a line: the loop over them is the last over
 * lines where that is the nearest axis, else the first, and lines beside each other stay so.
 */
class ScanCut {
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #monoid: Monoid;
  readonly #dtype: DType;
  /** The fold of the elements, in steps of the scan. */
  readonly #fold: Statement;
  readonly #reversed: boolean;
  readonly #lines: readonly Loop[];
  readonly #part: Loop;
  /** A step, counted from the first of its part. */
  readonly #own: Loop;
  /** The step of the scan. */
  readonly #step: IndexExpr;
  /** Steps that there are. */
  readonly #guard: readonly Condition[];
  readonly #isNear: boolean;

  constructor(region: Region, statement: Statement, form: ScanForm, length: number) {
    const { fold, loop, reversed } = form;
    this.#region = region;
    this.#reversed = reversed;
    this.#statement = statement;
    this.#monoid = fold.reduction!.monoid;
    this.#dtype = this.#monoid.components[0]!.dtype;
    const back = new Map([[loop.name, sub(sub(loop.extent, 1), variable(loop.name))]]);
    this.#fold = reversed
      ? {
          ...fold,
          reads: fold.reads.map((a) => substituteAccess(a, back)),
          body: fold.body.map((e) => substituteScalar(e, back)),
        }
      : fold;
    this.#lines = statement.loops.filter((l) => l !== loop);
    const elements = constantValue(loop.extent)!;
    const parts = constant(Math.ceil(elements / length));
    this.#part = { name: `${loop.name}_part`, extent: parts, kind: "space" };
    this.#own = { ...loop, extent: constant(length) };
    const first = mul(length, variable(this.#part.name));
    this.#step = add(reversed ? sub(elements - length, first) : first, variable(loop.name));
    const end: Condition = reversed
      ? { kind: "nonNegative", expr: this.#step }
      : less(this.#step, elements);
    this.#guard = elements % length === 0 ? [] : [end];
    this.#isNear = isAlongNearest(statement, loop);
  }

  regions(): readonly [Region, Region, Region] {
    const { name, tensors } = this.#region;
    const [folds, before] = [`${name}.parts`, `${name}.before`];
    const shape = this.#rows().map((l) => l.extent);
    const between = [folds, before].map(
      (tensor) =>
        [tensor, { name: tensor, dtype: this.#dtype, shape, role: "intermediate" }] as const,
    );
    const write = this.#statement.writes[0]!;
    const written = tensors.get(write.tensor)!;
    const inside = `${name}.inside`;
    const local = {
      name: inside,
      dtype: this.#dtype,
      shape: written.shape,
      role: "local",
    } as const;
    const all: Region["tensors"] = new Map<string, RegionTensor>([
      ...tensors,
      ...between,
      [inside, local],
    ]);
    return [
      this.#lone(name, all, this.#folds(folds)),
      this.#lone(`${name}.before`, all, this.#before(folds, before)),
      this.#lone(`${name}.scan`, all, ...this.#scans(inside, before)),
    ];
  }

  /** All elements of each part. */
  #folds(to: string): Statement {
    const { finish: _, ...rest } = this.#fold;
    return {
      ...rest,
      ...this.#inParts(),
      guard: this.#guard,
      loops: [...this.#rows(), { ...this.#own, kind: "reduce" }],
      writes: [{ tensor: to, index: this.#place(), combine: "overwrite" }],
    };
  }

  /** What is before each part: the scan of the folds without its own. */
  #before(from: string, to: string): Statement {
    const { name, origin } = this.#statement;
    const step = variable(this.#part.name);
    const placeOf = (e: IndexExpr): readonly IndexExpr[] =>
      this.#place(this.#reversed ? sub(sub(this.#part.extent, 1), e) : e);
    const earlier = placeOf(add(step, -1));
    const guard = [{ kind: "nonNegative" as const, expr: add(variable(this.#part.name), -1) }];
    const fill = this.#identity();
    const read = (tensor: string): Access => ({ tensor, index: earlier, guard, fill });
    return {
      ...{ name: `${name}.before`, origin, guard: [], indirects: [], finishReads: [] },
      loops: this.#rows({ ...this.#part, kind: "scan" }),
      reads: [read(to), read(from)],
      body: this.#monoid.combine,
      writes: [{ tensor: to, index: placeOf(step), combine: "overwrite" }],
    };
  }

  /** Each part by itself, and behind what is before it. */
  #scans(inside: string, before: string): readonly [Statement, Statement] {
    const { name, origin } = this.#statement;
    const write = this.#statement.writes[0]!;
    const { reads, body } = this.#inParts();
    const index = write.index.map((e) => this.#at(e));
    const last = new Map([[this.#own.name, add(variable(this.#own.name), -1)]]);
    const own: Access = {
      tensor: inside,
      index: index.map((e) => substitute(e, last)),
      guard: [
        { kind: "nonNegative", expr: add(variable(this.#own.name), -1) },
        // The part that a line ends with begins within it.
        ...(this.#reversed ? substituteConditions(this.#guard, last) : []),
      ],
      fill: this.#identity(),
    };
    const element = bindArguments(
      body[0]!,
      reads.map((a, i) => argument(i + 1, this.#region.tensors.get(a.tensor)!.dtype)),
    );
    const loops = [...this.#rows(), this.#own];
    const plain = { origin, guard: this.#guard, indirects: [], finishReads: [] };
    const scan: Statement = {
      ...{ ...plain, name: `${name}.inside`, loops, reads: [own, ...reads] },
      body: this.#monoid.combine.map((e) => {
        return bindArguments(e, [argument(0, this.#dtype), element]);
      }),
      writes: [{ tensor: inside, index, combine: "overwrite" }],
    };
    // Elements of a row are counted along memory.
    const { extent, name: step } = this.#own;
    const along = this.#reversed
      ? new Map([[step, sub(sub(extent, 1), variable(step))]])
      : new Map<string, IndexExpr>();
    const places = index.map((e) => substitute(e, along));
    const unguarded = { guard: [], fill: this.#identity() };
    const [whole] = this.#monoid.combine;
    const behind: Statement = {
      ...{ ...plain, name: `${name}.scan`, guard: substituteConditions(this.#guard, along) },
      loops: loops.map((l) => ({ ...l, kind: "space" })),
      reads: [
        { tensor: before, index: this.#place(), ...unguarded },
        { tensor: inside, index: places, ...unguarded },
      ],
      body: this.#fold.finish!.map((e) => bindArguments(e, [whole!])),
      writes: [{ ...write, index: places }],
    };
    return [scan, behind];
  }

  #inParts(): Pick<Statement, "reads" | "body"> {
    const steps = new Map([[this.#own.name, this.#step]]);
    return {
      reads: this.#fold.reads.map((a) => substituteAccess(a, steps)),
      body: this.#fold.body.map((e) => substituteScalar(e, steps)),
    };
  }

  #at(e: IndexExpr): IndexExpr {
    return substitute(e, new Map([[this.#own.name, this.#step]]));
  }

  #place(part: IndexExpr = variable(this.#part.name)): readonly IndexExpr[] {
    const lines = this.#lines.map((l) => variable(l.name));
    return this.#isNear ? [...lines, part] : [part, ...lines];
  }

  /** Loops over the parts of all lines. */
  #rows(part: Loop = this.#part): readonly Loop[] {
    return this.#isNear ? [...this.#lines, part] : [part, ...this.#lines];
  }

  #identity(): number | bigint {
    const [identity] = this.#monoid.identity;
    return identity?.kind === "literal" ? identity.value : 0;
  }

  #lone(name: string, tensors: Region["tensors"], ...statements: readonly Statement[]): Region {
    const touched = new Set(
      statements.flatMap((s) => [...s.reads, ...s.finishReads, ...s.writes].map((a) => a.tensor)),
    );
    return {
      ...this.#region,
      name,
      group: { ...this.#region.group, name },
      statements,
      tensors: new Map([...tensors].filter(([tensor]) => touched.has(tensor))),
    };
  }
}
