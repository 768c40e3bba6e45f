import { describe, expect, it } from "vitest";
import type { Buffer, Program, Task } from "../program/program.ts";
import { constant, type IndexExpr, variable } from "../semantics/index-expr.ts";
import { ok } from "../support/diagnostic.ts";
import { profileProgram } from "./profile-program.ts";

type Bindings = readonly (readonly [string, IndexExpr])[];

function launch(kernel: string, bindings: Bindings = []): Task {
  return { kind: "launch", kernel, after: "previous", bindings, waits: [], signals: [] };
}

function repeat(count: IndexExpr, body: readonly Task[], rows: readonly string[] = []): Task {
  const tables = rows.length > 0 ? [{ name: "w", rows }] : [];
  return { kind: "repeat", variable: "r", count, tables, body };
}

const left: Buffer = {
  name: "left",
  kind: "scratch",
  scope: "memory",
  dtype: "i32",
  lanes: 1,
  shape: [constant(2)],
};

function programOf(tasks: readonly Task[]): Program {
  const names = ["a", "b", "c"];
  const kernels = names.map((name) => ({
    name,
    region: `region ${name}`,
    grid: { unit: "threads" as const, axes: [], clusterSize: 1, resident: false },
    buffers: [],
    counters: [],
    roles: [],
  }));
  const rest = { parameters: [], requires: [], counters: [], states: [] };
  return { name: "p", target: "wasm", buffers: [left], kernels, tasks, ...rest };
}

/** An instance whose steps are counted; each run of kernel "c" takes one from the second element of `left`. */
function profileOf(tasks: readonly Task[], trips = 0) {
  const made: Task[] = [];
  let live = 0;
  const words = Int32Array.of(7, trips);
  const instance = {
    memory: { read: (_: string, count: number) => new Uint8Array(words.buffer).slice(0, count) },
    createStep: (task: Task) => {
      made.push(task);
      live++;
      const isCounting = task.kind === "launch" && task.kernel === "c";
      const runSync = () => {
        if (isCounting) words[1]!--;
        return ok(undefined);
      };
      return ok({ runSync, dispose: () => void live-- });
    },
  };
  let tick = 0;
  const parameters = new Map([["n", 3]]);
  const found = profileProgram(programOf(tasks), instance, { parameters, now: () => tick++ });
  const kernels = found.ok ? found.value.map((k) => k.kernel).join("") : "";
  const codes = found.ok ? [] : found.diagnostics.map((d) => d.code);
  return { found, kernels, codes, made, live };
}

describe("profiles of programs", () => {
  it("time each launch, and give their code back", () => {
    const { found, kernels, made, live } = profileOf([launch("a"), launch("b"), launch("a")]);
    expect(kernels).toBe("aba");
    expect(made).toHaveLength(2);
    expect(live).toBe(0);
    expect(found.ok && found.value[1]).toMatchObject({ kernel: "b", region: "region b" });
    expect(found.ok && found.value.every((k) => k.endMs - k.startMs === 1)).toBe(true);
  });

  it("run loops through, with a step for each trip that gives a launch other values", () => {
    const bound = launch("b", [["t", variable("r")]]);
    const { kernels, made } = profileOf([repeat(variable("n"), [launch("a"), bound]), launch("a")]);
    expect(kernels).toBe("abababa");
    const values = made.map((task) => task.kind === "launch" && task.bindings[0]?.[1].key);
    expect(values).toEqual([undefined, "0", "1", "2"]);
  });

  it("name the rows of tables", () => {
    const { kernels, made } = profileOf([repeat(constant(2), [launch("a")], ["w0", "w1"])]);
    expect(kernels).toBe("aa");
    const rows = made.map((task) => task.kind === "repeat" && task.tables[0]!.rows[0]);
    expect(rows).toEqual(["w0", "w1"]);
  });

  it("decide conditions by what the launches before left", () => {
    const condition = { buffer: "left", index: [constant(1)], negated: false } as const;
    const body = [launch("c"), launch("a")];
    const maxTrips = constant(100);
    // Seven rounds find no trips left but the first.
    const isSet = { kind: "element" as const, ...condition };
    const loop: Task = { kind: "while", condition: isSet, maxTrips, body };
    expect(profileOf([loop, launch("b")], 5).kernels).toBe("b");
    const branch: Task = { kind: "if", condition: isSet, then: [launch("a")], else: [launch("b")] };
    expect(profileOf([branch], 1).kernels).toBe("a");
    expect(profileOf([branch], 0).kernels).toBe("b");
    expect(profileOf([launch("a"), { kind: "stop" }, launch("b")]).kernels).toBe("a");
  });

  it("refuse loops that do not end (RUN007), and more steps than can be kept (RUN010)", () => {
    const condition = { kind: "index", conditions: [] } as const;
    const endless: Task = { kind: "while", condition, maxTrips: constant(9), body: [launch("a")] };
    expect(profileOf([endless]).codes).toEqual(["RUN007"]);
    const bound = launch("a", [["t", variable("r")]]);
    const { codes, live } = profileOf([repeat(constant(5000), [bound])]);
    expect([codes, live]).toEqual([["RUN010"], 0]);
    expect(profileOf([repeat(constant(5000), [launch("a")])]).kernels).toHaveLength(5000);
  });
});
