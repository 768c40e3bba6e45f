/** Liveness, chains of loads and what a text is read as, on texts whose answers are known by hand. */
import { describe, expect, it } from "vitest";
import { loadsInChain } from "./load-chain.ts";
import { readFlow } from "./ptx-flow.ts";
import { estimateRegisters, registerPressure } from "./register-pressure.ts";

const entry = (...lines: readonly string[]): string =>
  [
    ".visible .entry k(.param .b64 k_p0)",
    ".maxntid 32, 1, 1",
    "{",
    ".reg .b32 %r<9>;",
    ...lines,
    "}",
  ].join("\n");
const pressure = (...lines: readonly string[]): number =>
  registerPressure(readFlow(entry(...lines)));

describe("what is live", () => {
  it("is counted in units of 32 bits, results take the place of operands that end", () => {
    const sum = ["mov.u32 %r0, %tid.x;", "mov.u32 %r1, %laneid;", "add.s32 %r2, %r0, %r1;"];
    expect(pressure(...sum, "st.global.b32 [%d0], %r2;", "ret;")).toBe(4);
    expect(pressure(...sum, "mul.wide.s32 %d1, %r2, 8;", "st.global.b64 [%d1], %r0;")).toBe(3);
  });

  it("leaves out immediates, parameters and predicates", () => {
    expect(pressure("mov.b32 %r0, 7;", "setp.eq.s32 %p0, %r1, %r0;", "@%p0 bra L0;", "L0:")).toBe(
      1,
    );
    expect(pressure("ld.param.b64 %d0, [k_p0];", "ld.global.b32 %r0, [%d0];")).toBe(1);
    // Written again, it is a variable.
    expect(pressure("mov.b32 %r0, 7;", "add.s32 %r0, %r0, %r0;", "st.global.b32 [%d0], %r0;")).toBe(
      3,
    );
  });

  it("goes around loops", () => {
    const loop = ["L0:", "add.s32 %r1, %r1, %r0;", "setp.lt.s32 %p0, %r1, 9;", "@%p0 bra L0;"];
    const around = ["mov.u32 %r0, %tid.x;", "mov.u32 %r1, %laneid;", ...loop];
    // %r0 is read again by the next trip, %r2 behind the loop.
    expect(pressure("mov.u32 %r2, %clock;", ...around, "st.global.b32 [%d0], %r2;")).toBe(5);
  });

  it("holds sums of warpgroups and results of lists", () => {
    const list = "{%r0, %r1, %r2, %r3}";
    const multiply = `wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 ${list}, %d0, %d1, 1, 1, 1, 0, 0;`;
    expect(
      pressure(`ld.global.v4.b32 ${list}, [%d2];`, multiply, `st.global.v4.b32 [%d2], ${list};`),
    ).toBe(10);
  });

  it("does not hold places that one branch alone reads, unless a barrier stands between or functions are called", () => {
    const places = Array.from({ length: 12 }, (_, i) => `mul.wide.s32 %d${i}, %r0, ${8 * i + 8};`);
    const branches = places.flatMap((_, i) => [
      `setp.lt.s32 %p0, %r0, ${i};`,
      `@%p0 bra L${i};`,
      `st.global.b32 [%d${i}], %r0;`,
      `L${i}:`,
    ]);
    const of = (...between: readonly string[]): number => {
      const text = entry("mov.u32 %r0, %tid.x;", ...places, ...between, ...branches, "ret;");
      return estimateRegisters({ maxRegisters: 255, text } as never);
    };
    expect(of()).toBeLessThan(16);
    expect(of("bar.sync 0;")).toBeGreaterThan(30);
    expect(of("div.rn.f32 %r1, %r0, %r0;")).toBeGreaterThan(30);
    // What a loop reads is made in front of it.
    const loop = ["L99:", "st.global.b32 [%d0], %r0;", "setp.lt.s32 %p0, %r0, 9;", "@%p0 bra L99;"];
    expect(pressure("mul.wide.s32 %d0, %r0, 8;", ...loop)).toBe(3);
  });

  it("is at most what the text allows, and just that where warps pass registers on", () => {
    const kernel = { maxRegisters: 40 } as const;
    const of = (text: string): number => estimateRegisters({ ...kernel, text } as never);
    expect(of(entry("setmaxnreg.inc.sync.aligned.u32 232;", "ret;"))).toBe(40);
    expect(of(entry("ret;"))).toBeLessThan(40);
    const many = Array.from({ length: 60 }, (_, i) => `ld.global.b32 %r${i}, [%d0];`);
    const stored = many.map((_, i) => `st.global.b32 [%d0], %r${i};`);
    expect(of(entry(...many, ...stored))).toBe(40);
  });
});

