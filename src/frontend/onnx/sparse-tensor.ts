/**
 * Sparse tensors of a model file as dense ones: values at indices, zeros elsewhere. Indices are positions in
 * the row-major order, or one coordinate a column (onnx.proto, comments of SparseTensorProto).
 */
import { dtypes, storageBytes } from "../../semantics/dtype.ts";
import { makeStorage, type Tensor } from "../../semantics/tensor.ts";
import { reject } from "../../support/diagnostic.ts";
import type { SparseTensorProto } from "./generated/onnx_pb.ts";
import { readDims, readTensorProto } from "./tensor-proto.ts";

/** Of the dense form; a few bytes of file must not fill the memory. */
const mostBytes = 2 ** 28;

/** Rejects what does not fit together (ONX005) and dense forms of more than 256 MiB (ONX006). */
export function readSparseTensor(proto: SparseTensorProto, at: string): Tensor {
  if (!proto.values || !proto.indices) {
    return unfit("it has no values or no indices", at);
  }
  const values = inline(readTensorProto(proto.values, at), at);
  const indices = inline(readTensorProto(proto.indices, at), at);
  const shape = readDims(proto.dims, "a sparse tensor", at);
  const { dtype } = values;
  const count = shape.reduce((a, b) => a * b, 1);
  if (dtypes[dtype].bits < 8) return unfit(`its values are ${dtype}`, at);
  if (storageBytes(dtype, count) > mostBytes) {
    reject("ONX006", `a sparse tensor of [${shape}] has more than ${mostBytes} bytes`, {
      at,
      help: "export the model with weights that are stored as they are used",
    });
  }
  const places = placesOf(indices, { shape, nonZero: values.data.length, at });
  const data = makeStorage(dtype, count);
  if (values.shape.length !== 1) return unfit(`its values have the shape [${values.shape}]`, at);
  for (const [i, place] of places.entries()) data[place] = values.data[i]!;
  return { dtype, shape, data };
}

interface Places {
  readonly shape: readonly number[];
  readonly nonZero: number;
  readonly at: string;
}

/** Positions in row-major order, each inside the tensor. */
function placesOf(indices: Tensor, { shape, nonZero, at }: Places): readonly number[] {
  const [rows, columns, ...more] = indices.shape;
  const isFlat = indices.shape.length === 1;
  const fits = rows === nonZero && more.length === 0 && (isFlat || columns === shape.length);
  if (indices.dtype !== "i64" || !fits) {
    return unfit(`its indices are ${indices.dtype}[${indices.shape}], its values ${nonZero}`, at);
  }
  const count = shape.reduce((a, b) => a * b, 1);
  const extents = isFlat ? [count] : shape;
  return Array.from({ length: nonZero }, (_, i) =>
    extents.reduce((place, extent, axis) => {
      const index = Number(indices.data[i * extents.length + axis]);
      if (!(index >= 0 && index < extent)) unfit(`index ${index} is outside ${extent}`, at);
      return place * extent + index;
    }, 0),
  );
}

function inline(tensor: ReturnType<typeof readTensorProto>, at: string): Tensor {
  return tensor.kind === "inline" ? tensor.tensor : unfit("it has external data", at);
}

function unfit(what: string, at: string): never {
  reject("ONX005", `a sparse tensor does not fit together: ${what}`, {
    at,
    help: "the file is damaged: export the model again, or with dense weights",
  });
}
