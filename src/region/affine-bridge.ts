/**
 * The statements of a region as integer sets and maps, for dependence analysis and legality. What is
 * not affine is over-approximated, which is sound: an expression of symbols alone (H*W) becomes one
 * opaque parameter with its range; an axis indexed through an index tensor or by a product with a
 * loop may be anywhere in the tensor; a condition that is not affine is left out. `approximated` says
 * where that happened. Tensors of a region are taken to be distinct memory.
 *
 * A reduction is a read-modify-write of its result by every instance; whether its order may change
 * follows from its numeric class.
 */
import * as affine from "../affine/index.ts";
import type { Condition } from "../semantics/condition.ts";
import {
  constantValue,
  fromTerms,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  variablesOf,
} from "../semantics/index-expr.ts";
import { type IndexRange, rangeOf } from "../semantics/index-range.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import type { Access, Region, Statement, Write } from "./nest.ts";
import { symbolRanges } from "./statement.ts";

export interface BridgedStatement {
  /** Tuple named after the statement, one dimension per loop in their order. */
  readonly domain: affine.IntegerSet;
  /** As `Statement.reads`, then finish reads, then index tensors. */
  readonly reads: readonly affine.IntegerMap[];
  readonly writes: readonly affine.IntegerMap[];
}

export interface BridgedRegion {
  readonly statements: ReadonlyMap<string, BridgedStatement>;
  /** What dependence analysis takes; the order is that of the region. */
  readonly affine: readonly affine.Statement[];
  /** Ranges of symbols and opaque parameters, the context of queries. */
  readonly context: affine.IntegerSet;
  /** What each opaque parameter stands for. */
  readonly parameters: ReadonlyMap<string, IndexExpr>;
  /** Expressions that were widened, each once. */
  readonly approximated: readonly string[];
}

/** With `only`, reads of other tensors are left out. */
export function bridgeRegion(
  region: Pick<Region, "statements" | "symbols" | "tensors">,
  only?: ReadonlySet<string>,
): BridgedRegion {
  const bridge = new Bridge(region, only);
  const statements = new Map(region.statements.map((s) => [s.name, bridge.statement(s)]));
  const order = region.statements.map((s, at) => bridge.inOrder(s, statements.get(s.name)!, at));
  return {
    statements,
    affine: order,
    context: bridge.context(),
    parameters: bridge.parameters(),
    approximated: [...bridge.approximated],
  };
}

/** Statements as loops and expressions, for directives that change a program (affine/tree). */
export interface RegionNest {
  /** In the order of the region. */
  readonly statements: readonly affine.NestStatement[];
  readonly context: affine.IntegerSet;
  readonly approximated: readonly string[];
}

export function bridgeNest(region: Pick<Region, "statements" | "symbols" | "tensors">): RegionNest {
  const bridge = new Bridge(region, undefined);
  const statements = region.statements.map((s) => bridge.nestStatement(s));
  return { statements, context: bridge.context(), approximated: [...bridge.approximated] };
}

/** The memory dependences between all instances of the statements of a region. */
export function findRegionDependences(
  region: Pick<Region, "statements" | "symbols" | "tensors">,
  limit?: number,
): affine.Answer<readonly affine.Dependence[]> {
  return affine.findDependences(bridgeRegion(region).affine, limit);
}

/** The elements of a tensor that an access touches over the whole domain. */
export function footprintOf(
  statement: BridgedStatement,
  access: affine.IntegerMap,
): affine.IntegerSet {
  return affine.applyMap(access, statement.domain);
}

interface OpaqueParameter {
  readonly name: string;
  readonly range: IndexRange;
  readonly expr: IndexExpr;
}

class Bridge {
  readonly approximated = new Set<string>();
  readonly #region: Pick<Region, "tensors">;
  readonly #ranges: ReadonlyMap<string, IndexRange>;
  /** Opaque parameters by the text of what they stand for. */
  readonly #opaque = new Map<string, OpaqueParameter>();
  readonly #only: ReadonlySet<string> | undefined;

  constructor(region: Pick<Region, "symbols" | "tensors">, only: ReadonlySet<string> | undefined) {
    this.#region = region;
    this.#only = only;
    this.#ranges = symbolRanges(region.symbols);
  }

