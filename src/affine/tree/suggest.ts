/**
 * The smallest change that makes a refused schedule legal: candidates from small to large, each judged
 * like any schedule, so that what is suggested is legal for sure. First other numbers in a directive that
 * is there (a longer shift, one more buffer), then one directive more (a skew before tiles, a shift
 * behind a fusion), then one less, the last first.
 */
import { scheduleNest, type TreeDirective } from "./directive.ts";
import { printTreeDirective } from "./directive-text.ts";
import type { Nest } from "./nest-program.ts";

export interface Change {
  readonly directives: readonly TreeDirective[];
  /** In words: `shift T:i by 1 behind fuse S into T at i`. */
  readonly text: string;
}

/** Undefined when no single change helps, or the schedule is refused for its form. */
export function smallestChange(
  nest: Nest,
  directives: readonly TreeDirective[],
): Change | undefined {
  for (const candidate of candidates(directives)) {
    if (scheduleNest(nest, candidate.directives).kind === "legal") return candidate;
  }
  return undefined;
}

function* candidates(all: readonly TreeDirective[]): Generator<Change> {
  const places = all.map((_, i) => all.length - 1 - i);
  for (const size of [1, 2, 3, 4]) {
    for (const at of places) {
      for (const d of adjusted(all[at]!, size)) {
        const text = `${printTreeDirective(d)} instead of ${printTreeDirective(all[at]!)}`;
        yield { directives: all.with(at, d), text };
      }
    }
  }
  for (const size of [1, 2, 3]) {
    for (const at of places) {
      for (const d of skewsFor(all[at]!, size)) {
        const text = `${printTreeDirective(d)} before ${printTreeDirective(all[at]!)}`;
        yield { directives: all.toSpliced(at, 0, d), text };
      }
      for (const d of shiftsFor(all[at]!, size)) {
        const text = `${printTreeDirective(d)} behind ${printTreeDirective(all[at]!)}`;
        yield { directives: all.toSpliced(at + 1, 0, d), text };
      }
    }
  }
  for (const at of places) {
    yield { directives: all.toSpliced(at, 1), text: `no ${printTreeDirective(all[at]!)}` };
  }
}

/** The directive with its number changed by `size`. */
function adjusted(d: TreeDirective, size: number): readonly TreeDirective[] {
  switch (d.kind) {
    case "shift":
      return [
        { ...d, by: d.by + size },
        { ...d, by: d.by - size },
      ];
    case "skew":
      return [
        { ...d, factor: d.factor + size },
        { ...d, factor: d.factor - size },
      ];
    case "diamond":
      return [{ ...d, slope: d.slope + size }];
    case "fold":
      return [{ ...d, modulus: d.modulus + size }];
    case "buffer":
      return [{ ...d, copies: d.copies + size }];
    default:
      return [];
  }
}

/** Skews that let loops be exchanged or tiled: each loop by each one named with it. */
function skewsFor(d: TreeDirective, factor: number): readonly TreeDirective[] {
  const named =
    d.kind === "tile"
      ? d.loops
      : d.kind === "reorder"
        ? d.order
        : d.kind === "interchange"
          ? [d.loop, d.other]
          : [];
  if (!("statement" in d)) return [];
  return named.flatMap((loop) =>
    named
      .filter((by) => by !== loop)
      .map((by): TreeDirective => ({ kind: "skew", statement: d.statement, loop, by, factor })),
  );
}

function shiftsFor(d: TreeDirective, by: number): readonly TreeDirective[] {
  if (d.kind !== "fuse") return [];
  return [d.into, d.statement].map((statement) => ({ kind: "shift", statement, loop: d.at, by }));
}
