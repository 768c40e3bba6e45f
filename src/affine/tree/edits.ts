/**
 * The changes of a schedule that cures are made of (suggest.ts): edits of one directive each, from small to
 * large. First other numbers or another order in a directive that is there (a longer shift, one more
 * buffer, two loops exchanged), then one directive more (a skew before tiles, a shift behind a fusion), then
 * one less, the last first, then additions by larger numbers.
 */
import type { TreeDirective } from "./directive.ts";

/** One directive replaced, put before or behind another one, or left out. */
export interface Edit {
  readonly at: number;
  readonly how: "instead" | "before" | "behind" | "without";
  /** Absent only where one is left out. */
  readonly made?: ProposedDirective;
  /** By how much a number changes, how far apart loops are exchanged; 1 where one is left out. */
  readonly size: number;
}

export function leaveOut(at: number): Edit {
  return { at, how: "without", size: 1 };
}

/** The directives that changes are made of. */
export type ProposedDirective = Extract<
  TreeDirective,
  { readonly kind: "shift" | "skew" | "diamond" | "fold" | "buffer" | "reorder" }
>;

/** Whether two edits can be made together: a directive changes once, and stays where one is put beside it. */
export function areCompatible(a: Edit, b: Edit): boolean {
  if (a.at !== b.at) return true;
  if (a.how === "without" || b.how === "without") return false;
  return !takesAway(a) || !takesAway(b);
}

function takesAway({ how }: Edit): boolean {
  return how === "instead" || how === "without";
}

/** All edits at once; places count the directives as they were. */
export function editDirectives<D>(
  directives: readonly D[],
  edits: readonly Edit[],
): readonly (D | ProposedDirective)[] {
  return directives.flatMap((d, at) => {
    const here = edits.filter((e) => e.at === at);
    const made = (how: Edit["how"]): readonly ProposedDirective[] =>
      here.flatMap((e) => (e.how === how && e.made ? [e.made] : []));
    const own = here.some(takesAway) ? made("instead") : [d];
    return [...made("before"), ...own, ...made("behind")];
  });
}

/** In words: `skew S:j by i times 1 before interchange S:i with j, and leave out vectorize S:j`. */
export function describeEdits<D>(
  edits: readonly Edit[],
  directives: readonly D[],
  print: (d: D | ProposedDirective) => string,
): string {
  const texts = directives.map(print);
  const name = (at: number): string => {
    const text = texts[at]!;
    const same = texts.indexOf(text) !== at || texts.lastIndexOf(text) !== at;
    return same ? `${text} (directive ${at + 1})` : text;
  };
  // What is put beside a directive that is replaced as well stands beside the new one.
  const neighbour = (at: number): string => {
    const instead = edits.find((e) => e.at === at && e.how === "instead");
    return instead?.made ? print(instead.made) : name(at);
  };
  const spell = ({ at, how, made }: Edit): string => {
    if (!made) return `leave out ${name(at)}`;
    if (how === "instead") return `${print(made)} instead of ${name(at)}`;
    return `${print(made)} ${how} ${neighbour(at)}`;
  };
  return edits.map(spell).join(", and ");
}

/**
 * Single edits from small to large. Changes of several edits are made of those of size 1 among them.
 * Directives that are not known here can only be left out.
 */
export function* editsOf(
  directives: readonly (TreeDirective | { readonly kind: string })[],
): Generator<Edit> {
  const all = directives as readonly TreeDirective[];
  const places = all.map((_, i) => all.length - 1 - i);
  const gone = new Set<number>();
  for (const size of [1, 2, 3, 4]) {
    for (const at of places) {
      for (const made of adjusted(all[at]!, size)) {
        if (made) yield { at, how: "instead", made, size };
        else yield leaveOut(at);
        if (!made) gone.add(at);
      }
    }
  }
  yield* additions(all, 1);
  for (const at of places) if (!gone.has(at)) yield leaveOut(at);
  for (const size of [2, 3]) yield* additions(all, size);
}

function* additions(all: readonly TreeDirective[], size: number): Generator<Edit> {
  for (let at = all.length - 1; at >= 0; at--) {
    for (const made of skewsFor(all[at]!, size)) yield { at, how: "before", made, size };
    for (const made of shiftsFor(all[at]!, size)) yield { at, how: "behind", made, size };
  }
}

/**
 * The directive with its number changed by `size`, or two loops `size` apart exchanged; undefined for a
 * number that says nothing any more.
 */
function adjusted(d: TreeDirective, size: number): readonly (ProposedDirective | undefined)[] {
  switch (d.kind) {
    case "shift":
      return [d.by + size, d.by - size].map((by) => (by === 0 ? undefined : { ...d, by }));
    case "skew":
      return [d.factor + size, d.factor - size].map((factor) =>
        factor === 0 ? undefined : { ...d, factor },
      );
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
