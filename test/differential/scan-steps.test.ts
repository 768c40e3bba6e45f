/** Scans whose steps are tasks that the program repeats: what the oracle says, on every machine here. */
import { expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, OpAttrs } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { printSchedule } from "../../src/schedule/directive-text.ts";
import { type IndexLike, toIndex } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  type RefTensor,
  refTensor,
  type Tensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function random(rng: Rng, ...shape: readonly number[]): RefTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  return refTensor(
    "f32",
    shape,
    Array.from({ length: count }, () => Math.fround(rng.normal() / 2)),
  );
}

const machines = runnableTargets().names.filter((name) => targets.get(name)!.emitter !== "ptx");

/** Each list of inputs by one program a machine, on one thread and on two. */
async function check(graph: Graph, runs: readonly (readonly RefTensor[])[]): Promise<void> {
  const expected = runs.map((inputs) => unwrap(runGraph(graph, inputs)));
  for (const name of [machines[0]!, machines.at(-1)!]) {
    const target = targets.get(name)!;
    const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
    expect(plan.program.tasks.some((task) => task.kind === "repeat")).toBe(true);
    for (const threads of [1, 2]) {
      const options = { threads, weight: weightReader(model), title: (n: string) => n };
      const session = unwrap(createSession(plan.program, target, options));
      for (const [r, inputs] of runs.entries()) {
        session.poison();
        const feeds = graph.inputs.map((id, i) => [graph.values[id]!.name, fromRef(inputs[i]!)]);
        const outputs = unwrap(session.run(Object.fromEntries(feeds)));
        for (const [o, want] of expected[r]!.entries()) {
          const found = toRef(outputs[nests.outputs[o]!]!);
          expect(found.shape).toEqual(want.shape);
          for (const [i, value] of Array.from(want.data, Number).entries()) {
            expect(Number(found.data[i])).toBeCloseTo(value, 4);
          }
        }
      }
      await session.dispose();
    }
  }
}

/** The same on a machine of blocks, whose scans of a known number of more than 64 steps repeat too. */
function checkOnBlocks(
  graph: Graph,
  runs: readonly (readonly RefTensor[])[],
  steps: "repeated" | "copied" = "repeated",
): void {
  const target = targets.get("h200")!;
  if (target.machine?.kind !== "gpu") throw new Error("no GPU");
  const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const { program } = plan;
  const repeats = program.tasks.some((task) => task.kind === "repeat");
  expect(repeats).toBe(steps === "repeated");
  expect(program.kernels.map((k) => k.grid.unit)).not.toContain("threads");
  unwrap(emitPtx(program, target.machine.architecture, target.blocks));
  const weight = weightReader(model);
  const bytes = ({ data }: Tensor): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (const inputs of runs) {
    const named = graph.inputs.map((id, i) => [graph.values[id]!.name, inputs[i]!] as const);
    const weights = program.buffers.flatMap((b) =>
      b.kind === "weight" && b.source !== undefined
        ? [[b.name, bytes(weight(b.source))] as const]
        : [],
    );
    const contents = new Map([
      ...named.map(([n, x]) => [n, bytes(fromRef(x))] as const),
      ...weights,
    ]);
    const parameters = Object.fromEntries(
      program.parameters.map(({ name }) => [name, inputs[0]!.shape[0]!]),
    );
    const outcome = runProgram(program, { parameters, contents, threads: 1, seed: 2 });
    if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
    for (const [o, want] of unwrap(runGraph(graph, inputs)).entries()) {
      const stored = outcome.contents.get(nests.outputs[o]!)!.slice();
      const found = new Float32Array(stored.buffer);
      for (const [i, value] of Array.from(want.data, Number).entries())
        expect(found[i]).toBeCloseTo(value, 4);
    }
  }
}

interface Direction {
  readonly axes: readonly [number, number];
  readonly reversed: readonly [boolean, boolean];
}

/** state <- tanh(state W + row), collecting state and state - row; W is a constant of the body. */
function scanGraph(count: IndexLike, { axes, reversed }: Direction, b: GraphBuilder): Graph {
  const shape = axes[0] === 0 ? [count, 5] : [5, count];
  const rows = b.input("rows", { dtype: "f32", shape: shape.map(toIndex) });
  const state = b.input("state", tensorType("f32", 5));
  const inputs = ["s", "x"].map((name) => ({ name, type: tensorType("f32", 5) }));
  const body = b.subgraph("step", inputs, (w, [s, x]) => {
    const weights = w.constant(fromRef(random(new Rng(9), 5, 5)), "W");
    const next = w.apply("tanh", w.add(w.einsum("i, i j -> j", s!, weights), x!));
    return [next, next, w.sub(next, x!)];
  });
  const attrs: OpAttrs["scan"] = {
    ...{ body, carried: 1, sequences: 1, inputAxes: [axes[0]], inputReversed: [reversed[0]] },
    ...{ outputAxes: [axes[1], 0], outputReversed: [reversed[1], false] },
  };
  return b.finish(b.nodes("scan", [state, rows], attrs));
}

