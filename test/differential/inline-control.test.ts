/** Control flow copied out: the graph without it gives what the oracle says, also as WebAssembly. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { subgraphsOf } from "../../src/graph/op-table.ts";
import type { OpWriter } from "../../src/graph/op-writer.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { inlineControl } from "../../src/graph/transforms/inline-control.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { constant, type IndexExpr, toIndex } from "../../src/semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

const limits = { trips: 64, nodes: 5_000 };

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function random(rng: Rng, ...shape: readonly number[]): RefTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  const draw = () => Math.fround(rng.normal());
  return refTensor("f32", shape, Array.from({ length: count }, draw));
}

const controlOf = (g: Graph) => g.nodes.filter((n) => subgraphsOf(n).length > 0).map((n) => n.op);

/** Inlined, no control flow is left, and it computes what the oracle computes. */
function checkInlined(graph: Graph, inputs: readonly RefTensor[]): void {
  expect(verifyGraph(graph)).toEqual([]);
  const after = inlineControl(graph, limits).graph;
  expect(verifyGraph(after)).toEqual([]);
  expect(controlOf(after)).toEqual([]);
  expect(unwrap(runGraph(after, inputs))).toEqual(unwrap(runGraph(graph, inputs)));
}

async function checkCompiled(graph: Graph, inputs: readonly RefTensor[]): Promise<void> {
  const expected = unwrap(runGraph(graph, inputs));
  const target = targets.get("wasm")!;
  const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const weight = weightReader(model);
  const features = { ...probeWasmFeatures(), threads: false };
  const session = unwrap(
    createWasmSession(plan.program, { weight, threads: 1, features, host: nodeWorkerHost }),
  );
  const feeds = graph.inputs.map((id, i) => [graph.values[id]!.name, fromRef(inputs[i]!)] as const);
  const outputs = unwrap(session.run(Object.fromEntries(feeds)));
  for (const [o, want] of expected.entries()) {
    const found = toRef(outputs[nests.outputs[o]!]!);
    expect(found.shape).toEqual(want.shape);
    for (const [i, value] of Array.from(want.data, Number).entries()) {
      expect(Number(found.data[i])).toBeCloseTo(value, 4);
    }
  }
  await session.dispose();
}

interface ScanShape {
  readonly steps: number;
  /** The number of steps is a symbol up to this. */
  readonly bound?: number;
  readonly axes: readonly [number, number];
  readonly reversed: readonly [boolean, boolean];
}

/** state <- state * scale + element, collecting state - element, over rows or columns. */
function scanGraph({ steps, bound, axes, reversed }: ScanShape): Graph {
  const b = new GraphBuilder("scan");
  const N: IndexExpr = bound === undefined ? constant(steps) : b.symbol("N", 0, bound);
  const state = b.input("state", tensorType("f32", 3));
  const shape = axes[0] === 0 ? [N, toIndex(3)] : [toIndex(3), N];
  const rows = b.input("rows", { dtype: "f32", shape });
  const scale = b.input("scale", tensorType("f32", 1));
  const inputs = ["state", "element", "scale"].map((name, i) => ({
    name,
    type: tensorType("f32", i === 2 ? 1 : 3),
  }));
  const body = b.subgraph("step", inputs, (w, [s, x, c]) => {
    const next = w.add(w.mul(s!, c!), x!);
    return [next, w.sub(next, x!)];
  });
  return b.finish(
    b.nodes("scan", [state, rows, scale], {
      body,
      carried: 1,
      sequences: 1,
      inputAxes: [axes[0]],
      inputReversed: [reversed[0]],
      outputAxes: [axes[1]],
      outputReversed: [reversed[1]],
    }),
  );
}

function scanInputs({ steps, axes }: ScanShape, rng: Rng): RefTensor[] {
  const rows = axes[0] === 0 ? random(rng, steps, 3) : random(rng, 3, steps);
  return [random(rng, 3), rows, random(rng, 1)];
}