describe("what an assembler brings forward", () => {
  const of = (...lines: readonly string[]): number =>
    estimateRegisters({ maxRegisters: 255, text: entry(...lines, "ret;") } as never);
  const step = (i: number): readonly string[] => [
    `ld.global.nc.b32 %r${i + 2}, [%d0];`,
    `fma.rn.f32 %r1, %r${i + 2}, %r0, %r1;`,
    "add.s64 %d0, %d0, 4;",
  ];
  const steps = Array.from({ length: 40 }, (_, i) => step(i));
  const end = "st.global.b32 [%d1], %r1;";

  it("is all loads of a block whose places move by numbers", () => {
    expect(of(...steps.flat(), end)).toBeGreaterThan(40);
    expect(pressure(...steps.flat(), end)).toBeLessThan(10);
  });

  it("is nothing over a barrier, behind a store that it may read, or of a place that a load brings", () => {
    const met = steps.flatMap((s) => [...s, "bar.sync 0;"]);
    expect(of(...met, end)).toBeLessThan(20);
    const stored = steps.flatMap(([load, ...rest]) => [
      load!.replace(".nc", ""),
      ...rest,
      "st.global.b32 [%d1], %r1;",
    ]);
    expect(of(...stored)).toBeLessThan(20);
    const chained = steps.flatMap(([load, ...rest]) => [
      load!,
      ...rest,
      "mad.wide.s32 %d0, %r1, 4, %d0;",
    ]);
    expect(of(...chained, end)).toBeLessThan(20);
  });

  it("is no more loads than hide their latency", () => {
    const many = Array.from({ length: 150 }, (_, i) => i);
    const all = (work: number): readonly string[] =>
      many.flatMap((i) => [
        `ld.global.nc.b32 %r${i + 2}, [%d0+${4 * i}];`,
        ...new Array<string>(work).fill(`fma.rn.f32 %r1, %r${i + 2}, %r0, %r1;`),
      ]);
    // ptxas 13.0 takes 84, 47 and 28.
    for (const [work, taken] of [
      [1, 84],
      [4, 47],
      [8, 28],
    ] as const) {
      expect(of(...all(work), end)).toBeGreaterThan(taken / 1.4);
      expect(of(...all(work), end)).toBeLessThan(taken * 1.5);
    }
  });

  it("is the places of all copies of a block, and a base for each stretch of what they read", () => {
    const copy = (i: number, far: number): readonly string[] => [
      `add.s32 %r${3 * i + 10}, %r1, ${132 * i};`,
      `shr.u32 %r${3 * i + 11}, %r${3 * i + 10}, 3;`,
      `xor.b32 %r${3 * i + 12}, %r${3 * i + 10}, %r${3 * i + 11};`,
      `cp.async.ca.shared.global [%r${3 * i + 12}], [%d0+${far * i}], 4;`,
    ];
    const copies = (count: number, far: number): number =>
      of(...Array.from({ length: count }, (_, i) => copy(i, far)).flat(), end);
    // ptxas 13.0 takes 72 and 228 of 64 copies.
    expect(copies(64, 16)).toBeGreaterThan(64);
    expect(copies(64, 16)).toBeLessThan(96);
    expect(copies(64, 4096)).toBeGreaterThan(180);
    expect(copies(8, 4096)).toBeLessThan(48);
  });

  it("is the loads of all trips of a short loop, of many of a long one, of none that is kept rolled", () => {
    const loop = (trips: number, pragma = ""): readonly string[] => [
      "mov.b32 %r9, 0;",
      "L0:",
      ...(pragma === "" ? [] : [pragma]),
      "ld.global.nc.v4.b32 {%r2, %r3, %r4, %r5}, [%d0];",
      "add.s32 %r1, %r1, %r2;",
      "add.s64 %d0, %d0, 16;",
      "add.s32 %r9, %r9, 1;",
      `setp.lt.s32 %p0, %r9, ${trips};`,
      "@%p0 bra L0;",
      end,
    ];
    const rolled = of(...loop(12, '.pragma "nounroll";'));
    expect(of(...loop(12))).toBeGreaterThan(rolled + 40);
    // ptxas 13.0 takes 120 of these.
    expect(of(...loop(1000))).toBeGreaterThan(rolled + 40);
    expect(of(...loop(1000))).toBeLessThan(rolled + 110);
  });
});

