/**
 * TensorProto to host tensor and back. Contents come from raw_data (little-endian, viewed without a
 * copy where aligned), from the typed lists (int32_data also carries f16 and bf16 patterns, all 8-bit
 * types, bools and packed 2- and 4-bit types), or stay a reference to external data. ONNX IR
 * specification, "Tensor data" and onnx.proto's comments on the fields.
 */
import { create } from "@bufbuild/protobuf";
import { type DType, dtypes, storageBytes } from "../../semantics/dtype.ts";
import {
  makeStorage,
  makeTensor,
  type Tensor,
  type TensorData,
  tensorBytes,
} from "../../semantics/tensor.ts";
import { reject } from "../../support/diagnostic.ts";
import { dtypeOf, onnxTypeName, onnxTypeOf } from "./data-types.ts";
import { type ExternalRange, readExternalRange } from "./external-data.ts";
import {
  type TensorProto,
  TensorProto_DataLocation,
  TensorProto_DataType,
  TensorProtoSchema,
} from "./generated/onnx_pb.ts";
import type { StringTensor } from "./host-value.ts";
import { countAllVarints, eachVarint, joinParts, type PackedList } from "./packed-list.ts";

/** A tensor of a model file: its contents, or where they are. */
export type FileTensor =
  | { readonly kind: "inline"; readonly tensor: Tensor }
  | {
      readonly kind: "external";
      readonly dtype: DType;
      readonly shape: readonly number[];
      readonly range: ExternalRange & { readonly length: number };
    };

/** Reads a TensorProto. Rejects unknown types (ONX003) and contents that do not fit (ONX004-006). */
export function readTensorProto(proto: TensorProto, at: string): FileTensor {
  const dtype = dtypeOf(proto.dataType);
  if (dtype === undefined) {
    reject("ONX003", `tensor "${proto.name}" has ${onnxTypeName(proto.dataType)} elements`, {
      at,
      help: "export the model with numeric element types (no strings, complex numbers or 6-bit floats)",
    });
  }
  const shape = readDims(proto.dims, `tensor "${proto.name}"`, at);
  const bytes = storageBytes(
    dtype,
    shape.reduce((a, b) => a * b, 1),
  );
  if (proto.dataLocation === TensorProto_DataLocation.EXTERNAL) {
    const range = readExternalRange(proto, at);
    const length = range.length ?? bytes;
    if (length !== bytes) {
      reject("ONX005", `external data has ${length} bytes, ${dtype}[${shape}] needs ${bytes}`, {
        at,
      });
    }
    return { kind: "external", dtype, shape, range: { ...range, length } };
  }
  return { kind: "inline", tensor: { dtype, shape, data: readData(proto, dtype, shape, at) } };
}

/** A tensor of strings, or undefined where the elements are no strings. */
export function readStringTensor(proto: TensorProto, at: string): StringTensor | undefined {
  if (proto.dataType !== TensorProto_DataType.STRING) return undefined;
  const shape = readDims(proto.dims, `tensor "${proto.name}"`, at);
  const elements = decodeTexts(proto.stringData);
  const needed = shape.reduce((a, b) => a * b, 1);
  if (elements.length !== needed) misfit(proto, elements.length, needed, at);
  return { kind: "strings", shape, elements };
}

/** Texts in UTF-8; equal ones of a file are mostly one object, decoded once (wire-reader.ts). */
export function decodeTexts(texts: readonly Uint8Array[]): string[] {
  const decoder = new TextDecoder();
  const known = new Map<Uint8Array, string>();
  let latest: Uint8Array | undefined;
  let text = "";
  return texts.map((bytes) => {
    if (bytes === latest) return text;
    latest = bytes;
    text = known.get(bytes) ?? decoder.decode(bytes);
    known.set(bytes, text);
    return text;
  });
}

/** Axes of a tensor: loops and relations have one for each, and their arithmetic grows with the square. */
const largestRank = 256;

/** Rejects (ONX004) more axes than any model has. */
export function checkAxes(count: number, what: string, at: string): void {
  if (count <= largestRank) return;
  reject("ONX004", `${what} has ${count} axes`, {
    at,
    help: `at most ${largestRank} are supported: reshape it, axes of one element can go`,
  });
}

/** Non-negative extents whose product stays exact (limited like that of every tensor). */
/** Extents of a tensor of a file. */
export function readDims(dims: readonly bigint[], what: string, at: string): number[] {
  checkAxes(dims.length, what, at);
  const shape = dims.map(Number);
  let count = 1;
  for (const extent of shape) count *= Math.max(extent, 1);
  if (shape.some((extent) => extent < 0) || count > 2 ** 40) {
    reject("ONX004", `${what} has the shape [${dims}]`, {
      at,
      help: "extents are non-negative and their product is at most 2^40",
    });
  }
  return shape;
}

