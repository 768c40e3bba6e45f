/**
 * What cost/ counts of a kernel's code, against a walk through every trip of every loop: the same loads, stores and
 * arithmetic, whatever edges and ragged ends a schedule has.
 */
import { describe, expect, it } from "vitest";
import { kernelWork } from "../../src/cost/program-work.ts";
import { lowerRegion } from "../../src/lower/lower-region.ts";
import { type Kernel, threadCountName } from "../../src/program/program.ts";
import type { Statement } from "../../src/program/statement.ts";
import { ownExprs, visitExpr } from "../../src/program/walk.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { drawStates } from "../../src/schedule/states/draw-states.ts";
import { sampleRegions } from "../../src/schedule/states/sample-regions.test-support.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

/** Loads and stores of memory in all trips, in elements of the target's vectors or less. */
function walked(
  kernel: Kernel,
  symbols: ReadonlyMap<string, number>,
  lanes: number,
): { loads: number; stores: number } {
  const registers = new Set(
    kernel.buffers.filter((b) => b.scope === "register").map((b) => b.name),
  );
  const env = new Map([...symbols, [threadCountName, 1]]);
  for (const axis of kernel.grid.axes) env.set(axis.name, 0);
  const found = { loads: 0, stores: 0 };
  const chunks = (n: number): number => Math.max(1, n / lanes);
  const visit = (body: readonly Statement[]): void => {
    for (const s of body) {
      for (const e of ownExprs(s)) {
        visitExpr(e, (x) => {
          if (x.kind === "load" && !registers.has(x.buffer)) found.loads += chunks(x.lanes);
        });
      }
      if (s.kind === "store" && !registers.has(s.buffer)) found.stores += chunks(s.value.lanes);
      if (s.kind === "for") {
        const trips = evaluate(s.extent, env);
        for (let i = 0; i < trips; i++) {
          env.set(s.variable, i);
          visit(s.body);
        }
      } else if (s.kind === "if") {
        const holds = s.conditions.every(({ kind, expr }) => {
          const value = evaluate(expr, env);
          return kind === "zero" ? value === 0 : value >= 0;
        });
        visit(holds ? s.then : s.else);
      }
    }
  };
  for (const role of kernel.roles) visit(role.body);
  return found;
}

const cases = Object.entries(sampleRegions).flatMap(([name, region]) =>
  ["wasm", "x64-avx2"].map((target) => [name, target, region] as const),
);

describe.each(cases)("code of %s on %s", (_, targetName, region) => {
  it("is counted as a walk through every trip counts it", () => {
    const target = targets.get(targetName)!;
    const symbols = new Map(region.symbols.map((s) => [s.name, s.range.max]));
    const lanes = target.vectorBytes / 4;
    const drawing = { count: 6, rng: new Rng(4), parallel: true, inLanes: false };
    for (const { schedule } of drawStates(region, target, drawing)) {
      const applied = applySchedule(region, schedule);
      const kernels = applied.ok ? lowerRegion(applied.value, target) : applied;
      if (!kernels.ok) throw new Error(kernels.diagnostics[0]!.message);
      for (const kernel of kernels.value) {
        const runs = kernelWork(kernel, symbols, {
          registers: 16,
          lanes,
          loadsFirst: targetName === "wasm",
        });
        const expected = walked(kernel, symbols, lanes);
        const sum = (of: "loads" | "stores"): number =>
          runs.reduce((n, r) => n + r.executions * r.mix[of], 0);
        // Of long loops some trips between the ends stand for all.
        expect(sum("stores") / expected.stores).toBeCloseTo(1, 1);
        expect(sum("loads") / Math.max(1, expected.loads)).toBeCloseTo(
          expected.loads === 0 ? 0 : 1,
          1,
        );
        for (const r of runs) {
          expect(r.chains).toBeLessThanOrEqual(r.executions * (1 + 1e-9));
          for (const n of Object.values(r.mix)) expect(n).toBeGreaterThanOrEqual(0);
        }
      }
    }
    // Counting the slow way takes its time on a busy machine.
  }, 900_000);
});
