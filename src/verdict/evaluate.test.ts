import { afterAll, describe, expect, it } from "vitest";
import { compileModel } from "../compile.ts";
import { parseGraph } from "../graph/graph-text.ts";
import { noWeights } from "../interp/graph.ts";
import { lowerRegionProgram } from "../lower/region-program.ts";
import { parseProgram } from "../program/program-parse.ts";
import { printProgram } from "../program/program-text.ts";
import { validateProgram } from "../program/validate/validate.ts";
import { regionHash } from "../region/region-hash.ts";
import {
  type CandidateRunner,
  type ChildOutcome,
  ChildRunner,
} from "../runtime/child/child-runner.ts";
import type { ChildRequest } from "../runtime/child/protocol.ts";
import type { Peaks } from "../runtime/measure/roofline.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { tileFactors } from "../schedule/states/tile-factors.ts";
import { ok, type Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import type { Bench, Candidate } from "./candidate.ts";
import { CheckBlocks } from "./check-candidate.ts";
import { evaluate, type Measuring } from "./evaluate.ts";
import { measurePeaks } from "./peaks.ts";

const target = targets.get("wasm")!;
const runner = new ChildRunner();
afterAll(() => runner.dispose());

const bench: Bench = {
  runner,
  validate: (p) => ok(p),
  threads: 2,
  seed: 7,
  deadlineMs: 20_000,
};

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

/** The regions of a graph with the schedules that the compiler chooses. */
function candidatesOf(text: string): readonly Candidate[] {
  const graph = unwrap(parseGraph(text));
  const compiled = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  return compiled.regions.map(({ scheduled }) => ({
    region: scheduled.region,
    program: unwrap(lowerRegionProgram(scheduled, target, compiled.plan.program.requires)).program,
    schedule: printSchedule(scheduled.schedule),
    tiles: tileFactors(scheduled.schedule),
  }));
}

const estimate = () => ({ lowNs: 1, highNs: 2, model: "none" });
const judge = async (candidate: Candidate, measuring?: Measuring, at: Bench = bench) => {
  const how = { estimate, shared: new CheckBlocks(), ...(measuring && { measuring }) };
  return (await evaluate(candidate, at, how)).verdict;
};

const product = `graph g(x: f32[37, 50], w: f32[50, 45], b: f32[45]) -> (y) {
  p = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[37, 45]
  q = add(p, b) : f32[37, 45]
  y = relu(q) : f32[37, 45]
}`;

const graphs: Readonly<Record<string, string>> = {
  product,
  "a product with rows that vary": `graph g(x: f32[M, 24], w: f32[24, 40]) -> (y) where 1 <= M <= 70 {
    y = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[M, 40]
  }`,
  "roots and logarithms": `graph g(x: f32[33, 20]) -> (y) {
    r = sqrt(x) : f32[33, 20]
    y = log(r) : f32[33, 20]
  }`,
  softmax: `graph g(x: f32[9, 65]) -> (y) { y = softmax(x) {axis: 1} : f32[9, 65] }`,
  "a gather by rows": `graph g(x: f32[30, 16], i: i64[21]) -> (y) {
    y = gather(x, i) {axis: 0} : f32[21, 16]
  }`,
  "a scatter that adds": `graph g(x: f32[12, 9], i: i64[40, 9], u: f32[40, 9]) -> (y) {
    y = scatterElements(x, i, u) {axis: 0, reduction: add} : f32[12, 9]
  }`,
  "running sums": `graph g(x: f32[7, 90]) -> (y) {
    y = cumulative(x) {axis: 1, kind: sum, exclusive: false, reverse: false} : f32[7, 90]
  }`,
  "small integers": `graph g(x: i8[19, 33], z: i8[19, 33]) -> (y) { y = add(x, z) : i8[19, 33] }`,
};

describe("what the compiler makes", () => {
  it.each(Object.entries(graphs))("of %s agrees with the oracle", async (_, text) => {
    for (const candidate of candidatesOf(text)) {
      const verdict = await judge(candidate);
      expect(verdict, JSON.stringify(verdict)).toMatchObject({ kind: "estimated" });
      if (verdict.kind !== "estimated") continue;
      expect(verdict.agreement?.checked).toBeGreaterThan(0);
      expect(verdict.agreement?.worst).toBeLessThan(0.7);
    }
  });
});

it("does not call NaNs that meet NaNs an agreement (VER004)", async () => {
  const [candidate] = candidatesOf(`graph g(x: f32[33, 20]) -> (y) {
    e = exp(x) : f32[33, 20]
    n = neg(e) : f32[33, 20]
    y = sqrt(n) : f32[33, 20]
  }`);
  const how = { estimate, shared: new CheckBlocks() };
  const { verdict, unchecked } = await evaluate(candidate!, bench, how);
  expect(verdict).toEqual({ kind: "estimated", estimate: estimate() });
  expect(unchecked).toMatchObject([
    { code: "VER004", message: expect.stringContaining("finite number") },
  ]);
});

const [whole] = candidatesOf(product) as [Candidate];

/** The candidate with its program's text changed. */
function planted(change: (text: string) => string, of: Candidate = whole): Candidate {
  const before = printProgram(of.program);
  const after = change(before);
  expect(after).not.toBe(before);
  return { ...of, program: unwrap(parseProgram(after)) };
}

/** A product without a schedule, for faults that are easy to plant. */
const plain = (body: string): Candidate => ({
  ...whole,
  program: unwrap(
    parseProgram(`program region for "wasm" {
      buffer x : input memory f32 [37, 50] source "x"
      buffer w : input memory f32 [50, 45] source "w"
      buffer b : input memory f32 [45] source "b"
      buffer y : output memory f32 [37, 45] source "y"
      kernel k region "r" {
        grid threads (t < threads)
        buffer acc : scratch register f32 [1]
        role main copies 1 threads 1 { ${body} }
      }
      tasks { launch k after previous }
    }`),
  ),
});

const loops = (parts: {
  readonly i?: string;
  readonly j?: string;
  readonly k?: string;
  readonly x?: string;
  readonly w?: string;
  readonly y?: string;
  readonly b?: string;
}): string => `for i < ${parts.i ?? "37"} over t { for j < ${parts.j ?? "45"} {
  store acc[0] = f32(0)
  for k < ${parts.k ?? "50"} {
    store acc[0] = add(load.f32 acc[0], mul(load.f32 x[${parts.x ?? "i, k"}], load.f32 w[${parts.w ?? "k, j"}]))
  }
  store y[${parts.y ?? "i, j"}] = max(add(load.f32 acc[0], load.f32 b[${parts.b ?? "j"}]), f32(0))
} }`;

describe("a wrong kernel", () => {
  it("is not what a plain right one is", async () => {
    const verdict = await judge(plain(loops({})));
    expect(verdict.kind === "estimated" && verdict.agreement?.checked).toBeGreaterThanOrEqual(256);
  });

  const faults: Readonly<Record<string, string>> = {
    "one step of the fold short": loops({ k: "49" }),
    "one row off": loops({ i: "36", x: "i + 1, k" }),
    "one tile off": loops({ i: "33", y: "i + 4, j" }),
    "operands swapped": loops({
      x: "floorDiv(45*k + j, 50), mod(45*k + j, 50)",
      w: "floorDiv(50*i + k, 45), mod(50*i + k, 45)",
      k: "40",
      i: "36",
    }),
    "without its tail of rows": loops({ i: "36" }),
    "without its tail of columns": loops({ j: "44" }),
    "with one bias for all": loops({ b: "0" }),
    "that writes nothing": "",
  };
  it.each(Object.entries(faults))("%s is wrong", async (_, body) => {
    const verdict = await judge(plain(body));
    expect(verdict).toMatchObject({ kind: "wrong", first: { tensor: "y" } });
  });

  it("that leaves a stale buffer is wrong, also after a right one ran in the same process", async () => {
    expect(await judge(plain(loops({})))).toMatchObject({ kind: "estimated" });
    const verdict = await judge(plain(loops({ i: "1" })));
    expect(verdict).toMatchObject({ kind: "wrong", first: { found: "NaN" } });
  });

  it("in the compiler's own schedule is wrong", async () => {
    const verdict = await judge(planted((text) => text.replaceAll("relu(", "abs(")));
    expect(verdict).toMatchObject({ kind: "wrong" });
    if (verdict.kind !== "wrong") return;
    expect(verdict.first.index).toHaveLength(2);
    expect(Number(verdict.worst.found)).not.toBeCloseTo(Number(verdict.worst.expected), 3);
  });
});

describe("a candidate that does not run", () => {
  it("is rejected when the validator refuses it", async () => {
    const checked = { ...bench, validate: validateProgram };
    const verdict = await judge(plain(loops({ x: "i + 1, k" })), undefined, checked);
    expect(verdict).toMatchObject({ kind: "rejected", reason: "illegal" });
  });

  it("is rejected when it traps, asks too much memory, or does not end", async () => {
    const traps = plain(loops({ x: "i + 20000000, k" }));
    expect(await judge(traps)).toMatchObject({ kind: "rejected", reason: "crashed" });
    const large = planted((text) => text.replace("[37, 50]", "[37, 50000000]"));
    expect(await judge(large)).toMatchObject({ kind: "rejected", reason: "resources" });
    const endless = plain(loops({ k: "2000000000", x: "i, mod(k, 50)", w: "mod(k, 50), j" }));
    const verdict = await judge(endless, undefined, { ...bench, deadlineMs: 500 });
    expect(verdict).toMatchObject({
      kind: "rejected",
      reason: "hung",
      diagnostics: [{ code: "VER002", at: `region ${whole.region.name}` }],
    });
    expect(await judge(whole)).toMatchObject({ kind: "estimated" });
  });

  it.each([
    [{ kind: "crashed", how: "signal SIGSEGV" }, "crashed", "VER001"],
    [{ kind: "garbled", what: "?" }, "garbled", "VER003"],
    [{ kind: "outOfMemory", how: "signal SIGKILL" }, "resources", "VER007"],
  ] as const)("is rejected when its process %o", async (outcome, reason, code) => {
    const fake: CandidateRunner = {
      generation: 1,
      request: async () => outcome as ChildOutcome,
      dispose: async () => {},
    };
    const verdict = await judge(whole, undefined, { ...bench, runner: fake });
    expect(verdict).toMatchObject({ kind: "rejected", reason, diagnostics: [{ code }] });
  });
});

describe("a measurement", () => {
  const protocol = { rounds: 5, warmUp: 1, leastSampleNs: 1000 };
  const slow: Peaks = { flopsPerNs: 1e-6, levels: [{ name: "memory", bytesPerNs: 1e-6 }] };

  it("is of a candidate that agreed, below a bound of measured peaks", async () => {
    const peaks = await measurePeaks(target, { ...bench, threads: 1 });
    if (peaks.kind !== "done") throw new Error(JSON.stringify(peaks));
    expect(peaks.value.flopsPerNs).toBeGreaterThan(0.5);
    const { levels } = peaks.value;
    for (let i = 1; i < levels.length; i++) {
      expect(levels[i]!.bytesPerNs).toBeLessThanOrEqual(levels[i - 1]!.bytesPerNs);
    }
    const loads: number[] = [];
    const watching: CandidateRunner = {
      get generation() {
        return runner.generation;
      },
      request: (request: ChildRequest, deadline) => {
        if (request.kind === "load") loads.push(request.id);
        return runner.request(request, deadline);
      },
      dispose: async () => {},
    };
    const alone = { ...bench, runner: watching, threads: 1 };
    const measuring = { protocol, peaks: peaks.value };
    const how = { estimate, shared: new CheckBlocks(), measuring };
    const best = plain(loops({}));
    const { session } = await evaluate(best, alone, how);
    if (!session) throw new Error("the first was not measured");
    const incumbent = { candidate: best, session };
    const next = { ...how, measuring: { ...measuring, incumbent } };
    const { verdict, session: own } = await evaluate(whole, alone, next);
    // What was measured before is still there.
    expect(loads).toHaveLength(2);
    expect([session.isLoaded, own?.isLoaded]).toEqual([true, true]);
    for (const side of [session, own]) await side?.unload();
    expect(verdict, JSON.stringify(verdict)).toMatchObject({
      kind: "measured",
      timing: { n: 5, paired: { schedule: whole.schedule } },
    });
    if (verdict.kind !== "measured") return;
    const { medianNs, lowNs, highNs, boundNs } = verdict.timing;
    expect(boundNs).toBeGreaterThan(0);
    expect([boundNs, lowNs, medianNs, highNs]).toEqual(
      [boundNs, lowNs, medianNs, highNs].sort((a, b) => a - b),
    );
  });

  it("that no machine could make is rejected (VER005)", async () => {
    const verdict = await judge(whole, { protocol, peaks: slow });
    expect(verdict).toMatchObject({
      kind: "rejected",
      reason: "implausible",
      diagnostics: [{ code: "VER005" }],
    });
  });

  it("is not made of what is wrong", async () => {
    const asked: string[] = [];
    const watching: CandidateRunner = {
      get generation() {
        return runner.generation;
      },
      request: (request: ChildRequest, deadlineMs) => {
        asked.push(request.kind);
        return runner.request(request, deadlineMs);
      },
      dispose: async () => {},
    };
    const at = { ...bench, runner: watching };
    expect(await judge(plain(loops({ i: "36" })), { protocol, peaks: slow }, at)).toMatchObject({
      kind: "wrong",
    });
    expect(asked).not.toContain("time");
  });
});

describe("what cannot be checked", () => {
  it("is estimated without agreement, and says so (VER004)", async () => {
    const text = printProgram(whole.program).replace(
      /program region for "wasm" \{/,
      (head) => `${head}\n  parameter n in 1 to 4\n  require n - 9 >= 0`,
    );
    const impossible = { ...whole, program: unwrap(parseProgram(text)) };
    const how = { estimate, shared: new CheckBlocks() };
    const { verdict, unchecked } = await evaluate(impossible, bench, how);
    expect(verdict).toEqual({ kind: "estimated", estimate: estimate() });
    expect(unchecked).toMatchObject([{ code: "VER004" }]);
  });

  it("nor are folds of billions of terms, which would take minutes", async () => {
    const [folded] = candidatesOf(`graph g(x: f32[1, 65536]) -> (y) {
      e = broadcast(x) {shape: [1048576, 65536]} : f32[1048576, 65536]
      y = reduce(e) {kind: sum, axes: [0, 1], keepDims: false} : f32[]
    }`);
    const begin = performance.now();
    const how = { estimate, shared: new CheckBlocks() };
    const { verdict, unchecked } = await evaluate(folded!, bench, how);
    expect(verdict).toEqual({ kind: "estimated", estimate: estimate() });
    expect(unchecked).toMatchObject([
      { code: "VER004", message: expect.stringContaining("terms") },
    ]);
    expect(performance.now() - begin).toBeLessThan(5000);
  });
});

describe("the hash of a region", () => {
  it("does not depend on names, but on what is computed", () => {
    const hashOf = (text: string) => regionHash(candidatesOf(text)[0]!.region);
    const renamed = product.replace(/\bx\b/g, "left").replace(/\bp\b/g, "dot").replace("g(", "h(");
    expect(hashOf(renamed)).toBe(hashOf(product));
    expect(hashOf(product.replaceAll("37", "38"))).not.toBe(hashOf(product));
    expect(hashOf(product.replace("relu(q)", "abs(q)"))).not.toBe(hashOf(product));
  });
});