/** Storage over raw little-endian bytes: a view where aligned, else a copy. */
export function viewBytes(dtype: DType, bytes: Uint8Array): TensorData {
  const empty = makeStorage(dtype, 0);
  const size = empty.BYTES_PER_ELEMENT;
  // Not slice(): that of Node's Buffer is a view, too.
  const owned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  if (dtype === "bool" && owned.some((b) => b > 1)) {
    return Uint8Array.from(owned, (b) => (b === 0 ? 0 : 1));
  }
  const Storage = empty.constructor as new (
    buffer: ArrayBufferLike,
    offset: number,
    length: number,
  ) => TensorData;
  return new Storage(owned.buffer, owned.byteOffset, owned.byteLength / size);
}

function readData(
  proto: TensorProto,
  dtype: DType,
  shape: readonly number[],
  at: string,
): TensorData {
  const count = shape.reduce((a, b) => a * b, 1);
  if (proto.rawData.length > 0) {
    const needed = storageBytes(dtype, count);
    if (proto.rawData.length !== needed) misfit(proto, proto.rawData.length, needed, at);
    return viewBytes(dtype, proto.rawData);
  }
  const width = dtype === "f32" ? 4 : 8;
  if (dtype === "f32" || dtype === "f64") {
    const bytes = joinParts(dtype === "f32" ? proto.floatData : proto.doubleData);
    if (bytes.length !== count * width) misfit(proto, bytes.length / width, count, at);
    return viewBytes(dtype, bytes);
  }
  const list = typedList(proto, dtype);
  const needed = dtypes[dtype].bits < 8 ? storageBytes(dtype, count) : count;
  const found = countAllVarints(list);
  if (found !== needed) misfit(proto, found, needed, at);
  const data = makeStorage(dtype, count);
  fillWith(data, dtype, list);
  return data;
}

/** Integers and patterns of bits in the storage of their dtype; numbers too large for it lose their upper bits. */
function fillWith(data: TensorData, dtype: DType, list: PackedList): void {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    // Halves, as viewBytes takes it: the low one first.
    const halves = new Int32Array(data.buffer, data.byteOffset, 2 * data.length);
    eachVarint(list, (low, high, i) => {
      halves[2 * i] = low;
      halves[2 * i + 1] = high;
    });
  } else if (dtype === "bool") {
    eachVarint(list, (low, _, i) => {
      data[i] = low === 0 ? 0 : 1;
    });
  } else {
    eachVarint(list, (low, _, i) => {
      data[i] = low;
    });
  }
}

/** The list field that carries the elements of a dtype other than f32 and f64 (onnx.proto, comments of TensorProto). */
function typedList(proto: TensorProto, dtype: DType): PackedList {
  switch (dtype) {
    case "i64":
      return proto.int64Data;
    case "u32":
    case "u64":
      return proto.uint64Data;
    default:
      return proto.int32Data;
  }
}

function misfit(proto: TensorProto, found: number, needed: number, at: string): never {
  const unit = proto.rawData.length > 0 ? "bytes" : "elements";
  const type = `${onnxTypeName(proto.dataType)}[${proto.dims}]`;
  reject("ONX005", `tensor "${proto.name}" holds ${found} ${unit}, ${type} needs ${needed}`, {
    at,
    help: "the file is damaged or its shape is wrong: export the model again",
  });
}

/** A TensorProto with raw_data; the bytes are the tensor's own, not a copy. */
export function writeTensorProto(name: string, tensor: Tensor): TensorProto {
  return create(TensorProtoSchema, {
    name,
    dims: tensor.shape.map(BigInt),
    dataType: onnxTypeOf[tensor.dtype],
    rawData: tensorBytes(tensor),
  });
}

/** A TensorProto that refers to bytes in another file. */
export function writeExternalTensorProto(
  name: string,
  type: { readonly dtype: DType; readonly shape: readonly number[] },
  range: ExternalRange,
): TensorProto {
  const length = range.length ?? makeTensor(type.dtype, type.shape).data.byteLength;
  return create(TensorProtoSchema, {
    name,
    dims: type.shape.map(BigInt),
    dataType: onnxTypeOf[type.dtype],
    dataLocation: TensorProto_DataLocation.EXTERNAL,
    externalData: [
      { key: "location", value: range.location },
      { key: "offset", value: String(range.offset) },
      { key: "length", value: String(length) },
    ],
  });
}
