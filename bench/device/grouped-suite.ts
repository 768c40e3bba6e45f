/**
 * Grouped products as the compiler makes them: the tokens of each expert fill whole tiles, and data says whose
 * weights a tile takes (y[t] = x[t] w[expert[t]]^T), in bf16 with f32 sums, against `torch._grouped_mm` on the same
 * rows, grouped by the same ends. Correctness first: outputs poisoned, float64 sums at sampled places, among them
 * the first and the last tile. Then times of both, interleaved in short rounds on random data; losses are shown.
 * `--also "by wgmma tile …; …"` times such directives beside the choice, `--shapes "tiles x rows x n x k x experts;…"`
 * takes other sizes.
 * Usage: node grouped-suite.mjs [--shapes S] [--only TEXT] [--also HOW] [--seconds S] [--python PATH] [--json]
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
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

/** Tiles, rows of each, columns and depth of an expert's weights, experts. */
type Case = readonly [tiles: number, rows: number, n: number, k: number, experts: number];

/** Layers of Granite-3.0 (1B, 3B), Mixtral-8x7B, Qwen3-30B-A3B and DeepSeek-V2-Lite, up and down. */
const layers: readonly Case[] = [
  [288, 128, 512, 1024, 32],
  [288, 128, 1024, 512, 32],
  [72, 128, 14336, 4096, 8],
  [72, 128, 4096, 14336, 8],
  [384, 128, 768, 2048, 128],
  [384, 128, 2048, 768, 128],
  [224, 128, 1408, 2048, 64],
  [64, 64, 1408, 2048, 64],
];

const asked = given.get("--shapes")?.split(";");
const cases = asked?.map((text) => text.split("x").map(Number) as unknown as Case) ?? layers;
const nameOf = ([tiles, rows, n, k, experts]: Case): string =>
  `${tiles} tiles of ${rows}, ${n}x${k} of ${experts} experts`;

function graphOf([tiles, rows, n, k, experts]: Case): Graph {
  const g = new GraphBuilder("grouped");
  const x = g.input("x", tensorType("bf16", tiles, rows, k));
  const which = g.input("expert", tensorType("i32", tiles));
  const w = g.input("w", tensorType("bf16", experts, n, k));
  const own = g.node("gather", [w, which], { axis: 0 });
  return g.finish([g.cast(g.einsum("t i k, t j k -> t i j", x, own, "f32"), "bf16")]);
}

/** Experts of the tiles in ascending order, drawn evenly. */
function expertsOf([tiles, , , , experts]: Case): Int32Array {
  const draw = new Rng(11);
  return Int32Array.from({ length: tiles }, () => draw.integer(0, experts - 1)).sort();
}

/** Operands repeat so many random elements, from different places on. */
const period = 4_194_301;
const rng = new Rng(1);
const pool = Uint16Array.from({ length: period }, () => encodeFloat("bf16", rng.normal()));
const places: Readonly<Record<string, number>> = { x: 0, w: 1009 };
const at = (operand: string, index: number): number =>
  decodeFloat("bf16", pool[(index + places[operand]!) % period]!);

const peerText = `
import torch
def prepare(m):
    make = lambda *s: torch.randn(*s, device="cuda", dtype=torch.bfloat16)
    x, w = make(m["tiles"] * m["rows"], m["k"]), make(m["experts"], m["n"], m["k"])
    ends = torch.tensor(m["ends"], device="cuda", dtype=torch.int32)
    def run(): return torch._grouped_mm(x, w.transpose(-2, -1), offs=ends)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = run()
    def again(): graph.replay()
    again.keep = (x, w, ends, kept)
    return again
`;

