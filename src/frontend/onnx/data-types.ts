/** The numbers that ONNX gives element types (TensorProto.DataType), both ways. */
import type { DType } from "../../semantics/dtype.ts";
import { TensorProto_DataType } from "./generated/onnx_pb.ts";

const { FLOAT, DOUBLE, FLOAT16, BFLOAT16, BOOL } = TensorProto_DataType;
const { INT2, INT4, INT8, INT16, INT32, INT64 } = TensorProto_DataType;
const { UINT2, UINT4, UINT8, UINT16, UINT32, UINT64 } = TensorProto_DataType;
const { FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ } = TensorProto_DataType;
const { FLOAT8E8M0, FLOAT4E2M1 } = TensorProto_DataType;

/** ONNX element type of each dtype. */
export const onnxTypeOf = {
  f64: DOUBLE,
  f32: FLOAT,
  f16: FLOAT16,
  bf16: BFLOAT16,
  f8e4m3fn: FLOAT8E4M3FN,
  f8e4m3fnuz: FLOAT8E4M3FNUZ,
  f8e5m2: FLOAT8E5M2,
  f8e5m2fnuz: FLOAT8E5M2FNUZ,
  f4e2m1: FLOAT4E2M1,
  e8m0: FLOAT8E8M0,
  i2: INT2,
  i4: INT4,
  i8: INT8,
  i16: INT16,
  i32: INT32,
  i64: INT64,
  u2: UINT2,
  u4: UINT4,
  u8: UINT8,
  u16: UINT16,
  u32: UINT32,
  u64: UINT64,
  bool: BOOL,
} as const satisfies Record<DType, TensorProto_DataType>;

const dtypeByNumber = new Map<number, DType>(
  Object.entries(onnxTypeOf).map(([dtype, number]) => [number, dtype as DType]),
);

const nameByNumber = new Map<number, string>(
  Object.entries(TensorProto_DataType).map(([name, number]) => [number, name]),
);

/** The dtype of an ONNX element type; undefined for strings, complex, 6-bit floats, unknown numbers. */
export function dtypeOf(onnxType: number): DType | undefined {
  return dtypeByNumber.get(onnxType);
}

/** How ONNX spells an element type, for messages. */
export function onnxTypeName(onnxType: number): string {
  return nameByNumber.get(onnxType) ?? `element type ${onnxType}`;
}