  statement(statement: Statement): BridgedStatement {
    const { loops, guard, reads, finishReads, indirects, writes } = statement;
    const bounds = loops.flatMap(({ name, extent }) => [
      affine.atMost(0, name),
      ...this.#below(name, extent),
    ]);
    const where = [...bounds, ...this.#conditions(guard)];
    const dims = loops.map((l) => l.name);
    const all = [...reads, ...finishReads, ...indirects.map((v) => v.access)];
    const accesses = all.filter((a) => this.#only?.has(a.tensor) ?? true);
    return {
      domain: affine.makeSet({ tuple: statement.name, dims, where }),
      reads: accesses.map((access) => this.#map(statement, access, access.guard)),
      writes: writes.map((write) => this.#map(statement, write, [])),
    };
  }

  nestStatement(statement: Statement): affine.NestStatement {
    const { name, loops, guard, reads, finishReads, indirects, writes } = statement;
    const bounds = loops.flatMap((l) => [
      affine.atMost(0, l.name),
      ...this.#below(l.name, l.extent),
    ]);
    const others = [...finishReads, ...indirects.map((v) => v.access)];
    return {
      name,
      dims: loops.map((l) => l.name),
      domain: [...bounds, ...this.#conditions(guard)],
      accesses: [
        ...reads.map((a, at) => ({
          ...this.#nestAccess(statement, a, a.guard),
          kind: "read" as const,
          ...carries(statement, at),
        })),
        ...others.map((a) => ({
          ...this.#nestAccess(statement, a, a.guard),
          kind: "read" as const,
        })),
        ...writes.map((w) => ({
          ...this.#nestAccess(statement, w, []),
          ...writeKind(statement, w),
        })),
      ],
    };
  }

  #nestAccess(
    { indirects }: Statement,
    { tensor, index }: Pick<Access, "tensor" | "index">,
    guard: readonly Condition[],
  ): Pick<affine.NestAccess, "array" | "index" | "where"> {
    const { shape } = this.#region.tensors.get(tensor)!;
    const loaded = new Set(indirects.map((v) => v.name));
    const where = this.#conditions(guard.filter((c) => !mentionsAny(c.expr, loaded)));
    return {
      array: tensor,
      index: index.map((at, axis) => {
        const known = mentionsAny(at, loaded) ? this.#widen(at) : this.#convert(at);
        return known ?? { low: 0, end: this.#convert(shape[axis]!)! };
      }),
      ...(where.length > 0 && { where }),
    };
  }

  /** The statement with its accesses by kind, at its place in the region. */
  inOrder(
    statement: Statement,
    { domain, reads, writes }: BridgedStatement,
    at: number,
  ): affine.Statement {
    const dims = statement.loops.map((l) => l.name);
    const order = affine.makeMap({
      from: { tuple: statement.name, dims },
      to: { values: [at, ...dims] },
    });
    const accesses = [
      ...reads.map((map) => ({ kind: "read" as const, map })),
      ...writes.map((map, i) => ({ ...writeKind(statement, statement.writes[i]!), map })),
    ];
    return { name: statement.name, domain, accesses, order };
  }

  context(): affine.IntegerSet {
    const named = [...this.#ranges].map(([name, range]) => ({ name, range }));
    return affine.makeContext(
      [...named, ...this.#opaque.values()].flatMap(({ name, range: { min, max } }) => [
        ...(Number.isFinite(min) ? [affine.atMost(min, name)] : []),
        ...(Number.isFinite(max) ? [affine.atMost(name, max)] : []),
      ]),
    );
  }

  parameters(): ReadonlyMap<string, IndexExpr> {
    return new Map([...this.#opaque.values()].map(({ name, expr }) => [name, expr]));
  }

  #map(
    statement: Statement,
    { tensor, index }: Pick<Access, "tensor" | "index">,
    guard: readonly Condition[],
  ): affine.IntegerMap {
    const { shape } = this.#region.tensors.get(tensor)!;
    const loaded = new Set(statement.indirects.map((v) => v.name));
    const loops = new Set(statement.loops.map((l) => l.name));
    const axes = index.map((_, axis) => `${tensor}'${axis}`);
    const from = { tuple: statement.name, dims: [...loops] };
    const values = index.map((at) =>
      loaded.size > 0 && mentionsAny(at, loaded) ? this.#widen(at) : this.#convert(at),
    );
    const conditions = this.#conditions(guard.filter((c) => !mentionsAny(c.expr, loaded)));
    const known = values.filter((v) => v !== undefined);
    if (known.length === index.length && conditions.length === 0) {
      return affine.makeMap({ from, to: { tuple: tensor, dims: axes, values: known } });
    }
    const where = values.flatMap((value, axis) => {
      if (value) return [affine.equals(axes[axis]!, value)];
      return [affine.atMost(0, axes[axis]!), ...this.#below(axes[axis]!, shape[axis]!)];
    });
    return affine.makeRelation({
      from,
      to: { tuple: tensor, dims: axes },
      where: [...where, ...conditions],
    });
  }

  /** name < extent, for each operand of a minimum. */
  #below(name: string, extent: IndexExpr): readonly affine.Constraint[] {
    return minimumOf(extent).flatMap((bound) => {
      const end = this.#convert(bound);
      return end ? [affine.below(name, end)] : [];
    });
  }

  #conditions(conditions: readonly Condition[]): readonly affine.Constraint[] {
    return conditions.flatMap(({ kind, expr }) => {
      const value = this.#convert(expr);
      if (!value) return [];
      return [kind === "zero" ? affine.equals(value, 0) : affine.atMost(0, value)];
    });
  }

  #widen(expr: IndexExpr): undefined {
    this.approximated.add(expr.key);
    return undefined;
  }

  /** The expression over loops and parameters; undefined when it is not affine in the loops. */
  #convert(expr: IndexExpr): affine.Affine | undefined {
    let sum = affine.affine(expr.constant);
    for (const term of expr.terms) {
      const value = this.#convertTerm(term);
      if (!value) return this.#widen(expr);
      sum = affine.add(sum, affine.scale(term.coefficient, value));
    }
    return sum;
  }

  #convertTerm({ atoms }: IndexTerm): affine.Affine | undefined {
    const [atom, ...others] = atoms;
    if (atom && others.length === 0) {
      if (atom.kind === "variable") return affine.affine(atom.name);
      const divided = this.#convertDivision(atom);
      if (divided) return divided;
    }
    return this.#opaqueParameter({ coefficient: 1, atoms, key: atoms.map((a) => a.key).join("*") });
  }

  #convertDivision(atom: Exclude<IndexAtom, { kind: "variable" }>): affine.Affine | undefined {
    if (atom.kind !== "floorDiv" && atom.kind !== "mod") return undefined;
    const divisor = constantValue(atom.denominator);
    const numerator = divisor === undefined ? undefined : this.#convert(atom.numerator);
    if (divisor === undefined || !numerator) return undefined;
    return atom.kind === "mod"
      ? affine.remainder(numerator, divisor)
      : affine.floorDivide(numerator, divisor);
  }

  /** A parameter for a product or division of symbols; undefined when a loop takes part. */
  #opaqueParameter(term: IndexTerm): affine.Affine | undefined {
    const expr = fromTerms(0, [term]);
    if ([...variablesOf(expr)].some((name) => !this.#ranges.has(name))) return undefined;
    const known = this.#opaque.get(term.key);
    const name = `p$${this.#opaque.size}`;
    const made = known ?? { name, range: rangeOf(expr, this.#ranges), expr };
    this.#opaque.set(term.key, made);
    return affine.affine(made.name);
  }
}

function mentionsAny(expr: IndexExpr, names: ReadonlySet<string>): boolean {
  return [...variablesOf(expr)].some((n) => names.has(n));
}

/** The operands of a minimum, or the expression itself. */
function minimumOf(expr: IndexExpr): readonly IndexExpr[] {
  const [term, ...others] = expr.terms;
  const atom = term?.atoms[0];
  const alone = others.length === 0 && expr.constant === 0 && term?.coefficient === 1;
  return alone && term.atoms.length === 1 && atom?.kind === "min" ? atom.operands : [expr];
}

/** Operators that may be reassociated, with what leaves the other operand as it is. */
const carriedOperators: Readonly<Record<string, number>> = {
  add: 0,
  mul: 1,
  max: -Infinity,
  min: Infinity,
};

/** Marks the read of a scan's last result where an associative operator alone carries it on. */
function carries(
  { reads, body, loops, writes, finish }: Statement,
  at: number,
): { readonly reassociable?: true } {
  const [value] = body;
  const read = reads[at]!;
  const scans = loops.some((l) => l.kind === "scan") && writes[0]?.tensor === read.tensor;
  if (!scans || body.length !== 1 || finish || value?.kind !== "apply") return {};
  const identity = carriedOperators[value.op];
  const isRead = (e: ScalarExpr): boolean => e.kind === "argument" && e.index === at;
  const alone = value.operands.filter((e) => mentionsArgument(e, at)).length === 1;
  const filled = read.guard.length === 0 || Number(read.fill) === identity;
  return identity !== undefined && alone && value.operands.some(isRead) && filled
    ? { reassociable: true }
    : {};
}

function mentionsArgument(e: ScalarExpr, at: number): boolean {
  if (e.kind === "argument") return e.index === at;
  if (e.kind === "cast") return mentionsArgument(e.operand, at);
  return e.kind === "apply" && e.operands.some((o) => mentionsArgument(o, at));
}

function writeKind(
  { reduction, loops }: Statement,
  { combine }: Write,
): { readonly kind: affine.AccessKind; readonly reassociable?: boolean } {
  if (combine !== "overwrite") return { kind: "update", reassociable: true };
  if (!reduction || !loops.some((l) => l.kind === "reduce")) return { kind: "write" };
  return { kind: "update", reassociable: reduction.numericClass !== "approximates" };
}
