/**
 * Statements as loops and expressions: what a program is before it becomes sets and maps. Directives
 * that change a program (split reductions, copies in tiles, storage) are changes of expressions, so
 * they work on this form; `toStatement` gives dependence analysis its sets and maps.
 */
import { type Constraint, equals, makeMap, makeRelation, makeSet, within } from "./build.ts";
import type { AccessKind, Statement } from "./dependence.ts";
import type { Affine, AffineLike } from "./expression.ts";
import { intersect } from "./operations.ts";
import type { IntegerMap, IntegerSet } from "./types.ts";

/** Where an access goes on one axis: an expression, or anywhere in a range (an index that is loaded). */
export type AxisIndex = Affine | { readonly low: AffineLike; readonly end: AffineLike };

export interface NestAccess {
  readonly kind: AccessKind;
  readonly array: string;
  readonly index: readonly AxisIndex[];
  /** When it happens at all: the guard of a padded read. */
  readonly where?: readonly Constraint[];
  /** For an update, or the read of a scan: the operator is associative within the numeric class. */
  readonly reassociable?: boolean;
}

export interface NestStatement {
  readonly name: string;
  /** Its loops; no two may share a name. */
  readonly dims: readonly string[];
  readonly domain: readonly Constraint[];
  /** Further bounds of its instances that need more than constraints: copies of what a tile needs. */
  readonly within?: IntegerSet;
  readonly accesses: readonly NestAccess[];
}

export function isRange(index: AxisIndex): index is Exclude<AxisIndex, Affine> {
  return "low" in index;
}

export function domainOf({ name, dims, domain, within: bounds }: NestStatement): IntegerSet {
  const set = makeSet({ tuple: name, dims, where: domain });
  return bounds ? intersect(set, bounds) : set;
}

/** { S[dims] -> array[index] }. */
export function accessMap(statement: NestStatement, access: NestAccess): IntegerMap {
  const axes = access.index.map((_, axis) => `${access.array}'${axis}`);
  const from = { tuple: statement.name, dims: statement.dims };
  const to = { tuple: access.array, dims: axes };
  if (access.where === undefined && !access.index.some(isRange)) {
    return makeMap({ from, to: { ...to, values: access.index as readonly Affine[] } });
  }
  const where = access.index.flatMap((at, axis) =>
    isRange(at) ? within(at.low, axes[axis]!, at.end) : [equals(axes[axis]!, at)],
  );
  return makeRelation({ from, to, where: [...where, ...(access.where ?? [])] });
}

/** What dependence analysis takes, with the order given as a map to time vectors. */
export function toStatement(nest: NestStatement, order: IntegerMap): Statement {
  const accesses = nest.accesses.map((access) => ({
    kind: access.kind,
    map: accessMap(nest, access),
    ...(access.reassociable !== undefined && { reassociable: access.reassociable }),
  }));
  return { name: nest.name, domain: domainOf(nest), accesses, order };
}
