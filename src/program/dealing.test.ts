import { describe, expect, it } from "vitest";
import { evaluate } from "../semantics/index-expr.ts";
import { dealsOf, extentOf, sectionsOf } from "./dealing.ts";
import type { Program } from "./program.ts";
import { parseProgram } from "./program-parse.ts";

interface Changes {
  readonly grid?: string;
  readonly body?: string;
  readonly tasks?: string;
}

/** A kernel `all` that is dealt out in the way that is given, and a kernel `one` of one instance. */
function program({ grid = "t < threads", body, tasks = "" }: Changes = {}): Program {
  const read = parseProgram(`program p for "wasm" {
    parameter N in 1 to 9
    buffer x : scratch memory f32 [N] at scratch + (0)
    buffer y : scratch memory f32 [N] at scratch + (64)
    kernel all region "all" {
      grid threads (${grid})
      role main copies 1 threads 1 { ${body ?? "for i < n + 1 over t { store y[i] = load.f32 x[i] }"} }
    }
    kernel one region "one" {
      grid threads (t < 1)
      role main copies 1 threads 1 { store x[0] = f32(0) }
    }
    tasks {
      launch one after previous
      launch all after previous bind n = N - 1
      ${tasks}
    }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  return read.value;
}

describe("parts of launches", () => {
  it("are trips of the loop over the threads, in terms of what the launch binds", () => {
    const given = program();
    const deals = dealsOf(given)!;
    expect(deals.get("all")).toMatchObject({ by: "trips" });
    expect(deals.get("one")).toMatchObject({ by: "instances", extent: { key: "1" } });
    const [, all] = given.tasks;
    expect(all?.kind === "launch" && extentOf(all, deals).key).toBe("N");
  });

  it("are instances where their number is not that of the threads", () => {
    const body = "store y[t] = load.f32 x[t]";
    const deals = dealsOf(program({ grid: "t < N", body }))!;
    expect(deals.get("all")).toMatchObject({ by: "instances", extent: { key: "N" } });
  });

  it("are trips of whichever loop a launch comes to, as where few rows have code of their own", () => {
    const loop = (extent: string) => `for i < ${extent} over t { store y[i] = f32(0) }`;
    const inner = `if n - 4 == 0 { ${loop("3")} }`;
    const body = `if -n + 1 >= 0 { ${loop("n + 1")} } else { ${inner} }`;
    const given = program({ body });
    const [, all] = given.tasks;
    const extent = all?.kind === "launch" ? extentOf(all, dealsOf(given)!) : undefined;
    const found = [1, 2, 3, 4, 5, 6].map((N) => evaluate(extent!, new Map([["N", N]])));
    expect(found).toEqual([1, 2, 0, 0, 3, 0]);
  });

  it.each([
    ["the thread", { body: "for i < N over t { store y[i] = f32(0) } store x[t] = f32(0)" }],
    ["the thread in the loop", { body: "for i < N over t { store y[t] = load.f32 x[i] }" }],
    ["the number of threads", { body: "for i < min(N, threads) over t { store y[i] = f32(0) }" }],
    ["a branch by the thread", { body: "if t - 1 >= 0 { for i < N over t { } }" }],
    [
      "a branch with two loops",
      { body: "if N - 1 >= 0 { for i < N over t { } for i < N over t { } }" },
    ],
    ["two loops over the threads", { body: "for i < N over t { } for i < N over t { }" }],
    ["what a step computed", { tasks: "if element x[0] { launch one after previous }" }],
    [
      "repeats of unknown number",
      { tasks: "while element x[0] at most 3 { launch one after previous }" },
    ],
  ])("are none where a program depends on %s", (_, changes) => {
    expect(dealsOf(program(changes))).toBeUndefined();
  });

  it("of launches that are one part each are one part together", () => {
    const one = "launch one after previous";
    const given = program({
      tasks: `${one} repeat r < N { ${one} } ${one} launch all after previous bind n = 0 ${one}`,
    });
    const sections = sectionsOf(given.tasks, dealsOf(given)!);
    expect(sections.map((s) => s.length)).toEqual([1, 1, 3, 1, 1]);
  });
});
