/**
 * Fresh inputs for a region by itself: values of its symbols that meet the program's requirements, and a
 * recipe of random contents for each tensor that it reads. Tensors of indices hold valid indices.
 */
import type { Program } from "../program/program.ts";
import type { Region } from "../region/nest.ts";
import type { Fill } from "../runtime/child/fill.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue, evaluate, substitute, variablesOf } from "../semantics/index-expr.ts";
import type { Rng } from "../support/rng.ts";

export type Symbols = ReadonlyMap<string, number>;

/** Draws of symbol values before giving up on the requirements. */
const draws = 64;
/**
 * Points of loops that a checked run should stay below where the symbols leave a choice: some
 * milliseconds. Tails and edges are those of small extents too.
 */
const fewPoints = 2 ** 24;

/** The largest values of the symbols, or what was drawn where those do not fit the requirements. */
export function largestSymbols(program: Program, rng: Rng): Symbols | undefined {
  return fittingSymbols(program, rng, 1)[0];
}

/** Up to two bindings to check a region with, the largest ones that are quick to run; none may fit. */
export function checkedSymbols(region: Region, program: Program, rng: Rng): readonly Symbols[] {
  const found = fittingSymbols(program, rng, draws)
    .map((symbols) => ({ symbols, points: pointsOf(region, symbols) }))
    .sort((a, b) => a.points - b.points);
  const quick = found.filter((f) => f.points <= fewPoints);
  const [largest] = quick.slice(-1);
  if (!largest) return found.slice(0, 1).map((f) => f.symbols);
  const others = quick.filter((f) => f !== largest);
  return [largest, ...(others.length > 0 ? [rng.pick(others)] : [])].map((f) => f.symbols);
}

function fittingSymbols(program: Program, rng: Rng, most: number): readonly Symbols[] {
  const { parameters } = program;
  const largest = new Map(parameters.map((p) => [p.name, p.max]));
  if (parameters.every((p) => p.min === p.max)) return fits(program, largest) ? [largest] : [];
  const found: Symbols[] = fits(program, largest) ? [largest] : [];
  for (let i = 0; i < draws && found.length < most; i++) {
    const drawn = new Map(parameters.map((p) => [p.name, rng.integer(p.min, p.max)]));
    if (fits(program, drawn)) found.push(drawn);
  }
  return found;
}

/** Points of all loops; an extent over other loops counts as one. */
function pointsOf({ statements }: Region, symbols: Symbols): number {
  return statements.reduce((sum, { loops }) => {
    const known = loops.map((l) => substitute(l.extent, symbols));
    return sum + known.reduce((n, e) => n * (constantValue(e) ?? 1), 1);
  }, 0);
}

function fits({ requires }: Program, symbols: Symbols): boolean {
  return requires.every((c) => {
    const value = evaluate(c.expr, symbols);
    return c.kind === "zero" ? value === 0 : value >= 0;
  });
}

/** Recipes for what the region reads, and for outputs that it only updates. */
export function drawFills(
  region: Region,
  symbols: Symbols,
  sign: Fill["sign"],
  rng: Rng,
): ReadonlyMap<string, Fill> {
  const fills = new Map<string, Fill>();
  const seed = rng.bits();
  for (const [name, { role, dtype }] of region.tensors) {
    if (role === "local") continue;
    const range = indexRange(region, name, symbols);
    fills.set(name, { dtype, seed, phase: rng.integer(0, 60_000), sign, ...(range && { range }) });
  }
  const made = new Set(region.statements.flatMap((s) => outputsOf(s)));
  for (const name of made) fills.delete(name);
  return fills;
}

/** Tensors that a statement gives their first values: poisoned, not filled. */
function outputsOf(statement: Region["statements"][number]): readonly string[] {
  const loaded = new Set(statement.indirects.map((v) => v.name));
  return statement.writes
    .filter((w) => w.combine === "overwrite")
    .filter((w) => ![...variablesOf(...w.index)].some((n) => loaded.has(n)))
    .map((w) => w.tensor);
}

/** Values that every use of a tensor as an index allows; undefined where it is none. */
function indexRange(region: Region, tensor: string, symbols: Symbols): Fill["range"] {
  let range: readonly [number, number] | undefined;
  for (const { indirects } of region.statements) {
    for (const { access, extent, wraps } of indirects) {
      if (access.tensor !== tensor) continue;
      const count = evaluate(extent, symbols);
      const low = wraps && dtypes[region.tensors.get(tensor)!.dtype].kind === "int" ? -count : 0;
      range = [Math.max(low, range?.[0] ?? low), Math.min(count - 1, range?.[1] ?? count - 1)];
    }
  }
  return range;
}