/** The largest difference at sampled places, in units of what rounding to bf16 and sums in f32 lose. */
function worstError(
  [tiles, rows, n, k]: Case,
  which: Int32Array,
  read: (from: number, bytes: Uint8Array) => void,
): number {
  const draw = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 12; sample++) {
    const t = [0, tiles - 1][sample] ?? draw.integer(0, tiles - 1);
    const i = [0, rows - 1][sample] ?? draw.integer(0, rows - 1);
    const bytes = new Uint8Array(2 * n);
    read((t * rows + i) * n, bytes);
    const row = new Uint16Array(bytes.buffer);
    for (let place = 0; place < 40; place++) {
      const j = [0, n - 1][place] ?? draw.integer(0, n - 1);
      let [sum, size] = [0, 0];
      for (let p = 0; p < k; p++) {
        const term = at("x", (t * rows + i) * k + p) * at("w", (which[t]! * n + j) * k + p);
        sum += term;
        size += Math.abs(term);
      }
      const slack = Math.abs(sum) * 2 ** -8 + size * Math.sqrt(k) * 2 ** -23;
      const off = Math.abs(decodeFloat("bf16", row[j]!) - sum) / slack;
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
const options = { target };
const peer = new TorchPeer(peerText, given.get("--python"));
const rows: Row[] = [];
const only = given.get("--only");
const chosenCases = cases.filter((one) => only === undefined || nameOf(one).includes(only));
/** Results that are off by more than rounding allows. */
let wrong = 0;
const failed = (await runCases(chosenCases, nameOf, runCase)) + wrong;
peer.end();

async function runCase(c: Case): Promise<void> {
  const [tiles, height, n, k, experts] = c;
  const which = expertsOf(c);
  const ends = Array.from(
    { length: experts },
    (_, e) => height * which.filter((w) => w <= e).length,
  );
  const ready = await peer.prepare({ tiles, rows: height, n, k, experts, ends });
  if (ready.error !== undefined) throw new Error(`peer: ${ready.error}`);
  const model = { graph: graphOf(c), weights: noWeights };
  const chosen = take(compileModel(model, options));
  await measure(c, which, { compiled: chosen, isRow: true });
  await measureOthers(given.get("--also") ?? "", { model, chosen, options }, (compiled) =>
    measure(c, which, { compiled, isRow: false }),
  );
}

/** `isRow`: whether it is the choice, which is a row of the suite. */
async function measure(
  c: Case,
  which: Int32Array,
  { compiled, isRow }: { readonly compiled: CompiledModel; readonly isRow: boolean },
): Promise<void> {
  const { plan, nests } = compiled;
  const { schedule, pricedUs } = scheduleOf(compiled);
  const [tiles, height, n, k, experts] = c;
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    uploadRepeated(instance, "x", { pool, place: places.x!, count: tiles * height * k });
    uploadRepeated(instance, "w", { pool, place: places.w!, count: experts * n * k });
    device.upload(instance.memory.addressOf("expert"), new Uint8Array(which.buffer));
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * tiles * height * n);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const off = worstError(c, which, (from, row) => device.download(y + BigInt(2 * from), row));
    const isRight = off <= 1;
    if (!isRight) wrong++;
    const flops = 2 * tiles * height * n * k;
    const turns = await timeInTurns(instance, peer, { flops, seconds });
    if (isRow) rows.push({ case: nameOf(c), ...turns, schedule });
    console.error(
      `${isRight ? "  " : "WRONG "}${nameOf(c)}: ${turns.ours.toFixed(1)} us (priced ${pricedUs.toFixed(1)}), ` +
        `${(flops / turns.ours / 1e6).toFixed(0)} TFLOP/s, ${turns.ratio.toFixed(3)} [${turns.low.toFixed(3)}, ${turns.high.toFixed(3)}] x torch (${turns.peer.toFixed(1)} us), ` +
        `error ${off.toFixed(2)}, ${plan.program.kernels.length} kernels: ${schedule.slice(0, 300)}`,
    );
  } finally {
    instance.dispose();
  }
}

const { geomean, worst } = summary(rows);
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${rows.length} cases, geomean ${geomean.toFixed(3)} x torch._grouped_mm, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
