/**
 * Matrix products y = x·w in f32 with a constant w: squares, skinny and small shapes. As WebAssembly the
 * peer is onnxruntime-web, and suite `ceiling` has the share of the peak. Machine code meets onnxruntime-node
 * and, as far as they are installed, the libraries of ../sessions/gemm-libraries.ts, each in a row of its own. Ours
 * has w packed when the model is compiled, onnxruntime when its session is made, the libraries pack it in every
 * call; x is packed by none of us ahead. Results go into the same array in every run, on all sides.
 *
 * Behind a row stands the share of the rate of multiply-adds that this core reaches right before and right after
 * its rounds (24 or 12 accumulators in registers, nothing from memory): 2 M N K / (ours in ns) / peak. A time
 * below the peak's is refused. The summary is the squares against the best peer of each; beside it the share of the
 * peak over the squares, and the skinny shapes against onnxruntime.
 */
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import type { ProgramInstance } from "../../src/runtime/model-session.ts";
import { probeNativeFeatures } from "../../src/runtime/native/features.ts";
import { createNativeInstance } from "../../src/runtime/native/native-instance.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import type { ModelCase } from "../models/table.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import {
  type GemmRuntime,
  gemmRuntimes,
  prepareGemmLibraries,
} from "../sessions/gemm-libraries.ts";
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
  summary: "f32 matrix products against the best library, and their share of the multiply-add peak",
  targets: ["cpu", "x64-avx512", "x64-avx2", "wasm"],
  peers: onnxruntimePeers,
  preparePeers: prepareGemmLibraries,
  load: async ({ threads, target }) => {
    const ours = wavetileRuntime(target, threads);
    if (target === "wasm") return webCases(ours, await ortWebRuntime(threads));
    const ort = ortNodeRuntime(threads);
    const { runtimes, missing } = gemmRuntimes(threads);
    const name = target === "cpu" ? (runnableTargets().names[0] ?? target) : target;
    const peak = new MultiplyAddPeak(targets.get(name)!, threads);
    const cases = (family: string, shapes: readonly Shape[]): ContestCase[] =>
      shapes.flatMap((shape) =>
        [ort, ...runtimes].map((peer) => gemmCase(family, shape, [ours, peer], peak)),
      );
    const absent = missing.map((library) => [library, "not installed (--install-peers)"] as const);
    return {
      versions: {
        ...Object.fromEntries([ours, ort, ...runtimes].map((r) => [r.name, r.version])),
        ...Object.fromEntries(absent),
        [`${name} multiply-add peak of one core, GFLOP/s`]: (peak.measure() / threads).toFixed(1),
      },
      cases: [...cases("square", squares), ...cases("skinny", skinny)],
      close: async () => peak.close(),
      summarise: gemmSummary,
    };
  },
};

const share = "share of peak";

/** Squares against the best peer of each, their share of the peak, the skinny shapes against onnxruntime. */
function gemmSummary(rows: readonly BenchRow[]): SuiteSummary {
  const squareRows = rows.filter((row) => row.case.startsWith("square/"));
  const byShape = new Map<string, BenchRow[]>();
  for (const row of squareRows) {
    const shape = row.case.split("/")[1]!;
    byShape.set(shape, [...(byShape.get(shape) ?? []), row]);
  }
  const shapes = [...byShape.values()];
  const best = shapes.map((of) => Math.min(...of.map((row) => row.ratio)));
  const shares = shapes.map((of) => geometricMean(of.map((row) => Number(row.beside?.[share]))));
  const isSkinny = (row: BenchRow): boolean =>
    row.case.startsWith("skinny/") && row.peerName === "onnxruntime-node";
  const ratios = rows.filter(isSkinny).map((row) => row.ratio);
  return {
    ...(best.length > 0 && {
      geomean: geometricMean(best),
      worst: Math.min(...best),
      cases: best.length,
      [share]: geometricMean(shares),
      "least share": Math.min(...shares),
    }),
    ...(ratios.length > 0 && {
      "skinny against onnxruntime": geometricMean(ratios),
      "worst skinny": Math.min(...ratios),
    }),
  };
}

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

/** @param peak what no run exceeds, where it is known */
function gemmCase(
  family: string,
  shape: Shape,
  [ours, peer]: readonly [Runtime, Runtime | GemmRuntime],
  peak?: MultiplyAddPeak,
): ContestCase {
  const [m, n, k] = shape;
  const flops = 2 * m * n * k;
  const isLibrary = "openProduct" in peer;
  return {
    case: `${family}/${m}x${n}x${k}${isLibrary ? `/${peer.name}` : ""}`,
    peerName: peer.name,
    open: async () => {
      const { bytes, modelCase } = gemmModel(shape);
      const sessions = [
        await ours.open(bytes),
        isLibrary ? peer.openProduct(shape, weights(k, n).data) : await peer.open(bytes),
      ] as const;
      const rounding = { depth: 1, longestSum: k };
      // Libraries write where they are told: so do we all.
      const contest = sessionContest(rounding, modelCase, sessions, { reuse: true });
      if (peak === undefined) return contest;
      const before = peak.measure();
      return {
        ...contest,
        floorNs: { ours: flops / (1.15 * before) },
        beside: (oursNs) => ({ [share]: flops / oursNs / Math.max(before, peak.measure()) }),
      };
    },
  };
}

/** Scaled so that sums stay near one, which the tolerance is made for. */
function weights(k: number, n: number): Tensor & { readonly data: Float32Array } {
  const rng = new Rng(1);
  const data = Float32Array.from({ length: k * n }, () => rng.normal() / Math.sqrt(k));
  return { dtype: "f32", shape: [k, n], data };
}

const trips = 20_000;
const rounds = 40;

/** Multiply-adds on registers alone, as often as they are asked for. */
class MultiplyAddPeak {
  readonly #instance: ProgramInstance;
  readonly #flops: number;
  readonly #threads: number;

  constructor(target: Target, threads: number) {
    const lanes = target.vectorBytes / 4;
    const count = lanes === 16 ? 24 : 12;
    const { system } = unwrap(probeNativeFeatures());
    const program = peakProgram(target.name, lanes, count);
    this.#instance = unwrap(
      createNativeInstance(program, target, { system, threads: 1, parallelism: 1 }),
    );
    this.#flops = 2 * trips * count * lanes;
    this.#threads = threads;
  }

  /** GFLOP/s of all threads: the best of several rounds on one core, times the threads. */
  measure(): number {
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      unwrap(this.#instance.runSync({}));
      best = Math.min(best, performance.now() - start);
    }
    return (this.#threads * this.#flops) / (best * 1e6);
  }

  close(): void {
    this.#instance.dispose();
  }
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
