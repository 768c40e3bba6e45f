/**
 * Matrix products as the compiler makes them (y = x w^T, f32 sums) against cuBLAS on one device: 60 shapes
 * of layers and squares, correctness first (outputs poisoned, float64 sums at sampled places and edges),
 * then times of both, interleaved, on the same random data with warm clocks. `--measure N` also tries the
 * next N schedules of the cost model's list and keeps the best. Losses are shown like wins.
 * `--also "by wgmma tile …; …"` measures such directives beside them.
 * `--shapes MxNxK,…` takes these sizes in place of the 60.
 * `--orders nn,tn,nt,tt` has the operands in memory as a product of x [m, k] and w [k, n] (n) or the other way (t),
 * cuBLAS too; without it y = x w^T, which is nt.
 * Usage: node gemm-suite.mjs [--type bf16|f32] [--only TEXT,…] [--shapes S,…] [--orders O,…] [--measure N] [--also HOW] [--seconds S] [--json]
 */
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent, createStream } from "../../src/runtime/cuda/stream.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule, printDirective } from "../../src/schedule/directive-text.ts";
import { dtypes } from "../../src/semantics/dtype.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { type OperandOrders, openBestBlas, operandOrders, type ProductShape } from "./blas.ts";
import { PlainReader } from "./plain-reader.ts";
import { loadProgram, openDevice, prepareLaunch, take } from "./ptx-launch.ts";
import { summary } from "./torch-peer.ts";

const given = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i]!;
  given.set(name, name === "--json" ? "" : process.argv[++i]!);
}
const dtype = given.get("--type") === "f32" ? "f32" : "bf16";
const bytesPerElement = dtype === "f32" ? 4 : 2;
const seconds = Number(given.get("--seconds") ?? 0.25);
const measured = Number(given.get("--measure") ?? 0);

interface SuiteShape extends ProductShape {
  readonly name: string;
}

interface SuiteCase extends SuiteShape {
  readonly orders: OperandOrders;
}

/** Orders as `--orders` gives them. */
function askedOrders(text: string): readonly OperandOrders[] {
  return text.split(",").map((asked) => {
    const known = operandOrders.find((orders) => orders === asked);
    if (!known) throw new Error(`--orders ${asked}: not one of ${operandOrders.join(", ")}`);
    return known;
  });
}

function layers(
  name: string,
  sizes: readonly (readonly [n: number, k: number])[],
  rows: readonly number[],
): readonly SuiteShape[] {
  return rows.flatMap((m) => sizes.map(([n, k]) => ({ name: `${name} ${m}x${n}x${k}`, m, n, k })));
}

/** Sizes as `--shapes` gives them. */
function askedShapes(text: string): readonly SuiteShape[] {
  return text.split(",").map((size) => {
    const [m, n, k] = size.split("x").map(Number) as [number, number, number];
    return { name: size, m, n, k };
  });
}

/** Rows are tokens; columns and depth are those of the layers' weights. */
const layerShapes: readonly SuiteShape[] = [
  ...[512, 1024, 2048, 4096, 8192, 16384].map((n) => ({ name: `square ${n}`, m: n, n, k: n })),
  ...layers(
    "llama-8b",
    [
      [6144, 4096],
      [4096, 4096],
      [28672, 4096],
      [4096, 14336],
    ],
    [1, 16, 64, 128, 512, 2048, 8192],
  ),
  ...layers(
    "qwen-7b",
    [
      [4608, 3584],
      [3584, 18944],
    ],
    [1, 128, 4096],
  ),
  ...layers(
    "bert-base",
    [
      [768, 768],
      [3072, 768],
      [768, 3072],
    ],
    [128, 4096, 16384],
  ),
  ...layers(
    "vit-b",
    [
      [2304, 768],
      [3072, 768],
    ],
    [6304],
  ),
  ...layers(
    "deepseek",
    [
      [2112, 7168],
      [24576, 1536],
      [7168, 2048],
    ],
    [64, 4096],
  ),
  ...layers("ragged", [[776, 328]], [1000]),
  ...layers("ragged", [[4093, 4091]], [4095]),
  ...layers("ragged", [[511, 1023]], [257]),
];