const flags = [false, true];
const scans = flags.flatMap((first) =>
  flags.flatMap((second) =>
    [0, 1].flatMap((from) =>
      [0, 1].map((to) => ({ axes: [from, to] as const, reversed: [first, second] as const })),
    ),
  ),
);

describe("scan", () => {
  it("of a known number of steps, also none, in any direction along any axis", () => {
    const rng = new Rng(1);
    for (const scan of scans) {
      for (const steps of [0, 1, 2, 5]) {
        const shape = { ...scan, steps };
        checkInlined(scanGraph(shape), scanInputs(shape, rng));
      }
    }
  });

  it("of a bounded number of steps keeps the state past the end", () => {
    const rng = new Rng(2);
    for (const scan of scans) {
      for (const steps of [0, 1, 3, 5]) {
        const shape = { ...scan, steps, bound: 5 };
        checkInlined(scanGraph(shape), scanInputs(shape, rng));
      }
    }
  });

  it.each(scans.slice(0, 4))("compiles: %j", async (scan) => {
    const rng = new Rng(3);
    const fixed = { ...scan, steps: 4 };
    await checkCompiled(scanGraph(fixed), scanInputs(fixed, rng));
    for (const steps of [1, 3, 5]) {
      const shape = { ...scan, steps, bound: 5 };
      await checkCompiled(scanGraph(shape), scanInputs(shape, rng));
    }
  });

  it("stays where its copies would be many or have no bound", () => {
    const plain = { axes: [0, 0], reversed: [false, false] } as const;
    const long = scanGraph({ ...plain, steps: 65 });
    expect(controlOf(inlineControl(long, limits).graph)).toEqual(["scan"]);
    expect(controlOf(inlineControl(long, { trips: 65, nodes: 5_000 }).graph)).toEqual([]);
    expect(controlOf(inlineControl(long, { trips: 65, nodes: 400 }).graph)).toEqual(["scan"]);
    const endless = scanGraph({ ...plain, steps: 3, bound: Infinity });
    expect(controlOf(inlineControl(endless, limits).graph)).toEqual(["scan"]);
  });
});

type Condition = "kept" | "true" | "false" | "computed";

/** x <- x + iteration while the condition holds; a computed one ends when sum(x) reaches a limit. */
function loopGraph(count: number | undefined, condition: Condition, collects: boolean): Graph {
  const b = new GraphBuilder("loop");
  const x = b.input("x", tensorType("f32", 4));
  const go = b.input("go", tensorType("bool"));
  const given = b.input("trips", tensorType("i64"));
  const trips = count === undefined ? given : b.scalar(BigInt(count), "i64");
  const start = condition === "computed" ? go : b.scalar(1, "bool");
  const types = [tensorType("i64"), tensorType("bool"), tensorType("f32", 4)];
  const inputs = types.map((type, i) => ({ name: `in${i}`, type }));
  const body = b.subgraph("body", inputs, (w, [t, c, value]) => {
    const next = w.add(value!, w.cast(t!, "f32"));
    const limit = w.apply("less", w.reduce("sum", next, [0], false), w.scalar(9, "f32"));
    const ends = { kept: c!, true: w.scalar(1, "bool"), false: w.scalar(0, "bool") };
    const end = condition === "computed" ? limit : ends[condition];
    return collects ? [end, next, w.mul(next, next)] : [end, next];
  });
  const attrs = { body, carried: 1, maxTrips: constant(count ?? 6) };
  return b.finish(b.nodes("loop", [trips, start, x], attrs));
}

function loopInputs(rng: Rng, go: number, trips: number): RefTensor[] {
  return [random(rng, 4), refTensor("bool", [], [go]), refTensor("i64", [], [trips])];
}

