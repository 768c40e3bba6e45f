import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  AttributeProto_AttributeType,
  ModelProtoSchema,
} from "../../frontend/onnx/generated/onnx_pb.ts";
import { modelOfOnnx } from "./read-model.ts";

const floatType = 1;
const int64Type = 7;

function constant(name: string, dataType: number, ...dims: number[]) {
  const bytes = dims.reduce((n, d) => n * d, dataType === floatType ? 4 : 8);
  const t = { dims: dims.map(BigInt), dataType, rawData: new Uint8Array(bytes) };
  return {
    opType: "Constant",
    output: [name],
    attribute: [{ name: "value", type: AttributeProto_AttributeType.TENSOR, t }],
  };
}

describe("ONNX models to plan for", () => {
  it("have the float tensors of Constant nodes as weights, as well as initializers", () => {
    const initializer = [
      { name: "b", dims: [6n], dataType: floatType, rawData: new Uint8Array(24) },
    ];
    const node = [constant("w", floatType, 4, 6), constant("axes", int64Type, 2)];
    const model = create(ModelProtoSchema, { graph: { initializer, node } });
    expect(modelOfOnnx("m", toBinary(ModelProtoSchema, model))).toMatchObject({
      value: {
        parameters: { value: 4 * 6 + 6 },
        originalFormat: "FP32",
        tensors: [{ name: "b" }, { name: "w", shape: [4, 6] }, { name: "axes", fixed: true }],
      },
    });
  });
});
