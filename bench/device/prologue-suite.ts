/**
 * Products whose operands are made of what is stored, against torch's inductor with max-autotune (its function captured
 * as a CUDA graph): weights of 8 and 4 bits that are dequantised to bf16 (a scale a column, or a block of the depth), relu
 * and a conversion from f32 in front. Correctness first (outputs poisoned, float64 at sampled rows), then times of
 * both, interleaved in short rounds on random data. Weights are constants: where the compiler dequantises them
 * ahead, the program reads bf16, and says so; torch dequantises in every run, `--stored` gives it dequantised
 * weights as well. torch has no 4 bits: it is given bytes. Losses are shown like wins.
 * `--also "by mma tile …; …"` times such directives beside the choice.
 * Usage: node prologue-suite.mjs [--only TEXT] [--also HOW] [--stored] [--seconds S] [--python PATH] [--json]
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Model, ValueId, WeightStore } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { ModelSession } from "../../src/runtime/model-session.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
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

const given = readOptions(["--json", "--stored"]);
const seconds = Number(given.get("--seconds") ?? 0.2);

type Kind = "i8" | "i8 blocks" | "u4 blocks" | "relu" | "cast";

interface PrologueCase {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly kind: Kind;
}

/** Elements of the depth that share a scale. */
const blockSize = 128;

const cases: readonly PrologueCase[] = [
  ...[1, 8, 32, 256].map((m) => ({ m, n: 4096, k: 4096, kind: "i8" as const })),
  ...[1, 8, 32, 256].map((m) => ({ m, n: 14336, k: 4096, kind: "i8" as const })),
  ...[1, 32].map((m) => ({ m, n: 14336, k: 4096, kind: "i8 blocks" as const })),
  ...[1, 8, 32].map((m) => ({ m, n: 14336, k: 4096, kind: "u4 blocks" as const })),
  ...[32, 256, 4096].map((m) => ({ m, n: 4096, k: 4096, kind: "relu" as const })),
  ...[32, 256, 4096].map((m) => ({ m, n: 4096, k: 4096, kind: "cast" as const })),
];

const nameOf = ({ m, n, k, kind }: PrologueCase): string => `${m}x${n}x${k} ${kind}`;
const isQuantised = ({ kind }: PrologueCase): boolean => kind !== "relu" && kind !== "cast";
const hasBlocks = ({ kind }: PrologueCase): boolean => kind.endsWith("blocks");
const codeOf = ({ kind }: PrologueCase): "i8" | "u4" => (kind.startsWith("u4") ? "u4" : "i8");

const period = 4_194_301;
const rng = new Rng(1);
const drawn = Float32Array.from({ length: period }, () => rng.normal());
const halves = Uint16Array.from(drawn, (v) => encodeFloat("bf16", v));
const bytes = Int8Array.from({ length: period }, () => rng.integer(-128, 127));
/** Scales of weights that are then about N(0, 1 / depth). */
const scales = Uint16Array.from({ length: 4099 }, () =>
  encodeFloat("bf16", (0.5 + rng.uniform()) / 4096),
);
const weightPlace = 1009;
const zeroPoint = 8;

const codeAt = (c: PrologueCase, at: number): number => {
  const byte = bytes[(at + weightPlace) % period]!;
  return codeOf(c) === "u4" ? byte & 15 : byte;
};
const scaleAt = (at: number): number => decodeFloat("bf16", scales[at % scales.length]!);
const rounded = (x: number): number => decodeFloat("bf16", encodeFloat("bf16", Math.fround(x)));

/** What is multiplied, as the model says it, in float64. */
function leftAt({ kind }: PrologueCase, at: number): number {
  if (kind === "cast") return rounded(drawn[at % period]!);
  const x = decodeFloat("bf16", halves[at % period]!);
  return kind === "relu" ? Math.max(0, x) : x;
}

function rightAt(c: PrologueCase, row: number, deep: number): number {
  const at = row * c.k + deep;
  if (!isQuantised(c)) return decodeFloat("bf16", halves[(at + weightPlace) % period]!);
  const scale = scaleAt(
    hasBlocks(c) ? row * (c.k / blockSize) + Math.floor(deep / blockSize) : row,
  );
  const zero = codeOf(c) === "u4" ? zeroPoint : 0;
  return rounded((codeAt(c, at) - zero) * scale);
}