describe("functions that wait for functions", () => {
  const many = Array.from({ length: 32 }, (_, i) => i);
  /** x times its sigmoid, of 32 elements that are there. */
  const sigmoid = (i: number): readonly string[] => [
    `neg.f32 %r${5 * i + 101}, %r${i};`,
    `ex2.approx.f32 %r${5 * i + 102}, %r${5 * i + 101};`,
    `add.rn.f32 %r${5 * i + 103}, %r${5 * i + 102}, 0f3f800000;`,
    `rcp.approx.f32 %r${5 * i + 104}, %r${5 * i + 103};`,
    `mul.rn.f32 %r${5 * i + 105}, %r${5 * i + 104}, %r${5 * i + 102};`,
    `fma.rn.f32 %r${5 * i + 105}, %r${5 * i + 105}, %r${i}, %r${i};`,
  ];
  const store = (i: number): string => `st.shared.b32 [%r99+${4 * i}], %r${5 * i + 105};`;
  const of = (...lines: readonly string[]): number =>
    estimateRegisters({
      maxRegisters: 255,
      text: entry(...many.map((i) => `ld.shared.b32 %r${i}, [%r98];`), "bar.sync 0;", ...lines),
    } as never);

  it("are issued stage by stage, so that all elements hold what they need at the end", () => {
    // As of a gated layer of llama: a sum, a power and what it is part of for each element.
    expect(of(...many.flatMap(sigmoid), ...many.map(store), "ret;")).toBeGreaterThan(3 * 32);
    const one = sigmoid(0).map((line) => line.replace("rcp.approx", "neg"));
    expect(of(...one, store(0), "ret;")).toBeLessThan(50);
  });

  it("are not where each result is stored before the next one", () => {
    expect(of(...many.flatMap((i) => [...sigmoid(i), store(i)]), "ret;")).toBeLessThan(60);
  });
});

describe("loops in loops", () => {
  const nest = (inner: number, outer: number): number =>
    estimateRegisters({
      maxRegisters: 255,
      text: entry(
        ...["mov.b32 %r8, 0;", "L1:", "mov.b32 %r9, 0;", "L0:"],
        ...[2, 3, 4, 5].map((r) => `ld.global.nc.b32 %r${r}, [%d0+${512 * r}];`),
        ...[2, 3, 4, 5].map((r) => `fma.rn.f32 %r1, %r${r}, %r0, %r1;`),
        ...["add.s64 %d0, %d0, 4096;", "add.s32 %r9, %r9, 1;", `setp.lt.s32 %p0, %r9, ${inner};`],
        ...["@%p0 bra L0;", "add.s32 %r8, %r8, 1;", `setp.lt.s32 %p1, %r8, ${outer};`],
        ...["@%p1 bra L1;", "st.global.b32 [%d1], %r1;", "ret;"],
      ),
    } as never);

  it("are copied out together where both are short", () => {
    expect(nest(3, 3)).toBeGreaterThan(nest(3, 1) + 15);
    expect(nest(3, 3)).toBeGreaterThan(nest(1, 3) + 10);
    expect(nest(1000, 3)).toBe(nest(1000, 1));
  });
});

describe("loads behind each other", () => {
  it("are those whose place another one brought", () => {
    const load = (to: string, from: string): string => `ld.global.nc.b32 ${to}, [${from}];`;
    expect(loadsInChain(entry("ret;"))).toBe(0);
    expect(loadsInChain(entry(load("%r0", "%d0"), load("%r1", "%d0")))).toBe(1);
    const wide = "mul.wide.s32 %d1, %r0, 4;";
    expect(loadsInChain(entry(load("%r0", "%d0"), wide, load("%r1", "%d1")))).toBe(2);
    const copy = "cp.async.cg.shared.global [%r2], [%d1], 16;";
    expect(loadsInChain(entry(load("%r0", "%d0"), wide, copy))).toBe(2);
  });

  it("are none where results leave, and in shared memory", () => {
    expect(loadsInChain(entry("ld.shared.b32 %r0, [%r1];"))).toBe(0);
    const bulk = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {%r0, %r1}], [%r2];";
    expect(loadsInChain(entry(bulk))).toBe(0);
    const brought =
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0, {%r0, %r1}], [%r3];";
    expect(loadsInChain(entry(brought))).toBe(1);
  });
});
