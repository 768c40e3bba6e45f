/** Tensors from outside, judged before the runtime copies their bytes. */
import { type DType, isDType, storageBytes } from "../../semantics/dtype.ts";
import { elementCount } from "../../semantics/shape.ts";
import { makeTensor, type Tensor } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";

/** A tensor of checked type, shape and data. */
export function makeCheckedTensor(
  dtype: string,
  shape: readonly number[],
  data: unknown,
): Result<Tensor> {
  return checkTensor("tensor", { dtype, shape, data });
}

/** `value` as a tensor, or RUN036 with what is wrong with it; `name` is what the user calls it. */
export function checkTensor(name: string, value: unknown): Result<Tensor> {
  if (typeof value !== "object" || value === null) {
    return bad(name, `it is ${value === null ? "null" : typeof value}, not { dtype, shape, data }`);
  }
  const { dtype, shape, data } = value as Partial<Tensor>;
  if (typeof dtype !== "string" || !isDType(dtype)) {
    return bad(name, `dtype ${JSON.stringify(dtype)} is no element type`);
  }
  if (!Array.isArray(shape) || !shape.every((n) => Number.isSafeInteger(n) && n >= 0)) {
    return bad(name, `shape ${JSON.stringify(shape)} is no list of counts`);
  }
  const bytes = storageBytes(dtype, elementCount(shape));
  const wanted = arrayOf(dtype);
  const found = data?.constructor as unknown;
  if (!ArrayBuffer.isView(data) || found !== wanted) {
    const spelled = ArrayBuffer.isView(data) ? data.constructor.name : typeof data;
    return bad(name, `${dtype} data come in a ${wanted.name}, found ${spelled}`);
  }
  if (data.byteLength !== bytes) {
    const count = bytes / wanted.BYTES_PER_ELEMENT;
    return bad(name, `${dtype}[${shape.join(", ")}] needs ${count} elements, found ${data.length}`);
  }
  return ok({ dtype, shape, data });
}

type ArrayClass = { readonly name: string; readonly BYTES_PER_ELEMENT: number };

function arrayOf(dtype: DType): ArrayClass {
  return makeTensor(dtype, [0]).data.constructor as unknown as ArrayClass;
}

function bad(name: string, why: string): Result<never> {
  return fail(diagnostic("RUN036", `${name}: ${why}`, { help: "use tensor(dtype, shape, data)" }));
}
