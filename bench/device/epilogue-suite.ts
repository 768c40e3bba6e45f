/**
 * Products with what follows them in one kernel, against torch's inductor with max-autotune (its function
 * captured as a CUDA graph): layers of BERT, ViT and Llama in bf16 with sums in f32. Correctness first
 * (outputs poisoned, float64 at sampled rows), then times of both, interleaved in short rounds on random
 * data. Losses are shown like wins.
 * `--also "by wgmma tile …; …"` times such directives beside the choice.
 * Usage: node epilogue-suite.mjs [--only TEXT] [--also HOW] [--seconds S] [--python PATH] [--json]
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { erf } from "../../src/semantics/erf.ts";
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

/** What becomes of a sum s, with a bias b for its column and a value r of a tensor like the result. */
interface Epilogue {
  readonly ours: (g: GraphBuilder, s: ValueId, b: () => ValueId, r: () => ValueId) => ValueId;
  readonly torch: string;
  readonly exact: (s: number, b: number, r: number) => number;
  readonly uses: "" | "b" | "r" | "br";
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

const epilogues: Readonly<Record<string, Epilogue>> = {
  bias: {
    ours: (g, s, b) => g.add(s, b()),
    torch: "s + b",
    exact: (s, b) => s + b,
    uses: "b",
  },
  "bias gelu": {
    ours: (g, s, b) => g.node("gelu", [g.add(s, b())], { approximate: "none" }),
    torch: "F.gelu(s + b)",
    exact: (s, b) => 0.5 * (s + b) * (1 + erf((s + b) / Math.SQRT2)),
    uses: "b",
  },
  "bias tanh-gelu": {
    ours: (g, s, b) => g.node("gelu", [g.add(s, b())], { approximate: "tanh" }),
    torch: "F.gelu(s + b, approximate='tanh')",
    exact: (s, b) => {
      const x = s + b;
      return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    },
    uses: "b",
  },
  "bias relu": {
    ours: (g, s, b) => {
      const x = g.add(s, b());
      return g.apply("max", x, g.scalarLike(0, x));
    },
    torch: "F.relu(s + b)",
    exact: (s, b) => Math.max(0, s + b),
    uses: "b",
  },
  "bias residual": {
    ours: (g, s, b, r) => g.add(g.add(s, b()), r()),
    torch: "s + b + r",
    exact: (s, b, r) => s + b + r,
    uses: "br",
  },
  residual: {
    ours: (g, s, _b, r) => g.add(s, r()),
    torch: "s + r",
    exact: (s, _b, r) => s + r,
    uses: "r",
  },
  silu: {
    ours: (g, s) => g.node("silu", [s], {}),
    torch: "F.silu(s)",
    exact: (s) => s * sigmoid(s),
    uses: "",
  },
  gate: {
    ours: (g, s, _b, r) => g.mul(g.node("silu", [r()], {}), s),
    torch: "F.silu(r) * s",
    exact: (s, _b, r) => r * sigmoid(r) * s,
    uses: "r",
  },
  scale: {
    ours: (g, s) => g.applyNumber("mul", s, 0.125),
    torch: "s * 0.125",
    exact: (s) => s * 0.125,
    uses: "",
  },
};

interface EpilogueCase {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly epilogue: string;
}

const cases: readonly EpilogueCase[] = [
  { m: 6304, n: 2304, k: 768, epilogue: "bias" },
  { m: 6304, n: 3072, k: 768, epilogue: "bias gelu" },
  { m: 6304, n: 768, k: 3072, epilogue: "bias residual" },
  { m: 4096, n: 3072, k: 768, epilogue: "bias tanh-gelu" },
  { m: 16384, n: 768, k: 3072, epilogue: "bias residual" },
  { m: 8192, n: 8192, k: 8192, epilogue: "bias relu" },
  { m: 2048, n: 14336, k: 4096, epilogue: "silu" },
  { m: 2048, n: 14336, k: 4096, epilogue: "gate" },
  { m: 2048, n: 4096, k: 14336, epilogue: "residual" },
  { m: 4096, n: 4096, k: 4096, epilogue: "scale" },
  { m: 512, n: 4096, k: 4096, epilogue: "residual" },
  { m: 64, n: 4096, k: 14336, epilogue: "residual" },
];

const nameOf = ({ m, n, k, epilogue }: EpilogueCase): string => `${m}x${n}x${k} ${epilogue}`;

function graphOf({ m, n, k, epilogue }: EpilogueCase): Graph {
  const g = new GraphBuilder("product");
  const input = (name: string, ...shape: number[]) => g.input(name, tensorType("bf16", ...shape));
  const [x, w] = [input("x", m, k), input("w", n, k)];
  const { uses, ours } = epilogues[epilogue]!;
  const b = uses.includes("b") ? input("b", n) : undefined;
  const r = uses.includes("r") ? input("r", m, n) : undefined;
  const wide = (id: ValueId): ValueId => g.cast(id, "f32");
  const sums = g.einsum("i k, j k -> i j", x, w, "f32");
  const made = ours(
    g,
    sums,
    () => wide(b!),
    () => wide(r!),
  );
  return g.finish([g.cast(made, "bf16")]);
}

const period = 4_194_301;
const rng = new Rng(1);
const drawn = Float32Array.from({ length: period }, () => rng.normal());
const stored = Uint16Array.from(drawn, (v) => encodeFloat("bf16", v));
const weights = new Map<number, Uint16Array>();
const operands = ["x", "w", "b", "r"];

/** What operands repeat: weights are N(0, 1 / depth), as layers have them, so that sums are of the size of their operands. */
function poolOf(operand: string, k: number): Uint16Array {
  if (operand !== "w") return stored;
  const known = weights.get(k);
  if (known) return known;
  const made = Uint16Array.from(drawn, (v) => encodeFloat("bf16", v / Math.sqrt(k)));
  weights.set(k, made);
  return made;
}

/** Operands begin at different places of their pool. */
function reader(operand: string, k: number): (index: number) => number {
  const pool = poolOf(operand, k);
  const place = 1009 * operands.indexOf(operand);
  return (index) => decodeFloat("bf16", pool[(index + place) % period]!);
}

const peerText = `
import torch, torch.nn.functional as F
import torch._inductor.config as config
config.max_autotune_gemm_backends = "ATEN,TRITON"
def prepare(m):
    torch._dynamo.reset()
    make = lambda *s: torch.randn(*s, device="cuda", dtype=torch.bfloat16)
    x, w, b, r = make(m["m"], m["k"]), make(m["n"], m["k"]) / m["k"] ** 0.5, make(m["n"]), make(m["m"], m["n"])
    body = {}
    exec("def f(x, w, b, r):\\n    s = x @ w.t()\\n    return " + m["torch"], {"F": F}, body)
    compiled = torch.compile(body["f"], mode="max-autotune-no-cudagraphs")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): compiled(x, w, b, r)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = compiled(x, w, b, r)
    def run(): graph.replay()
    run.keep = (x, w, b, r, kept)
    return run
`;

/** The largest difference from float64 at sampled rows, in units of what rounding allows. */
function worstError(c: EpilogueCase, read: (at: number, bytes: Uint8Array) => void): number {
  const { m, n, k, epilogue } = c;
  const [xAt, wAt, bAt, rAt] = operands.map((name) => reader(name, k));
  const draw = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 12; sample++) {
    const i = [0, m - 1][sample] ?? draw.integer(0, m - 1);
    const bytes = new Uint8Array(2 * n);
    read(i * n, bytes);
    const row = new Uint16Array(bytes.buffer);
    for (let place = 0; place < 12; place++) {
      const j = [0, n - 1][place] ?? draw.integer(0, n - 1);
      let [sum, size] = [0, 0];
      for (let p = 0; p < k; p++) {
        const term = xAt!(i * k + p) * wAt!(j * k + p);
        sum += term;
        size += Math.abs(term);
      }
      const [b, r] = [bAt!(j), rAt!(i * n + j)];
      const { exact } = epilogues[epilogue]!;
      const want = exact(sum, b, r);
      // Sums of n terms in f32, in any order, and what the epilogue makes of that difference.
      const slack = size * Math.sqrt(k) * 2 ** -24;
      const spread = Math.abs(exact(sum + slack, b, r) - exact(sum - slack, b, r)) + slack * 1e-3;
      const off = Math.abs(decodeFloat("bf16", row[j]!) - want);
      const allowed = Math.abs(want) * 2 ** -8 + spread + 1e-5 * Math.abs(sum);
      worst = Math.max(worst, Number.isNaN(off) ? Infinity : off / allowed);
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
const peer = new TorchPeer(peerText, given.get("--python"));
const rows: Row[] = [];
const only = given.get("--only");
const chosenCases = cases.filter((one) => only === undefined || nameOf(one).includes(only));
/** Results that are off by more than rounding allows. */
let wrong = 0;
const failed = (await runCases(chosenCases, nameOf, runCase)) + wrong;
peer.end();

async function runCase(c: EpilogueCase): Promise<void> {
  // The peer tunes while ours compiles, and both are done before anything is timed.
  const ready = peer.prepare({ ...c, torch: epilogues[c.epilogue]!.torch });
  const model = { graph: graphOf(c), weights: noWeights };
  const chosen = take(compileModel(model, { target }));
  const { error: refused } = await ready;
  if (refused !== undefined) throw new Error(`peer: ${refused}`);
  await measure(c, chosen, true);
  const asked = given.get("--also") ?? "";
  await measureOthers(asked, { model, chosen, options: { target } }, (other) =>
    measure(c, other, false),
  );
}

/** @param isRow whether it is the choice, which is a row of the suite */
async function measure(c: EpilogueCase, compiled: CompiledModel, isRow: boolean): Promise<void> {
  const { plan, nests, model } = compiled;
  const { schedule, pricedUs } = scheduleOf(compiled);
  const { m, n, k } = c;
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const counts = new Map(Object.entries({ x: m * k, w: n * k, b: n, r: m * n }));
    for (const id of model.graph.inputs) {
      const { name } = model.graph.values[id]!;
      const count = counts.get(name)!;
      const place = 1009 * operands.indexOf(name);
      uploadRepeated(instance, name, { pool: poolOf(name, k), place, count });
    }
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * m * n);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const off = worstError(c, (at, bytes) => device.download(y + BigInt(2 * at), bytes));
    if (!(off <= 1)) wrong++;
    const flops = 2 * m * n * k;
    const turns = await timeInTurns(instance, peer, { flops, seconds });
    const { ours, peer: its, ratio, low, high } = turns;
    if (isRow) rows.push({ case: nameOf(c), ...turns, schedule });
    console.error(
      `${off <= 1 ? "  " : "WRONG "}${nameOf(c)}: ${ours.toFixed(1)} us (priced ${pricedUs.toFixed(1)}), ` +
        `${(flops / ours / 1e6).toFixed(0)} TFLOP/s, ${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] x inductor ` +
        `(${its.toFixed(1)} us), error ${off.toFixed(2)}, ${plan.program.kernels.length} kernels: ${schedule}`,
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
