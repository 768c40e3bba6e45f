/** Passes over memory that are left in programs: that each is told of, and why, from what was decided. */
import { describe, expect, it } from "vitest";
import { randomGraph } from "../campaign/random-graph.ts";
import { type CompiledModel, compileModel } from "./compile.ts";
import { GraphBuilder } from "./graph/builder.ts";
import type { Model, ValueId } from "./graph/graph.ts";
import { randomGraph as randomMap } from "./graph/random-graph.ts";
import { tensorType } from "./graph/tensor-type.ts";
import type { MemoryPass, PassReason } from "./region/passes.ts";
import type { Tensor } from "./semantics/tensor.ts";
import { targets } from "./target/index.ts";

/** Inputs, and weights of ones. */
class Net {
  readonly b = new GraphBuilder("net");
  readonly #weights = new Map<string, Tensor>();
  #inputs = 0;

  input(...shape: readonly number[]): ValueId {
    return this.b.input(`x${this.#inputs++}`, tensorType("f32", ...shape));
  }

  weight(name: string, ...shape: readonly number[]): ValueId {
    const data = new Float32Array(shape.reduce((n, e) => n * e, 1)).fill(1);
    this.#weights.set(name, { dtype: "f32", shape, data });
    return this.b.weight(name, tensorType("f32", ...shape));
  }

  turned(x: ValueId, ...permutation: readonly number[]): ValueId {
    return this.b.nodes("transpose", [x], { permutation })[0]!;
  }

