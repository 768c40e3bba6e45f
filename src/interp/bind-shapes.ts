/**
 * Binding of symbols: from the declared shapes of tensors and their actual extents to the value of
 * every symbol. An extent with one unknown symbol that stands linearly in it is solved; the others
 * are checked once everything else is known.
 */
import type { TensorType } from "../graph/graph.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  splitLinear,
  substitute,
  variableName,
  variablesOf,
} from "../semantics/index-expr.ts";
import type { RefTensor } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";

/** A tensor that is declared as `type` and is `tensor`. */
export interface ShapedTensor {
  readonly name: string;
  readonly type: TensorType;
  readonly tensor: RefTensor;
}

/** Adds to `symbols` what the tensors decide; rejects (INT001) what does not fit. */
export function bindShapes(tensors: readonly ShapedTensor[], symbols: Map<string, number>): void {
  for (const given of tensors) checkKind(given);
  for (let solved = true; solved; ) {
    solved = false;
    for (const { type, tensor } of tensors) {
      for (let axis = 0; axis < type.shape.length; axis++) {
        if (solveExtent(type.shape[axis]!, tensor.shape[axis]!, symbols)) solved = true;
      }
    }
  }
  for (const given of tensors) {
    for (let axis = 0; axis < given.type.shape.length; axis++) checkExtent(given, axis, symbols);
  }
}

function checkKind({ name, type, tensor }: ShapedTensor): void {
  if (type.dtype === tensor.dtype && type.shape.length === tensor.shape.length) return;
  const declared = `${type.dtype}[${type.shape.map((d) => d.key).join(", ")}]`;
  reject("INT001", `${name} is ${tensor.dtype}[${tensor.shape}], declared ${declared}`, {
    help: "give a tensor of the declared element type and rank",
  });
}

function solveExtent(extent: IndexExpr, actual: number, symbols: Map<string, number>): boolean {
  // Numbers and lone symbols, as nearly all are: there is nothing to solve.
  if (extent.terms.length === 0) return false;
  const lone = variableName(extent);
  if (lone !== undefined) {
    if (symbols.has(lone) || !Number.isInteger(actual)) return false;
    symbols.set(lone, actual);
    return true;
  }
  const known = substitute(extent, symbols);
  const [name, ...others] = variablesOf(known);
  if (name === undefined || others.length > 0) return false;
  const split = splitLinear(known, name);
  const rest = split && constantValue(split.rest);
  if (rest === undefined || !split) return false;
  const value = (actual - rest) / split.coefficient;
  if (!Number.isInteger(value)) return false;
  symbols.set(name, value);
  return true;
}

function checkExtent(
  { name, type, tensor }: ShapedTensor,
  axis: number,
  symbols: ReadonlyMap<string, number>,
): void {
  const extent = type.shape[axis]!;
  const actual = tensor.shape[axis]!;
  const lone = variableName(extent);
  if ((lone === undefined ? constantValue(extent) : symbols.get(lone)) === actual) return;
  const known = substitute(extent, symbols);
  const unbound = [...variablesOf(known)];
  if (unbound.length > 0) {
    reject("INT002", `axis ${axis} of ${name} does not decide ${unbound.join(", ")}`);
  }
  const declared = evaluate(known, symbols);
  if (declared === actual) return;
  reject("INT001", `axis ${axis} of ${name} has extent ${actual}, declared ${extent.key}`, {
    notes: [`${extent.key} is ${declared} here; ${name} is ${type.dtype}[${tensor.shape}]`],
  });
}
