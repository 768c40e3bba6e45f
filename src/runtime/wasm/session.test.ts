import { afterAll, describe, expect, it } from "vitest";
import type { Program } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import { constant, variable } from "../../semantics/index-expr.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import type { ModelSession } from "../model-session.ts";
import { probeWasmFeatures } from "./features.ts";
import { nodeWorkerHost } from "./node-worker-host.ts";
import { createWasmSession } from "./session.ts";

const n = variable("N");
const i = variable("i");
const load = (buffer: string): Expr => ({
  kind: "load",
  dtype: "f32",
  lanes: 1,
  buffer,
  index: [i],
  guard: [],
  fill: 0,
});

/** y[i] = x[i] * w[i], for N up to 100. */
const program: Program = {
  name: "scale",
  target: "wasm",
  parameters: [{ name: "N", min: 1, max: 100 }],
  requires: [],
  buffers: (
    [
      ["x", "input", "caller", 0],
      ["y", "output", "caller", 448],
      ["w", "weight", "weights", 0],
    ] as const
  ).map(([name, kind, arena, byteOffset]) => ({
    name,
    kind,
    scope: "memory",
    dtype: "f32",
    lanes: 1,
    shape: [kind === "weight" ? constant(100) : n],
    placement: { arena, byteOffset: constant(byteOffset) },
    source: name,
  })),
  counters: [],
  kernels: [
    {
      name: "k",
      grid: {
        unit: "threads",
        axes: [{ name: "thread", extent: variable("threads") }],
        clusterSize: 1,
        resident: false,
      },
      buffers: [],
      counters: [],
      roles: [
        {
          name: "main",
          copies: 1,
          threads: 1,
          body: [
            {
              kind: "for",
              variable: "i",
              extent: n,
              mode: { kind: "grid", axis: "thread" },
              body: [
                {
                  kind: "store",
                  buffer: "y",
                  index: [i],
                  value: {
                    kind: "apply",
                    op: "mul",
                    dtype: "f32",
                    lanes: 1,
                    operands: [load("x"), load("w")],
                  },
                },
              ],
            },
          ],
        },
      ],
      region: "k",
    },
  ],
  tasks: [{ kind: "launch", kernel: "k", after: "previous", bindings: [], waits: [], signals: [] }],
  states: [],
};

const f32 = (values: readonly number[]): Tensor => ({
  dtype: "f32",
  shape: [values.length],
  data: Float32Array.from(values),
});

function open(threads: number): ModelSession {
  const created = createWasmSession(program, {
    threads,
    features: probeWasmFeatures(),
    host: nodeWorkerHost,
    weight: () => f32(Array.from({ length: 100 }, (_, k) => k + 1)),
  });
  if (!created.ok) throw new Error(created.diagnostics[0]!.message);
  return created.value;
}

describe.each([1, 2])("WebAssembly session with %i threads", (threads) => {
  const session = open(threads);
  afterAll(() => session.dispose());

  it("serves several shapes, poisoned in between", () => {
    for (const length of [1, 7, 100]) {
      session.poison();
      const outcome = session.run({ x: f32(new Array(length).fill(2)) });
      const y = outcome.ok ? outcome.value.y! : undefined;
      expect(y?.shape).toEqual([length]);
      expect([...y!.data]).toEqual(Array.from({ length }, (_, k) => 2 * (k + 1)));
    }
  });

  it("judges every run by its own shapes, also where equal ones were seen before", () => {
    const shapeOf = (length: number): number[] => {
      const outcome = session.run({ x: f32(new Array(length).fill(3)) });
      return outcome.ok ? (outcome.value.y!.shape as number[]) : [];
    };
    const first = shapeOf(6);
    expect(first).toEqual([6]);
    // A caller's own: writing to it changes no later run.
    first[0] = 2;
    expect([shapeOf(6), shapeOf(5), shapeOf(101), shapeOf(6)]).toEqual([[6], [5], [], [6]]);
  });

  it("runs concurrent callers one after another", async () => {
    const runs = [3, 5, 9].map((length) => session.runAsync({ x: f32(new Array(length).fill(1)) }));
    const lengths = (await Promise.all(runs)).map((r) => r.ok && r.value.y!.shape[0]);
    expect(lengths).toEqual([3, 5, 9]);
    const factors = [5, 7, 11, 13];
    const found = await Promise.all(
      factors.map((factor) => session.runAsync({ x: f32(new Array(100).fill(factor)) })),
    );
    const wanted = factors.map((f) => Array.from({ length: 100 }, (_, k) => f * (k + 1)));
    expect(found.map((r) => r.ok && [...r.value.y!.data])).toEqual(wanted);
  });

  it("profiles by kernel with the same outputs", () => {
    let tick = 0;
    const profiled = session.profile({ x: f32([4]) }, () => tick++);
    expect(profiled).toMatchObject({
      ok: true,
      value: { kernels: [{ kernel: "k", region: "k" }] },
    });
    expect(profiled.ok && [...profiled.value.outputs.y!.data]).toEqual([4]);
  });

  it("refuses wrong feeds", () => {
    const code = (feeds: Record<string, Tensor>): string => {
      const outcome = session.run(feeds);
      return outcome.ok ? "ok" : outcome.diagnostics.map((d) => d.code).join(" ");
    };
    expect(code({})).toBe("RUN012");
    expect(code({ x: f32([1]), q: f32([1]) })).toBe("RUN011");
    expect(code({ x: { dtype: "i32", shape: [1], data: Int32Array.of(1) } })).toBe("RUN013");
    expect(code({ x: f32(new Array(101).fill(0)) })).toBe("RUN015");
  });
});

it.each([1, 2])("asks for huge pages before weights are there (%i threads)", async (threads) => {
  const asked: number[] = [];
  const hugePages = () => (bytes: Uint8Array) => {
    expect(bytes.every((byte) => byte === 0)).toBe(true);
    asked.push(bytes.length);
    return false;
  };
  const created = createWasmSession(program, {
    threads,
    features: probeWasmFeatures(),
    host: { ...nodeWorkerHost, hugePages },
    weight: () => f32(new Array(100).fill(3)),
  });
  const session = created.ok ? created.value : undefined;
  expect(asked).toEqual([65536]);
  const outcome = session!.run({ x: f32([4]) });
  expect(outcome.ok && [...outcome.value.y!.data]).toEqual([12]);
  await session!.dispose();
});

it("profiles kernels in loops by launch", async () => {
  const repeated: Program = {
    ...program,
    tasks: [
      {
        kind: "repeat",
        variable: "r",
        count: constant(3),
        tables: [],
        body: program.tasks,
      },
    ],
  };
  const created = createWasmSession(repeated, {
    threads: 1,
    features: probeWasmFeatures(),
    host: nodeWorkerHost,
    weight: () => f32(new Array(100).fill(1)),
  });
  const session = created.ok ? created.value : undefined;
  const profiled = session!.profile({ x: f32([4]) }, () => 0);
  expect(profiled.ok && profiled.value.kernels.map((k) => k.kernel)).toEqual(["k", "k", "k"]);
  expect(profiled.ok && [...profiled.value.outputs.y!.data]).toEqual([4]);
  await session!.dispose();
});
