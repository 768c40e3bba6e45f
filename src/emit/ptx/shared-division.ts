/**
 * Quotients of several f32 by one divisor, or by those of rows beside each other, rounded as `div.rn` rounds: a
 * divisor's reciprocal is made once, and each quotient is corrected by its exact remainder (Markstein, "Computation of elementary functions on the IBM RISC
 * System/6000 processor", 1990, theorem 8), in three instructions where `div.rn` takes about twelve. The
 * instruction itself does it where the divisor is not well inside the range, or a dividend so large that a step
 * of this could overflow: small dividends lose nothing that rounding to the spacing of subnormals would keep.
 */
import { FloatCode } from "./float-code.ts";
import { branch, type Operand, type PtxCode } from "./ptx-code.ts";

/** Divisors between its reciprocal and this, and dividends below it, have quotients far from the ends of the range. */
const moderate = 2 ** 60;

/** Dividends from which on a reciprocal of their own pays. */
export const fewestDividends = 4;

/** What quotients of a vector by such divisors, often the same, have in common. */
export interface Inverse {
  readonly divisors: readonly Operand[];
  readonly reciprocals: readonly Operand[];
  /** Whether all divisors are moderate, which reciprocals are right for. */
  readonly isUsual: Operand;
}

export function inverseOf(code: PtxCode, divisors: readonly Operand[]): Inverse {
  const c = new FloatCode(code, 32);
  const distinct = [...new Set(divisors)];
  const made = new Map(distinct.map((d) => [d, reciprocalOf(c, d)]));
  const isUsual = distinct
    .flatMap((d) => [c.test("gt", d, 1 / moderate), c.test("lt", d, moderate)])
    .reduce((a, b) => code.op("and.pred", "p", a, b));
  return { divisors, reciprocals: divisors.map((d) => made.get(d)!), isUsual };
}

function reciprocalOf(c: FloatCode, divisor: Operand): Operand {
  const first = c.op("rcp.approx", divisor);
  const off = c.fma(c.neg(divisor), first, 1);
  return c.fma(off, first, first);
}

export function divideAll(
  code: PtxCode,
  dividends: readonly Operand[],
  { divisors, reciprocals, isUsual }: Inverse,
): readonly Operand[] {
  const c = new FloatCode(code, 32);
  const largest = dividends.map((x) => c.abs(x)).reduce((a, b) => c.max(a, b));
  const isSmall = c.test("lt", largest, moderate);
  const quotients = dividends.map(() => code.fresh("r"));
  branch(
    code,
    code.op("and.pred", "p", isSmall, isUsual),
    () => {
      for (const [i, x] of dividends.entries()) {
        const near = c.mul(x, reciprocals[i]!);
        // This way round a zero keeps its sign.
        const beyond = c.fma(divisors[i]!, near, c.neg(x));
        const against = c.neg(reciprocals[i]!);
        code.emit(`fma.rn.f32 ${quotients[i]}, ${against}, ${beyond}, ${near}`);
      }
    },
    () => {
      for (const [i, x] of dividends.entries()) {
        code.emit(`div.rn.f32 ${quotients[i]}, ${x}, ${divisors[i]}`);
      }
    },
  );
  return quotients;
}
