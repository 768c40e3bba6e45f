/**
 * Reads the .pb files of the suite: by the declared type of the input or output a TensorProto, a
 * SequenceProto or an OptionalProto (onnx-data.proto: tensor 3, sequence 5, optional 7 in both; a
 * sequence repeats them). Strings become string tensors.
 */
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import type { TypeProto } from "../../src/frontend/onnx/generated/onnx_pb.ts";
import type { HostValue } from "../../src/frontend/onnx/host-value.ts";
import { readTensorFile } from "../../src/frontend/onnx/model-file.ts";
import { readStringTensor, readTensorProto } from "../../src/frontend/onnx/tensor-proto.ts";
import { invariant } from "../../src/support/invariant.ts";

type Kind = "tensor" | "sequence" | "optional";

const kindOfField: ReadonlyMap<number, Kind> = new Map([
  [3, "tensor"],
  [5, "sequence"],
  [7, "optional"],
]);

export function readValueFile(bytes: Uint8Array, type: TypeProto | undefined): HostValue {
  const declared = type?.value.case;
  if (declared === "sequenceType") return readValue(bytes, "sequence");
  if (declared === "optionalType") return readValue(bytes, "optional");
  return readValue(bytes, "tensor");
}

function readValue(bytes: Uint8Array, kind: Kind): HostValue {
  if (kind === "tensor") return readTensor(bytes);
  const values: HostValue[] = [];
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    const inner = kindOfField.get(field);
    if (inner && wire === WireType.LengthDelimited) values.push(readValue(reader.bytes(), inner));
    else reader.skip(wire, field);
  }
  if (kind === "sequence") return { kind, elements: values };
  return values[0] ?? { kind: "none" };
}

function readTensor(bytes: Uint8Array): HostValue {
  const proto = unwrap(readTensorFile(bytes));
  const strings = readStringTensor(proto, proto.name);
  if (strings) return strings;
  const tensor = readTensorProto(proto, proto.name);
  invariant(tensor.kind === "inline", () => "test data in another file");
  return tensor.tensor;
}
