import { describe, expect, it } from "vitest";
import { type CompileOptions, compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { parseGraph } from "../../graph/graph-text.ts";
import { noWeights } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import { emptySchedulingMemory, isProvedAlone } from "../../scheduled-graph.ts";
import { constant } from "../../semantics/index-expr.ts";
import { diagnostic, fail } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { parseSchedule } from "../directive-text.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { replaceUnproved } from "./replace-unproved.ts";

const target = targets.get("h200")!;

/** A product whose batch lies between rows and columns of the results. */
function product() {
  const g = new GraphBuilder("inside");
  const input = (name: string, ...shape: number[]) =>
    g.input(name, { dtype: "bf16", shape: shape.map((n) => constant(n)) });
  const [x, w] = [input("x", 2, 3, 20, 32), input("w", 2, 3, 32, 32)];
  const sums = g.einsum("n h s t, n h t e -> n s h e", x, w, "f32");
  const how = "by mma tile (16, 32, 32) warps (1, 1) stages 2 swizzle 64";
  const schedule = parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`);
  if (!schedule.ok) throw new Error("no schedule");
  const model = { graph: g.finish([g.cast(sums, "bf16")]), weights: noWeights };
  return compileModel(model, { target, measured: new Map([["S0", schedule.value]]) });
}

describe("choices that are not proved", () => {
  it("a batch inside the results is proved, ragged tiles and all", () => {
    const compiled = product();
    expect(compiled.ok).toBe(true);
    if (!compiled.ok) return;
    const [region] = compiled.value.regions;
    expect(region!.scheduled.products).toHaveLength(1);
    expect(compiled.warnings).toEqual([]);

    const options = { target, given: new Set<string>(), priceOf: () => 1 };
    const chosen = [{ scheduled: region!.scheduled, alternatives: region!.alternatives }];
    const isPlain = (s: ScheduledRegion): boolean => s.products.length === 0;
    // Where no product is proved, threads take it, and a warning says so.
    const mended = replaceUnproved(chosen, { ...options, isProved: isPlain });
    expect(mended.chosen[0]!.scheduled.products).toHaveLength(0);
    expect(mended.warnings.map((w) => [w.code, w.severity])).toEqual([["SCH032", "warning"]]);
    // What is proved, or was given, stays.
    const same = replaceUnproved(chosen, { ...options, isProved: () => true });
    expect(same).toEqual({ chosen, warnings: [] });
    const given = new Set([region!.name]);
    expect(replaceUnproved(chosen, { ...options, given, isProved: isPlain }).chosen).toEqual(
      chosen,
    );
  });

  it("results of a small product that are split into heads are proved as they are", () => {
    for (const [name, batch] of [
      ["l40s", 1],
      ["a100-80gb", 2],
    ] as const) {
      const g = new GraphBuilder("heads");
      const [x, w] = [[batch, 33, 64].map(constant), [64, 96].map(constant)].map((shape, i) =>
        g.input(`in${i}`, { dtype: "bf16", shape }),
      ) as [number, number];
      const heads = g.node("reshape", [g.matMul(x, w)], {
        shape: [batch, 33, 3, 32].map(constant),
      });
      const graph = g.finish([g.node("transpose", [heads], { permutation: [0, 2, 1, 3] })]);
      const target = targets.get(name)!;
      const compiled = compileModel({ graph, weights: noWeights }, { target });
      expect(compiled.ok && compiled.warnings, name).toEqual([]);
    }
  });

  it("regions that are proved each and not together become loops, and given ones stay", () => {
    const g = new GraphBuilder("softmax");
    const x = g.input("x", { dtype: "f32", shape: [constant(64), constant(4096)] });
    const graph = g.finish([g.node("softmax", [x], { axis: 1 })]);
    const model = { graph, weights: noWeights };
    const options: CompileOptions = {
      target,
      // One that finds fault with whole programs whose threads share memory.
      prove: (program, proofs) => {
        const shares = program.kernels.some((k) => k.buffers.some((b) => b.scope === "shared"));
        return shares ? fail(diagnostic("PRG021", "not proved")) : validateProgram(program, proofs);
      },
    };
    const compiled = compileModel(model, options);
    if (!compiled.ok) throw new Error("not compiled");
    expect(compiled.value.regions.every((r) => !r.scheduled.rows)).toBe(true);
    const [warning] = compiled.warnings.filter((w) => w.code === "SCH032");
    expect([warning?.severity, warning?.message]).toEqual([
      "warning",
      "the cheapest schedules are not proved together",
    ]);
    // What was proved of the choice before still is a bound of this one.
    const { objectivePs, boundPs, gap } = compiled.value.certificate;
    expect([gap > 0, objectivePs > boundPs]).toEqual([true, true]);
    const first = compileModel(model, { target });
    if (!first.ok) throw new Error("not compiled");
    const measured = new Map(first.value.regions.map((r) => [r.name, r.scheduled.schedule]));
    const refused = compileModel(model, { ...options, measured });
    expect(refused.ok ? [] : refused.diagnostics.map((d) => d.code)).toEqual(["SCH032"]);
  });

  it("rows that are not proved, however they are kept, become loops on threads", () => {
    const g = new GraphBuilder("softmax");
    const x = g.input("x", { dtype: "f32", shape: [constant(64), constant(4096)] });
    const graph = g.finish([g.node("softmax", [x], { axis: 1 })]);
    const compiled = compileModel({ graph, weights: noWeights }, { target });
    if (!compiled.ok) throw new Error("not compiled");
    const [region] = compiled.value.regions;
    expect(region!.scheduled.rows).toBeDefined();
    const chosen = [{ scheduled: region!.scheduled, alternatives: region!.alternatives }];
    const isProved = (s: ScheduledRegion): boolean => s.rows === undefined;
    const options = {
      target,
      given: new Set<string>(),
      isProved,
      priceOf: (s: ScheduledRegion) => (s.rows ? 1 : 2),
    };
    const mended = replaceUnproved(chosen, options);
    expect(mended.chosen[0]!.scheduled.rows).toBeUndefined();
    expect(mended.warnings.map((w) => w.code)).toEqual(["SCH032"]);
  });

  it("products split into heads, which have no loops among their candidates, become loops that are right", () => {
    const [b, m, k, heads, size] = [2, 5, 64, 3, 32];
    const g = new GraphBuilder("heads");
    const [x, w] = [
      [b, m, k],
      [k, heads * size],
    ].map((shape, i) => g.input(`in${i}`, { dtype: "f32", shape: shape.map(constant) }));
    const shape = [b, m, heads, size].map(constant);
    const split = g.node("reshape", [g.matMul(x!, w!)], { shape });
    const graph = g.finish([g.node("transpose", [split], { permutation: [0, 2, 1, 3] })]);
    const target = targets.get("l40s")!;
    const compiled = compileModel({ graph, weights: noWeights }, { target });
    if (!compiled.ok) throw new Error("not compiled");
    const [region] = compiled.value.regions;
    const { scheduled, alternatives } = region!;
    expect(compiled.value.regions).toHaveLength(1);
    expect(scheduled.rows ?? scheduled.products[0]).toBeDefined();
    const isLoops = ({ rows, products, schedule }: ScheduledRegion): boolean =>
      !rows && products.length === 0 && schedule.directives.length > 0;
    const memory = emptySchedulingMemory();
    const mended = replaceUnproved([{ scheduled, alternatives }], {
      target,
      given: new Set(),
      priceOf: () => 1,
      isProved: (s) => isLoops(s) && isProvedAlone(s, target, memory),
    });
    const taken = mended.chosen[0]!.scheduled;
    expect(mended.warnings.map((w) => w.code)).toEqual(["SCH032"]);
    expect(isLoops(taken)).toBe(true);

    const rng = new Rng(2);
    const [left, right] = [b * m * k, k * heads * size].map((n) =>
      Float32Array.from({ length: n }, () => rng.integer(-2, 2)),
    ) as [Float32Array, Float32Array];
    const lowered = lowerRegionProgram(taken, target);
    if (!lowered.ok) throw new Error("not lowered");
    const { program } = lowered.value;
    const inputs = program.buffers.filter((o) => o.kind === "input").map((o) => o.name);
    expect(inputs).toHaveLength(2);
    const names = taken.region.statements[0]!.reads.map((a) => a.tensor);
    expect(new Set(names)).toEqual(new Set(inputs));
    const contents = new Map(
      names.map((name, i) => [name, new Uint8Array([left, right][i]!.buffer)] as const),
    );
    const ran = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
    if (ran.kind === "fault") throw new Error(JSON.stringify(ran.fault));
    const out = program.buffers.find((o) => o.kind === "output")!;
    const found = new Float32Array(ran.contents.get(out.name)!.slice().buffer);
    const expected = Array.from({ length: b * heads * m * size }, (_, at) => {
      const [e, i] = [at % size, Math.floor(at / size) % m];
      const [h, n] = [Math.floor(at / (size * m)) % heads, Math.floor(at / (size * m * heads))];
      const sum = (l: number): number =>
        left[(n * m + i) * k + l]! * right[l * heads * size + h * size + e]!;
      return Array.from({ length: k }, (_, l) => sum(l)).reduce((p, q) => p + q);
    });
    expect([...found]).toEqual(expected);
  });

  it("on a processor the loops of what is not proved run as they are", () => {
    const graph =
      parseGraph(`graph "turned" (x0: f32[N, N, 5, 1], x1: f32[N, N, N, 1]) -> (t5, t4) where 1 <= N <= 16 {
  t0 = concat(x1, x0, x1) {axis: 2} : f32[N, N, 2*N + 5, 1]
  t1 = reshape(t0) {shape: [5*N*N + 2*N*N*N]} : f32[5*N*N + 2*N*N*N]
  t2 = reverse(t1) {axes: [0]} : f32[5*N*N + 2*N*N*N]
  t3 = reshape(t2) {shape: [N, N, 2*N + 5, 1]} : f32[N, N, 2*N + 5, 1]
  t4 = mul(t3, t0) : f32[N, N, 2*N + 5, 1]
  t5 = relu(t4) : f32[N, N, 2*N + 5, 1]
}
`);
    if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
    const cpu = targets.get("x64-avx512-vnni")!;
    const compiled = compileModel({ graph: graph.value, weights: noWeights }, { target: cpu });
    expect(compiled.ok ? compiled.warnings.map((w) => [w.code, w.severity]) : []).toEqual([
      ["SCH032", "warning"],
    ]);
  });
});
