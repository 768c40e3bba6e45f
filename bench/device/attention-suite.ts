/**
 * Attention forward as the compiler makes it against cuDNN through torch's scaled_dot_product_attention:
 * heads of 64, 128 and 256, 1k to 16k tokens, 16k tokens and 2048 channels in all, causal and full. Correctness
 * first (outputs poisoned, float64 at sampled rows), then times of both, interleaved in short rounds on
 * random data: the peer lives in a Python process that runs a timed batch for each line it is sent, so only
 * one of the two has work at a time. Each times its own batches by events. Losses are shown like wins.
 * `--measure N` also times the next N schedules as they are priced; `--attend TEXT` takes that one schedule.
 * `--behind N` has causal cases meet N columns before the last one alone; the peer is torch's compiled
 * flex_attention then, with a mask of blocks.
 * `--lengths SEED` has rows meet the columns before the length of their problem alone, lengths being data drawn
 * evenly from all; the peer is flex_attention with the mask of blocks of just these lengths.
 * `--heads N,…` has heads of these sizes instead, as many as the channels give.
 * Usage: node attention-suite.mjs [--type bf16|f16] [--only TEXT] [--behind N] [--lengths SEED] [--heads N,…] [--seconds S]
 *   [--measure N] [--attend TEXT] [--python PATH] [--json]
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { CompiledRegion } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
import { priceRegion } from "../../src/cost/region-price.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { enumerateBlockSchedules } from "../../src/schedule/blocks/block-candidates.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule, printDirective, printSchedule } from "../../src/schedule/directive-text.ts";
import { targets } from "../../src/target/index.ts";
import {
  type AttentionCase,
  attentionGraph,
  drawLengths,
  OperandPool,
  uploadOperands,
  worstError,
} from "./attention-case.ts";
import { take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i]!;
  given.set(name, name === "--json" ? "" : process.argv[++i]!);
}
const seconds = Number(given.get("--seconds") ?? 0.4);
const measured = Number(given.get("--measure") ?? 0);
const dtype = given.get("--type") === "f16" ? "f16" : "bf16";

const [tokens, channels] = [16384, 2048];

const isMasked = given.has("--behind") || given.has("--lengths");
const peerName = isMasked ? "flex_attention" : "cuDNN";
const band = given.has("--behind") ? { behind: Number(given.get("--behind")) } : {};

const depths = given.get("--heads")?.split(",").map(Number) ?? [64, 128, 256];
const cases: readonly AttentionCase[] = depths.flatMap((depth) =>
  (given.has("--behind") ? [true] : [false, true]).flatMap((causal) =>
    [1024, 2048, 4096, 8192, 16384].map((rows) => {
      const [batch, heads] = [tokens / rows, Math.floor(channels / depth)];
      const name = `head ${depth} ${causal ? "causal" : "full"} ${rows}`;
      const drawn = given.has("--lengths") && {
        lengths: drawLengths(Number(given.get("--lengths")), batch, rows),
      };
      const c = { name, batch, heads, groups: heads, rows, columns: rows, depth, causal };
      return { ...c, ...band, ...drawn };
    }),
  ),
);

const pool = new OperandPool(dtype);

/** Answers one line for each line: prepares a case, or times a batch of it. */
const peerText = `
import json, sys, torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.nn.attention import sdpa_kernel, SDPBackend
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
def banded(m):
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask
    behind, many, lens = m.get("behind", m["rows"]), None, None
    if m.get("lengths"):
        many, lens = m["batch"], torch.tensor(m["lengths"], device="cuda")
    def met(b, h, i, j):
        near = ((j <= i) & (i - j <= behind)) if m["causal"] else (j >= 0)
        return near if lens is None else near & (j < lens[b])
    mask = create_block_mask(met, many, None, m["rows"], m["columns"])
    torch._dynamo.reset()
    flex = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: flex(q, k, v, block_mask=mask)
for line in sys.stdin:
    m = json.loads(line)
    try:
        if m["op"] == "case":
            t = torch.bfloat16 if m["type"] == "bf16" else torch.float16
            make = lambda h, s: torch.randn(m["batch"], h, s, m["depth"], device="cuda", dtype=t)
            q, k, v = make(m["heads"], m["rows"]), make(m["groups"], m["columns"]), make(m["groups"], m["columns"])
            def run():
                if band: return band(q, k, v)
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    return sdpa(q, k, v, is_causal=m["causal"], enable_gqa=m["heads"] != m["groups"])
            band = banded(m) if m.get("behind") is not None or m.get("lengths") else None
            for _ in range(3): run()
            torch.cuda.synchronize()
            answer = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
        else:
            start.record()
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                for _ in range(m["runs"]): run()
            end.record()
            torch.cuda.synchronize()
            answer = {"ms": start.elapsed_time(end) / m["runs"]}
    except Exception as e:
        answer = {"error": str(e)[:300]}
    print(json.dumps(answer), flush=True)
`;

class Peer {
  readonly #child = spawn(given.get("--python") ?? "python3", ["-c", peerText], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  readonly #lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();

  async ask(message: object): Promise<{ ms?: number; error?: string; cudnn?: number }> {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the peer ended");
    return JSON.parse(value) as { ms?: number; error?: string };
  }

  end(): void {
    this.#child.stdin.end();
  }
}

/** Part of all scores that are met. */
function shareMet({ lengths, ...c }: AttentionCase): number {
  if (!lengths) return shareOf(c);
  const own = lengths.map((columns) => {
    const beyond = (c.rows - columns) * columns;
    return c.causal ? (columns * (columns + 1)) / 2 + beyond : c.rows * columns;
  });
  return own.reduce((a, b) => a + b) / (c.batch * c.rows * c.columns);
}

