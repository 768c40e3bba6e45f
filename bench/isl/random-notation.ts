/**
 * Random sets and maps as text in isl's notation, so that both libraries read the same cases: small
 * unions with parameters, congruences, floors and existentials, mostly bounded, now and then with
 * large coefficients, unbounded or empty. Everything is drawn from the given generator.
 */
import type { Rng } from "../../src/support/rng.ts";

/** What the operands of one question have in common. */
export interface Space {
  readonly params: readonly string[];
  readonly tuples: readonly TupleShape[];
}

export interface TupleShape {
  readonly name: string;
  readonly size: number;
}

export interface SpaceOptions {
  readonly params?: boolean;
  readonly mostTuples?: number;
  readonly mostDims?: number;
}

export function drawSpace(rng: Rng, options: SpaceOptions = {}): Space {
  const { params = true, mostTuples = 2, mostDims = 3 } = options;
  const share = rng.uniform();
  const count = params ? (share < 0.5 ? 0 : share < 0.8 ? 1 : 2) : 0;
  const tuples = rng.integer(1, rng.uniform() < 0.7 ? 1 : mostTuples);
  return {
    params: ["N", "M"].slice(0, count),
    tuples: drawTuples(rng, ["S", "T", "U"].slice(0, tuples), mostDims),
  };
}

export function drawTuples(rng: Rng, names: readonly string[], mostDims: number): TupleShape[] {
  const anonymous = names.length === 1 && rng.uniform() < 0.3;
  const drawSize = (): number => (rng.uniform() < 0.05 ? 0 : rng.integer(1, mostDims));
  return names.map((name) => ({ name: anonymous ? "" : name, size: drawSize() }));
}

/** How wild the pieces of a set may be. */
export interface Style {
  /** Every dimension lies between constants. */
  readonly bounded?: boolean;
  /** Every dimension lies between constants and parameters. */
  readonly finite?: boolean;
  /** No mod, floor or exists. */
  readonly plain?: boolean;
}

export function drawSet(rng: Rng, { params, tuples }: Space, style: Style = {}): string {
  const pieces = drawPieces(rng, () => {
    const tuple = rng.pick(tuples);
    const dims = dimNames("i", tuple.size);
    return `${spelled(tuple.name, dims)} : ${drawCondition(rng, params, dims, style)}`;
  });
  return declared(params, pieces);
}

export function drawMap(
  rng: Rng,
  params: readonly string[],
  [from, to]: readonly [readonly TupleShape[], readonly TupleShape[]],
  style: Style = {},
): string {
  const pieces = drawPieces(rng, () => {
    const [input, output] = [rng.pick(from), rng.pick(to)];
    const sources = dimNames("i", input.size);
    const targets = dimNames("o", output.size);
    const rows = [drawCondition(rng, params, [...sources, ...targets], style)];
    for (const target of targets) {
      if (rng.uniform() < 0.6) rows.push(`${target} = ${drawSum(rng, [...params, ...sources], 3)}`);
    }
    const tuplePair = `${spelled(input.name, sources)} -> ${spelled(output.name, targets)}`;
    return `${tuplePair} : ${rows.join(" and ")}`;
  });
  return declared(params, pieces);
}

/** Values of the parameters alone, `[N] -> { : … }`. */
export function drawContext(rng: Rng, params: readonly string[]): string {
  const rows = params.map((p) => `${rng.integer(-2, 3)} <= ${p} <= ${rng.integer(3, 12)}`);
  if (params.length > 0 && rng.uniform() < 0.5) rows.push(drawRow(rng, params, {}));
  return declared(params, [`: ${rows.join(" and ") || "true"}`]);
}

function declared(params: readonly string[], pieces: readonly string[]): string {
  return `[${params.join(", ")}] -> { ${pieces.join("; ")} }`;
}

function drawPieces(rng: Rng, draw: () => string): string[] {
  const share = rng.uniform();
  const count = share < 0.55 ? 1 : share < 0.85 ? 2 : share < 0.97 ? 3 : 0;
  return Array.from({ length: count }, draw);
}

function dimNames(letter: string, size: number): string[] {
  return Array.from({ length: size }, (_, k) => `${letter}${k}`);
}

function spelled(name: string, dims: readonly string[]): string {
  return `${name}[${dims.join(", ")}]`;
}

function drawCondition(
  rng: Rng,
  params: readonly string[],
  dims: readonly string[],
  style: Style,
): string {
  const rows: string[] = [];
  const open = !style.bounded && !style.finite && rng.uniform() < 0.12;
  for (const d of dims) {
    if (open && rng.uniform() < 0.4) continue;
    rows.push(drawBounds(rng, style.bounded ? [] : params, d));
  }
  const extra = rng.integer(0, 3);
  const names = [...params, ...dims];
  for (let i = 0; i < extra && names.length > 0; i++) rows.push(drawRow(rng, names, style));
  return rows.join(" and ") || "true";
}

function drawBounds(rng: Rng, params: readonly string[], dim: string): string {
  const low = rng.integer(-4, 3);
  if (params.length > 0 && rng.uniform() < 0.4) return `${low} <= ${dim} < ${rng.pick(params)}`;
  const wide = rng.uniform() < 0.04 ? rng.integer(100, 5000) : rng.integer(0, 9);
  return `${low} <= ${dim} <= ${low + wide}`;
}

/** A comparison, a congruence, a floor or an existential over some of the names. */
function drawRow(rng: Rng, names: readonly string[], style: Style): string {
  const share = style.plain ? 1 : rng.uniform();
  const sum = drawSum(rng, names, 3);
  if (share < 0.12) return `(${sum}) mod ${rng.integer(2, 5)} = ${rng.integer(0, 2)}`;
  if (share < 0.22) {
    const other = drawSum(rng, names, 2);
    return `floor((${sum})/${rng.integer(2, 6)}) ${drawOperator(rng)} ${other}`;
  }
  if (share < 0.32) return drawExists(rng, names);
  return `${sum} ${drawOperator(rng)} ${rng.integer(-12, 12)}`;
}

function drawExists(rng: Rng, names: readonly string[]): string {
  const inner = [...names, "e"];
  const factor = rng.integer(2, 7);
  const rows = [`${factor}e <= ${drawSum(rng, names, 2)}`];
  if (rng.uniform() < 0.8) {
    rows.push(`${rng.integer(2, 7)}e >= ${drawSum(rng, names, 2)} - ${rng.integer(0, 9)}`);
  } else rows.push(`${drawSum(rng, inner, 2)} = 0`);
  return `exists (e: ${rows.join(" and ")})`;
}

function drawOperator(rng: Rng): string {
  const share = rng.uniform();
  return share < 0.4 ? ">=" : share < 0.75 ? "<=" : share < 0.95 ? "=" : "!=";
}

/** `2i0 - N + 3` with up to `most` terms. */
function drawSum(rng: Rng, names: readonly string[], most: number): string {
  const reach = rng.uniform() < 0.03 ? 600 : 4;
  const parts = [String(rng.integer(-8, 8))];
  const count = names.length === 0 ? 0 : rng.integer(1, most);
  for (let i = 0; i < count; i++) {
    const factor = rng.uniform() < 0.5 ? rng.pick([1, -1]) : rng.integer(-reach, reach);
    parts.push(`${factor}*${rng.pick(names)}`);
  }
  return parts.join(" + ").replaceAll("+ -", "- ");
}
