/** Trees in text: what is printed reads back to an equal tree, and what is damaged is refused. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Rng } from "../../support/rng.ts";
import { type Affine, add, affine, floorDivide, scale } from "../expression.ts";
import type { BandMember, FilterNode, ScheduleTree, TreeMark } from "./tree.ts";
import { parseTree } from "./tree-parse.ts";
import { printTree } from "./tree-text.ts";

const statements = ["S0", "S1", "conv.tile"];

function randomAffine(rng: Rng): Affine {
  const loops = ["i", "j0", "k"];
  let value = affine(rng.integer(-3, 3));
  for (let n = rng.integer(0, 3); n > 0; n--) {
    const inside = add(rng.pick(loops), rng.integer(-4, 4));
    const term = rng.pick([() => inside, () => floorDivide(inside, rng.integer(2, 6))])();
    value = add(value, scale(rng.pick([-3, -1, 1, 2]), term));
  }
  return value;
}

function randomMember(rng: Rng, loop: string): BandMember {
  const used = statements.slice(0, rng.integer(1, statements.length));
  const values = new Map(used.map((name) => [name, randomAffine(rng)]));
  return { loop, values, coincident: rng.integer(0, 1) === 1 };
}

function randomMark(rng: Rng): TreeMark {
  const tensor = rng.pick(["t", 'a "quoted" name', "a/b.c", "back\\slash in"]);
  return rng.pick<TreeMark>([
    { kind: "grid" },
    { kind: "vector" },
    { kind: "unroll" },
    { kind: "placed", tensor, scope: "local" },
    { kind: "staged", tensor, scope: "register" },
    { kind: "device" },
    { kind: "role", role: tensor },
  ]);
}

function randomFilter(rng: Rng, depth: number): FilterNode {
  const names = statements.filter(() => rng.integer(0, 1) === 1);
  const child = randomTree(rng, depth - 1);
  return { kind: "filter", statements: names.length > 0 ? names : ["S1"], child };
}

function randomTree(rng: Rng, depth: number): ScheduleTree {
  if (depth <= 0) return { kind: "leaf" };
  const below = (): ScheduleTree => randomTree(rng, depth - 1);
  return rng.pick<() => ScheduleTree>([
    () => ({ kind: "domain", text: "{ S0[i] : i >= 0; S1[]; conv.tile[t] }", child: below() }),
    () => ({ kind: "context", text: "[N] -> { : N >= 1 }", child: below() }),
    () => ({
      kind: "extension",
      statement: "conv.tile",
      text: "{ [t] -> conv.tile[t, i] : 4t <= i <= 4t + 5 }",
      child: below(),
    }),
    () => ({
      kind: rng.pick(["sequence", "set"] as const),
      children: Array.from({ length: rng.integer(1, 3) }, () => randomFilter(rng, depth - 1)),
    }),
    () => randomFilter(rng, depth),
    () => ({
      kind: "band",
      members: Array.from({ length: rng.integer(1, 3) }, (_, i) => randomMember(rng, `l${i}`)),
      permutable: rng.integer(0, 1) === 1,
      child: below(),
    }),
    () => ({ kind: "mark", mark: randomMark(rng), child: below() }),
  ])();
}

test("what is printed reads back to the same tree", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const tree = randomTree(new Rng(seed), 5);
      const read = parseTree(printTree(tree));
      expect(read.ok && read.value).toEqual(tree);
      expect(read.ok && printTree(read.value)).toBe(printTree(tree));
    }),
    { numRuns: 300 },
  );
});

test("damaged text is refused with its line, or reads as another tree that prints back", () => {
  fc.assert(
    fc.property(fc.integer(), fc.nat(), fc.integer({ min: 32, max: 126 }), (seed, at, byte) => {
      const text = printTree(randomTree(new Rng(seed), 4));
      const place = at % text.length;
      const damaged = text.slice(0, place) + String.fromCharCode(byte) + text.slice(place + 1);
      const read = parseTree(damaged);
      if (!read.ok) expect(read.diagnostics[0]!.code).toBe("TXT001");
      else expect(parseTree(printTree(read.value))).toEqual(read);
    }),
    { numRuns: 300 },
  );
});

test.each([
  ["", "end of the text"],
  ["leaf\nleaf", "the end of the tree"],
  ["mark grid", "end of the text"],
  ["mark grid\n    leaf", "a node at depth 1"],
  ["mark serial\n  leaf", "a mark"],
  ["band permutable\n  leaf", "members in brackets"],
  ["band [i: S0]\n  leaf", "a statement and its value"],
  ["band [i: S0 i*j]\n  leaf", "an affine value"],
  ["band [i: S0 i, S0 j]\n  leaf", "each statement once"],
  ["sequence\n  leaf", "a filter"],
  ["set", "filters below it"],
  ["domain {}\n  leaf", "a quoted text"],
  ['domain "{ S[i*j] }"\n  leaf', "a set"],
  ['context "N"\n  leaf', "a set"],
  ['domain "{ S[i]; T[i] }"\n  filter U\n    leaf', "statements of the domain (S, T), not U"],
  ['domain "{ S[i] }"\n  band [i: S i, T i]\n    leaf', "statements of the domain (S), not T"],
  ["extension S\n  leaf", "a statement and a map"],
  ['extension S "{ [t] }"\n  leaf', "a map"],
  ["tree\n  leaf", "domain, context"],
])("%j is refused", (text, expected) => {
  const read = parseTree(text);
  expect(read.ok ? "" : read.diagnostics[0]!.message).toContain(expected);
});
