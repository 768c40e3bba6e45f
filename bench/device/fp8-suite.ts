/**
 * Products of 8-bit floats (y = x w^T scaled, sums in f32, results in bf16) as the compiler makes them, against
 * `torch._scaled_mm`: layers and squares. Correctness first (outputs poisoned, float64 sums at sampled places),
 * then times of both, interleaved in short rounds on random data. The peer sums in f32 as well
 * (`use_fast_accum=False`); `--fast` has it keep all of a sum in the matrix unit, in some 14 bits. `--type
 * f8e5m2` checks and times ours alone, which torch does not multiply.
 * `--onnx` gives the compiler the product as an ONNX model says it: DequantizeLinear of both operands, MatMul, Cast.
 * `--by mma` leaves out the instructions of warpgroups, as machines without them do.
 * `--also "by wgmma tile …; …"` times such directives beside the choice.
 * `--shapes "300x200x400;…"` takes other shapes, as for a sanitizer.
 * Usage: node fp8-suite.mjs [--shapes S] [--type f8e4m3fn|f8e5m2] [--onnx] [--by mma] [--fast] [--only TEXT] [--also HOW] [--seconds S] [--python PATH] [--json]
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { exportOnnx } from "../../src/frontend/onnx/export/export-model.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, Model, ValueId } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { take } from "./ptx-launch.ts";
import {
  type InTurns,
  measureOthers,
  readOptions,
  runCases,
  scheduleOf,
  summary,
  TorchPeer,
  timeAlone,
  timeInTurns,
  uploadRepeated,
} from "./torch-peer.ts";

const given = readOptions(["--json", "--fast", "--onnx"]);
const seconds = Number(given.get("--seconds") ?? 0.2);
const dtype = given.get("--type") === "f8e5m2" ? "f8e5m2" : "f8e4m3fn";

type Case = readonly [m: number, n: number, k: number];

const layers: readonly Case[] = [
  [2048, 2048, 2048],
  [4096, 4096, 4096],
  [8192, 8192, 8192],
  [16, 28672, 4096],
  [64, 7168, 2048],
  [128, 6144, 4096],
  [512, 4096, 14336],
  [2048, 28672, 4096],
  [4096, 2112, 7168],
  [4096, 24576, 1536],
  [4096, 7168, 16384],
  [8192, 4096, 14336],
];

const asked = given.get("--shapes")?.split(";");
const cases = asked?.map((text) => text.split("x").map(Number) as unknown as Case) ?? layers;

const nameOf = (c: Case): string => c.join("x");

function graphOf([m, n, k]: Case): Graph {
  const g = new GraphBuilder("product");
  const [x, w] = [g.input("x", tensorType(dtype, m, k)), g.input("w", tensorType(dtype, n, k))];
  const scales = ["a", "b"].map((name) => g.input(name, tensorType("f32", 1, 1)));
  const sums = g.einsum("i k, j k -> i j", x, w, "f32");
  return g.finish([g.cast(g.mul(g.mul(sums, scales[0]!), scales[1]!), "bf16")]);
}

/** The same by way of an ONNX file, with operands that are dequantised. */
function importedModel([m, n, k]: Case): Model {
  const g = new GraphBuilder("product");
  const [x, w] = [g.input("x", tensorType(dtype, m, k)), g.input("w", tensorType(dtype, n, k))];
  const scales = ["a", "b"].map((name) => g.input(name, tensorType("f32")));
  const wide = (of: ValueId, scale: ValueId) => g.node("dequantize", [of, scale], { to: "f32" });
  const [left, right] = [wide(x, scales[0]!), wide(w, scales[1]!)];
  const turned = g.node("transpose", [right], { permutation: [1, 0] });
  const graph = g.finish([g.cast(g.matMul(left, turned), "bf16")]);
  const { bytes } = take(exportOnnx({ graph, weights: noWeights }));
  return take(importOnnx(bytes));
}

function modelOf(c: Case): Model {
  return given.has("--onnx") ? importedModel(c) : { graph: graphOf(c), weights: noWeights };
}

/** The machine, or what it is without instructions of warpgroups. */
function targetNamed(name: string): Target {
  const whole = targets.get(name)!;
  if (given.get("--by") !== "mma") return whole;
  const capabilities = new Set([...whole.capabilities].filter((c) => c !== "wgmma"));
  return { ...whole, capabilities };
}

/** Operands repeat so many random elements, from different places on. */
const period = 4_194_301;
const rng = new Rng(1);
const pool = Uint8Array.from({ length: period }, () => encodeFloat(dtype, rng.normal()));
const places: Readonly<Record<string, number>> = { x: 0, w: 1009 };
const decoded = Float64Array.from({ length: 256 }, (_, pattern) => decodeFloat(dtype, pattern));
const at = (operand: string, index: number): number =>
  decoded[pool[(index + places[operand]!) % period]!]!;
/** Of the results, so that they are of the size of the operands. */
const scalesOf = (k: number): readonly [number, number] => [0.5, Math.fround(2 / Math.sqrt(k))];

const peerText = `
import torch
def prepare(m):
    make = lambda *s: torch.randn(*s, device="cuda").to(torch.float8_e4m3fn)
    x, w = make(m["m"], m["k"]), make(m["n"], m["k"])
    a, b = (torch.full((1, 1), v, device="cuda") for v in m["scales"])
    def run():
        return torch._scaled_mm(x, w.t(), scale_a=a, scale_b=b, out_dtype=torch.bfloat16, use_fast_accum=m["fast"])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = run()
    def again(): graph.replay()
    again.keep = (x, w, a, b, kept)
    return again
`;

