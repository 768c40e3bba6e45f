import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { tensor } from "../../commands/library/tensor.ts";
import { attempt } from "../../support/diagnostic.ts";
import {
  AttributeProto_AttributeType as Kind,
  ModelProtoSchema,
  SparseTensorProtoSchema,
} from "./generated/onnx_pb.ts";
import { importOnnx } from "./import/import-model.ts";
import { readSparseTensor } from "./sparse-tensor.ts";
import { writeTensorProto } from "./tensor-proto.ts";

/** Values 1, 2, … at those indices. */
function sparse(dims: readonly number[], indices: readonly number[], columns?: number) {
  const count = indices.length / (columns ?? 1);
  const values = Float32Array.from({ length: count }, (_, i) => i + 1);
  const shape = columns === undefined ? [count] : [count, columns];
  const places = tensor("i64", shape, BigInt64Array.from(indices.map(BigInt)));
  return create(SparseTensorProtoSchema, {
    values: writeTensorProto("w", tensor("f32", [count], values)),
    indices: writeTensorProto("", places),
    dims: dims.map(BigInt),
  });
}

const codesOf = (proto: ReturnType<typeof sparse>) => {
  const read = attempt(() => readSparseTensor(proto, "here"));
  return read.ok ? [...read.value.data] : read.diagnostics.map((d) => d.code);
};

describe("sparse tensors", () => {
  it("are dense, whichever way their indices are written", () => {
    expect(codesOf(sparse([2, 3], [1, 5]))).toEqual([0, 1, 0, 0, 0, 2]);
    expect(codesOf(sparse([2, 3], [0, 1, 1, 2], 2))).toEqual([0, 1, 0, 0, 0, 2]);
    expect(codesOf(sparse([2, 0], []))).toEqual([]);
  });

  it("that do not fit together, or would fill the memory, are refused", () => {
    expect(codesOf(sparse([2, 3], [1, 6]))).toEqual(["ONX005"]);
    expect(codesOf(sparse([2, 3], [1, -1]))).toEqual(["ONX005"]);
    expect(codesOf(sparse([2, 3], [1, 1, 1], 3))).toEqual(["ONX005"]);
    expect(codesOf(sparse([2 ** 20, 2 ** 20], [1]))).toEqual(["ONX006"]);
    expect(codesOf(create(SparseTensorProtoSchema, { dims: [2n] }) as never)).toEqual(["ONX005"]);
  });

  it("are initializers and values of Constant", () => {
    const of = (name: string) => ({
      name,
      type: {
        value: {
          case: "tensorType" as const,
          value: {
            elemType: 1,
            shape: {
              dim: [2, 3].map((d) => ({ value: { case: "dimValue" as const, value: BigInt(d) } })),
            },
          },
        },
      },
    });
    const bytes = toBinary(
      ModelProtoSchema,
      create(ModelProtoSchema, {
        irVersion: 10n,
        opsetImport: [{ domain: "", version: 20n }],
        graph: {
          name: "g",
          input: [of("x")],
          output: [of("y")],
          sparseInitializer: [sparse([2, 3], [1, 5])],
          node: [
            {
              opType: "Constant",
              output: ["c"],
              attribute: [
                {
                  name: "sparse_value",
                  type: Kind.SPARSE_TENSOR,
                  sparseTensor: sparse([2, 3], [0]),
                },
              ],
            },
            { opType: "Add", input: ["x", "w"], output: ["t"] },
            { opType: "Add", input: ["t", "c"], output: ["y"] },
          ],
        },
      }),
    );
    const read = importOnnx(bytes);
    expect(read).toMatchObject({ ok: true });
    if (!read.ok) return;
    const inlined = read.value.graph.weights.map((w) =>
      w.source.kind === "inline" ? [...w.source.tensor.data] : [],
    );
    expect(inlined).toEqual([
      [0, 1, 0, 0, 0, 2],
      [1, 0, 0, 0, 0, 0],
    ]);
  });
});
