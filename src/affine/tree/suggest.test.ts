/** The smallest change: legal, of no more edits than needed, and there for every refusal. */
import { describe, expect, it } from "vitest";
import { readKernel } from "../../../campaign/schedule-legality/kernel-text.ts";
import { kernelTexts } from "../../../campaign/schedule-legality/kernels.ts";
import { drawDirective } from "../../../campaign/schedule-legality/random-directives.ts";
import { Rng } from "../../support/rng.ts";
import {
  applyDirective,
  editDirectives,
  editsOf,
  type Nest,
  scheduleNest,
  smallestChange,
  startPlan,
  type TreeDirective,
} from "../index.ts";
import { areCompatible, type Edit } from "./edits.ts";

/** All sets of `size` edits, tried without any order or shortcut. */
function setsOf(directives: readonly TreeDirective[], size: number): readonly (readonly Edit[])[] {
  const all = [...editsOf(directives)].filter((e) => size === 1 || e.size === 1);
  let sets: readonly (readonly Edit[])[] = [[]];
  for (let i = 0; i < size; i++) {
    sets = sets.flatMap((set) =>
      all
        .slice(set.length === 0 ? 0 : all.indexOf(set.at(-1)!) + 1)
        .filter((e) => set.every((c) => areCompatible(c, e)))
        .map((e) => [...set, e]),
    );
  }
  return sets;
}

function isLegal(nest: Nest, directives: readonly TreeDirective[]): boolean {
  return scheduleNest(nest, directives).kind === "legal";
}

/** Directives that a tree has places for, one after another; what they come to may be illegal. */
function drawSchedule(rng: Rng, nest: Nest, length: number): readonly TreeDirective[] {
  const out: TreeDirective[] = [];
  let plan = startPlan(nest);
  for (let tries = 0; tries < 30 && out.length < length; tries++) {
    const d = drawDirective(rng, nest, plan.tree);
    const next = d && applyDirective(plan, d, out.length);
    if (next?.kind !== "legal") continue;
    plan = next.plan;
    out.push(d!);
  }
  return out;
}

const kernels = ["stencil-1-minus-1", "time-stencil", "scan-1d", "scan-2d", "jacobi-1d", "trisolv"];

describe("the smallest change", () => {
  it("is legal, and no change of fewer edits is", () => {
    const rng = new Rng(11);
    const sizes = new Map<number, number>();
    for (let trial = 0; trial < 26; trial++) {
      const nest = readKernel(kernelTexts[rng.pick(kernels)]!);
      const directives = drawSchedule(rng, nest, rng.integer(2, 5));
      const refused = scheduleNest(nest, directives).kind;
      if (refused !== "illegal" && refused !== "clash") continue;
      const change = smallestChange(nest, directives, 150)!;
      expect(isLegal(nest, change.directives), change.text).toBe(true);
      if (!change.smallest) continue;
      const size = change.text.split(", and ").length;
      sizes.set(size, (sizes.get(size) ?? 0) + 1);
      for (let fewer = 1; fewer < size; fewer++) {
        const sets = setsOf(directives, fewer);
        if (sets.length > 150) continue;
        const better = sets.find((set) => isLegal(nest, editDirectives(directives, set)));
        expect(better, change.text).toBeUndefined();
      }
    }
    expect(sizes.get(1) ?? 0).toBeGreaterThan(3);
    expect([...sizes.keys()].some((size) => size > 1)).toBe(true);
  });

  it("is found among thousands of sets of three edits", () => {
    const nest = readKernel(`
      for i in 1..5 {
        for j in 1..5 {
          for k in 1..5 {
            S: y[i, j, k] = y[i - 1, j + 1, k], y[i, j - 1, k + 1]
          }
        }
      }`);
    const tile = (loops: readonly string[], factors: readonly number[], n: number) => {
      const outer = [`o${n}`, `p${n}`];
      const inner = [`u${n}`, `v${n}`];
      return { kind: "tile" as const, statement: "S", loops, factors, outer, inner };
    };
    const change = smallestChange(nest, [
      tile(["j", "k"], [3, 2], 0),
      { kind: "skew", statement: "S", loop: "i", by: "v0", factor: 1 },
      { kind: "reorder", statement: "S", order: ["o0", "p0", "i", "v0", "u0"] },
      tile(["p0", "i"], [2, 2], 1),
    ])!;
    expect(change.smallest).toBe(true);
    expect(change.text.split(", and ")).toHaveLength(3);
    expect(isLegal(nest, change.directives)).toBe(true);
  });
});
