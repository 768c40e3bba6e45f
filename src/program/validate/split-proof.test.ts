import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { evaluate, type IndexExpr } from "../../semantics/index-expr.ts";
import { parseProgram } from "../program-parse.ts";
import type { Statement } from "../statement.ts";
import { Facts } from "./facts.ts";
import { viewLaunch } from "./launch-view.ts";
import { periodOfLoop } from "./periods.ts";
import { sharedPart } from "./shared-part.ts";
import { tilesExactly } from "./tiling.ts";
import { validateProgram } from "./validate.ts";

interface Knobs {
  readonly steps?: number;
  readonly stages?: number;
  readonly pending?: number;
  readonly barrier?: string;
  readonly ahead?: number;
  readonly extra?: string;
}

/** A ring of stages filled by asynchronous copies: blocks of 32 rows, 32 threads, steps of 8. */
function ring({
  steps = 300,
  stages = 3,
  pending = stages - 2,
  barrier = "barrier instance",
  ahead = stages - 1,
  extra = "",
}: Knobs = {}): string {
  return `program ring for "sm_80" {
  buffer x : input memory f32 [${32 * 40}, ${8 * steps}] source "x"
  buffer y : output memory f32 [${32 * 40}] source "y"
  kernel main region "r" {
    grid blocks (b < 40)
    buffer tile : scratch shared f32 [${stages}, 32, 8]
    buffer sum : scratch register f32 [1]
    role all copies 1 threads 32 as t {
      store sum[0] = f32(0)
      for s < ${stages - 1} {
        issue cp.async(tile[s, t, 0] box [4], x[32*b + t, 8*s] box [4]) group c
        issue cp.async(tile[s, t, 4] box [4], x[32*b + t, 8*s + 4] box [4]) group c
        commit c
      }
      for k < ${steps} {
        await c pending ${pending}
        ${barrier}
        if ${steps - 1} - ${stages - 1} - k >= 0 {
          issue cp.async(tile[mod(k + ${ahead}, ${stages}), t, 0] box [4], x[32*b + t, 8*k + ${8 * (stages - 1)}] box [4]) group c
          issue cp.async(tile[mod(k + ${ahead}, ${stages}), t, 4] box [4], x[32*b + t, 8*k + ${8 * (stages - 1)} + 4] box [4]) group c
        }
        commit c
        for i < 8 {
          store sum[0] = add(load.f32 sum[0], load.f32 tile[mod(k, ${stages}), 31 - t, i])
        }
      }
      await c pending 0
      ${extra}
      store y[32*b + t] = load.f32 sum[0]
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

function codes(text: string): readonly string[] {
  const program = parseProgram(text);
  if (!program.ok) throw new Error(program.diagnostics[0]!.message);
  const valid = validateProgram(program.value);
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

describe("kernels that are proved in parts", () => {
  it("a ring of any number of stages is valid, however long the loop", () => {
    for (const stages of [2, 3, 4, 5]) expect(codes(ring({ stages }))).toEqual([]);
    expect(codes(ring({ steps: 5_000 }))).toEqual([]);
  });

  it("faults of the ring are found", () => {
    expect(codes(ring({ pending: 2 }))).toContain("PRG030");
    expect(codes(ring({ barrier: "" }))).toContain("PRG021");
    expect(codes(ring({ ahead: 1 }))).toContain("PRG030");
    expect(codes(ring({ ahead: 3 }))).toContain("PRG030");
    expect(codes(ring({ stages: 4, pending: 3 }))).toContain("PRG030");
  });

  it("what is read of memory may not be written, and registers are written first", () => {
    expect(
      codes(ring().replaceAll("y : output", "x2 : output").replace("store y[", "store x2[")),
    ).toEqual([]);
    expect(codes(ring().replace("store sum[0] = f32(0)", ""))).toContain("PRG021");
    expect(codes(ring().replace("store y[32*b + t] =", "store y[t] ="))).toContain("PRG030");
    expect(codes(ring().replace("32*b + t] = load", "32*b + 32*t] = load"))).toContain("PRG010");
    expect(codes(ring({ extra: "store y[32*b + t] = load.f32 y[32*b + t]" }))).toContain("PRG021");
  });

  it("what is written exactly once is whole beside what is written otherwise", () => {
    const twice = (z: string): string =>
      ring({ extra: `${z}\n store y[32*b + t] = f32(0)` }).replace(
        "  kernel main",
        `  buffer z : output memory f32 [40, 1] source "z"\n  kernel main`,
      );
    expect(codes(twice("if t == 0 {\n store z[b, 0] = f32(1)\n }"))).toEqual([]);
    expect(codes(twice("if b + t == 0 {\n store z[b, 0] = f32(1)\n }"))).toEqual(["PRG020"]);
    const short = "if t == 0 {\n store z[b, 0] = f32(1)\n }";
    const part = twice(short).replaceAll(
      "store y[32*b + t] =",
      "if t - 1 >= 0 {\n store y[32*b + t] =",
    );
    expect(codes(part.replaceAll(/(if t - 1 >= 0 \{\n[^\n]*)/g, "$1\n }"))).toEqual(["PRG020"]);
  });

  it("blocks that take different ways are told apart", () => {
    const lonely = "if b - 7 == 0 {\n store tile[2, t, 0] = f32(1)\n }";
    expect(codes(ring({ extra: lonely }))).toContain("PRG030");
    const met = `barrier instance\n ${lonely}`;
    expect(codes(ring({ extra: met }))).toEqual([]);
  });

  it("blocks for which the same conditions hold are alike", () => {
    const instances = (extra: string): readonly number[] => {
      const program = parseProgram(ring({ extra: `barrier instance\n ${extra}` }));
      if (!program.ok) throw new Error(program.diagnostics[0]!.message);
      const [kernel] = program.value.kernels;
      const facts = Facts.none();
      const site = { program: program.value, bindings: [], tables: new Map(), facts };
      return sharedPart(viewLaunch({ ...site, kernel: kernel! }))!.instances;
    };
    const filled = (rows: string) => `store tile[${rows}, t, 0] = f32(1)`;
    expect(instances(`if b - 7 >= 0 {\n ${filled("2")}\n }`)).toEqual([0, 7]);
    expect(instances(`if b - 7 == 0 {\n ${filled("2")}\n }`)).toEqual([0, 7]);
    expect(instances(`if b - 7 >= 0 {\n ${filled("mod(b - 7, 3)")}\n }`)).toHaveLength(6);
    expect(instances(`if b + t - 7 >= 0 {\n ${filled("2")}\n }`)).toHaveLength(40);
  });
});

type Loop = Extract<Statement, { kind: "for" }>;

describe("periods of loops", () => {
  const loopOf = (body: string, extent: number): Loop => {
    const text = ring().replace(
      /for k < 300 \{[\s\S]*?\n {6}\}\n/,
      `for k < ${extent} {\n${body}\n}\n`,
    );
    const program = parseProgram(text);
    if (!program.ok) throw new Error(program.diagnostics[0]!.message);
    const { body: all } = program.value.kernels[0]!.roles[0]!;
    return all.find((s): s is Loop => s.kind === "for" && s.variable === "k")!;
  };

  it("between head and tail everything repeats", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 0, max: 9 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: -30, max: 90 }),
        (step, add, modulus, bound) => {
          const loop = loopOf(
            `if ${bound} - ${step}*k >= 0 {\n store tile[mod(${step}*k + ${add}, ${modulus}), t, 0] = f32(1)\n }`,
            60,
          );
          const found = periodOfLoop(loop, 60, new Map([["t", { min: 0, max: 63 }]]))!;
          const branch = loop.body[0] as Extract<Statement, { kind: "if" }>;
          const store = branch.then[0] as Extract<Statement, { kind: "store" }>;
          const at = (e: IndexExpr, k: number): number => evaluate(e, new Map([["k", k]]));
          for (let k = found.head; k + found.period < 60 - found.tail; k++) {
            const [a, b] = [k, k + found.period];
            expect(at(store.index[0]!, a)).toBe(at(store.index[0]!, b));
            const [c] = branch.conditions;
            expect(at(c!.expr, a) >= 0).toBe(at(c!.expr, b) >= 0);
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  it("what moves on for ever has none", () => {
    const loop = loopOf("store tile[0, k, 0] = f32(1)", 60);
    expect(periodOfLoop(loop, 60, new Map())).toBeUndefined();
  });
});

describe("stores that tile a buffer", () => {
  const program = (
    index: string,
    shape: string,
    axes: string,
    guard: string,
    copies: readonly number[],
  ): string => `program p for "sm_80" {
  buffer y : output memory f32 [${shape}] source "y"
  kernel main region "r" {
    grid blocks (${axes})
    role all copies 1 threads 1 {
      ${copies.map((c) => `if ${guard.replaceAll("C", String(c))} {\n store y[${index.replaceAll("C", String(c))}] = f32(1)\n }`).join("\n")}
    }
  }
  tasks {
    launch main after previous
  }
}
`;
  const tiles = (text: string): boolean => {
    const read = parseProgram(text);
    if (!read.ok) throw new Error(read.diagnostics[0]!.message);
    const [kernel] = read.value.kernels;
    const site = {
      program: read.value,
      kernel: kernel!,
      bindings: [],
      tables: new Map(),
      facts: Facts.none(),
    };
    return tilesExactly(viewLaunch(site), read.value.buffers[0]!);
  };

  it("agrees with counting", () => {
    let yes = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 3, 4, 6, 8, 12),
        fc.constantFrom(1, 2, 3, 4, 6, 8, 12),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 30 }),
        fc.constantFrom([0], [0, 1], [0, 2], [0, 1, 2], [0, 3], [0, 1, 4, 5], [1]),
        (stepA, stepB, a, b, size, copies) => {
          const guard = `${size - 1} - ${stepA}*a - ${stepB}*b - C >= 0`;
          const said = tiles(
            program(
              `${stepA}*a + ${stepB}*b + C`,
              String(size),
              `a < ${a}, b < ${b}`,
              guard,
              copies,
            ),
          );
          const counts = new Array<number>(size).fill(0);
          for (let i = 0; i < a; i++) {
            for (let j = 0; j < b; j++) {
              for (const c of copies) {
                const at = stepA * i + stepB * j + c;
                if (at < size) counts[at]!++;
              }
            }
          }
          if (said) yes++;
          if (said) expect(counts.every((n) => n === 1)).toBe(true);
        },
      ),
      { numRuns: 400, seed: 1 },
    );
    expect(yes).toBeGreaterThan(3);
  });

  it("a ragged rectangle and a divided column", () => {
    const rows = "8*a + b + C";
    const guarded = program(
      `${rows}, 2*c`,
      "19, 4",
      "a < 3, b < 4, c < 2",
      `18 - 8*a - b - C >= 0`,
      [0, 4],
    );
    expect(tiles(guarded)).toBe(false);
    const whole = guarded.replaceAll("2*c]", "c]").replaceAll("c < 2", "c < 4");
    expect(tiles(whole)).toBe(true);
    expect(tiles(whole.replaceAll("+ b + 4, c]", "+ b + 5, c]"))).toBe(false);
    const divided = program(
      "b, floorDiv(4*a + c, 6), mod(4*a + c, 6)",
      "2, 3, 6",
      "a < 5, b < 2, c < 4",
      "17 - 4*a - c - C >= 0",
      [0],
    );
    expect(tiles(divided)).toBe(true);
    // 4a + 2c and 6 have a common factor, which the quotient loses.
    const even = program(
      "floorDiv(4*a + 2*c, 6), mod(4*a + 2*c, 6) + C",
      "3, 6",
      "a < 5, c < 2",
      "8 - 2*a - c >= 0",
      [0, 1],
    );
    expect(tiles(even)).toBe(true);
  });

  it("who is not named in a place stores it beside others, unless one alone is meant", () => {
    const all = program("a", "5", "a < 5, t < 3", "4 - a >= 0", [0]);
    const when = (condition: string): boolean =>
      tiles(all.replace("if 4 - a >= 0", `if 4 - a >= 0, ${condition}`));
    expect(tiles(all)).toBe(false);
    expect(when("t == 0")).toBe(true);
    expect(when("a >= 0, t == 0")).toBe(true);
    expect(when("t - 1 == 0")).toBe(false);
    expect(when("a + t == 0")).toBe(false);
    expect(when("a - t == 0")).toBe(false);
  });

  it("whole turns of a row's threads and the one that the row ends in, as counting says", () => {
    let yes = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 4),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 13 }),
        fc.constantFrom(0, 0, 0, 1, -1),
        fc.constantFrom(0, 0, 0, 1, -1),
        (threads, turns, length, late, more) => {
          const from = threads * turns + late;
          const left = length - from + more;
          const text = program("t", `3, ${length}`, `a < 3, t < ${threads}`, "a == 0", []).replace(
            "threads 1 {",
            `threads 1 {
            for e < ${turns} {\n store y[a, ${threads}*e + t] = f32(1)\n }
            if ${left - 1} - t >= 0 {\n store y[a, t + ${from}] = f32(1)\n }`,
          );
          const counts = new Array<number>(length).fill(0);
          for (let t = 0; t < threads; t++) {
            for (let e = 0; e < turns; e++) counts[threads * e + t]!++;
            if (t < left) counts[t + from]!++;
          }
          const said = tiles(text);
          const isRight = counts.length === length && counts.every((n) => n === 1);
          if (said) yes++;
          if (said) expect(isRight).toBe(true);
          // What is there to see is seen, where the last turn is not whole and no row is one turn.
          if (isRight && left > 0 && left <= threads && threads > 1) expect(said).toBe(true);
        },
      ),
      { numRuns: 600, seed: 1 },
    );
    expect(yes).toBeGreaterThan(10);
  });

  it("boxes of neighbouring parts, each with loops of its own", () => {
    const box = (loop: string, from: number): string =>
      `for ${loop} < 4 {\n if 18 - 8*a - ${loop} - ${from} >= 0 {\n store y[8*a + ${loop} + ${from}] = f32(1)\n }\n }`;
    const text = (first: string, second: string): string =>
      program("a", "19", "a < 3", "a == 0", []).replace(
        "threads 1 {",
        `threads 1 {\n ${first}\n ${second}`,
      );
    expect(tiles(text(box("e", 0), box("f", 4)))).toBe(true);
    expect(tiles(text(box("e", 0), box("f", 3)))).toBe(false);
    expect(tiles(text(box("e", 0), box("f", 4).replace("f < 4", "f < 3")))).toBe(false);
  });
});
