/** Loops and branches as tasks of one program: what the oracle says, on every machine here. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import type { OpWriter } from "../../src/graph/op-writer.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

const machines = runnableTargets().names.filter((name) => targets.get(name)!.emitter !== "ptx");

function random(rng: Rng, ...shape: readonly number[]): RefTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  return refTensor(
    "f32",
    shape,
    Array.from({ length: count }, () => Math.fround(rng.normal() / 2)),
  );
}

const number = (n: number): RefTensor => refTensor("i64", [], [n]);
const truth = (b: boolean): RefTensor => refTensor("bool", [], [b ? 1 : 0]);

/** Each list of inputs by one program a machine, on one thread and on two. */
async function check(graph: Graph, runs: readonly (readonly RefTensor[])[]): Promise<void> {
  const expected = runs.map((inputs) => unwrap(runGraph(graph, inputs)));
  for (const name of [machines[0]!, machines.at(-1)!]) {
    const target = targets.get(name)!;
    const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
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

interface Form {
  /** The count as a constant; absent: an input. */
  readonly count?: number;
  /** The body ends the loop when the sum of its state falls below a limit. */
  readonly ends?: boolean;
  readonly reads?: boolean;
  readonly collects?: boolean;
  readonly inner?: boolean;
  readonly branch?: boolean;
}

const of = (name: string, dtype: "f32" | "i64" | "bool", ...shape: number[]) => ({
  name,
  type: { ...tensorType(dtype), shape: shape.map(constant) },
});

/** state <- tanh(state W + x), with what the form asks for beside it. */
function loopGraph(form: Form): Graph {
  const b = new GraphBuilder("loops");
  const x = b.input("x", tensorType("f32", 19));
  const given = form.count === undefined ? b.input("n", tensorType("i64")) : undefined;
  const starts = b.input("go", tensorType("bool"));
  const n = given ?? b.scalar(BigInt(form.count!), "i64");
  const ports = [of("i", "i64"), of("c", "bool"), of("s", "f32", 19), of("a", "f32", 19)];
  const body = b.subgraph("body", ports, (w, [i, c, s, a]) => {
    const weights = w.constant(fromRef(random(new Rng(9), 19, 19)), "W");
    // Small enough that rounding does not grow from trip to trip.
    const product = w.mul(w.einsum("i, i j -> j", s!, weights), w.scalar(0.3, "f32"));
    let next = w.apply("tanh", w.add(product, a!));
    if (form.reads) next = w.add(next, w.mul(w.cast(i!, "f32"), w.scalar(0.01, "f32")));
    if (form.inner) next = innerLoop(w, i!, c!, next);
    if (form.branch) next = chosen(w, i!, next);
    const sum = w.reduce("sum", next, [0], false);
    const condition = form.ends ? w.apply("less", sum, w.scalar(2, "f32")) : c!;
    return [condition, next, ...(form.collects ? [sum] : [])];
  });
  const condition = form.collects ? b.scalar(1, "bool") : starts;
  const attrs = { body, carried: 1, maxTrips: constant(form.count ?? 2 ** 31 - 1) };
  return b.finish(b.nodes("loop", [n, condition, x, x], attrs));
}

/** As many trips as the number of the trip around has over a multiple of 3. */
function innerLoop(w: OpWriter, i: ValueId, c: ValueId, start: ValueId): ValueId {
  const trips = w.apply(
    "sub",
    i,
    w.mul(w.apply("div", i, w.scalar(3n, "i64")), w.scalar(3n, "i64")),
  );
  const ports = [of("j", "i64"), of("d", "bool"), of("t", "f32", 19)];
  const body = w.subgraph("inner", ports, (v, [, d, t]) => [d!, v.mul(t!, v.scalar(0.5, "f32"))]);
  return w.nodes("loop", [trips, c, start], {
    body,
    carried: 1,
    maxTrips: constant(2 ** 31 - 1),
  })[0]!;
}

/** Early trips take a row by their number, which later ones could not. */
function chosen(w: OpWriter, i: ValueId, value: ValueId): ValueId {
  const table = w.constant(fromRef(random(new Rng(3), 4, 19)), "T");
  const early = w.apply("less", i, w.scalar(4n, "i64"));
  const ports = [of("k", "i64"), of("v", "f32", 19), of("rows", "f32", 4, 19)];
  const yes = w.subgraph("then", ports, (v, [k, given, rows]) => [
    v.add(given!, v.node("gather", [rows!, k!], { axis: 0 })),
  ]);
  const no = w.subgraph("else", ports, (v, [, given]) => [v.apply("neg", given!)]);
  return w.nodes("if", [early, i, value, table], { then: yes, else: no })[0]!;
}

const forms: readonly (readonly [string, Form])[] = [
  ["a constant count", { count: 70 }],
  ["a constant count, the number read, rows collected", { count: 70, reads: true, collects: true }],
  ["a count that data give", {}],
  ["a count that data give, the number read", { reads: true }],
  ["a condition", { ends: true }],
  ["a condition before a constant count", { count: 100, ends: true, reads: true }],
  ["a loop inside that data end", { inner: true }],
  ["a branch inside that data choose", { branch: true }],
];

describe("loops are tasks of one program", () => {
  it.each(forms)("%s", async (_, form) => {
    const rng = new Rng(4);
    const graph = loopGraph(form);
    const counts = form.count === undefined ? [0, 1, 7, 90, -3] : [form.count];
    const runs = counts.flatMap((n) =>
      [true, false].map((go) => {
        const inputs = [random(rng, 19), ...(form.count === undefined ? [number(n)] : [])];
        return [...inputs, truth(go)];
      }),
    );
    await check(graph, runs);
  });
});

it("a branch of the whole model runs alone: the other's index may be out of range", async () => {
  const b = new GraphBuilder("branch");
  const x = b.input("x", tensorType("f32", 19));
  const i = b.input("i", tensorType("i64"));
  const graph = b.finish([chosen(b, i, x)]);
  const rng = new Rng(5);
  await check(
    graph,
    [0, 3, 4, 1000].map((n) => [random(rng, 19), number(n)]),
  );
});

it("branches of each kind of element", async () => {
  const b = new GraphBuilder("kinds");
  const kinds = ["f32", "f64", "i64", "i32", "u8", "bool"] as const;
  const c = b.input("c", tensorType("bool"));
  const given = kinds.map((dtype) => b.input(dtype, tensorType(dtype, 5)));
  const ports = kinds.map((dtype) => ({ name: `of ${dtype}`, type: tensorType(dtype, 5) }));
  const kept = b.subgraph("kept", ports, (_, values) => values);
  const turned = b.subgraph("turned", ports, (w, values) =>
    values.map((v) => w.node("reverse", [v], { axes: [0] })),
  );
  const graph = b.finish(b.nodes("if", [c, ...given], { then: kept, else: turned }));
  const values = kinds.map((dtype) =>
    refTensor(dtype, [5], dtype === "bool" ? [1, 1, 0, 0, 0] : [1, 2, 3, 4, 200]),
  );
  await check(
    graph,
    [true, false].map((chosen) => [truth(chosen), ...values]),
  );
});

it("a loop that nothing ends is given up (RUN007)", async () => {
  const b = new GraphBuilder("endless");
  const x = b.input("x", tensorType("f32", 200, 200));
  const start = b.input("go", tensorType("bool"));
  const ports = [of("i", "i64"), of("c", "bool"), of("s", "f32", 200, 200)];
  const body = b.subgraph("body", ports, (w, [, c, s]) => [c!, w.apply("abs", s!)]);
  const attrs = { body, carried: 1, maxTrips: constant(2 ** 31 - 1) };
  const most = b.scalar(2n ** 31n - 1n, "i64");
  const graph = b.finish(b.nodes("loop", [most, start, x], attrs));
  const target = targets.get(machines[0]!)!;
  const { plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const limit = plan.program.tasks.find((t) => t.kind === "while");
  expect(limit).toMatchObject({ maxTrips: { constant: expect.any(Number) } });
  const short = {
    ...plan.program,
    tasks: plan.program.tasks.map((t) =>
      t.kind === "while" ? { ...t, maxTrips: constant(50) } : t,
    ),
  };
  const session = unwrap(
    createSession(short, target, {
      threads: 1,
      weight: () => undefined as never,
      title: (n: string) => n,
    }),
  );
  const run = session.run({ x: fromRef(random(new Rng(1), 200, 200)), go: fromRef(truth(true)) });
  expect(run).toMatchObject({ ok: false, diagnostics: [{ code: "RUN007" }] });
  await session.dispose();
});
