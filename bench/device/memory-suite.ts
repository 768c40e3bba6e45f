/**
 * Kernels that memory bounds (memory-cases.ts), as the compiler makes them, against the copy rate of the device:
 * elementwise chains, transposes, rotary embeddings, reductions, norms and softmax along each axis, norms of groups,
 * scans of many and of few lines along rows and down columns, places of the largest and the 50 largest, inputs of
 * 256 MB and more, and updates that meet, added or in place of what was there, of 16 MB. Correctness
 * first (outputs poisoned, float64 at sampled lines), then times of ours and of a copy of as many bytes, interleaved
 * with warm clocks. Bytes are those of the problem: each operand once. The ratio is our rate over the copy's.
 * `--only` and `--skip` take cases whose name has one of the texts, or none of them, and `--part I/N` the I-th of N
 * parts of those (from 1 on), so that a run can be in pieces; `--columns N` takes rows of another length, as many as
 * make about the same bytes; `--measure N` times also the next N schedules of cases that are one region, of those whose
 * text has one of the texts of `--like` where it is given (a semicolon between them); `--torch`
 * also torch, in turns with ours; `--slowest N` lists the N longest kernels of a case, each timed by itself.
 * Usage: node memory-suite.mjs [--only TEXT,…] [--skip TEXT,…] [--part I/N] [--seconds S] [--columns N] [--measure N] [--like TEXT;…]
 *   [--slowest N] [--torch] [--python PATH] [--json]
 */
import type { CompiledRegion } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
import { priceRegion } from "../../src/cost/region-price.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { enumerateBlockSchedules } from "../../src/schedule/blocks/block-candidates.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { printDirective, printSchedule } from "../../src/schedule/directive-text.ts";
import { dtypes } from "../../src/semantics/dtype.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import {
  type Family,
  families,
  type Kind,
  type MemoryCase,
  memoryCases,
  type Places,
  sum,
} from "./memory-cases.ts";
import { take } from "./ptx-launch.ts";
import { resultRoundings, softmaxRoundings } from "./roundings.ts";
import { readOptions, summary, TorchPeer, timeInTurns, uploadRepeated } from "./torch-peer.ts";

const given = readOptions(["--json", "--torch"]);
const seconds = Number(given.get("--seconds") ?? 0.3);
const measured = Number(given.get("--measure") ?? 0);
const slowest = Number(given.get("--slowest") ?? 0);

const period = 4_194_301;
const pool = Float64Array.from(
  { length: period },
  (
    (rng) => () =>
      rng.normal()
  )(new Rng(1)),
);
const stored = {
  f32: Float32Array.from(pool),
  bf16: Uint16Array.from(pool, (v) => encodeFloat("bf16", v)),
  f16: Uint16Array.from(pool, (v) => encodeFloat("f16", v)),
};

/** Operands begin at different places of the pool. */
function valueAt(dtype: Kind, operand: number, index: number): number {
  const raw = stored[dtype][(index + 1009 * operand) % period]!;
  return dtype === "f32" ? raw : decodeFloat(dtype, raw);
}

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
/** What rounding of results and sums allows, over their size. */
const unitOf: Readonly<Record<Kind, number>> = { f32: 2 ** -17, f16: 2 ** -9, bf16: 2 ** -6 };
const rows: {
  readonly case: string;
  readonly family: Family;
  readonly oursUs: number;
  readonly peerUs: number;
  readonly ratio: number;
  readonly schedule: string;
  /** Over torch's own kernels, where it was asked for. */
  readonly torch?: number;
}[] = [];
let failed = 0;
const peerText = `
import torch
import torch.nn.functional as F
def prepare(m):
    t = [torch.randn(s, device="cuda").to(getattr(torch, m["dtype"])) for s in m["shapes"]]
    made = eval("lambda t: " + m["code"], {"torch": torch, "F": F})
    return lambda: made(t)
`;
const peer = given.has("--torch") ? new TorchPeer(peerText, given.get("--python")) : undefined;
for (const c of chosenCases()) {
  try {
    const chosen = await runCase(c);
    if (chosen.length === 1) for (const other of othersOf(chosen[0]!)) await runCase(c, other);
  } catch (error) {
    failed++;
    console.error(`FAILED ${c.name}: ${String((error as Error).message).slice(0, 400)}`);
  }
}
peer?.end();

function chosenCases(): readonly MemoryCase[] {
  const [only, skip] = ["--only", "--skip"].map((name) => given.get(name)?.split(","));
  const [part, parts] = (given.get("--part") ?? "1/1").split("/").map(Number) as [number, number];
  if (!(part >= 1 && part <= parts)) throw new Error("--part takes I/N, I from 1 to N");
  return memoryCases(Number(given.get("--columns") ?? 8192))
    .filter(({ name }) => only === undefined || only.some((text) => name.includes(text)))
    .filter(({ name }) => !skip?.some((text) => name.includes(text)))
    .filter((_, i) => i % parts === part - 1);
}

