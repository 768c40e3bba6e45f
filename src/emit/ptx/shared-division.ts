/**
 * Quotients of several f32 by one divisor, rounded as `div.rn` rounds: the divisor's reciprocal is made once, and each
 * quotient is corrected by its exact remainder (Markstein, "Computation of elementary functions on the IBM RISC
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

export function divideAll(
  code: PtxCode,
  dividends: readonly Operand[],
  divisor: Operand,
): readonly Operand[] {
  const c = new FloatCode(code, 32);
  const largest = dividends.map((x) => c.abs(x)).reduce((a, b) => c.max(a, b));
  const isSmall = c.test("lt", largest, moderate);
  const isUsual = code.op(
    "and.pred",
    "p",
    c.test("gt", divisor, 1 / moderate),
    c.test("lt", divisor, moderate),
  );
  const quotients = dividends.map(() => code.fresh("r"));
  branch(
    code,
    code.op("and.pred", "p", isSmall, isUsual),
    () => {
      const first = c.op("rcp.approx", divisor);
      const off = c.fma(c.neg(divisor), first, 1);
      const reciprocal = c.fma(off, first, first);
      const against = c.neg(reciprocal);
      for (const [i, x] of dividends.entries()) {
        const near = c.mul(x, reciprocal);
        // This way round a zero keeps its sign.
        const beyond = c.fma(divisor, near, c.neg(x));
        code.emit(`fma.rn.f32 ${quotients[i]}, ${against}, ${beyond}, ${near}`);
      }
    },
    () => {
      for (const [i, x] of dividends.entries()) {
        code.emit(`div.rn.f32 ${quotients[i]}, ${x}, ${divisor}`);
      }
    },
  );
  return quotients;
}
