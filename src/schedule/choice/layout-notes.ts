/**
 * Why a conversion stands between regions: what their layouts cost as they were chosen, and what they would cost
 * if those on one side of the conversion gave way. In: the layouts' problem with its solution.
 */
import type { Region } from "../../region/nest.ts";
import type { ApartPrices, RegionNote } from "../../region/refusals.ts";
import type { Problem } from "../../search/problem.ts";

/** A conversion with the numbers of the regions on both sides of it. */
export interface Converted {
  readonly region: Region;
  readonly brought: "pack" | "unpack";
  readonly writers: readonly number[];
  /** Those readers that disagree with the writers. */
  readonly other: readonly number[];
  /** The caller, or what is no region, reads it too, and cannot give way. */
  readonly isMetElsewhere: boolean;
}

export interface Layouts {
  readonly form: { readonly title: string };
  /** Of all regions. */
  readonly names: readonly string[];
  readonly assigned: { readonly problem: Problem; readonly solution: ArrayLike<number> };
}

export function describeConversion(
  { region, brought, writers, other, isMetElsewhere }: Converted,
  { form, names, assigned }: Layouts,
): RegionNote {
  const { problem, solution } = assigned;
  const prices = pricesWithout(problem, solution, [writers, isMetElsewhere ? [] : other]);
  const forms = ["as the model has it", form.title];
  const [from, to] = brought === "pack" ? forms : forms.toReversed();
  const elsewhere = isMetElsewhere ? ["the caller or a reshape"] : [];
  const who = [...other.map((r) => names[r]!), ...elsewhere].join(", ");
  const writer = writers.length > 0 ? writers.map((w) => names[w]!).join(", ") : "the caller";
  const reason = `${writer} stores it ${from}, read ${to} by ${who}`;
  return { region: region.name, brought, kind: "layout", reason, ...(prices && { prices }) };
}

const picosecondsPerNs = 1000;

/**
 * Of regions that would give way together, the cheapest: their prices and those of the conversions around them.
 * Undefined where none of them may.
 * @param sides numbers of the regions on each side of a conversion
 */
function pricesWithout(
  problem: Problem,
  solution: ArrayLike<number>,
  sides: readonly (readonly number[])[],
): ApartPrices | undefined {
  const options = sides.flatMap((side) => {
    const isFree = side.length > 0 && side.every((v) => problem.variables[v]!.prices.length > 1);
    if (!isFree) return [];
    const own = new Set(side);
    const other = Array.from(solution, (state, v) => (own.has(v) ? 1 - state : state));
    const apartPs = priceAround(problem, solution, own);
    const fusedPs = priceAround(problem, other, own);
    return fusedPs === Infinity ? [] : [{ apartPs, fusedPs }];
  });
  const [first, ...others] = options;
  if (!first) return undefined;
  const best = others.reduce(
    (a, b) => (b.fusedPs - b.apartPs < a.fusedPs - a.apartPs ? b : a),
    first,
  );
  return { fusedNs: best.fusedPs / picosecondsPerNs, apartNs: best.apartPs / picosecondsPerNs };
}

/** Of some variables and every transition that meets them. */
function priceAround(
  { variables, transitions }: Problem,
  solution: ArrayLike<number>,
  own: ReadonlySet<number>,
): number {
  let ps = 0;
  for (const v of own) ps += variables[v]!.prices[solution[v]!]!;
  for (const { from, to, columns, prices } of transitions) {
    if (own.has(from) || own.has(to)) ps += prices[solution[from]! * columns + solution[to]!]!;
  }
  return ps;
}
