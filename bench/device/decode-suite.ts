/**
 * Attention of one token over a cache of keys and values of 64 MB and more, as the compiler makes it, against
 * the rate at which the device reads that cache. Correctness first (outputs poisoned, float64 at sampled rows),
 * then times of ours and of a kernel that only reads the same keys and values, in turns, each after 512 MB of
 * other memory were read, so that neither finds its operands in the cache. Losses are shown like wins.
 * `--attend TEXT` takes that schedule where attention is one kernel. `--lengths SEED` has caches filled to
 * lengths of their own, data drawn evenly from all; the reader reads as many bytes as the tokens before them have.
 * Usage: node decode-suite.mjs [--type bf16|f16] [--only TEXT] [--rounds N] [--attend TEXT] [--lengths SEED]
 */
import type { CompiledRegion } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule, printDirective } from "../../src/schedule/directive-text.ts";
import { targets } from "../../src/target/index.ts";
import {
  type AttentionCase,
  attentionGraph,
  drawLengths,
  elementsOf,
  OperandPool,
  uploadOperands,
  worstError,
} from "./attention-case.ts";
import { PlainReader } from "./plain-reader.ts";
import { take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);
const rounds = Number(given.get("--rounds") ?? 15);
const dtype = given.get("--type") === "f16" ? "f16" : "bf16";

/** Problems, heads, heads of keys and values, tokens of the cache, elements of a head. */
const shapes = [
  [8, 32, 32, 4096, 128],
  [64, 16, 16, 2048, 64],
  [16, 32, 8, 8192, 128],
  [32, 64, 8, 4096, 128],
  [4, 32, 8, 16384, 128],
  [4, 32, 8, 4096, 128],
  [1, 32, 8, 131072, 128],
  [1, 32, 32, 16384, 128],
] as const;

const cases: readonly AttentionCase[] = shapes.map(([batch, heads, groups, columns, depth]) => {
  const name = `${batch} x ${heads}/${groups} heads of ${depth}, ${columns} tokens`;
  const seed = given.get("--lengths");
  const drawn = seed === undefined ? {} : { lengths: drawLengths(Number(seed), batch, columns) };
  return { name, batch, heads, groups, rows: 1, columns, depth, causal: false, ...drawn };
});

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
const pool = new OperandPool(dtype);
const otherBytes = 2 ** 29;

const shares: number[] = [];
let failed = 0;
const only = given.get("--only");
for (const c of cases.filter((one) => only === undefined || one.name.includes(only))) {
  try {
    shares.push(runCase(c));
  } catch (error) {
    failed++;
    console.log(`FAILED ${c.name}: ${String((error as Error).message).slice(0, 600)}`);
  }
}

/** The schedule that the command line asks for, of the region that is attention as one kernel. */
function askedFor(regions: readonly CompiledRegion[]): ReadonlyMap<string, Schedule> | undefined {
  const how = given.get("--attend");
  const whole = regions.find((r) => r.scheduled.attention)?.scheduled;
  if (how === undefined || !whole) return undefined;
  const { name } = whole.region;
  const last = whole.statements.at(-1)!.statement.name;
  const text = `schedule "${name}" for "${target.name}" { attend ${last} ${how} }`;
  return new Map([[name, take(parseSchedule(text))]]);
}

/** The rate of ours over that of the reader. */
function runCase(c: AttentionCase): number {
  const graph = attentionGraph(c, dtype);
  const begin = performance.now();
  const chosen = take(compileModel({ graph, weights: noWeights }, { target }));
  const asked = askedFor(chosen.regions);
  const { plan, nests, regions, model } = asked
    ? take(compileModel({ graph, weights: noWeights }, { target, measured: asked }))
    : chosen;
  const compileMs = performance.now() - begin;
  const device = take(features.open());
  const other = take(device.allocate(otherBytes));
  const reader = new PlainReader(device);
  device.fill(other.address, 0x11, otherBytes);
  const flush = reader.launchOf(other.address, otherBytes);
  const events = [createEvent(device), createEvent(device)] as const;
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const { stream, memory } = instance;
    const names = model.graph.inputs.map((id) => model.graph.values[id]!.name);
    const addressOf = (name: string): bigint => memory.addressOf(name);
    const at = uploadOperands(device, { names, addressOf }, c, pool);
    const y = memory.addressOf(nests.outputs[0]!);
    device.fill(y, 0xff, 2 * elementsOf(c, 0));
    take(instance.repeat({}, 1));
    stream.synchronize();
    const error = worstError(c, pool, (at, bytes) => device.download(y + BigInt(2 * at), bytes));
    // Apart, the two products round scores and weights as the graph says, to as many bits as their operands.
    const allowed = regions.length === 1 ? 1 : 4;
    if (!(error <= allowed)) failed++;
    const tokens = c.lengths?.reduce((a, b) => a + b) ?? c.batch * c.columns;
    const bytes = 2 * tokens * c.groups * c.depth;
    const readers = ["k", "v"].map((name) => reader.launchOf(at.get(name)!, bytes));
    const sides = [
      { run: () => void take(instance.repeat({}, 1)), times: [] as number[] },
      {
        run: () => {
          for (const r of readers) r.launch(stream.handle);
        },
        times: [] as number[],
      },
    ];
    for (let round = 0; round < rounds + 2; round++) {
      for (const { run, times } of sides) {
        flush.launch(stream.handle);
        events[0].record(stream);
        run();
        events[1].record(stream);
        const ms = events[1].since(events[0]);
        if (round >= 2) times.push(ms);
      }
    }
    const [ours, peer] = sides.map(({ times }) => times.sort((a, b) => a - b)[times.length >> 1]!);
    const rate = (ms: number): string => (((2 * bytes) / ms) * 1e-6).toFixed(0);
    const schedule = regions
      .map(({ scheduled }) => scheduled.schedule.directives.map(printDirective).join("; "))
      .join(" | ");
    const price = regions.reduce((sum, r) => sum + r.price.estimateNs / 1000, 0);
    console.log(
      `${error <= allowed ? "  " : "WRONG "}${c.name}: ${((2 * bytes) / 2 ** 20).toFixed(0)} MB, ${(1000 * ours!).toFixed(1)} us (priced ${price.toFixed(1)}), ${rate(ours!)} GB/s, ${(peer! / ours!).toFixed(3)} x reading (${rate(peer!)}), error ${error.toFixed(2)}, compiled in ${compileMs.toFixed(0)} ms, ${plan.program.kernels.length} kernels: ${schedule}`,
    );
    return peer! / ours!;
  } finally {
    reader.free();
    device.free(other);
    instance.dispose();
  }
}

const geomean = Math.exp(shares.reduce((s, x) => s + Math.log(x), 0) / Math.max(1, shares.length));
console.log(
  `${shares.length} cases, geomean ${geomean.toFixed(3)} x reading, worst ${Math.min(...shares).toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