const chosenShapes = given.has("--shapes") ? askedShapes(given.get("--shapes")!) : layerShapes;
const shapes: readonly SuiteCase[] = askedOrders(given.get("--orders") ?? "nt").flatMap((orders) =>
  chosenShapes.map((s) => ({
    ...s,
    orders,
    name: orders === "nt" ? s.name : `${s.name} ${orders}`,
  })),
);

const target = targets.get(take(probeCuda()).targets[0]!)!;
const device = openDevice();
const stream = createStream(device);
const events = [createEvent(device), createEvent(device)] as const;
const blas = openBestBlas(device, stream, dtype);

/** Operands repeat this many random elements: a prime, so that no row is like another. */
const period = 4_194_301;
const pools = [1, 2].map((seed) => {
  const rng = new Rng(seed);
  const values = Float32Array.from({ length: 65536 }, () => rng.normal());
  let at = seed;
  const pick = (): number => {
    at = (Math.imul(at, 1664525) + 1013904223) >>> 0;
    return values[at >>> 16]!;
  };
  if (dtype === "f32") return Float32Array.from({ length: period }, pick);
  return Uint16Array.from({ length: period }, () => encodeFloat("bf16", pick()));
});

function valueAt(operand: number, index: number): number {
  const raw = pools[operand]![index % period]!;
  return dtype === "f32" ? raw : decodeFloat("bf16", raw);
}

function uploadOperand(operand: number, address: bigint, count: number): void {
  const pool = pools[operand]!;
  for (let from = 0; from < count; from += period) {
    const part = pool.subarray(0, Math.min(period, count - from));
    const bytes = new Uint8Array(part.buffer, 0, part.byteLength);
    device.upload(address + BigInt(from * bytesPerElement), bytes);
  }
}

function graphOf({ m, n, k, orders }: SuiteCase): Graph {
  const builder = new GraphBuilder("product");
  const type = (...shape: number[]) => ({ dtype, shape: shape.map((d) => constant(d)) }) as const;
  const [first, second] = [orders[0] === "t" ? "k i" : "i k", orders[1] === "t" ? "j k" : "k j"];
  const x = builder.input("x", orders[0] === "t" ? type(k, m) : type(m, k));
  const w = builder.input("w", orders[1] === "t" ? type(n, k) : type(k, n));
  const product = builder.einsum(`${first}, ${second} -> i j`, x, w, "f32");
  return builder.finish([dtype === "f32" ? product : builder.cast(product, dtype)]);
}

interface Candidate {
  readonly schedule: string;
  readonly pricedUs: number;
  readonly compileMs: number;
  readonly run: () => void;
  readonly unload: () => void;
  readonly times: number[];
}

interface Operands {
  readonly x: bigint;
  readonly w: bigint;
  readonly y: bigint;
  readonly z: bigint;
}

function prepare(
  shape: SuiteCase,
  at: Operands,
  schedule: Schedule | undefined,
): { readonly candidate: Candidate; readonly others: readonly Schedule[] } {
  const begin = performance.now();
  const graph = graphOf(shape);
  const asked = schedule && { measured: new Map([[schedule.region, schedule]]) };
  const model = { graph, weights: noWeights };
  const { plan, regions, nests } = take(compileModel(model, { target, ...asked }));
  const [region] = regions;
  const loaded = loadProgram(device, plan.program);
  const [output] = nests.outputs;
  const addresses = new Map([
    ["x", at.x],
    ["w", at.w],
    [output!, at.y],
  ]);
  // Sums of parts of the depth.
  const between = plan.program.buffers.filter((b) => b.kind === "scratch" && !b.viewOf);
  const held = between.map((b) => {
    const count = b.shape.reduce((n, e) => n * e.constant, 1);
    const memory = take(device.allocate((count * dtypes[b.dtype].bits) / 8));
    addresses.set(b.name, memory.address);
    return memory;
  });
  for (const b of plan.program.buffers) {
    const root = b.viewOf === undefined ? undefined : addresses.get(b.viewOf);
    if (root !== undefined) addresses.set(b.name, root);
  }
  const bound = { addresses, indices: new Map<string, number>() };
  const launches = plan.program.tasks.map((task) => {
    if (task.kind !== "launch") throw new Error(`a product has a task ${task.kind}`);
    return prepareLaunch(device, loaded, task.kernel, bound, task.after === "started");
  });
  const { directives } = region!.scheduled.schedule;
  const product = directives.find((d) => d.kind === "multiply");
  const others = regions.slice(1).flatMap((r) => r.scheduled.schedule.directives);
  const behind = others.filter((d) => d.kind === "multiply").map((d) => `, ${printDirective(d)}`);
  const parts =
    launches.length > 1 ? `${behind.join("")} in parts, ${launches.length} kernels` : "";
  const candidate = {
    schedule:
      (product ? printDirective(product) : `${directives.length} directives on threads`) + parts,
    pricedUs: regions.reduce((us, r) => us + r.price.estimateNs / 1000, 0),
    compileMs: performance.now() - begin,
    run: () => {
      for (const l of launches) l.launch(stream.handle);
    },
    unload: () => {
      loaded.unload();
      for (const memory of held) device.free(memory);
    },
    times: [],
  };
  return { candidate, others: region!.alternatives };
}

