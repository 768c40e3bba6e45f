/**
 * Networks that join all that they have made for each layer, as exporters write them (every map listed again) and
 * nested: against the oracle on processors, and that no map is copied more than once.
 */
import { describe, expect, it } from "vitest";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Model, ValueId } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { distanceOf } from "../../src/interp/approximate.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { toIndex } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  randomRef,
  type Tensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { diagnostic, fail } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { processors, unwrap } from "./on-processors.ts";

interface Dense {
  readonly batch?: number;
  readonly channels: number;
  readonly growth: number;
  readonly layers: number;
  readonly size: number;
  /** How a layer's operand is written. */
  readonly form: "listed" | "nested";
  /** New maps stand behind the others, or in front of them. */
  readonly side?: "behind" | "front";
  /** Layers read the join itself, with nothing between them and it. */
  readonly bare?: boolean;
  /** Height, of which only the range is known. */
  readonly open?: boolean;
  /** A join in the middle is a result too. */
  readonly shown?: boolean;
}

function denseNet(net: Dense, rng: Rng): Model {
  const { batch = 1, channels, growth, layers, size, form, side = "behind" } = net;
  const b = new GraphBuilder("dense");
  const tall = net.open ? b.symbol("N", 1, 12) : toIndex(size);
  const x = b.input("x", {
    dtype: "f32",
    shape: [...[batch, channels].map(toIndex), tall, toIndex(size)],
  });
  const weights = (shape: readonly number[], terms: number): ValueId => {
    const count = shape.reduce((p, n) => p * n, 1);
    const data = Float32Array.from({ length: count }, () => rng.normal() / Math.sqrt(terms));
    return b.constant({ dtype: "f32", shape, data });
  };
  const maps: ValueId[] = [b.apply("relu", x)];
  let joined = maps[0]!;
  const results: ValueId[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const count = channels + layer * growth;
    const scaled = b.mul(joined, weights([count, 1, 1], 1));
    const operand = net.bare ? joined : b.apply("relu", b.add(scaled, weights([count, 1, 1], 4)));
    const window = {
      strides: [1, 1],
      dilations: [1, 1],
      padLow: [1, 1],
      padHigh: [1, 1],
      groups: 1,
    };
    const made = b.node(
      "convolution",
      [operand, weights([growth, count, 3, 3], 9 * count)],
      window,
    );
    const all = side === "behind" ? [...maps, made] : [made, ...maps];
    const pair = side === "behind" ? [joined, made] : [made, joined];
    maps.splice(0, maps.length, ...all);
    joined = b.concat(form === "listed" ? all : pair, 1);
    if (net.shown && layer === 1) results.push(b.apply("tanh", joined), joined);
  }
  const sums = b.reduce("sum", b.apply("relu", joined), [2, 3], false);
  const graph = b.finish([sums, ...results]);
  const stored = new Map<string, Tensor>(b.storedConstants);
  return { graph, weights: { read: (key) => stored.get(key)! } };
}

function expectClose(how: string, found: readonly RefTensor[], want: readonly RefTensor[]): void {
  for (const [i, tensor] of want.entries()) {
    const [a, b] = [numbersOf(found[i]!), numbersOf(tensor)];
    const worst = b.findIndex((x, at) => !(distanceOf(a[at]!, x) <= 1e-4 * (1 + Math.abs(x))));
    expect({ how, worst, is: a[worst] }).toEqual({ how, worst: -1, is: undefined });
  }
}

/** Regions that do nothing but copy. */
function copies({ regions }: CompiledModel): number {
  return regions.filter(({ scheduled: { region } }) =>
    region.statements.every((s) => !s.reduction && !s.finish && s.body[0]?.kind === "argument"),
  ).length;
}

const base = { channels: 16, growth: 16, layers: 3, size: 4, form: "listed" } as const;

describe.each(processors)("joins that grow, on %s", (name) => {
  const check = async (net: Dense): Promise<number> => {
    const rng = new Rng(7);
    const model = denseNet(net, rng);
    const shape = [net.batch ?? 1, net.channels, net.open ? 3 : net.size, net.size];
    const input = randomRef("f32", shape, rng);
    for (let i = 0; i < input.data.length; i++) input.data[i] = rng.normal();
    const target = targets.get(name)!;
    const made = compileModel(model, { target });
    const compiled = unwrap(made);
    expect(made.ok && made.warnings).toEqual([]);
    const { nests, plan } = compiled;
    if (!runnableTargets().names.includes(name)) return copies(compiled);
    const want = unwrap(runGraph(model.graph, [input], model.weights));
    const options = { threads: rng.integer(1, 2), weight: weightReader(compiled.model) };
    const session = unwrap(createSession(plan.program, target, options));
    const outputs = unwrap(session.run({ x: fromRef(input) }));
    const found = nests.outputs.map((o) => toRef(outputs[o]!));
    expectClose(`${name} ${JSON.stringify(net)}`, found, want);
    await session.dispose();
    return copies(compiled);
  };

  it("copy no map again, listed and nested, of one picture and of several", async () => {
    // The first of all is copied, or written where it is joined.
    expect(await check(base)).toBeLessThanOrEqual(1);
    expect(await check({ ...base, form: "nested" })).toBeLessThanOrEqual(1);
    expect(await check({ ...base, batch: 2 })).toBeLessThanOrEqual(1);
    expect(await check({ ...base, open: true })).toBeLessThanOrEqual(1);
  });

  it("are right of channels that fill no vectors, with new maps in front, or read as they are", async () => {
    await check({ ...base, channels: 5, growth: 3 });
    await check({ ...base, channels: 8, growth: 4, batch: 3 });
    await check({ ...base, side: "front" });
    await check({ ...base, side: "front", form: "nested", channels: 3, growth: 5 });
    await check({ ...base, bare: true });
    await check({ ...base, bare: true, form: "nested", channels: 12, growth: 7 });
  });

  it("stay apart where one is a result of its own", async () => {
    await check({ ...base, shown: true });
    await check({ ...base, shown: true, form: "nested", channels: 20, growth: 12 });
  });
});

it("are copied, and told of, where sharing them is not proved", () => {
  const target = targets.get("wasm")!;
  const model = denseNet(base, new Rng(7));
  const shared = unwrap(compileModel(model, { target })).plan.program.kernels.length;
  let refused = 0;
  const prove: typeof validateProgram = (program, proofs) => {
    if (program.kernels.length > shared) return validateProgram(program, proofs);
    refused++;
    return fail(diagnostic("PRG021", "a read of what may not be written"));
  };
  const made = compileModel(model, { target, prove });
  expect(refused).toBeGreaterThan(0);
  expect(made.ok && made.warnings.map((w) => w.code)).toEqual(["SCH032"]);
  expect(copies(unwrap(made))).toBeGreaterThan(1);
});
