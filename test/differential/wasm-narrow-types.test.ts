/**
 * Elements of at most 8 bits in WebAssembly against the oracle: every value of a format, halfway
 * points, infinities and NaN, to and from f32; elements below a byte at odd lengths.
 */
import { describe, expect, test } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { allDTypes, type DType, dtypes } from "../../src/semantics/dtype.ts";
import {
  fromRef,
  indicesOf,
  type RefTensor,
  refTensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { targets } from "../../src/target/index.ts";

const narrow = allDTypes.filter((d) => dtypes[d].bits <= 8 && d !== "bool");

/** Numbers around everything that the type can hold, and what it cannot. */
function probes(dtype: DType): number[] {
  const { kind, max, min, format } = dtypes[dtype];
  const specials = [0, -0, Number.NaN, Infinity, -Infinity, 1e-30, -1e-30, 3e38, -3e38, 1, -1, 0.5];
  const edges = [max, min, max * 1.01, min * 1.01, max + 0.5, min - 0.5, max * 2, min * 2];
  const steps = Array.from({ length: 260 }, (_, i) => {
    if (kind === "exponent") return 1.5 ** (i - 130);
    if (format) return (i % 2 ? -1 : 1) * 2 ** ((i % 40) - 20) * (1 + (i % 33) / 32);
    return i / 2 - 65;
  });
  return [...specials, ...edges, ...steps].map(Math.fround);
}

async function runBoth(from: DType, to: DType, saturate: boolean, x: RefTensor) {
  const builder = new GraphBuilder("cast");
  const input = builder.input("x", tensorType(from, ...x.shape));
  const output = builder.node("cast", [input], { to, saturate });
  const graph = builder.finish([output]);
  const expected = runGraph(graph, [x]);
  const compiled = compileModel({ graph, weights: noWeights }, { target: targets.get("wasm")! });
  if (!expected.ok || !compiled.ok) throw new Error(JSON.stringify([expected, compiled]));
  const { model, nests, plan } = compiled.value;
  const features = { ...probeWasmFeatures(), threads: false };
  const options = { weight: weightReader(model), threads: 1, features, host: nodeWorkerHost };
  const session = createWasmSession(plan.program, options);
  if (!session.ok) throw new Error(JSON.stringify(session));
  session.value.poison();
  const found = session.value.run({ x: fromRef(x) });
  if (!found.ok) throw new Error(JSON.stringify(found));
  const result = toRef(found.value[nests.outputs[0]!]!);
  await session.value.dispose();
  return [[...indicesOf(result)], [...indicesOf(expected.value[0]!)]] as const;
}

describe.each(narrow)("%s", (dtype) => {
  test.each([true, false])("from f32, saturating %s", async (saturate) => {
    const finite = (x: number) => Number.isFinite(x) && Math.abs(x) < 2 ** 31;
    const values =
      dtypes[dtype].format || dtype === "e8m0" ? probes(dtype) : probes(dtype).filter(finite);
    const x = refTensor("f32", [values.length], values);
    const [found, expected] = await runBoth("f32", dtype, saturate, x);
    expect(found).toEqual(expected);
  });

  test.each([37, 256])("to f32, %i elements", async (count) => {
    const all = probes(dtype).map((x) => (Number.isFinite(x) && Math.abs(x) < 2 ** 31 ? x : 1));
    const given = refTensor("f32", [count], all.slice(0, count));
    const start = runGraph(castGraph("f32", dtype, count), [given]);
    if (!start.ok) throw new Error("cast");
    const [found, expected] = await runBoth(dtype, "f32", false, start.value[0]!);
    expect(found).toEqual(expected);
  });
});

function castGraph(from: DType, to: DType, count: number) {
  const builder = new GraphBuilder("cast");
  const input = builder.input("x", tensorType(from, count));
  return builder.finish([builder.node("cast", [input], { to, saturate: true })]);
}

test("a weight of four bits that alone is read from its memory", async () => {
  const builder = new GraphBuilder("packed");
  const at = builder.input("at", tensorType("i64", 3));
  const codes = refTensor(
    "u4",
    [64, 512],
    Array.from({ length: 64 * 512 }, (_, i) => (i * 7) % 16),
  );
  const table = builder.weight("codes", tensorType("u4", 64, 512));
  const rows = builder.node("gather", [table, at], { axis: 0 });
  const graph = builder.finish([builder.node("cast", [rows], { to: "f32", saturate: false })]);
  const weights = { read: () => fromRef(codes) };
  const picked = refTensor("i64", [3], [5, 0, 63]);
  const expected = runGraph(graph, [picked], weights);
  const compiled = compileModel({ graph, weights }, { target: targets.get("wasm")! });
  if (!expected.ok || !compiled.ok) throw new Error(JSON.stringify([expected, compiled]));
  const { model, nests, plan } = compiled.value;
  const features = { ...probeWasmFeatures(), threads: false };
  const options = { weight: weightReader(model), threads: 1, features, host: nodeWorkerHost };
  const session = createWasmSession(plan.program, options);
  if (!session.ok) throw new Error(JSON.stringify(session));
  const found = session.value.run({ at: fromRef(picked) });
  if (!found.ok) throw new Error(JSON.stringify(found));
  expect(found.value[nests.outputs[0]!]!.data).toEqual(fromRef(expected.value[0]!).data);
  await session.value.dispose();
});