/** The schedules that the command line asks for. */
function asked(shape: SuiteCase, at: Operands): readonly Candidate[] {
  const hows = (given.get("--also") ?? "").split(";").filter((how) => how.trim() !== "");
  return hows.flatMap((how) => {
    try {
      const text = `schedule "S0" for "h200" { multiply S0 ${how.trim()} }`;
      return [prepare(shape, at, take(parseSchedule(text))).candidate];
    } catch (error) {
      console.error(`  ${how}: ${String((error as Error).message).slice(0, 500)}`);
      return [];
    }
  });
}

/** The largest difference from float64 sums, in units of what rounding allows. */
function worstError({ m, n, k, orders }: SuiteCase, y: bigint): number {
  const rng = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 16; sample++) {
    const i = sample === 0 ? 0 : sample === 1 ? m - 1 : rng.integer(0, m - 1);
    const bytes = new Uint8Array(n * bytesPerElement);
    device.download(y + BigInt(i * n * bytesPerElement), bytes);
    const row = dtype === "f32" ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
    for (let place = 0; place < 12; place++) {
      const j = place === 0 ? 0 : place === 1 ? n - 1 : rng.integer(0, n - 1);
      let [sum, size] = [0, 0];
      for (let p = 0; p < k; p++) {
        const left = orders[0] === "t" ? p * m + i : i * k + p;
        const right = orders[1] === "t" ? j * k + p : p * n + j;
        const term = valueAt(0, left) * valueAt(1, right);
        sum += term;
        size += Math.abs(term);
      }
      const found = dtype === "f32" ? row[j]! : decodeFloat("bf16", row[j]!);
      const rounding = dtype === "f32" ? 2 ** -23 : 2 ** -8;
      // Sums of n terms in f32, in any order: errors grow like the root of their number.
      const tolerance = Math.abs(sum) * rounding + size * Math.sqrt(k) * 2 ** -24;
      const off = Math.abs(found - sum) / tolerance;
      worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
    }
  }
  return worst;
}

const median = (times: number[]): number => times.sort((a, b) => a - b)[times.length >> 1]!;

/** Interleaved rounds; the first part only warms the clocks. */
function time(shape: ProductShape, runs: readonly { run: () => void; times: number[] }[]): void {
  const flops = 2 * shape.m * shape.n * shape.k;
  const repeats = Math.max(2, Math.min(50, Math.round(2e11 / flops)));
  const begin = performance.now();
  let rounds = 0;
  while (performance.now() - begin < 1000 * seconds || rounds < 7) {
    const isWarm = rounds++ > 1;
    for (const { run, times } of runs) {
      events[0].record(stream);
      for (let i = 0; i < repeats; i++) run();
      events[1].record(stream);
      const ms = events[1].since(events[0]) / repeats;
      if (flops / ms / 1e9 > 1150) throw new Error(`${ms} ms is below what the chip can do`);
      if (isWarm) times.push(ms);
    }
  }
}

interface Row {
  readonly case: string;
  readonly shape: ProductShape;
  readonly oursUs: number;
  readonly peerUs: number;
  readonly ratio: number;
  /** Time of a kernel that only reads the weights over ours, where that is most of it. */
  readonly reading: number | undefined;
  readonly error: number;
  readonly schedule: string;
}

