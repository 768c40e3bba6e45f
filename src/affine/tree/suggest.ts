/**
 * The smallest change that makes a refused schedule legal: candidates from small to large, each judged
 * like any schedule, so that what is suggested is legal for sure. First other numbers or another order
 * in a directive that is there (a longer shift, one more buffer, two loops exchanged), then one
 * directive more (a skew before tiles, a shift behind a fusion), then one less, the last first, then
 * additions by larger numbers.
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
  for (const edit of editsOf(directives)) {
    const edited = editDirectives(directives, edit);
    if (scheduleNest(nest, edited).kind === "legal") {
      return {
        directives: edited,
        text: describeEdit<TreeDirective>(edit, directives, printTreeDirective),
      };
    }
  }
  return undefined;
}

/** One directive replaced, put before or behind another one, or left out. */
export interface Edit {
  readonly at: number;
  readonly how: "instead" | "before" | "behind" | "without";
  /** Absent only where one is left out. */
  readonly made?: ProposedDirective;
}

/** The directives that changes are made of. */
export type ProposedDirective = Extract<
  TreeDirective,
  { readonly kind: "shift" | "skew" | "diamond" | "fold" | "buffer" | "reorder" }
>;

export function editDirectives<D>(
  directives: readonly (D | ProposedDirective)[],
  { at, how, made }: Edit,
): readonly (D | ProposedDirective)[] {
  const put = made ? [made] : [];
  if (how === "instead" || how === "without") return directives.toSpliced(at, 1, ...put);
  return directives.toSpliced(how === "before" ? at : at + 1, 0, ...put);
}

export function describeEdit<D>(
  { at, how, made }: Edit,
  directives: readonly D[],
  print: (d: D | ProposedDirective) => string,
): string {
  const old = print(directives[at]!);
  if (!made) return `leave out ${old}`;
  return `${print(made)} ${how === "instead" ? "instead of" : how} ${old}`;
}

/** Edits from small to large. Directives that are not known here can only be left out. */
export function* editsOf(
  directives: readonly (TreeDirective | { readonly kind: string })[],
): Generator<Edit> {
  const all = directives as readonly TreeDirective[];
  const places = all.map((_, i) => all.length - 1 - i);
  for (const size of [1, 2, 3, 4]) {
    for (const at of places) {
      for (const made of adjusted(all[at]!, size)) yield { at, how: "instead", made };
    }
  }
  yield* additions(all, 1);
  for (const at of places) yield { at, how: "without" };
  for (const size of [2, 3]) yield* additions(all, size);
}

function* additions(all: readonly TreeDirective[], size: number): Generator<Edit> {
  for (let at = all.length - 1; at >= 0; at--) {
    for (const made of skewsFor(all[at]!, size)) yield { at, how: "before", made };
    for (const made of shiftsFor(all[at]!, size)) yield { at, how: "behind", made };
  }
}

/** The directive with its number changed by `size`, or two loops `size` apart exchanged. */
function adjusted(d: TreeDirective, size: number): readonly ProposedDirective[] {
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
    case "reorder":
      return d.order.slice(size).map((other, i) => ({
        ...d,
        order: d.order.with(i, other).with(i + size, d.order[i]!),
      }));
    default:
      return [];
  }
}

/** Skews that let loops be exchanged or tiled: each loop by each one named with it. */
function skewsFor(d: TreeDirective, factor: number): readonly ProposedDirective[] {
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
      .map((by) => ({ kind: "skew", statement: d.statement, loop, by, factor })),
  );
}

function shiftsFor(d: TreeDirective, by: number): readonly ProposedDirective[] {
  if (d.kind !== "fuse") return [];
  return [d.into, d.statement].map((statement) => ({ kind: "shift", statement, loop: d.at, by }));
}