  convolved(x: ValueId, w: ValueId): ValueId {
    const attributes = { strides: [1, 1], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1] };
    return this.b.nodes("convolution", [x, w], { ...attributes, groups: 1 })[0]!;
  }

  model(...outputs: readonly ValueId[]): Model {
    const graph = this.b.finish([...outputs]);
    return { graph, weights: { read: (key) => this.#weights.get(key)! } };
  }
}

function compiled(model: Model, target: string): CompiledModel {
  const made = compileModel(model, { target: targets.get(target)! });
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  return made.value;
}

function passesOf(model: Model, target = "x64-avx512"): readonly MemoryPass[] {
  return compiled(model, target).passes;
}

const kindsOf = ({ why }: MemoryPass, side?: PassReason["side"]): readonly string[] =>
  why.filter((w) => side === undefined || w.side === side).map((w) => w.kind);

describe("a pass over memory that is left", () => {
  it("is told to be between the caller's tensors", () => {
    const n = new Net();
    const x = n.input(8, 64);
    const [pass, ...others] = passesOf(n.model(n.b.apply("exp", x)));
    expect(others).toEqual([]);
    expect(pass!.kind).toBe("elementwise");
    expect(kindsOf(pass!, "producer")).toEqual(["input"]);
    expect(kindsOf(pass!, "consumer")).toEqual(["output"]);
  });

  it("is none where a sum takes it, before and behind", () => {
    const n = new Net();
    const x = n.input(2, 32, 64);
    const sum = n.b.matMul(n.turned(x, 1, 0, 2), n.weight("w", 64, 32), "f32");
    expect(passesOf(n.model(n.b.apply("exp", sum)))).toEqual([]);
  });

  it("stands before a product, which takes plain operands", () => {
    const n = new Net();
    const y = n.b.matMul(n.b.apply("exp", n.input(32, 64)), n.weight("w", 64, 32), "f32");
    const [pass] = passesOf(n.model(y));
    expect(pass!.why).toContainEqual(
      expect.objectContaining({
        side: "consumer",
        kind: "reduction",
        reason: "operands of contractions stay plain",
      }),
    );
  });

  it("is wanted by some of its readers alone", () => {
    const n = new Net();
    const a = n.b.apply("neg", n.input(32, 64));
    const largest = n.b.reduce("max", a, [1], false);
    const y = n.b.matMul(a, n.weight("w", 64, 32), "f32");
    const [pass] = passesOf(n.model(largest, y));
    expect(kindsOf(pass!, "consumer").toSorted()).toEqual(["readers", "reduction"]);
    const told = pass!.why.find((w) => w.kind === "readers")!;
    expect(told.reason).toMatch(/^1 of 2 readers would compute it, \S+ does not: operands of/);
  });

  it("costs more to compute where it is read, and the numbers are told", () => {
    const n = new Net();
    const a = n.b.apply("exp", n.input(64, 64));
    const sum = n.b.reduce("sum", a, [0], false);
    const other = n.b.reduce("sum", a, [1], false);
    const [pass] = passesOf(n.model(sum, other));
    const rules = pass!.why.filter((w) => w.kind === "rule");
    expect(rules.length).toBeGreaterThan(0);
    for (const { reason } of rules)
      expect(reason).toMatch(/^computing it again costs \d+ multiply-adds a use, more than 2$/);
  });

  it("repeats what a sum makes, which nothing does behind one", () => {
    const n = new Net();
    const x = n.convolved(n.input(1, 32, 14, 14), n.weight("v", 32, 32, 3, 3));
    const rows = n.b.reshape(n.b.reduce("sum", x, [2, 3], false), [1, 32]);
    const mixed = n.b.matMul(rows, n.weight("u", 32, 32), "f32");
    const scale = n.b.apply("sigmoid", n.b.reshape(mixed, [1, 32, 1, 1]));
    const scaled = n.b.apply("mul", x, scale);
    const y = n.convolved(scaled, n.weight("w", 32, 32, 3, 3));
    const pass = passesOf(n.model(y)).find((p) => p.kind === "elementwise")!;
    expect(kindsOf(pass, "producer")).toEqual(["reduction", "illegal"]);
    const [between, repeated] = pass.why.filter((w) => w.side === "producer");
    expect(between!.reason).toMatch(/^\S+ reads t0 before \S+ ends$/);
    expect(repeated!.reason).toMatch(/^\S+ repeats \S+ along \S+$/);
    expect(kindsOf(pass, "consumer")).toEqual(["reduction"]);
  });
});

describe("prices are told", () => {
  it("of conversions between layouts: as they were chosen, and without", () => {
    const n = new Net();
    const x = n.input(1, 32, 28, 28);
    const first = n.convolved(x, n.weight("v", 32, 32, 3, 3));
    const y = n.convolved(n.b.apply("relu", first), n.weight("w", 32, 32, 3, 3));
    const passes = passesOf(n.model(y));
    expect(passes.map((p) => p.kind).toSorted()).toEqual(["pack", "unpack"]);
    for (const { why } of passes) {
      const [layout] = why;
      expect(layout).toMatchObject({
        kind: "layout",
        reason: expect.stringMatching(/ in blocks of 16 /),
      });
      // What was chosen is the cheapest, whoever gives way.
      expect(layout!.prices!.fusedNs).toBeGreaterThanOrEqual(layout!.prices!.apartNs);
    }
  });

  it("of a fold whose results are turned behind it", () => {
    const n = new Net();
    const sum = n.b.matMul(n.input(96, 64), n.weight("w", 64, 80), "f32");
    const [pass] = passesOf(n.model(n.turned(sum, 1, 0)));
    expect(pass).toMatchObject({
      kind: "turn",
      why: [{ kind: "price" }, { kind: "price" }, { kind: "output" }],
    });
    // As one fold, and as two statements of one loop.
    for (const { prices } of pass!.why.slice(0, 2))
      expect(prices!.apartNs).toBeLessThan(prices!.fusedNs);
  });

  const batches = (n: number): Model => {
    const net = new Net();
    const [x, y] = [net.input(4, n, n), net.input(4, n, n)];
    return net.model(net.b.einsum("b i k, b k j -> b i j", net.b.apply("tanh", x), y));
  };

  it("of one loop that was dearer than its parts", () => {
    const [pass, ...others] = passesOf(batches(128));
    expect(others).toEqual([]);
    const [chain] = pass!.why;
    expect(chain).toMatchObject({ kind: "price", reason: "one loop with S1 is dearer" });
    expect(chain!.prices!.fusedNs).toBeGreaterThan(chain!.prices!.apartNs);
    // Where it is cheaper, there is no pass.
    expect(passesOf(batches(32))).toEqual([]);
  });

  it("of one loop that is cheaper, and is not proved", () => {
    const n = new Net();
    const [q, past, last] = [n.input(12, 1, 64), n.input(12, 63, 64), n.input(12, 1, 64)];
    const [keys] = n.b.nodes("concat", [past, last], { axis: 1 });
    const scores = n.b.einsum("b i k, b j k -> b i j", q, keys!);
    const y = n.b.reduce("max", n.b.apply("exp", scores), [2], true);
    const told = passesOf(n.model(y, keys!)).flatMap((p) => p.why.filter((w) => w.prices));
    expect(told).toMatchObject([{ kind: "illegal", reason: "one loop with S2, S4 is not proved" }]);
    expect(told[0]!.prices!.fusedNs).toBeLessThan(told[0]!.prices!.apartNs);
  });

  it("once for chains that are alike, under the names of each", () => {
    const n = new Net();
    const all = Array.from({ length: 4 }, () => n.input(4, 128, 128));
    const part = (x: ValueId, y: ValueId): ValueId =>
      n.b.einsum("b i k, b k j -> b i j", n.b.apply("tanh", x), y);
    const passes = passesOf(n.model(part(all[0]!, all[1]!), part(all[2]!, all[3]!)));
    expect(passes).toHaveLength(2);
    const [a, b] = passes.map((p) => p.why[0]!);
    expect(b!.prices).toEqual(a!.prices);
    expect(b!.reason).not.toBe(a!.reason);
  });
});

it.each(["x64-avx512", "wasm", "h100"])(
  "all are told of, with a reason for each neighbour that somebody gave, on %s",
  (target) => {
    const weights = { read: (): never => expect.fail("no stored weights") };
    for (let seed = 0; seed < 60; seed++) {
      const graph =
        seed % 2 === 0
          ? randomGraph(seed).graph
          : randomMap({ seed, nodes: 12, symbolic: seed % 4 === 1 });
      const { passes, regions } = compiled({ graph, weights }, target);
      const maps = regions.filter(({ scheduled: { region } }) =>
        region.statements.every(
          (s) =>
            !s.reduction &&
            s.loops.every((l) => l.kind === "space") &&
            s.writes.every((w) => w.combine === "overwrite"),
        ),
      );
      const told = new Set(passes.map((p) => p.region));
      const updates = maps.filter((m) => !told.has(m.name));
      for (const { scheduled } of updates)
        expect(scheduled.region.statements.some((s) => s.indirects.length > 0)).toBe(true);
      for (const pass of passes) {
        expect(pass.why.length, `${seed} ${pass.region}`).toBeGreaterThan(0);
        const untold = pass.why.filter((w) => w.kind === "apart");
        expect(untold, `${seed} ${pass.region}`).toEqual([]);
        for (const { prices } of pass.why.filter((w) => w.prices))
          for (const ns of Object.values(prices!)) expect(Number.isFinite(ns)).toBe(true);
      }
    }
  },
  120_000,
);
