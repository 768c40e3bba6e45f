/** cuBLAS as the libraries of the machine have it: y = x w^T for row-major operands, on one stream. */
import type { CudaStream } from "../../src/runtime/cuda/stream.ts";
import { openLibrary } from "../../src/runtime/ffi/library.ts";
import { take } from "./ptx-launch.ts";

export interface ProductShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

export type BlasProduct = (shape: ProductShape, x: bigint, w: bigint, y: bigint) => void;

const bf16 = 14;
const f32 = 0;
/** CUBLAS_COMPUTE_32F: products and sums in f32, whatever the math mode allows elsewhere. */
const computeF32 = 68;
const defaultAlgorithm = -1;

function check(what: string, status: unknown): void {
  if (status !== 0) throw new Error(`${what}: status ${status}`);
}

export function openBlas(stream: CudaStream, dtype: "bf16" | "f32"): BlasProduct {
  const library = take(openLibrary(["libcublas.so.13", "libcublas.so.12", "libcublas.so"]));
  const create = library.bind("cublasCreate_v2", "int", "void *handle")!;
  const setStream = library.bind("cublasSetStream_v2", "int", "uint64 handle, uint64 stream")!;
  const gemm = library.bind(
    "cublasGemmEx",
    "int",
    "uint64 h, int ta, int tb, int m, int n, int k, void *alpha, uint64 a, int at, int lda, uint64 b, int bt, int ldb, void *beta, uint64 c, int ct, int ldc, int compute, int algo",
  )!;
  const handle = new BigUint64Array(1);
  check("cublasCreate", create(handle));
  check("cublasSetStream", setStream(handle[0], stream.handle));
  const [one, zero] = [Float32Array.of(1), Float32Array.of(0)];
  const type = dtype === "bf16" ? bf16 : f32;
  return ({ m, n, k }, x, w, y) => {
    const sizes = [1, 0, n, m, k, one, w, type, k, x, type, k] as const;
    check(
      "cublasGemmEx",
      gemm(handle[0], ...sizes, zero, y, type, n, computeF32, defaultAlgorithm),
    );
  };
}
