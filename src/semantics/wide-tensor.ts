/** Elements of half precision as single ones, which have all of their values. */
import { invariant } from "../support/invariant.ts";
import { dtypes } from "./dtype.ts";
import { decodeTableOf } from "./float-codec.ts";
import { makeTensor, type Tensor } from "./tensor.ts";

export function wideTensor({ dtype, shape, data }: Tensor): Tensor {
  invariant(dtypes[dtype].bits === 16 && data instanceof Uint16Array, () => `${dtype} is no half`);
  const wide = makeTensor("f32", shape);
  const table = decodeTableOf(dtype);
  const into = wide.data as Float32Array;
  for (let i = 0; i < data.length; i++) into[i] = table[data[i]!]!;
  return wide;
}
