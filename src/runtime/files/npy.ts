/**
 * NumPy's .npy format, versions 1 to 3, to and from tensors (NumPy documentation, "The npy format").
 * Little-endian and single-byte numbers in C or Fortran order; no pickled objects. f16 is `<f2`; types
 * that NumPy lacks (bf16, f8, below 8 bits) are refused. Pure: bytes in, bytes out.
 */
import type { DType } from "../../semantics/dtype.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { elementCount } from "../../semantics/shape.ts";
import { makeTensor, type Tensor, tensorBytes, tensorFromBytes } from "../../semantics/tensor.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";

const descriptors = {
  f64: "<f8",
  f32: "<f4",
  f16: "<f2",
  i64: "<i8",
  i32: "<i4",
  i16: "<i2",
  i8: "|i1",
  u64: "<u8",
  u32: "<u4",
  u16: "<u2",
  u8: "|u1",
  bool: "|b1",
} as const satisfies Partial<Record<DType, string>>;

type NumpyDType = keyof typeof descriptors;

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const alignment = 64;
const mostAxes = 64;
const mostHeaderBytes = 65536;

/** The tensor of a .npy file. Diagnostics: RUN033 (no such file), RUN034 (type). */
export function readNpy(bytes: Uint8Array): Result<Tensor> {
  return attempt(() => {
    const { header, dataAt } = splitFile(bytes);
    const { descriptor, fortran, shape } = readHeader(header);
    const dtype = dtypeOf(descriptor);
    const data = bytes.subarray(dataAt);
    const needed = elementCount(shape) * (dtypes[dtype].bits / 8);
    if (!Number.isSafeInteger(needed) || data.length !== needed) {
      malformed(
        `shape [${shape.join(", ")}] of ${dtype} needs ${needed} bytes, ${data.length} follow`,
      );
    }
    const tensor = tensorFromBytes(dtype, fortran ? [...shape].reverse() : shape, data);
    if (dtype === "bool") checkBools(data);
    return fortran && shape.length > 1 ? reversedAxes(tensor) : { ...tensor, shape };
  });
}

/** A .npy file (version 1) of a tensor in C order; RUN034 for types that NumPy lacks. */
export function writeNpy(tensor: Tensor): Result<Uint8Array> {
  return attempt(() => {
    const { dtype, shape } = tensor;
    if (!Object.hasOwn(descriptors, dtype)) unsupported(dtype);
    const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    const descriptor = descriptors[dtype as NumpyDType];
    const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': ${tuple}, }`;
    const length = Math.ceil((11 + text.length) / alignment) * alignment - 10;
    const data = tensorBytes(tensor);
    const file = new Uint8Array(10 + length + data.length);
    file.set([...magic, 1, 0, length & 0xff, length >> 8]);
    file.set(new TextEncoder().encode(`${text.padEnd(length - 1)}\n`), 10);
    file.set(data, 10 + length);
    return file;
  });
}

function splitFile(bytes: Uint8Array): { header: string; dataAt: number } {
  if (bytes.length < 12 || magic.some((b, i) => bytes[i] !== b))
    malformed("its first bytes differ");
  const version = bytes[6]!;
  if (version < 1 || version > 3) malformed(`version ${version} is unknown`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerAt = version === 1 ? 10 : 12;
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > mostHeaderBytes || headerAt + length > bytes.length) {
    malformed(`its header of ${length} bytes is not there`);
  }
  const header = new TextDecoder().decode(bytes.subarray(headerAt, headerAt + length));
  return { header, dataAt: headerAt + length };
}

const headerPattern =
  /^\{\s*(?=.*'descr'\s*:\s*'(?<descr>[^']*)')(?=.*'fortran_order'\s*:\s*(?<fortran>True|False))(?=.*'shape'\s*:\s*\((?<shape>[\d\s,]*)\)).*\}\s*$/s;

function readHeader(header: string): { descriptor: string; fortran: boolean; shape: number[] } {
  const groups = headerPattern.exec(header)?.groups;
  if (!groups) malformed(`its header is ${JSON.stringify(header.trim().slice(0, 80))}`);
  const shape = groups.shape!.split(",").flatMap((part) => (part.trim() ? [Number(part)] : []));
  if (shape.length > mostAxes || shape.some((n) => !Number.isSafeInteger(n))) {
    malformed(`its shape is (${groups.shape})`);
  }
  return { descriptor: groups.descr!, fortran: groups.fortran === "True", shape };
}

function dtypeOf(descriptor: string): NumpyDType {
  const found = (Object.keys(descriptors) as NumpyDType[]).find((d) => {
    const spelled: string = descriptors[d];
    const oneByte = spelled.startsWith("|") && /^[<>=|]$/.test(descriptor[0] ?? "");
    return spelled === descriptor || (oneByte && spelled.slice(1) === descriptor.slice(1));
  });
  return found ?? unsupported(descriptor);
}

function checkBools(data: Uint8Array): void {
  const odd = data.findIndex((b) => b > 1);
  if (odd >= 0) malformed(`its boolean ${odd} is ${data[odd]}`);
}

/** The tensor with its axes in the opposite order: Fortran order read as C order is the transpose. */
function reversedAxes(tensor: Tensor): Tensor {
  const shape = [...tensor.shape].reverse();
  const result = makeTensor(tensor.dtype, shape);
  const at = shape.map(() => 0);
  for (let i = 0; i < result.data.length; i++) {
    const source = at.reduceRight((offset, index, axis) => offset * shape[axis]! + index, 0);
    result.data[i] = tensor.data[source]!;
    for (let a = at.length - 1; a >= 0 && ++at[a]! === shape[a]; a--) at[a] = 0;
  }
  return result;
}

function malformed(why: string): never {
  return reject("RUN033", `not a .npy file: ${why}`, { help: "write it with numpy.save" });
}

function unsupported(type: string): never {
  return reject("RUN034", `elements of type ${type} have no place in a .npy file here`, {
    help: `use one of ${Object.keys(descriptors).join(", ")} (little-endian)`,
  });
}
