import { toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes, type DType } from "../../semantics/dtype.ts";
import { fromRef, randomTensor, refTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { attempt } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { type TensorProto, TensorProtoSchema } from "./generated/onnx_pb.ts";
import { readModelFile, readTensorFile } from "./model-file.ts";
import { type ModelSpec, writeModel } from "./model-writer.ts";
import { packFloats, packIntegers, readIntegers } from "./packed-list.ts";
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
    for (const limit of [{ bytes: 10 }, { memory: 2000 }, { depth: 2 }]) {
      const result = readModelFile(bytes, { ...defaultModelLimits, ...limit });
      expect(codesOf(result)).toEqual(["ONX002"]);
    }
  });

  it("refuses small files that would decode to a huge object", () => {
    // graph { node {} node {} … }: two bytes a node.
    const nodes = new Uint8Array(2 * 5_000_000);
    for (let i = 0; i < nodes.length; i += 2) nodes[i] = 0x0a;
    const bytes = new BinaryWriter().uint32(0x3a).bytes(nodes).finish();
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

describe("long lists", () => {
  const limits = { ...defaultModelLimits, memory: 100_000, items: 1000 };
  /** A graph with one message of a field of it. */
  const graphWith = (field: number, message: Uint8Array): Uint8Array => {
    const graph = new BinaryWriter().uint32((field << 3) | 2).bytes(message);
    return new BinaryWriter().uint32(0x3a).bytes(graph.finish()).finish();
  };
  /** A node with one attribute, its fields written by `write`. */
  const attribute = (write: (w: BinaryWriter) => void): Uint8Array => {
    const w = new BinaryWriter();
    write(w);
    return graphWith(1, new BinaryWriter().uint32(0x2a).bytes(w.finish()).finish());
  };
  const repeated = (count: number, ...bytes: readonly number[]): Uint8Array =>
    Uint8Array.from({ length: count * bytes.length }, (_, i) => bytes[i % bytes.length]!);

  it("stay views of the file, packed", () => {
    const packed = repeated(30_000, 1);
    const bytes = graphWith(5, new BinaryWriter().uint32(0x2a).bytes(packed).finish());
    const model = readModelFile(bytes, { ...limits, memory: 200_000 });
    if (!model.ok) throw new Error("expected a model");
    const [part] = model.value.graph!.initializer[0]!.int32Data;
    expect(part).toEqual(packed);
    expect(part!.buffer).toBe(bytes.buffer);
  });

  it("of single items are packed together, up to another field", () => {
    const ints = [0x40, 1, 0x40, 0x96, 1, 0x18, 5, 0x40, 0xff, 0xff, 3];
    const model = readModelFile(attribute((w) => w.raw(Uint8Array.from(ints))));
    if (!model.ok) throw new Error("expected a model");
    const [list] = model.value.graph!.node[0]!.attribute;
    expect(list).toMatchObject({
      i: 5n,
      ints: [Uint8Array.of(1, 0x96, 1), Uint8Array.of(0xff, 0xff, 3)],
    });
    expect(readIntegers(list!.ints)).toEqual([1, 150, 65535]);
  });

  it("are refused with ONX002 by what they take", () => {
    const beyond: Readonly<Record<string, Uint8Array>> = {
      ints: attribute((w) => w.uint32(0x42).bytes(repeated(1001, 1))),
      singleInts: attribute((w) => w.raw(repeated(1001, 0x40, 1))),
      floats: attribute((w) => w.uint32(0x3a).bytes(repeated(1001, 0, 0, 0, 1))),
      strings: attribute((w) => w.raw(repeated(7000, 0x4a, 1, 97))),
      int64Data: graphWith(5, new BinaryWriter().uint32(0x3a).bytes(repeated(13_000, 1)).finish()),
      dims: graphWith(5, new BinaryWriter().uint32(0x0a).bytes(repeated(3000, 1)).finish()),
      names: graphWith(1, repeated(400, 0x0a, 1, 97)),
      nodes: new BinaryWriter()
        .uint32(0x3a)
        .bytes(repeated(60, 0x0a, 0))
        .finish(),
    };
    for (const [name, bytes] of Object.entries(beyond)) {
      expect([name, codesOf(readModelFile(bytes, limits))]).toEqual([name, ["ONX002"]]);
    }
  });

  it("share what is equal", () => {
    const bytes = attribute((w) => w.raw(repeated(1200, 0x4a, 1, 97)));
    const model = readModelFile(bytes, limits);
    if (!model.ok) throw new Error("expected a model");
    const texts = model.value.graph!.node[0]!.attribute[0]!.strings;
    expect([texts.length, new Set(texts).size]).toEqual([1200, 1]);
  });

  it("that are cut off are no model (ONX001)", () => {
    const cut: readonly Uint8Array[] = [
      attribute((w) => w.uint32(0x42).bytes(Uint8Array.of(1, 0x80))),
      attribute((w) => w.uint32(0x42).bytes(repeated(11, 0x80))),
      attribute((w) => w.uint32(0x3a).bytes(Uint8Array.of(1, 2, 3))),
      attribute((w) => w.raw(Uint8Array.of(0x3d, 1, 2, 3))),
      attribute((w) => w.raw(Uint8Array.of(0x38, 1))),
    ];
    for (const bytes of cut) expect(codesOf(readModelFile(bytes))).toEqual(["ONX001"]);
  });

  it("of integers of any size are the numbers next to them", () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), (values) => {
        expect(readIntegers(packIntegers(values))).toEqual(values.map(Number));
        const proto = writeTensorProto("t", {
          dtype: "i64",
          shape: [0],
          data: new BigInt64Array(),
        });
        const dims = [BigInt(values.length)];
        const read64 = read({ ...proto, dims, int64Data: packIntegers(values) });
        expect([...read64.data]).toEqual(values);
      }),
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
    expect(list("f32", { floatData: packFloats([0.5, -2]) })).toEqual([0.5, -2]);
    expect(list("f64", { doubleData: packFloats([0.1, -2], 8) })).toEqual([0.1, -2]);
    expect(list("i64", { int64Data: packIntegers([-5n, 7n]) })).toEqual([-5, 7]);
    expect(list("u64", { uint64Data: packIntegers([5n, 7n]) })).toEqual([5, 7]);
    expect(list("u32", { uint64Data: packIntegers([5n, 4294967295n]) })).toEqual([5, 4294967295]);
    expect(list("i8", { int32Data: packIntegers([-5n, 7n]) })).toEqual([-5, 7]);
    expect(list("f16", { int32Data: packIntegers([0x3c00n, 0xc000n]) })).toEqual([1, -2]);
    expect(list("bf16", { int32Data: packIntegers([0x3f80n, 0xc000n]) })).toEqual([1, -2]);
    expect(list("bool", { int32Data: packIntegers([2n, 0n]) })).toEqual([1, 0]);
    expect(list("i4", { int32Data: packIntegers([0xf3n]) })).toEqual([3, -1]);
    expect(list("f4e2m1", { int32Data: packIntegers([0x42n]) })).toEqual([1, 2]);
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
    expect(code({ rawData: new Uint8Array(0), floatData: packFloats([1]) })).toEqual(["ONX005"]);
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