/** The next cheapest schedules of a region, as they are priced. */
function othersOf({ scheduled }: CompiledRegion): readonly Schedule[] {
  const own = printSchedule(scheduled.schedule);
  const priced = enumerateBlockSchedules(scheduled.region, target).flatMap((schedule) => {
    const applied = applySchedule(scheduled.region, schedule);
    if (!applied.ok || printSchedule(schedule) === own) return [];
    return [{ schedule, ns: priceRegion(applied.value, target).estimateNs }];
  });
  priced.sort((a, b) => a.ns - b.ns);
  const like = given.get("--like")?.split(";");
  if (like) {
    const isLike = ({ schedule }: (typeof priced)[number]): boolean =>
      like.some((text) => printSchedule(schedule).includes(text));
    return priced
      .filter(isLike)
      .slice(0, measured)
      .map((p) => p.schedule);
  }
  return priced.slice(0, measured).map((p) => p.schedule);
}

/** The chosen schedule, or another one, which is no row of the suite. */
async function runCase(c: MemoryCase, other?: Schedule): Promise<readonly CompiledRegion[]> {
  const g = new GraphBuilder("memory");
  const operands = c.shapes.map((shape, i) =>
    g.input(`x${i}`, { dtype: c.dtype, shape: shape.map((d) => constant(d)) }),
  );
  const graph = g.finish([c.build(g, operands)]);
  const use = other && { measured: new Map([[other.region, other]]) };
  const { plan, nests, regions, model } = take(
    compileModel({ graph, weights: noWeights }, { target, ...use }),
  );
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const counts = c.shapes.map((shape) => shape.reduce((a, b) => a * b, 1));
    model.graph.inputs.forEach((id, i) => {
      const at = { pool: stored[c.dtype], place: 1009 * i, count: counts[i]! };
      uploadRepeated(instance, model.graph.values[id]!.name, at);
    });
    const y = instance.memory.addressOf(nests.outputs[0]!);
    const resultSize = dtypes[c.results.dtype].bits / 8;
    device.fill(y, 0xff, c.results.count * resultSize);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const error = worstError(c, (at, bytes) => device.download(y + BigInt(at * resultSize), bytes));
    if (!(error <= 1)) failed++;
    const bytes = (dtypes[c.dtype].bits / 8) * sum(counts) + resultSize * c.results.count;
    const half = Math.ceil(bytes / 32) * 16;
    const from = instance.memory.take(half);
    const to = instance.memory.take(half);
    device.upload(from, new Uint8Array(stored.f32.buffer).subarray(0, half));
    const copy = (): void =>
      device.driver.call("cuMemcpyDtoDAsync_v2", to, from, half, instance.stream.handle);
    const ours = { run: (): void => void take(instance.repeat({}, 1)), times: [] as number[] };
    const copies = { run: copy, times: [] as number[] };
    const events = [createEvent(device), createEvent(device)] as const;
    const begin = performance.now();
    while (performance.now() - begin < 1000 * seconds || ours.times.length < 5) {
      for (const { run, times } of [ours, copies]) {
        events[0].record(instance.stream);
        for (let i = 0; i < 4; i++) run();
        events[1].record(instance.stream);
        times.push(events[1].since(events[0]) / 4);
      }
    }
    const [oursUs, peerUs] = [ours, copies].map(({ times }) => 1000 * median(times.slice(2))) as [
      number,
      number,
    ];
    const schedule = regions
      .map(({ scheduled }) => scheduled.schedule.directives.map(printDirective).join("; "))
      .join(" | ");
    const torch = peer && !other ? await overTorch(peer, c, instance) : undefined;
    const row = {
      case: c.name,
      family: c.family,
      oursUs,
      peerUs,
      ratio: peerUs / oursUs,
      schedule,
    };
    if (!other) rows.push({ ...row, ...(torch !== undefined && { torch }) });
    const price = regions.reduce((us, r) => us + r.price.estimateNs / 1000, 0);
    const besideTorch = torch === undefined ? "" : `, ${torch.toFixed(3)} x torch`;
    console.error(
      `${error <= 1 ? "  " : "WRONG "}${other ? "  also " : ""}${c.name}: ${oursUs.toFixed(1)} us (priced ${price.toFixed(1)}), ${(bytes / oursUs / 1000).toFixed(0)} GB/s, ${(peerUs / oursUs).toFixed(3)} x copy (${(bytes / peerUs / 1000).toFixed(0)} GB/s)${besideTorch}, error ${error.toFixed(2)}, ${plan.program.kernels.length} kernels: ${schedule}`,
    );
    if (slowest > 0) listSlowest(instance, regions);
  } finally {
    instance.dispose();
  }
  return regions;
}

