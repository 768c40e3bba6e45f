/** The judge of memory plans on programs of a few tasks. */
import { describe, expect, it } from "vitest";
import { loadExpr, storeTo } from "../program/expr.ts";
import type { Buffer, Kernel, Program, Task } from "../program/program.ts";
import { constant } from "../semantics/index-expr.ts";
import { findLostValue, type Place } from "./check-reuse.ts";

const buffer = (name: string): Buffer => {
  const shape = [constant(16)];
  return { name, kind: "scratch", scope: "memory", dtype: "f32", lanes: 1, shape };
};

/** "a b -> c": a kernel that reads a and b and writes c. */
function kernelOf(text: string): Kernel {
  const [reads, write] = text.split(" -> ") as [string, string];
  const load = (name: string) => loadExpr(name, [0], { dtype: "f32", lanes: 1 });
  const body = reads.split(" ").map((name) => storeTo(write, [0], load(name)));
  return {
    name: text,
    grid: {
      unit: "threads",
      axes: [{ name: "t", extent: constant(1) }],
      clusterSize: 1,
      resident: false,
    },
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: text,
  };
}

function launch(kernel: string, after: "previous" | "counters" = "previous"): Task {
  return { kind: "launch", kernel, after, bindings: [], waits: [], signals: [] };
}

function programOf(steps: readonly string[], tasks: readonly Task[]): Program {
  return {
    name: "p",
    target: "wasm",
    parameters: [],
    requires: [],
    buffers: ["a", "b", "c", "d"].map(buffer),
    counters: [],
    kernels: steps.map(kernelOf),
    tasks,
    states: [],
  };
}

/** Buffers side by side share bytes in turn, groups share them otherwise. */
function lostIn(steps: readonly string[], places: readonly string[], tasks?: readonly Task[]) {
  const program = programOf(steps, tasks ?? steps.map((s) => launch(s)));
  const given = places.map(
    (names): Place => ({ tenants: [...names].map(buffer), from: 0, to: 64 }),
  );
  return findLostValue(program, given);
}

describe("findLostValue", () => {
  it("lets a launch write over what it reads for the last time, and nothing else", () => {
    expect(lostIn(["x -> a", "a -> b", "b -> c"], ["ab"])).toBeUndefined();
    expect(lostIn(["x -> a", "a -> b", "b -> c"], ["abc"])).toBeUndefined();
    const lost = { earlier: "a", later: "b" };
    expect(lostIn(["x -> a", "a -> b", "a b -> c"], ["ab"])).toEqual(lost);
    // One step writes b over a, the next c over b, which reads a once more.
    const through = ["x -> a", "a -> b", "b a -> c"];
    expect(lostIn(through, ["ab"])).toEqual(lost);
    expect(lostIn(["x -> a", "x -> b", "a -> c"], ["ab"])).toEqual(lost);
  });

  it("keeps places that meet apart in time, within a task too", () => {
    const steps = ["x -> a", "a -> b", "b -> c", "c -> d"];
    expect(lostIn(steps, ["a", "c"])).toBeUndefined();
    expect(lostIn(steps, ["a", "b"])).toEqual({ earlier: "a", later: "b" });
    expect(lostIn([...steps, "a -> d"], ["a", "c"])).toEqual({ earlier: "a", later: "c" });
    // Behind what lies over both: the first and the last meet nowhere else.
    expect(lostIn(["x -> a", "x -> b", "x -> c", "a -> d"], ["a", "b", "c"])).toBeDefined();
  });

  it("takes a loop for a task and launches that wait for counters for unordered", () => {
    const steps = ["x -> a", "a -> b", "b -> c"];
    const [first, second, third] = steps.map((s) => launch(s)) as [Task, Task, Task];
    const loop = (...body: readonly Task[]): Task => {
      return { kind: "repeat", variable: "r", count: constant(2), tables: [], body };
    };
    expect(lostIn(steps, ["ab"], [first, loop(second, third)])).toBeDefined();
    expect(lostIn(steps, ["ab"], [first, second, loop(third)])).toBeUndefined();
    const free = steps.map((s) => launch(s, "counters"));
    expect(lostIn(["x -> a", "x -> b"], ["a", "b"])).toBeUndefined();
    expect(lostIn(steps, ["a", "c"], free)).toBeDefined();
  });
});
