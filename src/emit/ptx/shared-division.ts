/**
 * Quotients of several f32 by one divisor, or by those of rows beside each other, rounded as `div.rn` rounds: a
 * divisor's reciprocal is made once, and each quotient is corrected by its exact remainder (Markstein, "Computation of elementary functions on the IBM RISC
 * System/6000 processor", 1990, theorem 8), in three instructions where `div.rn` takes about twelve. The
 * instruction itself does it where the divisor is not well inside the range, or a dividend so large that a step
 * of this could overflow: small dividends lose nothing that rounding to the spacing of subnormals would keep.
 */
import type { Expr, Statement } from "../../program/statement.ts";
import { exprOperands, ownExprs, visitStatements } from "../../program/walk.ts";
import { FloatCode } from "./float-code.ts";
import { branch, type Operand, type PtxCode } from "./ptx-code.ts";
import { isNarrowFloat } from "./values.ts";

/** Divisors between its reciprocal and this, and dividends below it, have quotients far from the ends of the range. */
const moderate = 2 ** 60;

/** Dividends from which on a reciprocal of their own pays. */
export const fewestDividends = 4;

/** What quotients of vectors by such divisors, often the same, have in common. */
export interface Inverse {
  readonly divide: (dividends: readonly Operand[]) => readonly Operand[];
}

type Lanes = readonly Operand[];

/** What is made of each divisor once. */
function ofEach(divisors: Lanes, make: (divisor: Operand) => Operand): Lanes {
  const made = new Map([...new Set(divisors)].map((d) => [d, make(d)]));
  return divisors.map((d) => made.get(d)!);
}

/** Of f32, rounded as `div.rn` rounds. */
export function inverseOf(code: PtxCode, divisors: Lanes): Inverse {
  const c = new FloatCode(code, 32);
  const reciprocals = ofEach(divisors, (d) => {
    const first = c.op("rcp.approx", d);
    const off = c.fma(c.neg(d), first, 1);
    return c.fma(off, first, first);
  });
  const isUsual = [...new Set(divisors)]
    .flatMap((d) => [c.test("gt", d, 1 / moderate), c.test("lt", d, moderate)])
    .reduce((a, b) => code.op("and.pred", "p", a, b));
  return { divide: (dividends) => divideAll(code, dividends, { divisors, reciprocals, isUsual }) };
}

function divideAll(
  code: PtxCode,
  dividends: Lanes,
  by: { readonly divisors: Lanes; readonly reciprocals: Lanes; readonly isUsual: Operand },
): Lanes {
  const { divisors, reciprocals, isUsual } = by;
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

/** Divisors below have reciprocals above the range, or near its end; scaled by this they have none. */
const [tiny, lift] = [2 ** -120, 2 ** 64];

/** What a body divides: by name. */
export interface Divisions {
  /**
   * Quotients of f32 that nothing reads but conversions to floats of 16 bits: an error of 2^-22 changes their rounding
   * once in thousands, to the neighbour.
   */
  readonly rounded: ReadonlySet<string>;
  /** Values that several quotients are by. */
  readonly divisors: ReadonlySet<string>;
}

export function divisionsIn(body: readonly Statement[]): Divisions {
  const quotients = new Set<string>();
  const others = new Set<string>();
  const uses = new Map<string, number>();
  const see = (e: Expr, by: Expr | undefined): void => {
    const isRounding = by?.kind === "cast" && isNarrowFloat(by.dtype);
    if (e.kind === "local" && !isRounding) others.add(e.name);
    const divisor = e.kind === "apply" && e.op === "div" ? e.operands[1] : undefined;
    if (divisor?.kind === "local") uses.set(divisor.name, (uses.get(divisor.name) ?? 0) + 1);
    for (const operand of exprOperands(e)) see(operand, e);
  };
  visitStatements(body, (s) => {
    for (const e of ownExprs(s)) see(e, undefined);
    if (s.kind !== "let" || s.value.kind !== "apply") return;
    if (s.value.op === "div" && s.value.dtype === "f32") quotients.add(s.name);
  });
  const several = [...uses].flatMap(([name, count]) => (count > 1 ? [name] : []));
  return {
    rounded: new Set([...quotients].filter((name) => !others.has(name))),
    divisors: new Set(several),
  };
}

/**
 * Of bf16 as f32, to become bf16: products with the instruction's reciprocals (PTX ISA, "rcp": 1 unit in the last
 * place). A quotient of two floats of 8 bits is further from what rounds to another (2^-18 of it) than these are off
 * (2^-22); also of f32 that become floats of 16 bits. Where a divisor is tiny, it and the dividends are scaled, which overflow only where the quotients do.
 */
export function roughInverseOf(code: PtxCode, divisors: Lanes): Inverse {
  const c = new FloatCode(code, 32);
  const scales = ofEach(divisors, (d) => c.select(c.test("lt", c.abs(d), tiny), lift, 1));
  const scaleOf = new Map(divisors.map((d, i) => [d, scales[i]!]));
  const reciprocals = ofEach(divisors, (d) => c.op("rcp.approx", c.mul(d, scaleOf.get(d)!)));
  const divide = (x: Operand, i: number): Operand => c.mul(c.mul(x, scales[i]!), reciprocals[i]!);
  return { divide: (dividends) => dividends.map(divide) };
}
