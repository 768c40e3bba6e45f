/**
 * The persistent bf16 matrix product in program form (campaign/ptx/gemm-program.ts), emitted as PTX, on a
 * device: outputs poisoned, agreement with float64 sums at sampled places and every edge, then time against
 * cuBLAS on the same random data, interleaved, clocks warm. Usage: node gemm-program.mjs [seconds a shape]
 */
import { type GemmSchedule, type GemmShape, gemmProgram } from "../../campaign/ptx/gemm-program.ts";
import { createEvent, createStream } from "../../src/runtime/cuda/stream.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
import { openBlas } from "./blas.ts";
import { loadProgram, openDevice, prepareLaunch, take } from "./ptx-launch.ts";

const seconds = Number(process.argv[2] ?? 1.5);
const shapes: readonly GemmShape[] = [
  { m: 512, n: 512, k: 256 },
  { m: 1000, n: 776, k: 328 },
  { m: 4096, n: 4096, k: 4096 },
  { m: 8192, n: 8192, k: 8192 },
  { m: 2048, n: 2048, k: 2048 },
  { m: 4096, n: 14336, k: 4096 },
];
const base: GemmSchedule = {
  consumers: 2,
  columns: 256,
  stages: 4,
  cluster: 2,
  clusters: 66,
  group: 8,
  registers: [24, 240],
};
const schedules: readonly (readonly [string, GemmSchedule])[] = [
  ["128x256 cluster 2", base],
  ["128x256 cluster 2, 64 clusters", { ...base, clusters: 64 }],
  ["128x256 cluster 1", { ...base, cluster: 1, clusters: 132 }],
];

const device = openDevice();
const stream = createStream(device);
const events = [createEvent(device), createEvent(device)] as const;

function randomBf16(count: number, seed: number): Uint16Array {
  const rng = new Rng(seed);
  const values = Uint16Array.from({ length: 65536 }, () => encodeFloat("bf16", rng.normal()));
  const out = new Uint16Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    at = (Math.imul(at, 1664525) + 1013904223) >>> 0;
    out[i] = values[at >>> 16]!;
  }
  return out;
}

/** The largest difference from float64 in units of the rounding to bf16, at sampled places. */
function worstError(shape: GemmShape, x: Uint16Array, w: Uint16Array, y: Uint16Array): number {
  const { m, n, k } = shape;
  const rng = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 600; sample++) {
    const edge = sample % 8;
    const i = edge === 0 ? 0 : edge === 1 ? m - 1 : rng.integer(0, m - 1);
    const j = edge === 2 ? 0 : edge === 3 ? n - 1 : rng.integer(0, n - 1);
    let [sum, size] = [0, 0];
    for (let p = 0; p < k; p++) {
      const term = decodeFloat("bf16", x[i * k + p]!) * decodeFloat("bf16", w[j * k + p]!);
      sum += term;
      size += Math.abs(term);
    }
    const found = decodeFloat("bf16", y[i * n + j]!);
    const tolerance = Math.abs(sum) * 2 ** -8 + size * 2 ** -22;
    const off = Math.abs(found - sum) / tolerance;
    worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
  }
  return worst;
}

const median = (times: number[]): number => times.sort((a, b) => a - b)[times.length >> 1]!;
const blas = openBlas(stream, "bf16");
let failed = 0;
for (const shape of shapes) {
  const { m, n, k } = shape;
  const [hx, hw] = [randomBf16(m * k, 1), randomBf16(n * k, 2)];
  const memory = [m * k, n * k, m * n, m * n].map((count) => take(device.allocate(2 * count)));
  const [x, w, y, z] = memory.map((a) => a.address) as [bigint, bigint, bigint, bigint];
  device.upload(x, new Uint8Array(hx.buffer));
  device.upload(w, new Uint8Array(hw.buffer));
  const addresses = new Map([
    ["x", x],
    ["w", w],
    ["y", y],
  ]);
  const runs = schedules.map(([name, schedule]) => {
    const program = loadProgram(device, gemmProgram(shape, schedule));
    const launch = prepareLaunch(device, program, "main", { addresses, indices: new Map() });
    device.fill(y, 0xff, 2 * m * n);
    launch.launch(stream.handle);
    stream.synchronize();
    const found = new Uint16Array(m * n);
    device.download(y, new Uint8Array(found.buffer));
    const unwritten = found.reduce((count, v) => count + (v === 0xffff ? 1 : 0), 0);
    const error = worstError(shape, hx, hw, found);
    const right = unwritten === 0 && error <= 1;
    if (!right) failed++;
    console.log(
      `${right ? "ok  " : "FAIL"} ${m}x${n}x${k} ${name}: ${error.toFixed(3)} of the tolerance, ${unwritten} unwritten`,
    );
    return { name, run: () => launch.launch(stream.handle), times: [] as number[] };
  });
  runs.push({ name: "cuBLAS", run: () => blas(shape, x, w, z), times: [] });
  if (m * n * k >= 2 ** 33) time(shape, runs);
  for (const a of memory) device.free(a);
}
console.log(`\n${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** Interleaved rounds for as long as was asked; the first part only warms the clocks. */
function time(
  { m, n, k }: GemmShape,
  runs: readonly { readonly name: string; readonly run: () => void; readonly times: number[] }[],
): void {
  const flops = 2 * m * n * k;
  const repeats = Math.max(2, Math.round(4e12 / flops));
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds) {
    const warm = performance.now() - begin > 300;
    for (const { run, times } of runs) {
      events[0].record(stream);
      for (let i = 0; i < repeats; i++) run();
      events[1].record(stream);
      const ms = events[1].since(events[0]) / repeats;
      if (flops / ms / 1e9 > 1150) throw new Error(`${ms} ms is below what the chip can do`);
      if (warm) times.push(ms);
    }
  }
  const peer = median(runs.at(-1)!.times);
  for (const { name, times } of runs) {
    const ms = median(times);
    const rate = (flops / ms / 1e9).toFixed(0);
    const spread = ((times.at(-1)! - times[0]!) / ms) * 100;
    console.log(
      `${m}x${n}x${k} ${name}: ${(1000 * ms).toFixed(1)} us, ${rate} TFLOP/s, ${(peer / ms).toFixed(3)} x cuBLAS (${times.length} rounds, spread ${spread.toFixed(1)} %)`,
    );
  }
}
