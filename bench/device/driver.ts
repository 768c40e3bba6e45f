/**
 * The CUDA runtime on a real device, correctness first: values of a kernel against the host, poisoned
 * outputs, graph replay, the memory ledger, cubins kept and reloaded, refusals of the assembler and of the
 * driver, and launch costs. Ends with `N passed, N failed`. Usage: node driver.mjs
 */
import { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { CudaDriver, guardCuda } from "../../src/runtime/cuda/driver.ts";
import { CudaLaunch } from "../../src/runtime/cuda/launch.ts";
import { loadModule } from "../../src/runtime/cuda/module.ts";
import { captureGraph, createEvent, createStream } from "../../src/runtime/cuda/stream.ts";
import { Rng } from "../../src/support/rng.ts";
import { take } from "./ptx-launch.ts";

const n = 1 << 20;
const axpy = `.version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 px, .param .u64 py, .param .f32 pa, .param .u32 pn) {
  .reg .b64 x, y, o; .reg .b32 i, t, n; .reg .f32 a, u, v; .reg .pred p;
  ld.param.u64 x, [px]; ld.param.u64 y, [py]; ld.param.f32 a, [pa]; ld.param.u32 n, [pn];
  mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 i, i, t; mov.u32 t, %tid.x; add.u32 i, i, t;
  setp.ge.u32 p, i, n; @p ret;
  mul.wide.u32 o, i, 4; add.u64 x, x, o; add.u64 y, y, o;
  ld.global.f32 u, [x]; ld.global.f32 v, [y]; fma.rn.f32 v, a, u, v; st.global.f32 [y], v; ret;
}`;

let [passed, failed] = [0, 0];
function check(what: string, holds: boolean, more = ""): void {
  if (holds) passed++;
  else failed++;
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${more && `: ${more}`}`);
}

const driver = take(CudaDriver.open(process.platform));
const device = take(CudaDevice.open(driver, 0, 1 << 30));
console.log(device.name, driver.version, JSON.stringify(device.attributes));
const kept = new Map<string, Uint8Array>();
const store = {
  read: (key: string) => kept.get(key),
  write: (key: string, cubin: Uint8Array) => void kept.set(key, cubin),
};

const begin = performance.now();
const module = take(loadModule(device, axpy, { kernels: ["axpy"], store }));
const assembled = performance.now();
const again = take(loadModule(device, axpy, { kernels: ["axpy"], store }));
const reloaded = performance.now();
again.unload();
check(
  "a cubin is kept and loads faster",
  reloaded - assembled < assembled - begin,
  `${(assembled - begin).toFixed(2)} ms, then ${(reloaded - assembled).toFixed(2)} ms`,
);
check("registers are known, nothing is spilled", module.kernels.get("axpy")!.registers > 0);

const rng = new Rng(1);
const [hx, hy] = [0, 1].map(() => Float32Array.from({ length: n }, () => 2 * rng.uniform() - 1));
const bytes = (a: Float32Array): Uint8Array => new Uint8Array(a.buffer);
const [x, y] = [take(device.allocate(4 * n)), take(device.allocate(4 * n))];
device.upload(x.address, bytes(hx!));
device.upload(y.address, bytes(hy!));
const stream = createStream(device);
const launch = new CudaLaunch(
  device,
  module.kernels.get("axpy")!,
  { grid: [n / 256, 1, 1], block: [256, 1, 1] },
  [
    { kind: "u64", value: x.address },
    { kind: "u64", value: y.address },
    { kind: "f32", value: 0.5 },
    { kind: "u32", value: n },
  ],
);
launch.launch(stream.handle);
stream.synchronize();
const found = new Float32Array(n);
device.download(y.address, bytes(found));
const wrong = found.findIndex((v, i) => Math.abs(v - (hy![i]! + 0.5 * hx![i]!)) > 1e-6);
check("values agree with the host", wrong < 0);

const graph = captureGraph(device, stream, () => {
  for (let i = 0; i < 20; i++) launch.launch(stream.handle);
});
device.upload(y.address, bytes(hy!));
graph.launch(stream);
stream.synchronize();
device.download(y.address, bytes(found));
const off = found.findIndex((v, i) => Math.abs(v - (hy![i]! + 10 * hx![i]!)) > 1e-5);
check("a graph of 20 launches runs 20 of them", off < 0);

const [start, end] = [createEvent(device), createEvent(device)];
const times = Array.from({ length: 15 }, () => {
  start.record(stream);
  for (let i = 0; i < 50; i++) launch.launch(stream.handle);
  end.record(stream);
  return (end.since(start) * 1e3) / 50;
}).sort((a, b) => a - b);
const floorUs = (12 * n) / 4.8e6;
check(
  "no time is below what the memory can do",
  times[0]! > floorUs / 1.5,
  `${times[7]!.toFixed(2)} us`,
);

const host = Array.from({ length: 11 }, () => {
  const t = performance.now();
  for (let i = 0; i < 2000; i++) launch.launch(stream.handle);
  const spent = performance.now() - t;
  stream.synchronize();
  return (spent * 1e3) / 2000;
}).sort((a, b) => a - b);
console.log(
  `launch from Node ${host[5]!.toFixed(2)} us (of 11: ${host[0]!.toFixed(2)} to ${host[10]!.toFixed(2)})`,
);

const nonsense = loadModule(device, "nonsense", { kernels: ["k"] });
check(
  "text that is no PTX is refused with the assembler's words",
  !nonsense.ok && nonsense.diagnostics[0]!.notes.length > 0,
  nonsense.ok ? "" : nonsense.diagnostics[0]!.notes.join(" ").slice(0, 120),
);
const far = device.allocate(2 ** 31);
check("the cap holds", !far.ok && far.diagnostics[0]!.code === "CUD003");
device.free(x);
check("the ledger counts", device.usedBytes === 4 * n);
const bad = new CudaLaunch(
  device,
  module.kernels.get("axpy")!,
  { grid: [1, 1, 1], block: [4096, 1, 1] },
  [],
);
const refused = guardCuda(() => bad.launch(stream.handle));
check(
  "an impossible launch is refused",
  !refused.ok,
  refused.ok ? "" : refused.diagnostics[0]!.message,
);
check("what nobody freed is counted at the end", device.close() === 4 * n);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