describe("loop", () => {
  it("of a known number of trips", () => {
    const rng = new Rng(4);
    for (const condition of ["kept", "true", "false"] as const) {
      for (const collects of flags) {
        for (const count of [0, 1, 4]) {
          checkInlined(loopGraph(count, condition, collects), loopInputs(rng, 1, 0));
        }
      }
    }
  });

  it("that a condition or a count in the data ends", () => {
    const rng = new Rng(5);
    for (const condition of ["kept", "true", "false", "computed"] as const) {
      for (const [go, trips] of [
        [0, 6],
        [1, 0],
        [1, 1],
        [1, 3],
        [1, 6],
      ] as const) {
        checkInlined(loopGraph(undefined, condition, false), loopInputs(rng, go, trips));
      }
    }
  });

  it("compiles", async () => {
    const rng = new Rng(6);
    await checkCompiled(loopGraph(3, "true", true), loopInputs(rng, 1, 0));
    await checkCompiled(loopGraph(undefined, "computed", false), loopInputs(rng, 1, 5));
  });

  it("stays when only the run knows how much it collects", () => {
    const { graph, count } = inlineControl(loopGraph(undefined, "true", true), limits);
    expect(controlOf(graph)).toEqual(["loop"]);
    expect(count).toBe(0);
  });
});

type Branch = (w: OpWriter, x: ValueId, y: ValueId) => ValueId;

function branchGraph(known: boolean | undefined, yes: Branch, no: Branch): Graph {
  const b = new GraphBuilder("if");
  const go = b.input("go", tensorType("bool"));
  const [x, y] = [b.input("x", tensorType("f32", 4)), b.input("y", tensorType("i64", 4))];
  const inputs = [x, y].map((id) => ({ name: b.nameOf(id), type: b.typeOf(id) }));
  const side = (name: string, make: Branch) =>
    b.subgraph(name, inputs, (w, [p, q]) => [make(w, p!, q!)]);
  const condition = known === undefined ? go : b.scalar(Number(known), "bool");
  const sides = { then: side("yes", yes), else: side("no", no) };
  return b.finish(b.nodes("if", [condition, x, y], sides));
}

const double: Branch = (w, x) => w.add(x, x);
const negate: Branch = (w, x) => w.apply("neg", x);
const gather: Branch = (w, x, y) => w.node("gather", [x, y], { axis: 0 });
const first: Branch = (w, x) => w.sliceAxis(x, 0, 0, 2);

describe("if", () => {
  const inputs = (go: number) => [
    refTensor("bool", [], [go]),
    random(new Rng(7), 4),
    refTensor("i64", [4], [3, 0, 1, 1]),
  ];

  it("takes the branch that is known, whatever is in it", () => {
    for (const known of flags) {
      checkInlined(branchGraph(known, gather, first), inputs(1));
      checkInlined(branchGraph(known, negate, double), inputs(0));
    }
  });

  it("runs both branches and selects when neither can fail", async () => {
    const graph = branchGraph(undefined, double, negate);
    for (const go of [0, 1]) {
      checkInlined(graph, inputs(go));
      await checkCompiled(graph, inputs(go));
    }
  });

  it("stays when a branch could fail or gives another shape", () => {
    for (const no of [gather, first]) {
      const { graph } = inlineControl(branchGraph(undefined, double, no), limits);
      expect(controlOf(graph)).toEqual(["if"]);
    }
  });

  it("inside another goes first", () => {
    const b = new GraphBuilder("nested");
    const [go, x] = [b.input("go", tensorType("bool")), b.input("x", tensorType("f32", 4))];
    const types = [tensorType("bool"), tensorType("f32", 4)];
    const declared = types.map((type, i) => ({ name: `in${i}`, type }));
    const alone = [{ name: "v", type: types[1]! }];
    const inner = (w: OpWriter, [c, v]: readonly ValueId[]) =>
      w.nodes("if", [c!, v!], {
        then: w.subgraph("a", alone, (s, [p]) => [s.apply("neg", p!)]),
        else: w.subgraph("b", alone, (s, [p]) => [s.mul(p!, p!)]),
      });
    const sides = {
      then: b.subgraph("yes", declared, inner),
      else: b.subgraph("no", declared, (_, [, v]) => [v!]),
    };
    const graph = b.finish(b.nodes("if", [go, go, x], sides));
    for (const c of [0, 1])
      checkInlined(graph, [refTensor("bool", [], [c]), random(new Rng(8), 4)]);
  });
});
