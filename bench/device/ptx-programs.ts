/**
 * The suite's programs without TMA on a device, against the host: the product of warps (cp.async, ldmatrix,
 * mma.sync), the row norm (shuffles, barriers), indirect indices with their checks, local arrays, a meeting of
 * the grid, loops dealt out over blocks. Poisoned outputs; ends with `N passed, N failed`.
 */
import { oddProgram, rowNormProgram, warpGemmProgram } from "../../campaign/ptx/simt-programs.ts";
import { createStream } from "../../src/runtime/cuda/stream.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
import { loadProgram, openDevice, prepareLaunch, take } from "./ptx-launch.ts";

const device = openDevice();
const stream = createStream(device);
const rng = new Rng(5);
let [passed, failed] = [0, 0];

function check(what: string, worst: number, most: number): void {
  if (worst <= most) passed++;
  else failed++;
  console.log(`${worst <= most ? "ok  " : "FAIL"} ${what}: ${worst} (at most ${most})`);
}

/** Device memory with these bytes, or poisoned. */
function place(bytes: number, content?: ArrayBufferView): bigint {
  const { address } = take(device.allocate(bytes));
  if (content) device.upload(address, new Uint8Array(content.buffer));
  else device.fill(address, 0xff, bytes);
  return address;
}

function run(
  text: string,
  kernel: string,
  addresses: ReadonlyMap<string, bigint>,
  indices: ReadonlyMap<string, number> = new Map(),
): void {
  const program = loadProgram(device, text);
  prepareLaunch(device, program, kernel, { addresses, indices }).launch(stream.handle);
  stream.synchronize();
  program.unload();
}

function floats(at: bigint, count: number): Float32Array {
  const found = new Float32Array(count);
  device.download(at, new Uint8Array(found.buffer));
  return found;
}

const worstOf = (count: number, off: (i: number) => number): number => {
  let worst = 0;
  for (let i = 0; i < count; i++) {
    const value = off(i);
    worst = Math.max(worst, Number.isNaN(value) ? Infinity : value);
  }
  return worst;
};

for (const [m, n, k] of [
  [64, 64, 96],
  [256, 128, 512],
  [512, 512, 2048],
] as const) {
  const bf16 = (count: number): Uint16Array =>
    Uint16Array.from({ length: count }, () => encodeFloat("bf16", rng.normal()));
  const [x, w] = [bf16(m * k), bf16(n * k)];
  const y = place(2 * m * n);
  run(
    warpGemmProgram(m, n, k),
    "main",
    new Map([
      ["x", place(x.byteLength, x)],
      ["w", place(w.byteLength, w)],
      ["y", y],
    ]),
  );
  const found = new Uint16Array(m * n);
  device.download(y, new Uint8Array(found.buffer));
  const worst = worstOf(m * n, (at) => {
    if (m * n > 1 << 16 && at % 37 !== 0) return 0;
    const [i, j] = [Math.floor(at / n), at % n];
    let [sum, size] = [0, 0];
    for (let p = 0; p < k; p++) {
      const term = decodeFloat("bf16", x[i * k + p]!) * decodeFloat("bf16", w[j * k + p]!);
      sum += term;
      size += Math.abs(term);
    }
    return (
      Math.abs(decodeFloat("bf16", found[at]!) - sum) / (Math.abs(sum) * 2 ** -8 + size * 2 ** -22)
    );
  });
  check(`gemm of warps ${m}x${n}x${k}, of the tolerance`, worst, 1);
}

{
  const rows = 300;
  const x = Float32Array.from({ length: rows * 1024 }, () => rng.normal());
  const g = Float32Array.from({ length: 1024 }, () => rng.normal());
  const y = place(4 * rows * 1024);
  run(
    rowNormProgram(rows),
    "main",
    new Map([
      ["x", place(x.byteLength, x)],
      ["g", place(4096, g)],
      ["y", y],
    ]),
  );
  const found = floats(y, rows * 1024);
  const scales = Array.from({ length: rows }, (_, r) => {
    let sum = 0;
    for (let i = 0; i < 1024; i++) sum += x[r * 1024 + i]! ** 2;
    return 1 / Math.sqrt(sum / 1024 + 1e-5);
  });
  const worst = worstOf(found.length, (at) => {
    const wanted = x[at]! * scales[Math.floor(at / 1024)]! * g[at % 1024]!;
    return Math.abs(found[at]! - wanted) / (Math.abs(wanted) + 1e-6);
  });
  check("row norm, relative", worst, 2e-6);
}

{
  const [m, n] = [1000, 777];
  const table = Float32Array.from({ length: m * 64 }, () => rng.normal());
  const at = BigInt64Array.from({ length: n }, () => BigInt(rng.integer(-m, m - 1)));
  const y = place(4 * n * 64);
  const faults = place(12, new Uint32Array(3));
  const indices = new Map([
    ["M", m],
    ["N", n],
  ]);
  const addresses = (rows: BigInt64Array) =>
    new Map([
      ["table", place(table.byteLength, table)],
      ["at", place(8 * n, rows)],
      ["y", y],
      ["faults", faults],
    ]);
  run(oddProgram, "gather", addresses(at), indices);
  const found = floats(y, n * 64);
  const worst = worstOf(found.length, (i) => {
    const row = (Number(at[Math.floor(i / 64)]) + m) % m;
    const wanted = Math.exp(table[row * 64 + (i % 64)]!);
    return Math.abs(found[i]! - wanted) / wanted;
  });
  check("gather through wrapped indices, relative", worst, 4e-7);
  const record = new Uint32Array(3);
  device.download(faults, new Uint8Array(record.buffer));
  check("no fault is recorded", record[0]!, 0);
  const wrong = at.slice();
  wrong[5] = BigInt(m + 3);
  run(oddProgram, "gather", addresses(wrong), indices);
  device.download(faults, new Uint8Array(record.buffer));
  check(
    "an index out of range is recorded with its value",
    record[0] === 1 && record[2] === m + 3 ? 0 : 1,
    0,
  );
}

{
  const [z, flag] = [place(4 * 256), place(4 * 264)];
  const counter = place(8, new Uint32Array(2));
  const barrier = place(4, new Uint32Array(1));
  const addresses = new Map([
    ["z", z],
    ["flag", flag],
    ["ready", counter],
    ["gridBarrier", barrier],
  ]);
  const found = new Int32Array(256);
  const program = loadProgram(device, oddProgram);
  const launch = prepareLaunch(device, program, "meet", { addresses, indices: new Map() });
  for (let round = 0; round < 50; round++) {
    device.fill(counter, 0, 8);
    device.fill(z, 0xff, 1024);
    device.fill(flag, 0xff, 4 * 264);
    launch.launch(stream.handle);
    stream.synchronize();
    device.download(z, new Uint8Array(found.buffer));
    const worst = worstOf(256, (i) => {
      const [b, t] = [Math.floor(i / 32), i % 32];
      return Math.abs(found[i]! - (((b + 1) % 8) + ((t + b) % 8) * t));
    });
    if (worst > 0 || round === 49) {
      check(`meeting of the grid, round ${round}`, worst, 0);
      break;
    }
  }
  const before = found.slice();
  run(oddProgram, "dealt", addresses, new Map([["threads", 7]]));
  device.download(z, new Uint8Array(found.buffer));
  check(
    "a loop dealt out over blocks",
    worstOf(256, (i) => Math.abs(found[i]! - 3 * before[i]!)),
    0,
  );
}

console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