function shareOf({ rows, columns, causal, behind = Infinity }: Omit<AttentionCase, "lengths">) {
  if (!causal) return 1;
  const near = Math.min(rows, behind + 1);
  return ((near * (near + 1)) / 2 + (rows - near) * near) / rows / columns;
}

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
const peer = new Peer();
const rows: {
  case: string;
  ours: number;
  peer: number;
  ratio: number;
  low: number;
  high: number;
  schedule: string;
}[] = [];
let failed = 0;
const only = given.get("--only");
for (const c of cases.filter((one) => only === undefined || one.name.includes(only))) {
  try {
    const chosen = await runCase(c);
    if (measured > 0) for (const other of othersOf(chosen)) await runCase(c, other);
  } catch (error) {
    failed++;
    console.error(`FAILED ${c.name}: ${String((error as Error).message).slice(0, 600)}`);
  }
}
peer.end();

/** The next cheapest schedules of the region, as they are priced. */
function othersOf(regions: readonly CompiledRegion[]): readonly Schedule[] {
  const { scheduled } = regions.find((r) => r.scheduled.attention)!;
  const own = printSchedule(scheduled.schedule);
  const priced = enumerateBlockSchedules(scheduled.region, target).flatMap((schedule) => {
    const applied = applySchedule(scheduled.region, schedule);
    if (!applied.ok || !applied.value.attention || printSchedule(schedule) === own) return [];
    return [{ schedule, ns: priceRegion(applied.value, target).estimateNs }];
  });
  priced.sort((a, b) => a.ns - b.ns);
  return priced.slice(0, measured).map((p) => p.schedule);
}

/** The chosen schedule, or another one, which is no row of the suite. */
async function runCase(c: AttentionCase, other?: Schedule): Promise<readonly CompiledRegion[]> {
  const graph = attentionGraph(c, dtype);
  const plain = take(compileModel({ graph, weights: noWeights }, { target }));
  const use = other ?? askedFor(plain.regions);
  const compiled = use
    ? take(
        compileModel(
          { graph, weights: noWeights },
          { target, measured: new Map([[use.region, use]]) },
        ),
      )
    : plain;
  const { plan, nests, regions, model } = compiled;
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const names = model.graph.inputs.map((id) => model.graph.values[id]!.name);
    const addressOf = (name: string): bigint => instance.memory.addressOf(name);
    uploadOperands(device, { names, addressOf }, c, pool);
    const y = instance.memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * c.batch * c.heads * c.rows * c.depth);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const error = worstError(c, pool, (at, bytes) => device.download(y + BigInt(2 * at), bytes));
    if (!(error <= 1)) failed++;
    const ask = { ...c, type: dtype };
    const ready = await peer.ask({ op: "case", ...ask });
    if (ready.error) throw new Error(`peer: ${ready.error}`);
    const events = [createEvent(device), createEvent(device)] as const;
    const [ours, theirs, ratios] = [[] as number[], [] as number[], [] as number[]];
    const begin = performance.now();
    const runs = 4;
    while (performance.now() - begin < 1000 * seconds || ours.length < 7) {
      events[0].record(instance.stream);
      for (let i = 0; i < runs; i++) take(instance.repeat({}, 1));
      events[1].record(instance.stream);
      ours.push(events[1].since(events[0]) / runs);
      theirs.push((await peer.ask({ op: "time", runs, ...ask })).ms!);
      ratios.push(theirs.at(-1)! / ours.at(-1)!);
    }
    const us = (times: number[]): number => 1000 * quantile(times.slice(2), 0.5);
    const [oursUs, peerUs] = [us(ours), us(theirs)];
    const settled = ratios.slice(2);
    const flops = 4 * c.batch * c.heads * c.rows * c.columns * c.depth * shareMet(c);
    const schedule = regions
      .map(({ scheduled }) => scheduled.schedule.directives.map(printDirective).join("; "))
      .join(" | ");
    const ratio = quantile(settled, 0.5);
    if (!other)
      rows.push({
        case: c.name,
        ours: oursUs,
        peer: peerUs,
        ratio,
        low: quantile(settled, 0.1),
        high: quantile(settled, 0.9),
        schedule,
      });
    const price = regions.reduce((sum, r) => sum + r.price.estimateNs / 1000, 0);
    console.error(
      `${error <= 1 ? "  " : "WRONG "}${other ? "  also " : ""}${c.name}: ${oursUs.toFixed(1)} us (priced ${price.toFixed(1)}), ${(flops / oursUs / 1e6).toFixed(0)} TFLOP/s, ${ratio.toFixed(3)} x ${peerName} (${(flops / peerUs / 1e6).toFixed(0)}), error ${error.toFixed(2)}, ${plan.program.kernels.length} kernels: ${schedule}`,
    );
  } finally {
    instance.dispose();
  }
  return regions;
}

function askedFor(regions: readonly CompiledRegion[]): Schedule | undefined {
  const text = given.get("--attend");
  if (text === undefined) return undefined;
  const { scheduled } = regions.find((r) => r.scheduled.attention)!;
  const last = scheduled.statements.at(-1)!.statement.name;
  return take(
    parseSchedule(
      `schedule "${scheduled.region.name}" for "${target.name}" { attend ${last} ${text} }`,
    ),
  );
}

function quantile(times: number[], q: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(q * (times.length - 1))]!;
}

const logs = rows.reduce((s, r) => s + Math.log(r.ratio), 0);
const geomean = Math.exp(logs / Math.max(1, rows.length));
const worst = Math.min(...rows.map((r) => r.ratio));
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${rows.length} cases, geomean ${geomean.toFixed(3)} x ${peerName}, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
