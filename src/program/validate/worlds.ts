/**
 * Worlds: what one launch can be. A kernel may branch on parameters alone (one row, or several); in a launch a
 * parameter has one value, so that a condition on parameters holds in all of it or nowhere. Accesses that need
 * it and accesses that need its opposite are never in the same launch, and races are looked for in both apart,
 * and in each again where another condition tells launches apart.
 */
import { add, type IndexExpr, mul, variablesOf } from "../../semantics/index-expr.ts";
import type { Facts } from "./facts.ts";

interface Held {
  readonly facts: Facts;
}

/** The accesses of some launches, and what holds in each of them. */
export interface World<T> {
  readonly accesses: readonly T[];
  readonly launch: Facts;
}

/**
 * The accesses that there can be where some condition on parameters holds, and where it does not: of the
 * conditions around them the first one that leaves fewer on both sides. Nothing where none does.
 *
 * @param launch what holds for the whole launch
 */
export function worldsOf<T extends Held>(
  accesses: readonly T[],
  launch: Facts,
): readonly World<T>[] {
  const fixed = accesses.map(({ facts }) => facts.conditions.filter((c) => isFixed(c, launch)));
  const possible = new Map<string, boolean>();
  const mayBe = (at: number, given: IndexExpr): boolean => {
    const key = `${given.key}: ${fixed[at]!.map((c) => c.key).join(" ")}`;
    let may = possible.get(key);
    if (may === undefined) {
      may = !launch
        .withNonNegative(given)
        .withNonNegative(...fixed[at]!)
        .isImpossible();
      possible.set(key, may);
    }
    return may;
  };
  const candidates = new Map(fixed.flat().map((c) => [c.key, c]));
  for (const condition of candidates.values()) {
    // Not e >= 0: e <= -1.
    const sides = [condition, add(mul(condition, -1), -1)];
    const worlds = sides.map((side) => ({
      accesses: accesses.filter((_, at) => mayBe(at, side)),
      launch: launch.withNonNegative(side),
    }));
    if (worlds.every((world) => world.accesses.length < accesses.length)) return worlds;
  }
  return [];
}

/** Over parameters alone: the same in the whole launch. */
function isFixed(condition: IndexExpr, launch: Facts): boolean {
  const used = [...variablesOf(condition)];
  return used.length > 0 && used.every((name) => launch.isParameter(name));
}
