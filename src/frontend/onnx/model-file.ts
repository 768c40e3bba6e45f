/**
 * Bytes of an .onnx file to a decoded ModelProto: the door for untrusted input. Whatever the bytes, the
 * answer is a Result; everything is charged before it is made (decode-message.ts). Tensor contents stay
 * views into the file's bytes. What the model means is import/'s matter.
 */
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import { decodeMessage } from "./decode-message.ts";
import {
  type ModelProto,
  ModelProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from "./generated/onnx_pb.ts";
import { defaultModelLimits, type ModelLimits } from "./wire-limits.ts";

/** Decodes a model file. Diagnostics: ONX001 (not ONNX), ONX002 (beyond the limits). */
export function readModelFile(
  bytes: Uint8Array,
  limits: ModelLimits = defaultModelLimits,
): Result<ModelProto> {
  return attempt(() => {
    const model = decode(bytes, () => decodeMessage(ModelProtoSchema, bytes, limits));
    if (model.graph === undefined) notOnnx("it has no graph");
    return model;
  });
}

/** Decodes a lone TensorProto (the .pb files of the conformance suite). */
export function readTensorFile(bytes: Uint8Array): Result<TensorProto> {
  return attempt(() =>
    decode(bytes, () => decodeMessage(TensorProtoSchema, bytes, defaultModelLimits)),
  );
}

/** The protobuf reader reports malformed bytes as plain Error, RangeError or TypeError. */
function decode<T>(bytes: Uint8Array, body: () => T): T {
  try {
    return body();
  } catch (error) {
    const expected = [Error.prototype, RangeError.prototype, TypeError.prototype];
    if (!expected.includes(Object.getPrototypeOf(error))) throw error;
    return notOnnx(`${(error as Error).message} (${bytes.length} bytes)`);
  }
}

function notOnnx(why: string): never {
  reject("ONX001", `not an ONNX model: ${why}`, {
    help: "pass a .onnx file; if it was downloaded, check its size and that it is no Git LFS pointer",
  });
}
