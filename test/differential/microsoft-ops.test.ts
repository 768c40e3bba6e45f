/** Operators of com.microsoft: oracle and WebAssembly against onnxruntime-node on random inputs. */
import { expect, test } from "vitest";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { ortNodeRuntime } from "../../bench/sessions/ort-node.ts";
import type { Tensor, Tensors } from "../../bench/sessions/session.ts";
import { fromStored } from "../../bench/sessions/stored-tensors.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { type ValueSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { fromRef, refTensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { microsoftCases, type OperandSpec, type OutputSpec } from "./microsoft-cases.ts";

const named = microsoftCases.map((c, i) => [c.node.op, i] as const);

test.each(named)("%s (%i)", async (_op, i) => {
  const {
    node,
    operands,
    outputs = [["y", "f32"] as const],
    compared,
    tolerance = 2e-5,
  } = microsoftCases[i]!;
  const rng = new Rng(i);
  const specs = operands.map((o) => (o && "shape" in o ? o : o && { shape: o }));
  const tensors = specs.map((spec) => spec && filled(spec, rng));
  const names = specs.map((spec, o) => (spec ? `x${o}` : ""));
  const inputs = specs.flatMap((spec, o): ValueSpec[] =>
    spec && !spec.weight
      ? [{ name: names[o]!, dtype: spec.dtype ?? "f32", shape: spec.shape }]
      : [],
  );
  const weights = Object.fromEntries(
    tensors.flatMap((tensor, o) => (tensor && specs[o]!.weight ? [[names[o]!, tensor]] : [])),
  );
  const bytes = writeModel({
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs,
    weights,
    outputs: outputs.flatMap((o) => (o ? [unknownExtents(o, specs[0]!.shape.length)] : [])),
    nodes: [
      {
        domain: "com.microsoft",
        ...node,
        inputs: names,
        outputs: outputs.map((o) => o?.[0] ?? ""),
      },
    ],
  });
  const feeds: Tensors = Object.fromEntries(
    inputs.map(({ name }): [string, Tensor] => [name, fromStored(tensors[names.indexOf(name)]!)]),
  );
  const [theirs, ...ours] = await Promise.all(
    [ortNodeRuntime(1), oracleRuntime, wavetileRuntime("wasm", 1)].map(async (runtime) => {
      const session = await runtime.open(bytes);
      const found = await session.run(feeds);
      await session.release();
      const names = compared ?? Object.keys(found);
      return Object.fromEntries(names.map((name) => [name, found[name]!]));
    }),
  );
  for (const found of ours) {
    const steps = outputs.some((o) => o?.[1] === "u8");
    if (steps) expect(worstSteps(found, theirs!)).toBeLessThanOrEqual(1);
    else expect(worstDifference(found, theirs!)).toBeLessThanOrEqual(tolerance);
  }
});

function filled({ shape, dtype = "f32", values, range }: OperandSpec, rng: Rng) {
  const count = shape.reduce((a, b) => a * b, 1);
  const draw = (): number => {
    if (!range) return rng.normal();
    const value = range[0] + (range[1] - range[0]) * rng.uniform();
    return dtype === "f32" ? value : Math.round(value);
  };
  return fromRef(refTensor(dtype, shape, values ?? Array.from({ length: count }, draw)));
}

/** Extents that onnxruntime infers itself. */
function unknownExtents([name, dtype, rank]: OutputSpec, otherwise: number): ValueSpec {
  return { name, dtype, shape: new Array<null>(rank ?? otherwise).fill(null) };
}

function worstSteps(ours: Tensors, theirs: Tensors): number {
  const apart = Object.entries(theirs).flatMap(([name, { data }]) =>
    Array.from(data as ArrayLike<unknown>, (value, i) =>
      Math.abs(Number(value) - Number(ours[name]!.data[i])),
    ),
  );
  return Math.max(...apart);
}
