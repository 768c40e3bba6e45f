/**
 * Attributes with their symbolic sizes evaluated: what a reference computes with. The table says for
 * each op which attributes are index expressions; the type makes it complete, so a new symbolic
 * attribute fails to compile until it stands here.
 */
import type { CoreOpAttrs, CoreOpKind } from "./core-ops.ts";
import type { IndexExpr } from "./index-expr.ts";

type Evaluated<T> = T extends IndexExpr
  ? number
  : T extends readonly IndexExpr[]
    ? readonly number[]
    : T;

/** The attributes of an op with numbers in place of index expressions. */
export type ConcreteAttrs<K extends CoreOpKind, Subgraph = unknown> = {
  readonly [F in keyof CoreOpAttrs<Subgraph>[K]]: F extends SymbolicField<K>
    ? Evaluated<CoreOpAttrs<Subgraph>[K][F]>
    : CoreOpAttrs<Subgraph>[K][F];
};

type SymbolicField<K extends CoreOpKind> = {
  [F in keyof CoreOpAttrs<null>[K]]-?: CoreOpAttrs<null>[K][F] extends
    | IndexExpr
    | readonly IndexExpr[]
    ? F
    : never;
}[keyof CoreOpAttrs<null>[K]];

type SymbolicFields = {
  readonly [K in CoreOpKind as [SymbolicField<K>] extends [never] ? never : K]: Readonly<
    Record<SymbolicField<K>, "size" | "sizes">
  >;
};

/** The attributes that hold index expressions: one expression or a list. */
export const symbolicAttrs = {
  iota: { shape: "sizes" },
  reshape: { shape: "sizes" },
  broadcast: { shape: "sizes" },
  slice: { starts: "sizes", sizes: "sizes" },
  pad: { low: "sizes", high: "sizes" },
  topK: { k: "size" },
  resize: { sizes: "sizes" },
  dft: { length: "size" },
  randomUniform: { shape: "sizes" },
  randomNormal: { shape: "sizes" },
  loop: { maxTrips: "size" },
} as const satisfies SymbolicFields;

/** Replaces every index expression in the attributes of an op by its value. */
export function evaluateAttrs<K extends CoreOpKind, Subgraph>(
  kind: K,
  attrs: CoreOpAttrs<Subgraph>[K],
  evaluate: (expr: IndexExpr) => number,
): ConcreteAttrs<K, Subgraph> {
  const fields: Readonly<Record<string, "size" | "sizes">> | undefined = (
    symbolicAttrs as Partial<Record<CoreOpKind, Readonly<Record<string, "size" | "sizes">>>>
  )[kind];
  if (!fields) return attrs as ConcreteAttrs<K, Subgraph>;
  const result: Record<string, unknown> = { ...attrs };
  for (const [field, form] of Object.entries(fields)) {
    const value = result[field];
    result[field] =
      form === "size" ? evaluate(value as IndexExpr) : (value as IndexExpr[]).map(evaluate);
  }
  return result as ConcreteAttrs<K, Subgraph>;
}