function modelOf(c: PrologueCase): Model {
  const { m, n, k, kind } = c;
  const g = new GraphBuilder("prologue");
  const x = g.input("x", tensorType(kind === "cast" ? "f32" : "bf16", m, k));
  const product = (left: ValueId, right: ValueId) =>
    g.finish([g.cast(g.einsum("i k, j k -> i j", left, right, "f32"), "bf16")]);
  if (!isQuantised(c)) {
    const left = kind === "cast" ? g.cast(x, "bf16") : g.apply("relu", x);
    const right = g.weight("w", tensorType("bf16", n, k));
    return { graph: product(left, right), weights: weightsOf(c) };
  }
  const places = hasBlocks(c) ? [n, k / blockSize] : [n];
  const w = g.weight("w", tensorType(codeOf(c), n, k));
  const s = g.weight("s", tensorType("bf16", ...places));
  const zeros = codeOf(c) === "u4" ? [g.weight("z", tensorType("u4", ...places))] : [];
  const how = hasBlocks(c) ? { axis: 1, blockSize } : { axis: 0 };
  const right = g.node("dequantize", [w, s, ...zeros], { ...how, to: "bf16" });
  return { graph: product(x, right), weights: weightsOf(c) };
}

function weightsOf(c: PrologueCase): WeightStore {
  const { n, k } = c;
  const count = n * k;
  const places = hasBlocks(c) ? [n, k / blockSize] : [n];
  const size = places.reduce((a, b) => a * b, 1);
  const packed = (codes: (at: number) => number, of: number) =>
    Uint8Array.from({ length: of / 2 }, (_, i) => codes(2 * i) | (codes(2 * i + 1) << 4));
  const read = (key: string): Tensor => {
    if (key === "s") {
      const data = Uint16Array.from({ length: size }, (_, i) => scales[i % scales.length]!);
      return { dtype: "bf16", shape: places, data };
    }
    if (key === "z") return { dtype: "u4", shape: places, data: packed(() => zeroPoint, size) };
    if (codeOf(c) === "u4" && isQuantised(c))
      return { dtype: "u4", shape: [n, k], data: packed((at) => codeAt(c, at), count) };
    if (isQuantised(c)) {
      const data = Int8Array.from({ length: count }, (_, at) => codeAt(c, at));
      return { dtype: "i8", shape: [n, k], data };
    }
    const data = Uint16Array.from(
      { length: count },
      (_, at) => halves[(at + weightPlace) % period]!,
    );
    return { dtype: "bf16", shape: [n, k], data };
  };
  return { read };
}

const peerText = `
import torch, torch.nn.functional as F
import torch._inductor.config as config
config.max_autotune_gemm_backends = "ATEN,TRITON"
def prepare(m):
    torch._dynamo.reset()
    half = torch.bfloat16
    x = torch.randn(m["m"], m["k"], device="cuda", dtype=torch.float32 if m["kind"] == "cast" else half)
    if not m["quantised"]:
        w, s = torch.randn(m["n"], m["k"], device="cuda", dtype=half), None
        front = {"relu": F.relu, "cast": lambda x: x.to(half)}[m["kind"]]
        def f(x, w, s): return front(x) @ w.t()
    else:
        w = torch.randint(-128, 128, (m["n"], m["k"]), device="cuda", dtype=torch.int8)
        deep = m["k"] // m["block"] if m["blocks"] else 1
        s = torch.rand(m["n"], deep, 1, device="cuda", dtype=half) / m["k"]
        wide = lambda w, s: (w.view(m["n"], deep, -1).to(half) * s).view(m["n"], m["k"])
        if m["stored"]:
            w = wide(w, s)
            def f(x, w, s): return x @ w.t()
        else:
            def f(x, w, s): return x @ wide(w, s).t()
    compiled = torch.compile(f, mode="max-autotune-no-cudagraphs")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): compiled(x, w, s)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = compiled(x, w, s)
    def run(): graph.replay()
    run.keep = (x, w, s, kept)
    return run
`;