/**
 * The largest difference from float64 at sampled places, in units of what rounding allows: of the result, of
 * sums in f32 in any order, and of what the matrix unit drops of the 128 products of a step: it keeps 13 bits
 * behind the point of the largest.
 */
function worstError([m, n, k]: Case, read: (from: number, bytes: Uint8Array) => void): number {
  const draw = new Rng(3);
  const [a, b] = scalesOf(k);
  let worst = 0;
  for (let sample = 0; sample < 12; sample++) {
    const i = [0, m - 1][sample] ?? draw.integer(0, m - 1);
    const bytes = new Uint8Array(2 * n);
    read(i * n, bytes);
    const row = new Uint16Array(bytes.buffer);
    for (let place = 0; place < 12; place++) {
      const j = [0, n - 1][place] ?? draw.integer(0, n - 1);
      let [sum, size, dropped] = [0, 0, 0];
      for (let from = 0; from < k; from += 128) {
        let [part, largest] = [0, 0];
        for (let p = from; p < Math.min(k, from + 128); p++) {
          const term = at("x", i * k + p) * at("w", j * k + p);
          part += term;
          size += Math.abs(term);
          largest = Math.max(largest, Math.abs(term), Math.abs(part));
        }
        sum += part;
        dropped += (4 * largest * 2 ** -13) ** 2;
      }
      const want = sum * a * b;
      const slack = (size * Math.sqrt(k) * 2 ** -24 + 3 * Math.sqrt(dropped)) * a * b;
      const off = Math.abs(decodeFloat("bf16", row[j]!) - want);
      worst = Math.max(
        worst,
        Number.isNaN(off) ? Infinity : off / (Math.abs(want) * 2 ** -8 + slack),
      );
    }
  }
  return worst;
}

interface Row extends InTurns {
  readonly case: string;
  readonly schedule: string;
}

const features = take(probeCuda());
const target = targetNamed(features.targets[0]!);
const peer = dtype === "f8e4m3fn" ? new TorchPeer(peerText, given.get("--python")) : undefined;
const rows: Row[] = [];
const only = given.get("--only");
const chosenCases = cases.filter((one) => only === undefined || nameOf(one).includes(only));
/** Results that are off by more than rounding allows. */
let wrong = 0;
const failed = (await runCases(chosenCases, nameOf, runCase)) + wrong;
peer?.end();

async function runCase(c: Case): Promise<void> {
  const [m, n, k] = c;
  const message = { m, n, k, scales: scalesOf(k), fast: given.has("--fast") };
  const ready = await peer?.prepare(message);
  if (ready?.error !== undefined) throw new Error(`peer: ${ready.error}`);
  const model = modelOf(c);
  const chosen = take(compileModel(model, { target }));
  await measure(c, chosen, true);
  const asked = given.get("--also") ?? "";
  await measureOthers(asked, { model, chosen, options: { target } }, (other) =>
    measure(c, other, false),
  );
}

/** @param isRow whether it is the choice, which is a row of the suite */
async function measure(c: Case, compiled: CompiledModel, isRow: boolean): Promise<void> {
  const { plan, nests } = compiled;
  const { schedule, pricedUs } = scheduleOf(compiled);
  const [m, n, k] = c;
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    uploadRepeated(instance, "x", { pool, place: places.x!, count: m * k });
    uploadRepeated(instance, "w", { pool, place: places.w!, count: n * k });
    scalesOf(k).forEach((scale, i) => {
      const bytes = new Uint8Array(Float32Array.of(scale).buffer);
      device.upload(instance.memory.addressOf(["a", "b"][i]!), bytes);
    });
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * m * n);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const off = worstError(c, (from, bytes) => device.download(y + BigInt(2 * from), bytes));
    if (!(off <= 1)) wrong++;
    const flops = 2 * m * n * k;
    const options = { flops, seconds };
    const turns = peer ? await timeInTurns(instance, peer, options) : undefined;
    const ours = turns?.ours ?? timeAlone(instance, options);
    if (isRow && turns) rows.push({ case: nameOf(c), ...turns, schedule });
    const ratio = turns
      ? `${turns.ratio.toFixed(3)} [${turns.low.toFixed(3)}, ${turns.high.toFixed(3)}] x torch (${turns.peer.toFixed(1)} us), `
      : "";
    console.error(
      `${off <= 1 ? "  " : "WRONG "}${nameOf(c)}: ${ours.toFixed(1)} us (priced ${pricedUs.toFixed(1)}), ` +
        `${(flops / ours / 1e6).toFixed(0)} TFLOP/s, ${ratio}error ${off.toFixed(2)}, ` +
        `${plan.program.kernels.length} kernels: ${schedule.slice(0, 400)}`,
    );
  } finally {
    instance.dispose();
  }
}

const { geomean, worst } = summary(rows);
if (given.has("--json")) console.log(JSON.stringify({ dtype, rows, geomean, worst, failed }));
console.log(
  `${dtype}: ${rows.length} cases, geomean ${geomean.toFixed(3)} x torch._scaled_mm${given.has("--fast") ? " with fast sums" : ""}, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
