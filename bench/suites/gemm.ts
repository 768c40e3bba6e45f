/**
 * Matrix products y = x·w in f32 with a constant w: squares, skinny and small shapes. As WebAssembly the
 * peer is onnxruntime-web, and suite `ceiling` has the share of the peak. Ours has w packed
 * when the model is compiled, the peer when its session is made; x is packed by neither of us ahead.
 * Beside the rows, as a version line, stands the rate of multiply-adds that this core reaches in the same
 * run (24 or 12 accumulators in registers, nothing from memory); a row's share of that peak is
 * 2 M N K / (ours in ns) / peak. A time below the peak's is refused.
 */
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { probeNativeFeatures } from "../../src/runtime/native/features.ts";
import { createNativeInstance } from "../../src/runtime/native/native-instance.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import type { ModelCase } from "../models/table.ts";
import { unwrap } from "../sessions/import-hints.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { ortWebRuntime } from "../sessions/ort-web.ts";
import type { Runtime } from "../sessions/session.ts";
import { wavetileRuntime } from "../sessions/wavetile.ts";
import { sessionContest } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { ContestCase, Suite, SuiteCases } from "./suite.ts";

export type Shape = readonly [m: number, n: number, k: number];

const squares = [128, 256, 384, 512, 768, 1024, 2048].map((n): Shape => [n, n, n]);
const skinny: readonly Shape[] = [
  ...[1, 2, 4, 8, 16].map((m): Shape => [m, 768, 768]),
  [16, 3072, 768],
  [1, 3072, 768],
  [64, 64, 64],
];

export const gemmSuite: Suite = {
  name: "gemm",
  summary: "f32 matrix products against onnxruntime, and their share of the multiply-add peak",
  targets: ["cpu", "x64-avx512", "x64-avx2", "wasm"],
  peers: onnxruntimePeers,
  load: async ({ threads, target }) => {
    const ours = wavetileRuntime(target, threads);
    if (target === "wasm") return webCases(ours, await ortWebRuntime(threads));
    const peer = ortNodeRuntime(threads);
    const name = target === "cpu" ? (runnableTargets().names[0] ?? target) : target;
    const peak = measurePeak(targets.get(name)!);
    const cases = (family: string, shapes: readonly Shape[]): ContestCase[] =>
      shapes.map((shape) => gemmCase(family, shape, [ours, peer], peak * threads));
    return {
      versions: {
        [ours.name]: ours.version,
        [peer.name]: peer.version,
        [`${name} multiply-add peak of one core, GFLOP/s`]: peak.toFixed(1),
      },
      cases: [...cases("square", squares), ...cases("skinny", skinny)],
    };
  },
};

function webCases(ours: Runtime, peer: Runtime): SuiteCases {
  const cases = (family: string, shapes: readonly Shape[]): ContestCase[] =>
    shapes.map((shape) => gemmCase(family, shape, [ours, peer]));
  return {
    versions: { [ours.name]: ours.version, [peer.name]: peer.version },
    cases: [...cases("square", squares), ...cases("skinny", skinny)],
  };
}

/** The product as a model, and what it is run on. */
export function gemmModel([m, n, k]: Shape): { bytes: Uint8Array; modelCase: ModelCase } {
  const bytes = writeModel({
    name: "gemm",
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [m, k] }],
    outputs: ["y"],
    weights: { w: weights(k, n) },
    nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
  });
  const fill = { kind: "uniform", low: -1, high: 1 } as const;
  const input = { name: "x", type: "float32", dims: [m, k], fill } as const;
  return { bytes, modelCase: { name: "x", inputs: [input] } };
}

/** @param peak GFLOP/s that no run exceeds, where it is known */
function gemmCase(
  family: string,
  shape: Shape,
  [ours, peer]: readonly [Runtime, Runtime],
  peak?: number,
): ContestCase {
  const [m, n, k] = shape;
  return {
    case: `${family}/${m}x${n}x${k}`,
    peerName: peer.name,
    open: async () => {
      const { bytes, modelCase } = gemmModel(shape);
      const contest = sessionContest({ depth: 1, longestSum: k }, modelCase, [
        await ours.open(bytes),
        await peer.open(bytes),
      ]);
      if (peak === undefined) return contest;
      return { ...contest, floorNs: { ours: (2 * m * n * k) / (1.15 * peak) } };
    },
  };
}

/** Scaled so that sums stay near one, which the tolerance is made for. */
function weights(k: number, n: number): Tensor {
  const rng = new Rng(1);
  const data = Float32Array.from({ length: k * n }, () => rng.normal() / Math.sqrt(k));
  return { dtype: "f32", shape: [k, n], data };
}

const trips = 20_000;
const rounds = 40;

/** GFLOP/s of multiply-adds on registers alone, the best of several rounds. */
function measurePeak(target: Target): number {
  const lanes = target.vectorBytes / 4;
  const count = lanes === 16 ? 24 : 12;
  const { system } = unwrap(probeNativeFeatures());
  const program = peakProgram(target.name, lanes, count);
  const options = { system, threads: 1, parallelism: 1 };
  const instance = unwrap(createNativeInstance(program, target, options));
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < rounds; i++) {
    const start = performance.now();
    unwrap(instance.runSync({}));
    best = Math.min(best, performance.now() - start);
  }
  instance.dispose();
  return (2 * trips * count * lanes) / (best * 1e6);
}

function peakProgram(target: string, lanes: number, count: number): Program {
  const each = (line: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => line(i)).join("\n");
  return unwrap(
    parseProgram(`program peak for "${target}" {
  buffer x : input memory f32 [${lanes}]
  buffer y : output memory f32 [${count * lanes}]
  kernel k region "peak" {
    grid threads (t < 1)
    buffer acc : scratch register f32x${lanes} [${count}]
    role main copies 1 threads 1 {
      let a = load.f32x${lanes} x[0]
      ${each((i) => `store acc[${i}] = f32x${lanes}(0)`)}
      for i < ${trips} {
        ${each((i) => `store acc[${i}] = fma.f32x${lanes}(a, a, load.f32x${lanes} acc[${i}])`)}
      }
      ${each((i) => `store y[${i * lanes}] = load.f32x${lanes} acc[${i}]`)}
    }
  }
  tasks { launch k after previous }
}`),
  );
}
