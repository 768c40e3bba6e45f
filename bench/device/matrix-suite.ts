/**
 * Products on matrix units of types that torch multiplies as well, as the compiler makes them: of bytes (y = x w^T
 * in i32, against `torch._int_mm`) and of f32 in tf32 (against `torch.matmul` with TF32 allowed). Correctness
 * first (outputs poisoned): bytes have to be equal to sums of integers at sampled rows, f32 within what
 * tf32 loses of float64 sums. Then times of both, interleaved in short rounds on random data.
 * `--also "by wgmma tile …; …"` times such directives beside the choice, `--shapes "300x200x400;…"` takes other shapes.
 * Usage: node matrix-suite.mjs --type i8|tf32 [--shapes S] [--only TEXT] [--also HOW] [--seconds S] [--python PATH] [--json]
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { Rng } from "../../src/support/rng.ts";
import { tf32Error } from "../../src/target/allowing.ts";
import { targets } from "../../src/target/index.ts";
import { take } from "./ptx-launch.ts";
import {
  type InTurns,
  measureOthers,
  readOptions,
  runCases,
  scheduleOf,
  summary,
  TorchPeer,
  timeInTurns,
  uploadRepeated,
} from "./torch-peer.ts";

const given = readOptions(["--json"]);
const seconds = Number(given.get("--seconds") ?? 0.2);
const isOfBytes = given.get("--type") !== "tf32";

type Case = readonly [m: number, n: number, k: number];

const layers: readonly Case[] = [
  [2048, 2048, 2048],
  [4096, 4096, 4096],
  [8192, 8192, 8192],
  [32, 28672, 4096],
  [64, 7168, 2048],
  [128, 6144, 4096],
  [512, 4096, 14336],
  [2048, 28672, 4096],
  [4096, 2112, 7168],
  [8192, 4096, 14336],
];

const asked = given.get("--shapes")?.split(";");
const cases = asked?.map((text) => text.split("x").map(Number) as unknown as Case) ?? layers;
const nameOf = (c: Case): string => c.join("x");

function graphOf([m, n, k]: Case): Graph {
  const g = new GraphBuilder("product");
  const dtype = isOfBytes ? "i8" : "f32";
  const [x, w] = [g.input("x", tensorType(dtype, m, k)), g.input("w", tensorType(dtype, n, k))];
  const labels = { lhs: ["i", "k"], rhs: ["j", "k"], output: ["i", "j"] };
  const accumulator = isOfBytes ? "i32" : "f32";
  return g.finish([g.node("contract", [x, w], { ...labels, accumulator })]);
}

/** Operands repeat so many random elements, from different places on. */
const period = 4_194_301;
const rng = new Rng(1);
const pool = isOfBytes
  ? Int8Array.from({ length: period }, () => rng.integer(-128, 127))
  : Float32Array.from({ length: period }, () => rng.normal());
const places: Readonly<Record<string, number>> = { x: 0, w: 1009 };
const at = (operand: string, index: number): number => pool[(index + places[operand]!) % period]!;

const peerText = `
import torch
torch.backends.cuda.matmul.allow_tf32 = True
def prepare(m):
    if m["bytes"]: make = lambda *s: torch.randint(-128, 128, s, device="cuda", dtype=torch.int8)
    else: make = lambda *s: torch.randn(*s, device="cuda")
    x, w = make(m["m"], m["k"]), make(m["n"], m["k"])
    def run(): return torch._int_mm(x, w.t()) if m["bytes"] else torch.matmul(x, w.t())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = run()
    def again(): graph.replay()
    again.keep = (x, w, kept)
    return again
`;

/** The largest difference at sampled places: of integers itself, of f32 in units of what tf32 and sums in f32 lose. */
function worstError([m, n, k]: Case, read: (from: number, bytes: Uint8Array) => void): number {
  const draw = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 12; sample++) {
    const i = [0, m - 1][sample] ?? draw.integer(0, m - 1);
    const bytes = new Uint8Array(4 * n);
    read(i * n, bytes);
    const row = isOfBytes ? new Int32Array(bytes.buffer) : new Float32Array(bytes.buffer);
    for (let place = 0; place < 40; place++) {
      const j = [0, n - 1][place] ?? draw.integer(0, n - 1);
      let [sum, size] = [0, 0];
      for (let p = 0; p < k; p++) {
        const term = at("x", i * k + p) * at("w", j * k + p);
        sum += term;
        size += Math.abs(term);
      }
      const slack = isOfBytes ? 1 : size * (2 * tf32Error + Math.sqrt(k) * 2 ** -23);
      const off = Math.abs(row[j]! - sum) / slack;
      worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
    }
  }
  return worst;
}

interface Row extends InTurns {
  readonly case: string;
  readonly schedule: string;
}

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
const options = { target, ...(!isOfBytes && { allow: ["tf32" as const] }) };
const peer = new TorchPeer(peerText, given.get("--python"));
const rows: Row[] = [];
const only = given.get("--only");
const chosenCases = cases.filter((one) => only === undefined || nameOf(one).includes(only));
/** Results that are off by more than rounding allows. */
let wrong = 0;
const failed = (await runCases(chosenCases, nameOf, runCase)) + wrong;
peer.end();

async function runCase(c: Case): Promise<void> {
  const [m, n, k] = c;
  const ready = await peer.prepare({ m, n, k, bytes: isOfBytes });
  if (ready.error !== undefined) throw new Error(`peer: ${ready.error}`);
  const model = { graph: graphOf(c), weights: noWeights };
  const chosen = take(compileModel(model, options));
  await measure(c, chosen, true);
  await measureOthers(given.get("--also") ?? "", { model, chosen, options }, (other) =>
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
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 4 * m * n);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const off = worstError(c, (from, row) => device.download(y + BigInt(4 * from), row));
    const isRight = isOfBytes ? off === 0 : off <= 1;
    if (!isRight) wrong++;
    const flops = 2 * m * n * k;
    const turns = await timeInTurns(instance, peer, { flops, seconds });
    if (isRow) rows.push({ case: nameOf(c), ...turns, schedule });
    console.error(
      `${isRight ? "  " : "WRONG "}${nameOf(c)}: ${turns.ours.toFixed(1)} us (priced ${pricedUs.toFixed(1)}), ` +
        `${(flops / turns.ours / 1e6).toFixed(0)} TOP/s, ${turns.ratio.toFixed(3)} [${turns.low.toFixed(3)}, ${turns.high.toFixed(3)}] x torch (${turns.peer.toFixed(1)} us), ` +
        `error ${off.toPrecision(3)}, ${plan.program.kernels.length} kernels: ${schedule.slice(0, 300)}`,
    );
  } finally {
    instance.dispose();
  }
}

const { geomean, worst } = summary(rows);
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${isOfBytes ? "i8" : "tf32"}: ${rows.length} cases, geomean ${geomean.toFixed(3)} x ${isOfBytes ? "torch._int_mm" : "torch.matmul with TF32"}, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
