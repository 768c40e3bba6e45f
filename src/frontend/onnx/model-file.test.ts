import { toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes, type DType } from "../../semantics/dtype.ts";
import { fromRef, randomTensor, refTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { attempt } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { type TensorProto, TensorProtoSchema } from "./generated/onnx_pb.ts";
import { readModelFile, readTensorFile } from "./model-file.ts";
import { type ModelSpec, writeModel } from "./model-writer.ts";
import { readTensorProto, writeExternalTensorProto, writeTensorProto } from "./tensor-proto.ts";
import { defaultModelLimits } from "./wire-limits.ts";

const small: ModelSpec = {
  opset: 17,
  inputs: [{ name: "x", dtype: "f32", shape: ["N", 3, null] }],
  outputs: [{ name: "y", dtype: "f32", shape: ["N", 3, null] }],
  weights: { w: fromRef(refTensor("f32", [3, 1], [1, 2, 3])) },
  nodes: [
    { op: "Mul", inputs: ["x", "w"], outputs: ["t"] },
    { op: "LeakyRelu", inputs: ["t"], outputs: ["y"], attributes: { alpha: 0.5 } },
  ],
};

function codesOf(result: ReturnType<typeof attempt>): readonly string[] {
  return result.ok ? [] : result.diagnostics.map((d) => d.code);
}

function read(proto: TensorProto): Tensor {
  const back = readTensorProto(proto, "test");
  if (back.kind !== "inline") throw new Error("expected inline contents");
  return back.tensor;
}

describe("readModelFile", () => {
  it("reads what the writer wrote", () => {
    const result = readModelFile(writeModel(small));
    if (!result.ok) throw new Error("expected a model");
    const graph = result.value.graph!;
    expect(graph.node.map((n) => [n.opType, n.input, n.output])).toEqual([
      ["Mul", ["x", "w"], ["t"]],
      ["LeakyRelu", ["t"], ["y"]],
    ]);
    expect(graph.node[1]!.attribute[0]).toMatchObject({ name: "alpha", f: 0.5 });
    expect([...read(graph.initializer[0]!).data]).toEqual([1, 2, 3]);
  });

  it("refuses bytes that are no model with ONX001", () => {
    for (const text of ["version https://git-lfs.github.com/spec/v1", "", "\u0008"]) {
      expect(codesOf(readModelFile(new TextEncoder().encode(text)))).toEqual(["ONX001"]);
    }
  });

  it("refuses models beyond each limit with ONX002", () => {
    const bytes = writeModel(small);
    for (const limit of [{ bytes: 10 }, { messages: 5 }, { items: 3 }, { depth: 2 }]) {
      const result = readModelFile(bytes, { ...defaultModelLimits, ...limit });
      expect(codesOf(result)).toEqual(["ONX002"]);
    }
  });

  it("refuses small files that would decode to a huge object", () => {
    // graph { node {} node {} … }: two bytes a node.
    const count = 5_000_000;
    const bytes = new Uint8Array(5 + 2 * count);
    for (let i = 5; i < bytes.length; i += 2) bytes[i] = 0x0a;
    let length = 2 * count;
    bytes[0] = 0x3a;
    for (let i = 1; i < 5; i++, length >>>= 7) bytes[i] = (length & 127) | (i < 4 ? 128 : 0);
    expect(codesOf(readModelFile(bytes))).toEqual(["ONX002"]);
  });

  it("never throws on random bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        readModelFile(bytes);
        readTensorFile(bytes);
      }),
    );
  });

  it("never throws on mutations of a small model", () => {
    const original = writeModel(small);
    const mutation = fc.record({
      at: fc.nat(original.length - 1),
      to: fc.nat(255),
      cut: fc.nat(9),
    });
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
        let bytes = original.slice();
        for (const { at, to, cut } of mutations) {
          bytes[at] = to;
          if (cut === 0) bytes = bytes.subarray(0, at);
        }
        const result = readModelFile(bytes);
        if (result.ok) for (const t of result.value.graph!.initializer) attempt(() => read(t));
      }),
      { numRuns: 500 },
    );
  });
});

