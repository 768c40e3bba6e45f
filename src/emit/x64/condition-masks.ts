/**
 * Conditions of 32-bit lanes in mask registers (EVEX), where each part of them has such a form: a choice takes the
 * mask as it is, and the vector of ones and zeros that the condition is otherwise has no reader (dead-code.ts).
 */
import type { Expr } from "../../program/statement.ts";
import type { KernelContext } from "./kernel-context.ts";
import { holdingOf, isFloat, isPacked, isUnsigned } from "./lanes.ts";
import type { Register } from "./operand.ts";
import type { Mask, VectorCode } from "./vector-code.ts";

type Apply = Extract<Expr, { kind: "apply" }>;
/** A chunk of a vector in a register. */
type Value = (e: Expr, chunk: number) => Register;

const connectives: Readonly<Record<string, string>> = { and: "kandw", or: "korw" };

export class ConditionMasks {
  readonly #context: KernelContext;
  readonly #value: Value;
  /** Of names, by chunk. */
  readonly #bound = new Map<string, readonly Mask[]>();

  constructor(context: KernelContext, value: Value) {
    this.#context = context;
    this.#value = value;
  }

  bind(name: string, masks: readonly Mask[]): void {
    this.#bound.set(name, masks);
  }

  forget(name: string): void {
    this.#bound.delete(name);
  }

  /** The mask of a chunk of a condition, under which nothing may be changed; undefined: it has lanes alone. */
  of(e: Expr, chunk: number): Mask | undefined {
    return this.#hasMask(e) ? this.#mask(e, chunk) : undefined;
  }

  #hasMask(e: Expr): boolean {
    if (!this.#context.features.evex || e.dtype !== "bool" || e.lanes === 1) return false;
    if (e.kind === "local") return this.#bound.has(e.name);
    if (e.kind !== "apply") return false;
    if (e.op === "not" || connectives[e.op]) return e.operands.every((o) => this.#hasMask(o));
    return comparison(e) !== undefined;
  }

  #mask(e: Expr, chunk: number): Mask {
    if (e.kind === "local") return this.#bound.get(e.name)![chunk]!;
    const { op, operands } = e as Apply;
    const { bits } = this.#context.chunks(e.dtype, e.lanes)[chunk]!;
    const { f } = this.#context;
    const connective = op === "not" ? "knotw" : connectives[op];
    if (connective === undefined) {
      const code = this.#context.vectorCode(bits, "f32");
      return comparison(e as Apply)!(
        code,
        operands.map((o) => this.#value(o, chunk)),
      );
    }
    const parts = operands.map((o) => this.#mask(o, chunk));
    const mask = f.mask();
    f.emit(connective, mask, ...parts);
    return mask;
  }
}

/** How a comparison of 32-bit lanes is spelled. */
function comparison({
  op,
  operands,
}: Apply): ((c: VectorCode, operands: readonly Register[]) => Mask) | undefined {
  const { dtype } = operands[0]!;
  const holding = holdingOf(dtype);
  if (dtype === "bool" || (holding !== "f32" && holding !== "i32") || isPacked(dtype)) {
    return undefined;
  }
  if (op === "isNan" && isFloat(dtype)) return (c, [a]) => c.compare("unordered", a!, a!);
  if (op !== "equal" && op !== "less" && op !== "lessEqual") return undefined;
  if (isFloat(dtype)) return (c, [a, b]) => c.compare(op, a!, b!);
  return (c, [a, b]) => c.compareIntegers(op, a!, b!, isUnsigned(dtype));
}
