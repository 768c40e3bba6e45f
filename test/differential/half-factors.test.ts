/**
 * Products by stored weights of half precision, where targets keep these so in memory: machine code against
 * float64 over rows of a range, ragged columns, subnormal and large weights; and tiles that share what they widen
 * among their rows.
 */
import { describe, expect, it } from "vitest";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Model } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { runProgram } from "../../src/interp/program.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { constant, variable } from "../../src/semantics/index-expr.ts";
import { packTensor } from "../../src/semantics/layout.ts";
import { fromRef, numbersOf, refTensor, tensorBytes, toRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

type Half = "f16" | "bf16";

const [depth, columns, mostRows] = [48, 70, 40];
/** Subnormal ones, large ones and zero. */
const specials: Readonly<Record<Half, readonly number[]>> = {
  f16: [2 ** -24, -3 * 2 ** -20, 65_504, 0],
  bf16: [2 ** -120, 2 ** 40, -(2 ** 30), 0],
};

const pairs = "x64-avx512-bf16";
const x64 = [pairs, "x64-avx512-vnni", "x64-avx512", "x64-avx2"];
const machines = [...x64, "wasm"].map((name) => ({
  name,
  runsHere: runnableTargets().names.includes(name),
}));

/** -x w: rows of halves, as many as there are, by stored weights. */
function model(dtype: Half): Model {
  const b = new GraphBuilder("halves");
  b.symbol("rows", 1, mostRows);
  const x = b.input("x", { dtype, shape: [variable("rows"), constant(depth)] });
  const w = b.weight("w", { dtype, shape: [constant(depth), constant(columns)] }, "stored");
  const graph = b.finish([b.matMul(b.apply("neg", x), w, "f32")]);
  return { graph, weights: { read: () => weightsOf(dtype) } };
}

function weightsOf(dtype: Half) {
  const rng = new Rng(5);
  const values = Array.from({ length: depth * columns }, () => rng.normal());
  for (const [i, value] of specials[dtype].entries()) values[37 * i + 11] = value;
  return fromRef(refTensor(dtype, [depth, columns], values));
}

function compiled(dtype: Half, target: string) {
  return unwrap(compileModel(model(dtype), { target: targets.get(target)! }));
}

describe.each(["f16", "bf16"] as const)("products by weights of %s", (dtype) => {
  const weights = numbersOf(toRef(weightsOf(dtype)));

  for (const { name, runsHere } of machines) {
    it.skipIf(!runsHere)(`agree with float64 on ${name}`, async () => {
      const { model: made, plan } = compiled(dtype, name);
      const options = { weight: weightReader(made), threads: 1 };
      const session = unwrap(createSession(plan.program, targets.get(name)!, options));
      const rng = new Rng(8);
      for (const rows of [1, 2, 7, mostRows]) {
        const draw = Array.from({ length: rows * depth }, () => rng.normal());
        const x = fromRef(refTensor(dtype, [rows, depth], draw));
        session.poison();
        const [y] = Object.values(unwrap(session.run({ x })));
        expectProducts(numbersOf(toRef(y!)), numbersOf(toRef(x)), weights);
      }
      await session.dispose();
    });
  }

  it.each(x64)("stay narrow in memory on %s, and rows share what is widened", (name) => {
    const text = printProgram(compiled(dtype, name).plan.program);
    expect(text).toContain(`weight memory ${dtype}`);
    expect(text).toMatch(new RegExp(`= load\\.${dtype}x`));
    const rows = [...text.matchAll(/scratch register f32x\d+ \[(\d+)/g)].map((m) => Number(m[1]));
    expect(Math.max(...rows)).toBeGreaterThanOrEqual(4);
  });

  it("are widened once, before the program runs, in WebAssembly", () => {
    expect(printProgram(compiled(dtype, "wasm").plan.program)).not.toContain(
      `weight memory ${dtype}`,
    );
  });
});

describe("products of two bf16 by the instruction for pairs", () => {
  const program = compiled("bf16", pairs).plan.program;

  it("are chosen, and the data are bf16", () => {
    const text = printProgram(program);
    expect(text).toContain("vdpbf16ps.f32x16(");
    expect(text).toContain("splat.32(load.bf16x2");
    expect(printProgram(compiled("f16", pairs).plan.program)).not.toContain("vdpbf16ps");
  });

  it("mean what the interpreter of programs computes", () => {
    const rows = 3;
    const rng = new Rng(9);
    const draw = Array.from({ length: rows * depth }, () => rng.normal());
    const x = fromRef(refTensor("bf16", [rows, depth], draw));
    const of = (kind: string) => program.buffers.find((b) => b.kind === kind)!;
    const weight = of("weight");
    const stored = weight.layout ? packTensor(weightsOf("bf16"), weight.layout) : weightsOf("bf16");
    const contents = new Map([
      [of("input").name, tensorBytes(x)],
      [weight.name, tensorBytes(stored)],
    ]);
    const outcome = runProgram(program, { parameters: { rows }, contents, threads: 1, seed: 2 });
    if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
    const bytes = outcome.contents.get(of("output").name)!;
    const y = Float64Array.from(new Float32Array(bytes.buffer, bytes.byteOffset, rows * columns));
    expectProducts(y, numbersOf(toRef(x)), numbersOf(toRef(weightsOf("bf16"))));
  });
});

/** Sums in f32: within the rounding of their terms' sizes. */
function expectProducts(y: Float64Array, x: Float64Array, w: Float64Array): void {
  for (let i = 0; i < y.length; i++) {
    let [sum, size] = [0, 0];
    for (let k = 0; k < depth; k++) {
      const term = x[Math.floor(i / columns) * depth + k]! * w[k * columns + (i % columns)]!;
      sum -= term;
      size += Math.abs(term);
    }
    expect(Math.abs(y[i]! - sum), `element ${i}`).toBeLessThanOrEqual(depth * 2 ** -24 * size);
  }
}
