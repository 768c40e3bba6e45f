/**
 * Coverage by residues. Stores at `s q + c` for several c interleave: none of them covers a stretch of the
 * axis, all of them together may. The question is then asked once for each residue r modulo s, of the
 * elements `s t + r` alone, as a question about t: a store at `s q + c` takes part where c is r modulo s,
 * at the index q + (c - r) / s. Short loops whose variable adds to c are written out first. Leaving out
 * stores can only make the answer no.
 */
import {
  ceilDiv,
  constantValue,
  type IndexExpr,
  mul,
  positiveMod,
  splitLinear,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { Statement } from "../statement.ts";
import { childBodies, mapStatements, substituteStatements } from "../walk.ts";

export interface ResidueQuestion {
  readonly body: readonly Statement[];
  readonly box: { readonly lo: readonly IndexExpr[]; readonly hi: readonly IndexExpr[] };
}

/** Longer loops are not written out, larger strides not looked at. */
const mostTrips = 8;
const mostResidues = 16;

/** A question for each residue along the axis; undefined: the stores have no common stride there. */
export function splitByResidue(
  body: readonly Statement[],
  { buffer, isPrivate }: { readonly buffer: string; readonly isPrivate: boolean },
  axis: number,
  box: ResidueQuestion["box"],
): readonly ResidueQuestion[] | undefined {
  const short = shortLoopsOf(body, isPrivate);
  const stride = strideOf(storesIn(body, buffer), axis, short);
  if (stride < 2 || stride > mostResidues) return undefined;
  const written = writeOut(body, loopsInside(body, buffer, axis, stride, short));
  const along = (ends: readonly IndexExpr[], r: number): readonly IndexExpr[] =>
    ends.map((e, i) => (i === axis ? ceilDiv(sub(e, r), stride) : e));
  return Array.from({ length: stride }, (_, r) => ({
    body: mapStatements(written, (s) => {
      if (s.kind !== "store" || s.buffer !== buffer) return [s];
      const index = quotientOf(s.index[axis]!, stride, r);
      // Lanes beside each other have different residues.
      if (index === undefined || (s.value.lanes > 1 && axis === s.index.length - 1)) return [];
      return [{ ...s, index: s.index.map((e, i) => (i === axis ? index : e)) }];
    }),
    box: { lo: along(box.lo, r), hi: along(box.hi, r) },
  }));
}

type Store = Extract<Statement, { kind: "store" }>;

function storesIn(body: readonly Statement[], buffer: string): readonly Store[] {
  return body.flatMap((s) => {
    if (s.kind === "store") return s.buffer === buffer ? [s] : [];
    return childBodies(s).flatMap((inner) => storesIn(inner, buffer));
  });
}

/**
 * Variables of loops of few trips, with how many; 0: loops of one name differ. All instances of a grid
 * together run the trips of a loop that is dealt out, which says nothing of what each has for itself.
 */
function shortLoopsOf(body: readonly Statement[], isPrivate: boolean): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const visit = (list: readonly Statement[]): void => {
    for (const s of list) {
      if (s.kind === "for") {
        const trips = constantValue(s.extent) ?? 0;
        const fits = trips <= mostTrips && !(isPrivate && s.mode.kind === "grid");
        const same = (found.get(s.variable) ?? trips) === trips;
        found.set(s.variable, fits && same ? trips : 0);
      }
      for (const inner of childBodies(s)) visit(inner);
    }
  };
  visit(body);
  return found;
}

/** The common divisor of all coefficients along the axis, short loops that step by one apart. */
function strideOf(
  stores: readonly Store[],
  axis: number,
  short: ReadonlyMap<string, number>,
): number {
  let stride = 0;
  for (const s of stores) {
    const e = s.index[axis];
    if (!e) return 1;
    for (const name of variablesOf(e)) {
      const coefficient = splitLinear(e, name)?.coefficient;
      if (coefficient === undefined) return 1;
      if (coefficient === 1 && (short.get(name) ?? 0) > 0) continue;
      stride = commonDivisor(stride, Math.abs(coefficient));
    }
  }
  return stride;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

/** Short loops whose variable the stride does not divide. */
function loopsInside(
  body: readonly Statement[],
  buffer: string,
  axis: number,
  stride: number,
  short: ReadonlyMap<string, number>,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const s of storesIn(body, buffer)) {
    for (const name of variablesOf(s.index[axis]!)) {
      const divides = splitLinear(s.index[axis]!, name)!.coefficient % stride === 0;
      if (!divides && (short.get(name) ?? 0) > 0) names.add(name);
    }
  }
  return names;
}

function writeOut(body: readonly Statement[], names: ReadonlySet<string>): readonly Statement[] {
  return mapStatements(body, (s) => {
    if (s.kind !== "for" || !names.has(s.variable)) return [s];
    const trips = constantValue(s.extent)!;
    return Array.from({ length: trips }, (_, at) =>
      substituteStatements(s.body, new Map([[s.variable, at]])),
    ).flat();
  });
}

/** q + (c - r) / stride of `stride q + c`; undefined where c is not r modulo the stride. */
function quotientOf(e: IndexExpr, stride: number, r: number): IndexExpr | undefined {
  let quotient: IndexExpr = sub(0, 0);
  let rest = e;
  for (const name of variablesOf(e)) {
    const split = splitLinear(rest, name);
    if (!split || split.coefficient % stride !== 0) return undefined;
    quotient = sub(quotient, mul(variable(name), -split.coefficient / stride));
    rest = split.rest;
  }
  const c = constantValue(rest);
  if (c === undefined || positiveMod(c, stride) !== r) return undefined;
  return sub(quotient, (r - c) / stride);
}