describe("readTensorProto", () => {
  it("gives back every dtype written as raw data", () => {
    for (const dtype of allDTypes) {
      const tensor = randomTensor(dtype, [3, 5], new Rng(7));
      const bytes = toBinary(TensorProtoSchema, writeTensorProto("t", tensor));
      const proto = readTensorFile(bytes);
      if (!proto.ok) throw new Error("expected a tensor");
      expect(read(proto.value)).toEqual(tensor);
    }
  });

  it("views aligned raw data and copies unaligned", () => {
    const tensor = randomTensor("f32", [4], new Rng(1));
    const proto = writeTensorProto("t", tensor);
    expect(read(proto).data.buffer).toBe(tensor.data.buffer);
    const shifted = new Uint8Array(17);
    shifted.set(proto.rawData, 1);
    expect(read({ ...proto, rawData: shifted.subarray(1) })).toEqual(tensor);
    const buffer = Buffer.from(shifted.buffer).subarray(1);
    expect(read({ ...proto, rawData: buffer })).toEqual(tensor);
  });

  it("reads the typed lists", () => {
    const list = (dtype: DType, fields: Partial<TensorProto>): number[] => {
      const proto = writeTensorProto("t", fromRef(refTensor(dtype, [2], [1, 1])));
      const values = toRef(read({ ...proto, rawData: new Uint8Array(0), ...fields })).data;
      return Array.from(values as Float64Array, Number);
    };
    expect(list("f32", { floatData: [0.5, -2] })).toEqual([0.5, -2]);
    expect(list("f64", { doubleData: [0.1, -2] })).toEqual([0.1, -2]);
    expect(list("i64", { int64Data: [-5n, 7n] })).toEqual([-5, 7]);
    expect(list("u64", { uint64Data: [5n, 7n] })).toEqual([5, 7]);
    expect(list("u32", { uint64Data: [5n, 4294967295n] })).toEqual([5, 4294967295]);
    expect(list("i8", { int32Data: [-5, 7] })).toEqual([-5, 7]);
    expect(list("f16", { int32Data: [0x3c00, 0xc000] })).toEqual([1, -2]);
    expect(list("bf16", { int32Data: [0x3f80, 0xc000] })).toEqual([1, -2]);
    expect(list("bool", { int32Data: [2, 0] })).toEqual([1, 0]);
    expect(list("i4", { int32Data: [0xf3] })).toEqual([3, -1]);
    expect(list("f4e2m1", { int32Data: [0x42] })).toEqual([1, 2]);
  });

  it("normalises raw bools", () => {
    const proto = writeTensorProto("t", fromRef(refTensor("bool", [2], [1, 1])));
    expect([...read({ ...proto, rawData: Uint8Array.of(0, 255) }).data]).toEqual([0, 1]);
  });

  it("refuses what does not fit", () => {
    const proto = writeTensorProto("t", fromRef(refTensor("f32", [2], [1, 1])));
    const code = (fields: Partial<TensorProto>) =>
      codesOf(attempt(() => readTensorProto({ ...proto, ...fields }, "test")));
    expect(code({ dataType: 8 })).toEqual(["ONX003"]);
    expect(code({ dataType: 99 })).toEqual(["ONX003"]);
    expect(code({ dims: [-1n] })).toEqual(["ONX004"]);
    expect(code({ dims: [2n ** 40n, 2n ** 40n] })).toEqual(["ONX004"]);
    expect(code({ dims: [3n] })).toEqual(["ONX005"]);
    expect(code({ rawData: new Uint8Array(0), floatData: [1] })).toEqual(["ONX005"]);
  });

  it("keeps external data as a byte range and judges its path", () => {
    const type = { dtype: "f32" as const, shape: [2] };
    const external = (location: string, extra: { offset?: number; length?: number } = {}) =>
      attempt(() =>
        readTensorProto(
          writeExternalTensorProto("t", type, { location, offset: 4096, ...extra }),
          "test",
        ),
      );
    expect(external("data/w.bin")).toMatchObject({
      value: { kind: "external", range: { location: "data/w.bin", offset: 4096, length: 8 } },
    });
    expect(codesOf(external("w.bin", { length: 9 }))).toEqual(["ONX005"]);
    expect(codesOf(external("w.bin", { offset: -1 }))).toEqual(["ONX005"]);
    const bad = ["", "/etc/passwd", "../w", "a/../../w", "a//b", "./w", "a\\b", "C:/w", "a\0b"];
    for (const path of [...bad, "file:w", "https://x/y"]) {
      expect([path, codesOf(external(path))]).toEqual([path, ["ONX006"]]);
    }
  });
});
