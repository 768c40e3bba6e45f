/**
 * cuBLAS as the libraries of the machine have it: y = x w^T for row-major operands, or either of them the other
 * way in memory, on one stream. By
 * default the algorithm that its heuristics put first; `openBestBlas` asks for the first eight of them
 * (cublasLtMatmulAlgoGetHeuristic), times each and keeps the fastest.
 */

import type { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { type CudaStream, createEvent } from "../../src/runtime/cuda/stream.ts";
import { openLibrary } from "../../src/runtime/ffi/library.ts";
import { take } from "./ptx-launch.ts";

export interface ProductShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** The operands of a product of rows by columns, in memory as it has them (n) or the other way (t): x [m, k], w [k, n]. */
export const operandOrders = ["nn", "nt", "tn", "tt"] as const;
export type OperandOrders = (typeof operandOrders)[number];

export type BlasProduct = (shape: ProductShape, x: bigint, w: bigint, y: bigint) => void;

/** cudaDataType. */
const dataTypes = { bf16: 14, f16: 2, f32: 0 } as const;
export type BlasType = keyof typeof dataTypes;
/** CUBLAS_COMPUTE_32F: products and sums in f32, whatever the math mode allows elsewhere. */
const computeF32 = 68;
const defaultAlgorithm = -1;

function check(what: string, status: unknown): void {
  if (status !== 0) throw new Error(`${what}: status ${status}`);
}

export function openBlas(stream: CudaStream, dtype: BlasType): BlasProduct {
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
  const type = dataTypes[dtype];
  return ({ m, n, k }, x, w, y) => {
    const sizes = [1, 0, n, m, k, one, w, type, k, x, type, k] as const;
    check(
      "cublasGemmEx",
      gemm(handle[0], ...sizes, zero, y, type, n, computeF32, defaultAlgorithm),
    );
  };
}

/** CUBLASLT_MATMUL_DESC_TRANSA, its _TRANSB and CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES. */
const [transposeFirst, transposeSecond, mostWorkspace] = [3, 4, 1];
const workspaceBytes = 64 * 2 ** 20;
/** Of a cublasLtMatmulHeuristicResult_t, and of the algorithm at its start. */
const [resultBytes, algorithmBytes, stateAt] = [96, 64, 72];
const mostAlgorithms = 8;
const [trialRounds, trialRepeats] = [3, 4];

/** Runs of the fastest algorithm that cuBLAS proposes for one product on these operands. */
export interface BestProduct {
  readonly run: () => void;
  readonly tried: number;
}

export function openBestBlas(
  device: CudaDevice,
  stream: CudaStream,
  dtype: BlasType,
): (shape: ProductShape, x: bigint, w: bigint, y: bigint, orders?: OperandOrders) => BestProduct {
  const library = take(openLibrary(["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]));
  const bind = (name: string, parameters: string) => {
    const bound = library.bind(name, "int", parameters)!;
    return (...args: unknown[]) => check(name, bound(...args));
  };
  const create = bind("cublasLtCreate", "void *handle");
  const describe = bind("cublasLtMatmulDescCreate", "void *out, int compute, int scale");
  const describeMore = bind(
    "cublasLtMatmulDescSetAttribute",
    "uint64 desc, int name, void *value, size_t bytes",
  );
  const layout = bind(
    "cublasLtMatrixLayoutCreate",
    "void *out, int type, uint64 rows, uint64 columns, int64 stride",
  );
  const prefer = bind("cublasLtMatmulPreferenceCreate", "void *out");
  const preferMore = bind(
    "cublasLtMatmulPreferenceSetAttribute",
    "uint64 preference, int name, void *value, size_t bytes",
  );
  const propose = bind(
    "cublasLtMatmulAlgoGetHeuristic",
    "uint64 handle, uint64 desc, uint64 a, uint64 b, uint64 c, uint64 d, uint64 preference, int most, void *results, void *count",
  );
  const multiply = bind(
    "cublasLtMatmul",
    "uint64 handle, uint64 desc, void *alpha, uint64 a, uint64 la, uint64 b, uint64 lb, void *beta, uint64 c, uint64 lc, uint64 d, uint64 ld, void *algorithm, uint64 workspace, size_t bytes, uint64 stream",
  );
  const make = (call: (cell: BigUint64Array) => void): bigint => {
    const cell = new BigUint64Array(1);
    call(cell);
    return cell[0]!;
  };
  const handle = make(create);
  const workspace = take(device.allocate(workspaceBytes)).address;
  const preference = make(prefer);
  preferMore(preference, mostWorkspace, BigUint64Array.of(BigInt(workspaceBytes)), 8);
  const type = dataTypes[dtype];
  // Row-major y is y^T = w^T x^T of columns, whose first operand is w: turned unless it lies as the product has it.
  const descriptionOf = (orders: OperandOrders): bigint => {
    const desc = make((cell) => describe(cell, computeF32, dataTypes.f32));
    describeMore(desc, transposeFirst, Int32Array.of(orders[1] === "t" ? 1 : 0), 4);
    describeMore(desc, transposeSecond, Int32Array.of(orders[0] === "t" ? 1 : 0), 4);
    return desc;
  };
  const [one, zero] = [Float32Array.of(1), Float32Array.of(0)];
  const events = [createEvent(device), createEvent(device)] as const;
  return ({ m, n, k }, x, w, y, orders = "nt") => {
    const desc = descriptionOf(orders);
    const [a, b, c] = [
      orders[1] === "t" ? [k, n] : [n, k],
      orders[0] === "t" ? [m, k] : [k, m],
      [n, m],
    ].map(([rows, columns]) => make((cell) => layout(cell, type, rows!, columns!, rows!))) as [
      bigint,
      bigint,
      bigint,
    ];
    const results = new Uint8Array(mostAlgorithms * resultBytes);
    const count = new Int32Array(1);
    propose(handle, desc, a, b, c, c, preference, mostAlgorithms, results, count);
    const runs = Array.from({ length: count[0]! }, (_, i) => {
      const at = i * resultBytes;
      const isUsable = new DataView(results.buffer).getInt32(at + stateAt, true) === 0;
      const algorithm = results.slice(at, at + algorithmBytes);
      const run = (): void =>
        multiply(
          ...[handle, desc, one, w, a, x, b, zero, y, c, y, c],
          ...[algorithm, workspace, workspaceBytes, stream.handle],
        );
      return { run, isUsable, times: [] as number[] };
    }).filter(({ isUsable }) => isUsable);
    if (runs.length === 0) throw new Error("cuBLAS proposes no algorithm");
    for (let round = 0; round < trialRounds; round++) {
      for (const { run, times } of runs) {
        events[0].record(stream);
        for (let i = 0; i < trialRepeats; i++) run();
        events[1].record(stream);
        times.push(events[1].since(events[0]));
      }
    }
    runs.sort((p, q) => Math.min(...p.times) - Math.min(...q.times));
    return { run: runs[0]!.run, tried: runs.length };
  };
}
