/** Rotary embeddings on a machine of blocks: one kernel each, proved, and what the oracle says in the interpreter. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { type ModelSpec, type NodeSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import {
  fromRef,
  numbersOf,
  randomTensor,
  type Tensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

type Float = "f32" | "f16";

interface Given {
  readonly dtype: Float;
  readonly interleaved: boolean;
  /** 0: the whole head. */
  readonly rotaryDims: number;
  /** Angles are picked by the positions of tokens, or given for each. */
  readonly picked: boolean;
}

const [batch, tokens, heads, depth, positions] = [2, 5, 3, 32, 40];
const target = targets.get("h200")!;

function modelOf({ dtype, interleaved, rotaryDims, picked }: Given): Omit<ModelSpec, "name"> {
  const half = (rotaryDims || depth) / 2;
  const table = picked ? [positions, half] : [batch, tokens, half];
  const node: NodeSpec = {
    op: "RotaryEmbedding",
    inputs: ["x", "cos", "sin", ...(picked ? ["at"] : [])],
    outputs: ["y"],
    attributes: {
      num_heads: BigInt(heads),
      interleaved: interleaved ? 1n : 0n,
      rotary_embedding_dim: BigInt(rotaryDims),
    },
  };
  return {
    opset: 23,
    inputs: [
      { name: "x", dtype, shape: [batch, tokens, heads * depth] },
      ...["cos", "sin"].map((name) => ({ name, dtype, shape: table })),
      ...(picked ? [{ name: "at", dtype: "i64", shape: [batch, tokens] } as const] : []),
    ],
    outputs: ["y"],
    weights: {},
    nodes: [node],
  };
}

const at: Tensor = {
  dtype: "i64",
  shape: [batch, tokens],
  data: BigInt64Array.from({ length: batch * tokens }, (_, i) => BigInt((7 * i) % positions)),
};

const all: readonly Given[] = (["f32", "f16"] as const).flatMap((dtype) =>
  [false, true].flatMap((interleaved) =>
    [0, 16, 20].flatMap((rotaryDims) =>
      [false, true].map((picked) => ({ dtype, interleaved, rotaryDims, picked })),
    ),
  ),
);

describe("rotary embedding on blocks", () => {
  it.each(all)("$dtype interleaved $interleaved, $rotaryDims, picked $picked", (given) => {
    const model = take(importOnnx(writeModel({ name: "rotary", ...modelOf(given) }), {}));
    const { plan } = take(compileModel(model, { target }));
    // Ten elements are half of what is turned of halves, and no part of the twelve that are left.
    const isUneven = given.rotaryDims === 20 && !given.interleaved;
    expect(plan.program.kernels.length).toBeLessThanOrEqual(isUneven ? 3 : 1);
    const { machine } = target;
    if (machine?.kind !== "gpu") throw new Error("no GPU");
    take(emitPtx(plan.program, machine.architecture));
    const rng = new Rng(3);
    const tensors = new Map<string, Tensor>();
    for (const { name, shape } of modelOf(given).inputs) {
      tensors.set(name, name === "at" ? at : randomTensor(given.dtype, shape as number[], rng));
    }
    const contents = new Map(
      [...tensors].map(([name, { data }]) => {
        const { buffer, byteOffset, byteLength } = data;
        return [name, new Uint8Array(buffer, byteOffset, byteLength)] as const;
      }),
    );
    const run = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 1 });
    if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
    const bytes = run.contents.get("y")!;
    const raw = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const shape = [batch, tokens, heads * depth];
    const data = given.dtype === "f32" ? new Float32Array(raw) : new Uint16Array(raw);
    const found = numbersOf(toRef({ dtype: given.dtype, shape, data }));
    const [want] = take(runGraph(model.graph, [...tensors.values()].map(toRef)));
    const unit = given.dtype === "f32" ? 2 ** -22 : 2 ** -9;
    numbersOf(want!).forEach((value, i) => {
      expect(Math.abs(found[i]! - value)).toBeLessThanOrEqual(unit * Math.max(1, Math.abs(value)));
    });
    expect(fromRef(want!).shape).toEqual(shape);
  });
});
