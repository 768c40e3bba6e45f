/**
 * Several GPUs in one process: a model on each, loaded through the library, run in turns and at once, in
 * this thread and in worker threads, with the values of the first on all; a copy from device to device, its
 * values and its rate; the cap of memory of each. Ends with `N passed, N failed`.
 * Usage: node devices.mjs
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { take } from "./ptx-launch.ts";

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
const size = 2048;
const rng = new Rng(1);
const operands = [0, 1].map(() => Uint16Array.from({ length: size * size }, () => randomBf16()));

function randomBf16(): number {
  const bits = new Uint32Array(Float32Array.of(rng.normal()).buffer);
  return bits[0]! >>> 16;
}

const outputs = new WeakMap<CudaInstance, string>();
const outputOf = (instance: CudaInstance): string => outputs.get(instance)!;

function open(ordinal: number): CudaInstance {
  const g = new GraphBuilder("product");
  const type = { dtype: "bf16" as const, shape: [constant(size), constant(size)] };
  const [x, w] = [g.input("x", type), g.input("w", type)];
  const sums = g.einsum("i k, j k -> i j", x, w, "f32");
  const graph = g.finish([g.cast(g.apply("relu", sums), "bf16")]);
  const { program } = take(compileModel({ graph, weights: noWeights }, { target })).plan;
  const device = take(features.open({ ordinal, capBytes: 2 ** 30 }));
  const { store } = features;
  const instance = take(createCudaInstance(program, target, { device, store }));
  for (const [i, b] of program.buffers.filter((one) => one.kind === "input").entries()) {
    instance.memory.write(b.name, new Uint8Array(operands[i]!.buffer));
  }
  outputs.set(instance, program.buffers.find((b) => b.kind === "output")!.name);
  instance.memory.fill(outputOf(instance), 0xff);
  return instance;
}

const sumOf = (bytes: Uint8Array): number => bytes.reduce((a, b) => (a * 31 + b) % 1_000_003, 7);

function resultOf(instance: CudaInstance): number {
  return sumOf(instance.memory.read(outputOf(instance), 2 * size * size));
}

if (isMainThread) await judge();
else {
  const instance = open(workerData as number);
  take(instance.runSync({}));
  parentPort!.postMessage(resultOf(instance));
  instance.dispose();
}

async function judge(): Promise<void> {
  let [passed, failed] = [0, 0];
  const check = (what: string, holds: boolean, more = ""): void => {
    if (holds) passed++;
    else failed++;
    console.log(`${holds ? "ok  " : "FAIL"} ${what}${more && `: ${more}`}`);
  };
  const count = features.devices.length;
  console.log(features.devices.map((name, i) => `${i}: ${name}`).join(", "));
  const instances = features.devices.map((_, i) => open(i));
  for (const one of instances) take(one.runSync({}));
  const sums = instances.map(resultOf);
  check(
    "each device has the values of the first",
    sums.every((s) => s === sums[0]),
  );
  await Promise.all(instances.map(async (one) => take(await one.run({}))));
  check(
    "all at once too",
    instances.every((one) => resultOf(one) === sums[0]),
  );

  const [alone, together] = [time(instances.slice(0, 1)), time(instances)];
  console.log(
    `     200 runs on one device ${alone.toFixed(2)} ms, 200 on each of ${count} ${together.toFixed(2)} ms`,
  );
  check("devices work beside each other", together < alone * (count > 1 ? 1.5 : 1.2));

  const threads = await Promise.all(
    features.devices.map(
      (_, i) =>
        new Promise<number>((resolve, reject) => {
          const worker = new Worker(process.argv[1]!, { workerData: i });
          worker.on("message", resolve).on("error", reject);
        }),
    ),
  );
  check(
    "worker threads have them too",
    threads.every((s) => s === sums[0]),
  );

  const [first, last] = [instances[0]!.device, instances.at(-1)!.device];
  const bytes = 2 ** 28;
  const [from, to] = [take(first.allocate(bytes)), take(last.allocate(bytes))];
  first.fill(from.address, 0x5a, bytes);
  last.fill(to.address, 0, bytes);
  first.copyTo(last, to.address, from.address, bytes);
  const found = new Uint8Array(bytes);
  last.download(to.address, found);
  check(
    "a copy between devices arrives whole",
    found.every((b) => b === 0x5a),
  );
  const begin = performance.now();
  for (let i = 0; i < 10; i++) first.copyTo(last, to.address, from.address, bytes);
  const rate = (10 * bytes) / (performance.now() - begin) / 1e6;
  console.log(
    `     ${rate.toFixed(0)} GB/s, ${first.canReach(last) ? "directly" : "by the host or within one device"}`,
  );
  const over = last.allocate(2 ** 30);
  check("each has its own cap", !over.ok && over.diagnostics[0]!.code === "CUD003");
  first.free(from);
  last.free(to);
  const none = features.open({ ordinal: count });
  check(
    "a device that is not there is refused by name",
    !none.ok && none.diagnostics[0]!.code === "CUD001",
  );
  for (const one of instances) one.dispose();
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Milliseconds by the devices' own clocks, the longest of them. */
function time(instances: readonly CudaInstance[]): number {
  const pairs = instances.map(({ device }) => [createEvent(device), createEvent(device)] as const);
  const runs = 200;
  instances.forEach((one, i) => {
    one.device.makeCurrent();
    take(one.repeat({}, 20));
    pairs[i]![0].record(one.stream);
    take(one.repeat({}, runs));
    pairs[i]![1].record(one.stream);
  });
  return Math.max(
    ...instances.map((one, i) => {
      one.device.makeCurrent();
      return pairs[i]![1].since(pairs[i]![0]);
    }),
  );
}
