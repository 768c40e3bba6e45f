/** A row of the composite table: operand count, attributes, and the definition in other ops. */
import type { AttrSchema } from "../attr-schema.ts";
import type { CompositeAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";

export type CompositeKind = keyof CompositeAttrs;

export type Definition<K extends CompositeKind> = (
  b: OpWriter,
  inputs: readonly ValueId[],
  attrs: CompositeAttrs[K],
) => readonly ValueId[];

export interface CompositeInfo<K extends CompositeKind> {
  readonly arity: readonly [number, number];
  readonly schema: AttrSchema<CompositeAttrs[K]>;
  readonly definition: Definition<K>;
}

export type CompositeRows<K extends CompositeKind> = { readonly [P in K]: CompositeInfo<P> };
