/**
 * Symbolic tensors that an op needs as data: index expressions become i64 arithmetic over the extents
 * of values (dimSize), element by element, joined to a tensor.
 */
import type { ValueId } from "../../../graph/graph.ts";
import { type DType, dtypes } from "../../../semantics/dtype.ts";
import {
  atomOperands,
  constant,
  type IndexAtom,
  type IndexExpr,
} from "../../../semantics/index-expr.ts";
import { fromRef, refTensor } from "../../../semantics/tensor.ts";
import { invariant } from "../../../support/invariant.ts";
import type { Emitter, Origin } from "./emitter.ts";
import { constantOperand, type Operand, type SymbolicOperand } from "./operand.ts";
import { integerOf, type SymbolicNumber } from "./symbolic-number.ts";

const indexOne = constant(1);

/** The value of a symbolic tensor in the emitter's graph. */
export function materializeElements(
  emitter: Emitter,
  operand: SymbolicOperand,
  origin: Origin,
): ValueId {
  const { dtype } = operand.type;
  const parts = operand.elements.map((e) => {
    const scalar = materializeNumber(emitter, e, dtype, origin);
    return emitter.emit("reshape", [scalar], { shape: [indexOne] }, origin);
  });
  const flat = parts.length === 1 ? parts[0]! : emitter.emit("concat", parts, { axis: 0 }, origin);
  return emitter.valueOf(
    emitter.emit("reshape", [flat], { shape: operand.type.shape }, origin),
    origin,
  );
}

function materializeNumber(
  emitter: Emitter,
  number: SymbolicNumber,
  dtype: DType,
  origin: Origin,
): Operand {
  const whole = integerOf(number);
  const cast = (x: Operand, to: DType) =>
    x.type.dtype === to ? x : emitter.emit("cast", [x], { to, saturate: false }, origin);
  if (whole) return cast(materializeIndex(emitter, whole, origin), dtype);
  invariant(dtypes[dtype].kind === "float", () => `fraction in a tensor of ${dtype}`);
  const parts = [number.numerator, number.denominator].map((e) =>
    cast(materializeIndex(emitter, e, origin), dtype),
  );
  return emitter.emit("div", parts, {}, origin);
}

/** An index expression as i64 arithmetic over the extents of values. */
function materializeIndex(emitter: Emitter, expr: IndexExpr, origin: Origin): Operand {
  const terms = expr.terms.map((term) => {
    const factors = term.atoms.map((atom) => materializeAtom(emitter, atom, origin));
    const product = factors.reduce((a, b) => emitter.emit("mul", [a, b], {}, origin));
    if (term.coefficient === 1) return product;
    return emitter.emit("mul", [product, scalarIndex(term.coefficient)], {}, origin);
  });
  if (terms.length === 0) return scalarIndex(expr.constant);
  const total = terms.reduce((a, b) => emitter.emit("add", [a, b], {}, origin));
  if (expr.constant === 0) return total;
  return emitter.emit("add", [total, scalarIndex(expr.constant)], {}, origin);
}

function materializeAtom(emitter: Emitter, atom: IndexAtom, origin: Origin): Operand {
  if (atom.kind === "variable") return emitter.materializeSymbol(atom.name, origin);
  const operands = atomOperands(atom).map((p) => materializeIndex(emitter, p, origin));
  const emit = (op: "min" | "max" | "floorMod" | "sub" | "div", a: Operand, b: Operand) =>
    emitter.emit(op, [a, b], {}, origin);
  if (atom.kind === "min" || atom.kind === "max") {
    const kind = atom.kind;
    return operands.reduce((a, b) => emit(kind, a, b));
  }
  const [a, b] = operands as [Operand, Operand];
  const rest = emit("floorMod", a, b);
  // floor(a / b) = (a - floorMod(a, b)) / b, where the division is exact.
  return atom.kind === "mod" ? rest : emit("div", emit("sub", a, rest), b);
}

export function scalarIndex(value: number): Operand {
  return constantOperand(fromRef(refTensor("i64", [], [value])));
}