/** The largest difference from float64 at sampled places, in units of what rounding allows. */
function worstError(c: PrologueCase, read: (at: number, row: Uint8Array) => void): number {
  const { m, n, k } = c;
  const draw = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 12; sample++) {
    const i = [0, m - 1][sample] ?? draw.integer(0, m - 1);
    const raw = new Uint8Array(2 * n);
    read(i * n, raw);
    const row = new Uint16Array(raw.buffer);
    for (let place = 0; place < 12; place++) {
      const j = [0, n - 1][place] ?? draw.integer(0, n - 1);
      let [sum, size, squares] = [0, 0, 0];
      for (let p = 0; p < k; p++) {
        const term = leftAt(c, i * k + p) * rightAt(c, j, p);
        sum += term;
        size += Math.abs(term);
        squares += term ** 2;
      }
      const off = Math.abs(decodeFloat("bf16", row[j]!) - sum);
      // A scale of a whole column may stand behind the sum: then no product is rounded to bf16 by itself.
      const late = c.kind === "i8" ? 4 * 2 ** -9 * Math.sqrt(squares) : 0;
      const allowed = Math.abs(sum) * 2 ** -8 + size * Math.sqrt(k) * 2 ** -24 + late;
      worst = Math.max(worst, Number.isNaN(off) ? Infinity : off / allowed);
    }
  }
  return worst;
}

interface Row extends InTurns {
  readonly case: string;
  readonly schedule: string;
  readonly reads: string;
}

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
const peer = new TorchPeer(peerText, given.get("--python"));
const rows: Row[] = [];
const only = given.get("--only");
const chosenCases = cases.filter((one) => only === undefined || nameOf(one).includes(only));
/** Results that are off by more than rounding allows. */
let wrong = 0;
const failed = (await runCases(chosenCases, nameOf, runCase)) + wrong;
peer.end();

async function runCase(c: PrologueCase): Promise<void> {
  const stored = given.has("--stored");
  const how = { quantised: isQuantised(c), blocks: hasBlocks(c), block: blockSize, stored };
  // The peer tunes while ours compiles, and both are done before anything is timed.
  const ready = peer.prepare({ ...c, ...how });
  const model = modelOf(c);
  const chosen = take(compileModel(model, { target }));
  const { error: refused } = await ready;
  if (refused !== undefined) throw new Error(`peer: ${refused}`);
  await measure(c, chosen, true);
  const asked = given.get("--also") ?? "";
  await measureOthers(asked, { model, chosen, options: { target } }, (other) =>
    measure(c, other, false),
  );
}

/** Types in which weights are in the device's memory. */
function storedTypes({ model: { graph } }: CompiledModel): string {
  return graph.weights.map(({ value }) => graph.values[value]!.type.dtype).join(" ");
}

/** @param isRow whether it is the choice, which is a row of the suite */
async function measure(c: PrologueCase, compiled: CompiledModel, isRow: boolean): Promise<void> {
  const { plan, nests, model } = compiled;
  const { schedule, pricedUs } = scheduleOf(compiled);
  const { m, n, k } = c;
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    // The session brings the weights.
    new ModelSession(plan.program, instance, { weight: weightReader(model) });
    const pool = c.kind === "cast" ? drawn : halves;
    uploadRepeated(instance, "x", { pool, place: 0, count: m * k });
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * m * n);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const off = worstError(c, (at, row) => device.download(y + BigInt(2 * at), row));
    if (!(off <= 1)) wrong++;
    const flops = 2 * m * n * k;
    const turns = await timeInTurns(instance, peer, { flops, seconds });
    const { ours, peer: its, ratio, low, high } = turns;
    const reads = storedTypes(compiled);
    if (isRow) rows.push({ case: nameOf(c), ...turns, schedule, reads });
    console.error(
      `${off <= 1 ? "  " : "WRONG "}${nameOf(c)}: ${ours.toFixed(1)} us (priced ${pricedUs.toFixed(1)}), ` +
        `${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] x inductor (${its.toFixed(1)} us), ` +
        `error ${off.toFixed(2)}, weights ${reads}, ${plan.program.kernels.length} kernels: ${schedule.slice(0, 300)}`,
    );
  } finally {
    instance.dispose();
  }
}

const { geomean, worst } = summary(rows);
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${rows.length} cases, geomean ${geomean.toFixed(3)} x inductor, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
