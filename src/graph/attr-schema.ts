/**
 * Attribute schemas: what each attribute of an op is, as data. The text form prints and parses by
 * them, the verifier checks values against them, passes that rewrite dimensions or subgraphs find
 * them here. The types tie a schema to the attribute interface, so that a forgotten or misdeclared
 * attribute does not compile.
 */
import { type DType, isDType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { Graph } from "./graph.ts";

export type AttrKind =
  | "integer"
  | "number"
  | "boolean"
  | "dtype"
  | "choice"
  | "dim"
  | "dims"
  | "integers"
  | "numbers"
  | "booleans"
  | "choices"
  | "labels"
  | "labelLists"
  | "graph";

/** What is known of an attribute at run time. */
export interface AttrRow {
  readonly kind: AttrKind;
  readonly choices?: readonly string[];
  readonly optional?: boolean;
}

/** Describes an attribute of type V (which only the compiler sees). */
export interface Attr<V> extends AttrRow {
  readonly phantom?: (value: V) => V;
}

export interface OptionalAttr<V> extends Attr<V> {
  readonly optional: true;
}

/** One row per attribute; optional attributes must be declared optional. */
export type AttrSchema<A> = {
  readonly [K in keyof A]-?: Record<never, never> extends Pick<A, K>
    ? OptionalAttr<Exclude<A[K], undefined>>
    : Attr<A[K]>;
};

/** A schema without its types, for generic code. */
export type AnySchema = Readonly<Record<string, AttrRow>>;
/** Attributes without their types, for generic code. */
export type AnyAttrs = Readonly<Record<string, unknown>>;

export const integer: Attr<number> = { kind: "integer" };
export const number: Attr<number> = { kind: "number" };
export const boolean: Attr<boolean> = { kind: "boolean" };
export const dtype: Attr<DType> = { kind: "dtype" };
export const dim: Attr<IndexExpr> = { kind: "dim" };
export const dims: Attr<readonly IndexExpr[]> = { kind: "dims" };
export const integers: Attr<readonly number[]> = { kind: "integers" };
export const numbers: Attr<readonly number[]> = { kind: "numbers" };
export const booleans: Attr<readonly boolean[]> = { kind: "booleans" };
/** Axis labels, spelled as one string with spaces between: `"i k"`. */
export const labels: Attr<readonly string[]> = { kind: "labels" };
export const labelLists: Attr<readonly (readonly string[])[]> = { kind: "labelLists" };
export const graph: Attr<Graph> = { kind: "graph" };

/** One of a few words. */
export function choice<const T extends readonly string[]>(...choices: T): Attr<T[number]> {
  return { kind: "choice", choices };
}

/** A list of such words. */
export function choices<const T extends readonly string[]>(
  ...words: T
): Attr<readonly T[number][]> {
  return { kind: "choices", choices: words };
}

export function optional<V>(attr: Attr<V>): OptionalAttr<V> {
  return { ...attr, optional: true };
}

/** Rebuilds attributes with every dimension and subgraph replaced. */
export function mapAttrs<A>(
  schema: AttrSchema<A>,
  attrs: A,
  replace: { readonly dim: (d: IndexExpr) => IndexExpr; readonly graph: (g: Graph) => Graph },
): A {
  const result: Record<string, unknown> = {};
  for (const [name, attr] of Object.entries(schema as unknown as AnySchema)) {
    const value = (attrs as AnyAttrs)[name];
    if (value === undefined) continue;
    if (attr.kind === "dim") result[name] = replace.dim(value as IndexExpr);
    else if (attr.kind === "dims") result[name] = (value as readonly IndexExpr[]).map(replace.dim);
    else if (attr.kind === "graph") result[name] = replace.graph(value as Graph);
    else result[name] = value;
  }
  return result as A;
}

/** The dimensions and subgraphs among the attributes, in schema order. */
export function attrParts(
  schema: AnySchema,
  attrs: AnyAttrs,
): { readonly dims: readonly IndexExpr[]; readonly graphs: readonly Graph[] } {
  const found: IndexExpr[] = [];
  const graphs: Graph[] = [];
  for (const [name, attr] of Object.entries(schema)) {
    const value = attrs[name];
    if (value === undefined) continue;
    if (attr.kind === "dim") found.push(value as IndexExpr);
    else if (attr.kind === "dims") found.push(...(value as readonly IndexExpr[]));
    else if (attr.kind === "graph") graphs.push(value as Graph);
  }
  return { dims: found, graphs };
}

/** What is wrong with `attrs` under `schema`, one text per fault. */
export function attrFaults(schema: AnySchema, attrs: AnyAttrs): string[] {
  const faults: string[] = [];
  for (const name of Object.keys(attrs)) {
    if (!Object.hasOwn(schema, name)) faults.push(`unknown attribute "${name}"`);
  }
  for (const [name, attr] of Object.entries(schema)) {
    const value = attrs[name];
    if (value === undefined) {
      if (!attr.optional) faults.push(`attribute "${name}" is missing`);
    } else if (!checks[attr.kind](value, attr)) {
      const allowed = attr.choices ? ` (one of ${attr.choices.join(", ")})` : "";
      faults.push(`attribute "${name}" is no ${attr.kind}${allowed}`);
    }
  }
  return faults;
}

type Check = (value: unknown, attr: AttrRow) => boolean;

const isLabel = (v: unknown): boolean => typeof v === "string" && /^\S+$/.test(v);
const isDim = (v: unknown): boolean =>
  typeof v === "object" && v !== null && "terms" in v && "constant" in v;

function listOf(check: (v: unknown) => boolean): Check {
  return (value) => Array.isArray(value) && value.every((v) => check(v));
}

const checks: Readonly<Record<AttrKind, Check>> = {
  integer: Number.isSafeInteger,
  number: (v) => typeof v === "number",
  boolean: (v) => typeof v === "boolean",
  dtype: (v) => typeof v === "string" && isDType(v),
  choice: (v, attr) => typeof v === "string" && attr.choices!.includes(v),
  dim: isDim,
  dims: listOf(isDim),
  integers: listOf(Number.isSafeInteger),
  numbers: listOf((v) => typeof v === "number"),
  booleans: listOf((v) => typeof v === "boolean"),
  choices: (v, attr) =>
    Array.isArray(v) && v.every((word) => (attr.choices! as readonly unknown[]).includes(word)),
  labels: listOf(isLabel),
  labelLists: listOf((v) => Array.isArray(v) && v.every(isLabel)),
  graph: (v) => typeof v === "object" && v !== null && "nodes" in v,
};
