import { describe, expect, it } from "vitest";
import type { Region, TensorRole } from "../region/nest.ts";
import type { Condition } from "../semantics/condition.ts";
import { constant, evaluate, variable } from "../semantics/index-expr.ts";
import { simpleMonoid } from "../semantics/monoids.ts";
import { apply, argument } from "../semantics/scalar-expr.ts";
import { Rng } from "../support/rng.ts";
import { applySchedule, openConditions } from "./apply.ts";
import type { Directive } from "./directive.ts";
import { parseSchedule, printSchedule } from "./directive-text.ts";
import type { ScheduledStatement } from "./scheduled-region.ts";
import { blockedLayout } from "./states/blocked-layout.ts";

const [i, j, k] = ["i", "j", "k"].map(variable) as [
  ReturnType<typeof variable>,
  ReturnType<typeof variable>,
  ReturnType<typeof variable>,
];
const tensor = (name: string, role: TensorRole | "local") =>
  [name, { name, dtype: "f32", shape: [constant(8), constant(8)], role }] as const;

/** t[i, j] = sum over k of x[i, k] w[k, j]; y[i, j] = relu(t[i, j]) */
const region: Region = {
  name: "r",
  group: { name: "r", anchor: "S0", inlined: [], epilogue: [] },
  symbols: [],
  tensors: new Map([
    tensor("x", "input"),
    tensor("w", "weight"),
    tensor("t", "local"),
    tensor("y", "output"),
  ]),
  statements: [
    {
      name: "S0",
      loops: [
        { name: "i", extent: constant(8), kind: "space" },
        { name: "j", extent: constant(8), kind: "space" },
        { name: "k", extent: variable("K"), kind: "reduce" },
      ],
      guard: [],
      indirects: [],
      reads: [
        { tensor: "x", index: [i, k], guard: [], fill: 0 },
        { tensor: "w", index: [k, j], guard: [], fill: 0 },
      ],
      body: [apply("mul", argument(0, "f32"), argument(1, "f32"))],
      reduction: { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" },
      finishReads: [],
      writes: [{ tensor: "t", index: [i, j], combine: "overwrite" }],
      origin: "matmul",
    },
    {
      name: "S1",
      loops: [
        { name: "i", extent: constant(8), kind: "space" },
        { name: "j", extent: constant(8), kind: "scan" },
      ],
      guard: [],
      indirects: [],
      reads: [{ tensor: "t", index: [i, j], guard: [], fill: 0 }],
      body: [apply("relu", argument(0, "f32"))],
      finishReads: [],
      writes: [{ tensor: "y", index: [i, j], combine: "overwrite" }],
      origin: "relu",
    },
  ],
};

/** The loops after the directives, or the code of the first that is refused. */
function check(directives: string): string {
  const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
  if (!schedule.ok) return schedule.diagnostics[0]!.code;
  const applied = applySchedule(region, schedule.value);
  if (!applied.ok) return applied.diagnostics[0]!.code;
  return applied.value.statements[0]!.loops.map(
    (l) => `${l.name}:${l.extent.key}${l.mode === "serial" ? "" : ` ${l.mode}`}`,
  ).join(", ");
}

describe("applySchedule", () => {
  it("splits, tiles, reorders and marks", () => {
    expect(check("split S0:j by 3 -> j0 j1 unroll S0:j1")).toBe("i:8, j0:3, j1:3 unroll, k:K");
    expect(check("tile S0:(i, j) by (2, 4) -> (i0, j0) (i1, j1)")).toBe(
      "i0:4, j0:2, i1:2, j1:4, k:K",
    );
    expect(check("reorder S0:(j, k, i) parallelize S0:j vectorize S0:i")).toBe(
      "j:8 grid, k:K, i:8 vector",
    );
  });

  it.each([
    ["unroll S7:i", "SCH001"],
    ["unroll S0:z", "SCH002"],
    ["split S0:i by 0 -> a b", "SCH003"],
    ["split S0:i by 2199023255552 -> a b split S0:a by 1099511627776 -> c d", "SCH003"],
    ["split S0:i by 2 -> j b", "SCH004"],
    ["reorder S0:(i, j)", "SCH005"],
    ["unroll S0:k", "SCH006"],
    ["vectorize S0:i vectorize S0:j", "SCH007"],
    ["bind S0:k to threads", "SCH006"],
    ["bind S0:i to threads bind S0:j to threads", "SCH007"],
    ["bind S0:i to lanes", "TXT001"],
    ["unroll S0:i unroll S0:i", "SCH009"],
    ["fuse S0 into S0:i", "SCH010"],
    ['place "q" in register at S0:i', "SCH011"],
    ["fuse S1 into S0:k", "SCH012"],
    ['place "t" in local at S0:i stage "t" in local at S1:i depth 1', "SCH037"],
    ['stage "t" in local at S1:i depth 1 stage "t" in local at S1:j depth 1', "SCH037"],
    ["split S0:i by 2 ->", "TXT001"],
  ])("refuses %s", (directives, code) => {
    expect(check(directives)).toBe(code);
  });

  it.each([
    ["fuse S1 into S0:i", "fits"],
    ["split S0:i by 4 -> a b split S1:i by 4 -> a b fuse S1 into S0:b", "fits"],
    // As many trips are not the same extent, nor are loops of two modes or kinds.
    ["split S0:i by 4 -> a b split S1:i by 2 -> a b fuse S1 into S0:a", "SCH012"],
    ["split S0:i by 4 -> a b split S1:i by 2 -> a b fuse S1 into S0:b", "SCH012"],
    ["split S0:i by 3 -> a b fuse S1 into S0:a", "SCH012"],
    ["parallelize S0:i fuse S1 into S0:i", "SCH012"],
    ["parallelize S0:i parallelize S1:i fuse S1 into S0:i", "fits"],
    ["reorder S0:(k, i, j) fuse S0 into S1:i", "SCH012"],
    ["reorder S1:(j, i) fuse S1 into S0:j", "fits"],
  ])("fused loops match trip for trip: %s", (directives, outcome) => {
    const found = check(directives);
    expect(/^SCH/.test(found) ? found : "fits").toBe(outcome);
  });

  it("prints every directive so that it parses back", () => {
    const text = `schedule "r" for "wasm" {
  split S0:i by 2 -> i0 i1
  tile S0:(i0, j) by (2, 4) -> (a, b) (c, d)
  reorder S0:(a, b, k, c, i1, d)
  vectorize S0:d
  unroll S0:c
  parallelize S0:a
  bind S0:b to blocks
  fuse S1 into S0:a
  place "t" in local at S0:a
  stage "x" in local at S0:a depth 1
}
`;
    const parsed = parseSchedule(text);
    expect(parsed.ok && printSchedule(parsed.value)).toBe(text);
    const layout = blockedLayout([constant(8), constant(8)], 1, 4);
    const schedule = {
      region: "r",
      target: "wasm",
      directives: [{ kind: "layout", tensor: "w", layout } as const],
    };
    const again = parseSchedule(printSchedule(schedule));
    expect(again.ok && again.value).toEqual(schedule);
  });
});

/** Every point that the scheduled loops run, in the original variables. */
function pointsRun(s: ScheduledStatement, ragged: readonly Condition[], K: number): string[] {
  let frames: ReadonlyMap<string, number>[] = [new Map([["K", K]])];
  for (const loop of s.loops) {
    frames = frames.flatMap((frame) =>
      Array.from({ length: evaluate(loop.extent, frame) }, (_, at) =>
        new Map(frame).set(loop.name, at),
      ),
    );
  }
  const holds = (c: Condition, frame: ReadonlyMap<string, number>): boolean =>
    c.kind === "zero" ? evaluate(c.expr, frame) === 0 : evaluate(c.expr, frame) >= 0;
  return frames
    .filter((frame) => ragged.every((c) => holds(c, frame)))
    .map((frame) => [...s.index.values()].map((e) => evaluate(e, frame)).join());
}

function shuffle(rng: Rng, names: readonly string[]): string[] {
  const keyed = names.map((name) => ({ name, key: rng.uniform() }));
  return keyed.sort((a, b) => a.key - b.key).map((k) => k.name);
}

/** Splits, tiles and orders of the loops that S0 has at each step. */
function randomLoops(rng: Rng): readonly Directive[] {
  const directives: Directive[] = [];
  const statement = "S0";
  let names = ["i", "j", "k"];
  for (let step = 0; step < rng.integer(1, 4); step++) {
    const [a, b] = shuffle(rng, names) as [string, string];
    const fresh = (name: string): [string, string] => [`${name}${step}o`, `${name}${step}i`];
    if (rng.uniform() < 0.5) {
      const [outer, inner] = fresh(a);
      const factor = rng.integer(1, 5);
      directives.push({ kind: "split", statement, loop: a, factor, outer, inner });
      names = names.flatMap((n) => (n === a ? [outer, inner] : [n]));
    } else {
      const [first, second] = [fresh(a), fresh(b)];
      const factors = [rng.integer(1, 5), rng.integer(1, 5)];
      const outer = [first[0], second[0]];
      const inner = [first[1], second[1]];
      directives.push({ kind: "tile", statement, loops: [a, b], factors, outer, inner });
      names = names.flatMap((n) => (n === a ? first : n === b ? second : [n]));
    }
    if (rng.uniform() < 0.5) {
      names = shuffle(rng, names);
      directives.push({ kind: "reorder", statement, order: names });
    }
  }
  return directives;
}

describe("split, tile and reorder", () => {
  it("run every point of the domain once, ragged or not, for every value of a symbol", () => {
    const symbolic = { ...region, symbols: [{ name: "K", range: { min: 1, max: 7 } }] };
    for (let seed = 0; seed < 60; seed++) {
      const rng = new Rng(seed);
      const directives = randomLoops(rng);
      const applied = applySchedule(symbolic, { region: "r", target: "wasm", directives });
      if (!applied.ok) throw new Error(applied.diagnostics[0]!.message);
      const [scheduled] = applied.value.statements as [ScheduledStatement];
      for (const K of [1, rng.integer(2, 6), 7]) {
        const wanted = new Set<string>();
        for (let p = 0; p < 64 * K; p++) {
          wanted.add([Math.floor(p / (8 * K)), Math.floor(p / K) % 8, p % K].join());
        }
        // With all ragged conditions, and with those that ranges do not already imply.
        for (const ragged of [scheduled.ragged, openConditions(symbolic, scheduled)]) {
          const found = pointsRun(scheduled, ragged, K);
          expect(found.length, `seed ${seed}, K = ${K}`).toBe(wanted.size);
          expect(new Set(found), `seed ${seed}, K = ${K}`).toEqual(wanted);
        }
      }
    }
  });
});