/** Rows of few tokens are bound by reading the weights: these are told apart. */
const [fewTokens, largeWeights] = [64, 64e6];
const reader = new PlainReader(device);

const rows: Row[] = [];
let failed = 0;
const only = (given.get("--only") ?? "").split(",");
for (const shape of shapes.filter((s) => only.some((part) => s.name.includes(part)))) {
  const { m, n, k } = shape;
  const counts = [m * k, n * k, m * n, m * n];
  const memory = counts.map((count) => take(device.allocate(bytesPerElement * count)));
  const [x, w, y, z] = memory.map((a) => a.address) as [bigint, bigint, bigint, bigint];
  uploadOperand(0, x, m * k);
  uploadOperand(1, w, n * k);
  const at = { x, w, y, z };
  try {
    const first = prepare(shape, at, undefined);
    const more = first.others.slice(0, measured).map((s) => prepare(shape, at, s).candidate);
    const candidates = [first.candidate, ...more, ...asked(shape, at)];
    const errors = candidates.map((c) => {
      device.fill(y, 0xff, bytesPerElement * m * n);
      c.run();
      stream.synchronize();
      return worstError(shape, y);
    });
    const peer = { run: blas(shape, x, w, z, shape.orders).run, times: [] as number[] };
    const isRead = m <= fewTokens;
    const plain = reader.launchOf(w, n * k * bytesPerElement);
    const reading = { run: () => plain.launch(stream.handle), times: [] as number[] };
    time(shape, [...candidates, peer, ...(isRead ? [reading] : [])]);
    const peerUs = 1000 * median(peer.times);
    const readUs = isRead ? 1000 * median(reading.times) : undefined;
    candidates.forEach((c, i) => {
      const isRight = errors[i]! <= 1;
      if (!isRight) failed++;
      const us = 1000 * median(c.times);
      const tera = (2 * m * n * k) / us / 1e6;
      console.error(
        `${isRight ? "  " : "WRONG "}${shape.name}: ${us.toFixed(1)} us (priced ${c.pricedUs.toFixed(1)}), ${tera.toFixed(0)} TFLOP/s, ${(peerUs / us).toFixed(3)} x cuBLAS, ${readUs === undefined ? "" : `${(readUs / us).toFixed(3)} x reading, `}error ${errors[i]!.toFixed(2)}, compiled in ${c.compileMs.toFixed(0)} ms: ${c.schedule}`,
      );
      c.unload();
    });
    const right = candidates.filter((_, i) => errors[i]! <= 1);
    const best = right.sort((a, b) => median(a.times) - median(b.times))[0];
    if (best) {
      const oursUs = 1000 * median(best.times);
      const error = errors[candidates.indexOf(best)]!;
      rows.push({
        case: shape.name,
        shape,
        oursUs,
        peerUs,
        ratio: peerUs / oursUs,
        reading: readUs && readUs / oursUs,
        error,
        schedule: best.schedule,
      });
    }
  } catch (error) {
    failed++;
    console.error(`FAILED ${shape.name}: ${String((error as Error).message).slice(0, 300)}`);
  }
  for (const a of memory) device.free(a);
}
const isFew = ({ shape }: Row): boolean => shape.m <= fewTokens;
const isLarge = ({ shape: { n, k } }: Row): boolean => n * k * bytesPerElement >= largeWeights;
const groups = [
  { what: "all shapes", of: "cuBLAS", rows },
  {
    what: `of M <= ${fewTokens} with weights of 64 MB and more`,
    of: "reading",
    rows: rows.filter((r) => isFew(r) && isLarge(r)).map((r) => ({ ...r, ratio: r.reading! })),
  },
  {
    what: `of M <= ${fewTokens} with smaller weights`,
    of: "cuBLAS",
    rows: rows.filter((r) => isFew(r) && !isLarge(r)),
  },
].map((group) => ({ ...group, count: group.rows.length, ...summary(group.rows) }));
if (given.has("--json")) console.log(JSON.stringify({ dtype, rows, groups, failed }));
for (const { what, of, count, geomean, worst } of groups.filter((g) => g.count > 0))
  console.log(`${count} ${what}, geomean ${geomean.toFixed(3)} x ${of}, worst ${worst.toFixed(3)}`);
console.log(`${rows.length} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