/** The longest kernels, each timed by itself, beside what they are priced at. */
function listSlowest(instance: CudaInstance, regions: readonly CompiledRegion[]): void {
  const found = new Map(regions.map((r) => [r.name, r]));
  const kernels = take(instance.timeLaunches({}, 20));
  const longest = kernels.toSorted((a, b) => b.ms - a.ms).slice(0, slowest);
  for (const { kernel, ms } of longest) {
    const region = found.get(kernel);
    const priced = region ? ` (priced ${(region.price.estimateNs / 1000).toFixed(1)})` : "";
    console.error(`    ${(1000 * ms).toFixed(1)} us ${kernel}${priced}`);
  }
}

/** How many times as fast as torch's own kernels. */
async function overTorch(
  torch: TorchPeer,
  { shapes, dtype, torch: code }: MemoryCase,
  instance: Parameters<typeof timeInTurns>[0],
): Promise<number> {
  const names = { f32: "float32", bf16: "bfloat16", f16: "float16" };
  const { error } = await torch.prepare({ shapes, dtype: names[dtype], code });
  if (error !== undefined) throw new Error(`torch: ${error}`);
  return (await timeInTurns(instance, torch, { flops: 2e10, seconds })).ratio;
}

/** Results of a line that are read one by one where they are far from each other, at most. */
const mostApart = 256;

/** The largest difference from float64 at sampled lines, in units of what rounding allows. */
function worstError(c: MemoryCase, read: (at: number, bytes: Uint8Array) => void): number {
  const rng = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 6; sample++) {
    const last = c.lines - 1;
    const line = sample === 0 ? 0 : sample === 1 ? last : rng.integer(0, last);
    const operands = c
      .madeOf(line)
      .map(({ start, step, count }, i) =>
        Float64Array.from({ length: count }, (_, n) => valueAt(c.dtype, i, start + n * step)),
      );
    const want = Float64Array.from(c.line(operands, line));
    const places = c.placesOf(line);
    const usual = Math.sqrt(sum(want.map((v) => v * v)) / want.length);
    const roundings = c.name.startsWith("softmax") ? softmaxRoundings(operands[0]!) : undefined;
    for (const [n, found] of resultsOf(places, c.results.dtype, rng, read)) {
      const off = Math.abs(found - want[n]!);
      if (c.results.dtype === "i64") worst = off === 0 ? worst : Infinity;
      else {
        const unit = unitOf[c.results.dtype];
        const allowed = unit * Math.max(1, (roundings?.[n] ?? 0) / resultRoundings);
        const share = off / (allowed * Math.max(usual, Math.abs(want[n]!)));
        worst = Number.isNaN(share) ? Infinity : Math.max(worst, share);
      }
    }
  }
  return worst;
}

/** Numbers of results in a line with what is in memory: all that lie behind each other, or some of them. */
function resultsOf(
  { start, step, count }: Places,
  dtype: Kind | "i64",
  rng: Rng,
  read: (at: number, bytes: Uint8Array) => void,
): readonly (readonly [number, number])[] {
  const size = dtypes[dtype].bits / 8;
  const load = (at: number, length: number): readonly number[] => {
    const bytes = new Uint8Array(length * size);
    read(at, bytes);
    if (dtype === "i64") return Array.from(new BigInt64Array(bytes.buffer), Number);
    if (dtype === "f32") return [...new Float32Array(bytes.buffer)];
    return Array.from(new Uint16Array(bytes.buffer), (raw) => decodeFloat(dtype, raw));
  };
  if (step === 1) return load(start, count).map((v, n) => [n, v]);
  return Array.from({ length: Math.min(count, mostApart) }, (_, i) => {
    const n =
      count <= mostApart ? i : i === 0 ? 0 : i === 1 ? count - 1 : rng.integer(0, count - 1);
    return [n, load(start + n * step, 1)[0]!];
  });
}

function rowsOf(wanted: readonly Family[]): typeof rows {
  return rows.filter((row) => wanted.includes(row.family));
}

function say(name: string, of: typeof rows): void {
  if (of.length === 0) return;
  const { geomean, worst } = summary(of);
  console.log(
    `  ${name}: ${of.length} cases, geomean ${geomean.toFixed(3)} x copy, worst ${worst.toFixed(3)}`,
  );
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

/** Each byte of these is read and written once: the rate of a copy is what they can reach. */
const streaming: readonly Family[] = ["norm", "softmax", "elementwise", "reduction"];
for (const family of families) say(family, rowsOf([family]));
say(streaming.join(", "), rowsOf(streaming));
const { geomean, worst } = summary(rows);
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${rows.length} cases, geomean ${geomean.toFixed(3)} x copy, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