const directions: readonly Direction[] = [
  { axes: [0, 0], reversed: [false, false] },
  { axes: [1, 0], reversed: [true, false] },
  { axes: [0, 1], reversed: [false, true] },
];

it.each(directions)("any number of steps: %j", async (direction) => {
  const rng = new Rng(1);
  const b = new GraphBuilder("scan");
  const graph = scanGraph(b.symbol("N", 1, 40), direction, b);
  const rows = (n: number) => (direction.axes[0] === 0 ? random(rng, n, 5) : random(rng, 5, n));
  await check(
    graph,
    [1, 23, 40].map((n) => [rows(n), random(rng, 5)]),
  );
});

it.each(directions)("more steps than a GPU's programs copy out: %j", (direction) => {
  const rng = new Rng(4);
  const graph = scanGraph(70, direction, new GraphBuilder("scan"));
  const rows = direction.axes[0] === 0 ? random(rng, 70, 5) : random(rng, 5, 70);
  checkOnBlocks(graph, [[rows, random(rng, 5)]]);
});

it("any number of steps on a GPU: copied out up to a few, else not of its programs (SCH015)", () => {
  const rng = new Rng(5);
  const open = (most: number): Graph => {
    const b = new GraphBuilder("scan");
    return scanGraph(b.symbol("N", 1, most), directions[0]!, b);
  };
  checkOnBlocks(
    open(6),
    [1, 3, 6].map((n) => [random(rng, n, 5), random(rng, 5)]),
    "copied",
  );
  const target = targets.get("h200")!;
  const refused = compileModel({ graph: open(100), weights: noWeights }, { target });
  expect(refused).toMatchObject({ ok: false, diagnostics: [{ code: "SCH015" }] });
});

it("a scan in a scan, more steps than are copied out", async () => {
  const rng = new Rng(2);
  const b = new GraphBuilder("nested");
  const planes = b.input("planes", tensorType("f32", 12, 10, 3));
  const state = b.input("state", tensorType("f32", 3));
  const plain = { inputReversed: [false], outputReversed: [false] };
  const once = { carried: 1, sequences: 1, inputAxes: [0], outputAxes: [0], ...plain };
  const of = (name: string, ...shape: number[]) => ({ name, type: tensorType("f32", ...shape) });
  const body = b.subgraph("outer", [of("s", 3), of("plane", 10, 3)], (w, [s, plane]) => {
    const inner = w.subgraph("inner", [of("t", 3), of("row", 3)], (v, [t, row]) => {
      const next = v.apply("tanh", v.add(t!, row!));
      return [next, v.mul(next, row!)];
    });
    const [last, all] = w.nodes("scan", [s!, plane!], { body: inner, ...once });
    return [last!, w.reduce("sum", all!, [0], false)];
  });
  const graph = b.finish(b.nodes("scan", [state, planes], { body, ...once }));
  await check(graph, [[random(rng, 12, 10, 3), random(rng, 3)]]);
});

it("weights in another shape: the step has the weight itself, and packs it", async () => {
  // More elements than are folded ahead.
  const [steps, rows, size] = [9, 2, 2080];
  const make = (whole: boolean): Graph => {
    const b = new GraphBuilder("reshaped");
    const states = b.input("states", tensorType("f32", rows, size));
    const given = b.input("given", tensorType("f32", steps, rows, size));
    const weight = b.weight("W", tensorType("f32", ...(whole ? [size, size] : [1, size, size])));
    const matrix = whole ? weight : b.reshape(weight, [size, size].map(toIndex));
    const inputs = ["s", "x"].map((name) => ({ name, type: tensorType("f32", rows, size) }));
    const captured = { name: "w", type: tensorType("f32", size, size) };
    const body = b.subgraph("step", [...inputs, captured], (w, [s, x, m]) => [
      w.apply("tanh", w.add(w.einsum("b i, j i -> b j", s!, m!), x!)),
    ]);
    const plain = { inputAxes: [0], inputReversed: [false], outputAxes: [], outputReversed: [] };
    const attrs: OpAttrs["scan"] = { body, carried: 1, sequences: 1, ...plain };
    return b.finish(b.nodes("scan", [states, given, matrix], attrs));
  };
  const drawn = random(new Rng(3), size, size);
  const schedules = [true, false].map((whole) => {
    const { data } = fromRef(drawn);
    const shape = whole ? [size, size] : [1, size, size];
    const weights = { read: () => ({ dtype: "f32", shape, data }) as Tensor };
    const target = targets.get("x64-avx2")!;
    const compiled = unwrap(compileModel({ graph: make(whole), weights }, { target }));
    return compiled.regions.map((r) => printSchedule(r.scheduled.schedule));
  });
  expect(schedules[0]!.join()).toContain("layout");
  expect(schedules[1]!.join()).toContain("layout");
}, 60_000);
