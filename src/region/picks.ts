/**
 * Products that take their operand's matrices by number: of each problem of a batch, data says which (an expert's
 * weights for a tile of its tokens). A number that the whole problem shares is loaded once.
 */
import { constantValue, variablesOf } from "../semantics/index-expr.ts";
import type { Access, Statement } from "./nest.ts";

/** The loops that move an access, also those by which an index that stands in it is loaded. */
export function loopsThrough(
  { indirects }: Pick<Statement, "indirects">,
  { index }: Access,
): ReadonlySet<string> {
  const used = new Set(variablesOf(...index));
  for (const { name, access } of indirects) {
    if (used.has(name)) for (const own of variablesOf(...access.index)) used.add(own);
  }
  return used;
}

/**
 * Whether a product of two operands, each with a loop that is not the other's, loads its indices by loops of its
 * batch alone: those that move both operands.
 */
export function picksOfBatch(statement: Statement): boolean {
  const { reads, indirects, loops } = statement;
  const [one, other, ...more] = reads.map((r) => loopsThrough(statement, r));
  if (!one || !other || more.length > 0) return false;
  const space = loops.filter((l) => l.kind === "space");
  const isBatch = (name: string): boolean =>
    one.has(name) && other.has(name) && space.some((l) => l.name === name);
  const moves = (mine: ReadonlySet<string>, its: ReadonlySet<string>): boolean =>
    space.some((l) => mine.has(l.name) && !its.has(l.name) && constantValue(l.extent) !== 1);
  return (
    indirects.every((v) => v.access.guard.length === 0 && onlyOf(v.access, isBatch)) &&
    moves(one, other) &&
    moves(other, one)
  );
}

function onlyOf({ index }: Access, isBatch: (name: string) => boolean): boolean {
  return [...variablesOf(...index)].every(isBatch);
}
