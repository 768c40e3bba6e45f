/** Draws a directive that a tree has a place for; what it does to legality is the trial's question. */
import type { LoopMark, Nest, ScheduleTree, TreeDirective } from "../../src/affine/index.ts";
import type { Rng } from "../../src/support/rng.ts";

interface Spot {
  readonly statement: string;
  /** Directly nested loops around one another, outermost first. */
  readonly loops: readonly string[];
}

/** For every statement its chains of loops. */
export function spotsOf(tree: ScheduleTree): readonly Spot[] {
  const spots: Spot[] = [];
  const visit = (node: ScheduleTree, chain: Map<string, string[]>): void => {
    const close = (): void => {
      for (const [statement, loops] of chain) spots.push({ statement, loops });
    };
    if (node.kind === "leaf") close();
    else if ("children" in node) {
      close();
      for (const c of node.children) visit(c.child, new Map());
    } else if (node.kind === "band") {
      const next = new Map(chain);
      for (const { loop, values } of node.members) {
        for (const s of values.keys()) next.set(s, [...(next.get(s) ?? []), loop]);
      }
      visit(node.child, next);
    } else if (node.kind === "mark" && node.mark.kind !== "role") visit(node.child, chain);
    else {
      close();
      visit(node.child, new Map());
    }
  };
  visit(tree, new Map());
  return spots.filter((s) => s.loops.length > 0);
}

const marks: readonly LoopMark[] = [
  "parallel",
  "parallel",
  "vector",
  "grid",
  "blocks",
  "threads",
  "unroll",
];

let fresh = 0;

export function drawDirective(rng: Rng, nest: Nest, tree: ScheduleTree): TreeDirective | undefined {
  const spots = spotsOf(tree);
  if (spots.length === 0) return undefined;
  const spot = rng.pick(spots);
  const { statement, loops } = spot;
  const loop = rng.pick(loops);
  fresh++;
  const [outer, inner] = [`o${fresh}`, `n${fresh}`];
  const factor = rng.integer(1, 3);
  const two = (): readonly [string, string] | undefined => {
    if (loops.length < 2) return undefined;
    const at = rng.integer(0, loops.length - 2);
    const pair = [loops[at]!, loops[at + 1]!] as const;
    return rng.uniform() < 0.5 ? pair : [pair[1], pair[0]];
  };
  const makers: readonly (() => TreeDirective | undefined)[] = [
    () => ({ kind: "split", statement, loop, factor, outer, inner }),
    () => {
      const at = rng.integer(0, loops.length - 1);
      const chosen = loops.slice(at, at + rng.integer(1, 3));
      const factors = chosen.map(() => rng.integer(1, 3));
      const names = (end: string): string[] => chosen.map((_, i) => `${end}${fresh}_${i}`);
      return {
        kind: "tile",
        statement,
        loops: chosen,
        factors,
        outer: names("o"),
        inner: names("n"),
      };
    },
    () => {
      const pair = two();
      return pair && { kind: "interchange", statement, loop: pair[0], other: pair[1] };
    },
    () => ({ kind: "reorder", statement, order: shuffle(rng, loops) }),
    () => {
      const pair = two();
      const by = rng.pick([-1, 1, 1, 2]);
      return pair && { kind: "skew", statement, loop: pair[0], by: pair[1], factor: by };
    },
    () => ({ kind: "shift", statement, loop, by: rng.pick([-1, 1, 1, 2]) }),
    () => {
      const pair = two();
      const slope = rng.pick([1, 1, 2]);
      const names = { wave: outer, tile: inner };
      return (
        pair && { kind: "diamond", statement, loop: pair[0], by: pair[1], factor, slope, ...names }
      );
    },
    () => ({ kind: "mark", statement, loop, mark: rng.pick(marks) }),
    () => ({ kind: "mark", statement, loop, mark: rng.pick(marks) }),
    () => ({ kind: "jam", statement, loop, factor: rng.integer(2, 3), outer, inner }),
    () => {
      const host = rng.pick(spots);
      return { kind: "fuse", statement, into: host.statement, at: rng.pick(host.loops) };
    },
    () => ({ kind: "fission", statement, loop }),
    () => {
      const held = spots.filter((s) => s.loops.includes(loop)).map((s) => s.statement);
      const stages = new Map(held.map((s, i) => [s, Math.min(i, rng.integer(0, 2))]));
      return { kind: "pipeline", loop, stages };
    },
    () => {
      const held = spots.filter((s) => s.loops.includes(loop)).map((s) => s.statement);
      return {
        kind: "roles",
        loop,
        roles: new Map(held.map((s) => [s, rng.pick(["load", "math"])])),
      };
    },
  ];
  const change = rng.uniform() < 0.3 ? drawChange(rng, nest, { spot, spots }) : undefined;
  return change ?? rng.pick(makers)();
}

/** A directive that changes the program. */
function drawChange(
  rng: Rng,
  { statements }: Nest,
  { spot, spots }: { readonly spot: Spot; readonly spots: readonly Spot[] },
): TreeDirective | undefined {
  const { statement, loops } = spot;
  const loop = rng.pick(loops);
  const [outer, inner] = [`o${fresh}`, `n${fresh}`];
  const accesses = statements.flatMap((s) => s.accesses);
  const access = rng.pick(accesses);
  const { array } = access;
  const makers: readonly (() => TreeDirective | undefined)[] = [
    () => {
      const kind = rng.pick(["split-reduction", "split-scan"] as const);
      return { kind, statement, loop, factor: rng.integer(1, 3), outer, inner };
    },
    () => {
      if (access.index.length === 0) return undefined;
      const axis = rng.integer(0, access.index.length - 1);
      return { kind: "fold", array, axis, modulus: rng.integer(1, 4) };
    },
    () => {
      const like = accesses.filter((a) => a.index.length === access.index.length);
      return { kind: "overwrite", array, over: rng.pick(like).array };
    },
    () => ({ kind: "buffer", array, loop, copies: rng.integer(1, 3) }),
    () => {
      const host = rng.pick(spots);
      const chosen = host.loops.slice(0, rng.integer(1, 2));
      const names = (end: string): string[] => chosen.map((_, i) => `${end}${fresh}_${i}`);
      return {
        kind: "overlap",
        statement,
        into: host.statement,
        loops: chosen,
        factors: chosen.map(() => rng.integer(1, 3)),
        outer: names("o"),
        inner: names("n"),
      };
    },
  ];
  return rng.pick(makers)();
}

function shuffle<T>(rng: Rng, items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ item, key: rng.uniform() }));
  return keyed.sort((a, b) => a.key - b.key).map((k) => k.item);
}
