/** What the graph passes (graph/prepare.ts) are told of a target: what only some machines gain by. */
import type { PrepareOptions } from "../graph/prepare.ts";
import type { Target } from "../target/target.ts";
import { mayAttend } from "./attention/attention-candidates.ts";
import { productOrdersOf } from "./products/stream-operands.ts";
import { dotDataOf, dotTermsOf, multipliesByteFloats } from "./states/dot-form.ts";

export function prepareOptions(target: Target): PrepareOptions {
  const data = dotDataOf(target);
  const productOrders = productOrdersOf(target);
  return {
    ...(data && { integerProducts: { data, sumsRows: dotTermsOf(target) === 4 } }),
    byteFloatProducts: multipliesByteFloats(target),
    packsAttention: mayAttend(target),
    ...(productOrders && { productOrders }),
    selectsByDigits: target.blocks !== undefined,
    repeatsSteps: repeatsSteps(target),
  };
}

/** Whether programs repeat the steps of scans: those of processors. */
export function repeatsSteps(target: Target): boolean {
  return target.blocks === undefined;
}
