/**
 * Lists of numbers of the wire format, kept as the packed bytes that the file has: a list decoded to
 * numbers takes 8 to 32 bytes for an item of one, so it is read from here straight to where it belongs.
 * The schema declares these fields as bytes (scripts/generate-onnx-schema.sh). Wire format: protobuf.dev,
 * "Encoding"; a list may come in several parts.
 */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { invariant } from "../../support/invariant.ts";

/** Parts of one list, each with whole items: varints, or little-endian floats of 4 or 8 bytes. */
export type PackedList = readonly Uint8Array[];

/** What an item of these fields is on the wire, by the message's and the field's name. */
export const packedFields: ReadonlyMap<string, WireType> = new Map([
  ["onnx.AttributeProto.floats", WireType.Bit32],
  ["onnx.AttributeProto.ints", WireType.Varint],
  ["onnx.TensorProto.float_data", WireType.Bit32],
  ["onnx.TensorProto.int32_data", WireType.Varint],
  ["onnx.TensorProto.int64_data", WireType.Varint],
  ["onnx.TensorProto.double_data", WireType.Bit64],
  ["onnx.TensorProto.uint64_data", WireType.Varint],
]);

/** Varints in a part. Throws a RangeError where one is cut off or has more than ten bytes. */
export function countVarints(bytes: Uint8Array): number {
  let count = 0;
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    if (++length > 10) throw new RangeError("a varint of more than ten bytes");
    if (bytes[i]! >= 128) continue;
    count++;
    length = 0;
  }
  if (length > 0) throw new RangeError("a varint is cut off");
  return count;
}

/** Floats of `width` bytes in a part. Throws a RangeError where one is cut off. */
export function countFloats(bytes: Uint8Array, width: 4 | 8): number {
  if (bytes.length % width !== 0) throw new RangeError("a float is cut off");
  return bytes.length / width;
}

export function countAllVarints(list: PackedList): number {
  return list.reduce((sum, part) => sum + countVarints(part), 0);
}

/** Calls `take` with the low and the high 32 bits of each varint, both as signed numbers. */
export function eachVarint(
  list: PackedList,
  take: (low: number, high: number, index: number) => void,
): void {
  let index = 0;
  for (const bytes of list) {
    for (let at = 0; at < bytes.length; ) {
      let byte = bytes[at++]!;
      let low = byte & 127;
      let high = 0;
      for (let shift = 7; byte >= 128; shift += 7) {
        byte = bytes[at++]!;
        if (shift < 32) low |= (byte & 127) << shift;
        if (shift === 28) high = (byte & 127) >> 4;
        if (shift > 32) high |= (byte & 127) << (shift - 32);
      }
      take(low, high, index++);
    }
  }
}

/** Signed integers of 64 bits, each as the number next to it. */
export function readIntegers(list: PackedList): number[] {
  const numbers: number[] = [];
  eachVarint(list, (low, high) => numbers.push(high * 2 ** 32 + (low >>> 0)));
  return numbers;
}

/** Floats of 4 bytes. */
export function readFloats(list: PackedList): number[] {
  const numbers: number[] = [];
  for (const part of list) {
    const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
    for (let i = 0; i < part.length; i += 4) numbers.push(view.getFloat32(i, true));
  }
  return numbers;
}

/** One part with all bytes: that of the file where it is the only one. */
export function joinParts(list: PackedList): Uint8Array {
  if (list.length === 1) return list[0]!;
  const bytes = new Uint8Array(list.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of list) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Signed integers of 64 bits as a list of one part, or none. */
export function packIntegers(values: readonly bigint[]): Uint8Array[] {
  const writer = new BinaryWriter();
  for (const value of values) writer.int64(BigInt.asIntN(64, value));
  return values.length > 0 ? [writer.finish()] : [];
}

/** Floats of 4 or 8 bytes as a list of one part, or none. */
export function packFloats(values: readonly number[], width: 4 | 8 = 4): Uint8Array[] {
  invariant(width === 4 || width === 8, () => `floats of ${width} bytes`);
  const writer = new BinaryWriter();
  for (const value of values) width === 4 ? writer.float(value) : writer.double(value);
  return values.length > 0 ? [writer.finish()] : [];
}
