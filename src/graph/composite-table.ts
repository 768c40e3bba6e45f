/** Every composite with its definition; a composite without a row does not compile. */
import { activations } from "./composites/activations.ts";
import { attentionForms } from "./composites/attention.ts";
import type { CompositeKind, CompositeRows } from "./composites/composite.ts";
import { movementForms } from "./composites/movement.ts";
import { norms } from "./composites/norms.ts";
import { packedAttentionForms } from "./composites/packed-attention.ts";
import { products } from "./composites/products.ts";
import { recurrentForms } from "./composites/recurrent.ts";
import { reductionForms } from "./composites/reductions.ts";

export type { CompositeKind } from "./composites/composite.ts";

export const compositeTable: CompositeRows<CompositeKind> = {
  ...activations,
  ...norms,
  ...reductionForms,
  ...movementForms,
  ...attentionForms,
  ...packedAttentionForms,
  ...recurrentForms,
  ...products,
};
