/**
 * Whole models against torch's inductor on the same GPU, at batch 1 and 32: ResNet-50 (channels last on
 * the peer's side), BERT-base, ViT-B and a block of Llama, in bf16. Both sides have the same seeded weights
 * (read from the exported file) and inputs; the judge is torch in float64. The peer's function is captured as
 * a CUDA graph, compiled with max-autotune for the models that say so. Correctness first, outputs poisoned;
 * then times of both without transfers, in turns, one case after the other on an otherwise idle device.
 * `--apart` measures ours also with launches that wait for the end of the one before, and compares outputs.
 * `--open` measures instead BERT-base compiled once for ranges of batch and length, ours and the peer's
 * (`dynamic=True`), at several sizes of them.
 * Usage: node model-suite.mjs [--only TEXT,…] [--seconds S] [--slowest N] [--apart] [--open] [--python PATH] [--json]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { Model } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { type Feeds, ModelSession } from "../../src/runtime/model-session.ts";
import { printDirective } from "../../src/schedule/directive-text.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { fetchModel, modelPath } from "../models/fetch.ts";
import { hintsFor, randomInputs } from "../models/random-inputs.ts";
import { findModel, type InputSpec } from "../models/table.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import type { Tensors } from "../sessions/session.ts";
import { toStored } from "../sessions/stored-tensors.ts";
import { inputSeed } from "./model-cases.ts";
import { peerModels } from "./model-peers.ts";
import { needDevice, take } from "./ptx-launch.ts";
import { TorchPeer } from "./torch-peer.ts";

interface SuiteCase {
  readonly name: string;
  /** Row of the table of models. */
  readonly model: string;
  readonly peer: "resnet" | "bert" | "vit" | "llama";
  readonly dims: Readonly<Record<string, readonly number[]>>;
  readonly mode: "max-autotune-no-cudagraphs" | "default";
  /** Ranges of the extents with a name that ours is compiled for, where it is not for the case's own. */
  readonly open?: Readonly<Record<string, string>>;
}

const fixedCases: readonly SuiteCase[] = [1, 32].flatMap((batch): SuiteCase[] => {
  const tokens = [batch, 128];
  return [
    {
      name: `resnet-50 x${batch}`,
      model: "resnet-50-bf16",
      peer: "resnet",
      dims: { input: [batch, 3, 224, 224] },
      mode: "default",
    },
    {
      name: `bert-base x${batch}`,
      model: "bert-base-bf16",
      peer: "bert",
      dims: { input_ids: tokens, attention_mask: tokens, token_type_ids: tokens },
      mode: "max-autotune-no-cudagraphs",
    },
    {
      name: `vit-b x${batch}`,
      model: batch === 1 ? "vit-b-bf16" : `vit-b-x${batch}-bf16`,
      peer: "vit",
      dims: { pixel_values: [batch, 3, 224, 224] },
      mode: "default",
    },
    {
      name: `llama-block x${batch}`,
      model: "llama-block-bf16",
      peer: "llama",
      dims: { hidden_states: [...tokens, 2048], position_ids: tokens },
      mode: "max-autotune-no-cudagraphs",
    },
  ];
});

/** One program for all sizes of these ranges, at small, odd and largest ones. */
const openCases: readonly SuiteCase[] = [
  [1, 16],
  [1, 128],
  [3, 77],
  [8, 128],
  [8, 512],
].map((tokens) => ({
  name: `bert-base open ${tokens.join("x")}`,
  model: "bert-base-bf16",
  peer: "bert",
  dims: { input_ids: tokens, attention_mask: tokens, token_type_ids: tokens },
  mode: "default",
  open: { batch_size: "1..8", sequence_length: "1..512" },
}));

/** Names of extents in the exported files, by input and axis. */
const extentNames = ["batch_size", "sequence_length"] as const;

const given = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i]!;
  given.set(name, ["--json", "--apart", "--open"].includes(name) ? "" : process.argv[++i]!);
}
const cases = given.has("--open") ? openCases : fixedCases;
const seconds = Number(given.get("--seconds") ?? 0.5);
const slowest = Number(given.get("--slowest") ?? 8);

interface Row {
  readonly case: string;
  /** Microseconds. */
  readonly ours: number;
  readonly peer: number;
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

const one = given.get("--one");
if (one !== undefined) await runOne(cases.find((c) => c.name === one)!);
else {
  needDevice();
  await runAll();
}

/** Each case in a process of its own: all compile side by side, then each has the device to itself. */
async function runAll(): Promise<void> {
  const only = (given.get("--only") ?? "").split(",");
  const chosen = cases.filter(({ name }) => only.some((part) => name.includes(part)));
  const runs = chosen.map((c) => startCase(c.name));
  await Promise.all(runs.map((run) => run.ready));
  const rows: Row[] = [];
  let failed = 0;
  for (const run of runs) {
    const row = await run.go();
    if (row) rows.push(row);
    else failed++;
  }
  const logs = rows.reduce((sum, row) => sum + Math.log(row.ratio), 0);
  const geomean = Math.exp(logs / Math.max(1, rows.length));
  const worst = Math.min(...rows.map((row) => row.ratio));
  if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
  console.log(
    `${rows.length} cases, geomean ${geomean.toFixed(3)} x inductor, worst ${worst.toFixed(3)}, ${failed} failed`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
}

function startCase(name: string) {
  const rest = [...given].flatMap(([key, value]) => (value === "" ? [key] : [key, value]));
  const child = spawn(process.execPath, [process.argv[1]!, "--one", name, ...rest], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const settled: { row?: Row } = {};
  let isReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") isReady();
    else if (line.startsWith("{")) settled.row = JSON.parse(line) as Row;
    else console.log(line);
  });
  const ended = new Promise<void>((resolve) =>
    child.on("close", () => {
      isReady();
      resolve();
    }),
  );
  child.stdin.on("error", () => undefined);
  const go = async (): Promise<Row | undefined> => {
    child.stdin.write("go\n");
    await ended;
    return settled.row;
  };
  return { ready, go };
}

async function runOne(c: SuiteCase): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "wavetile-model-"));
  try {
    await runIn(c, folder);
  } catch (error) {
    console.log(`FAILED ${c.name}: ${String((error as Error).message).slice(0, 1200)}`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    process.exit();
  }
}

async function runIn(c: SuiteCase, folder: string): Promise<void> {
  const { model, feeds, inputNames, path } = openModel(c);
  const inputs = Object.fromEntries(
    Object.entries(feeds).map(([name, { data, dims, type }], i) => {
      const file = join(folder, `${i}.bin`);
      writeFileSync(file, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      return [name, { file, dims, type }];
    }),
  );
  const peer = new TorchPeer(peerModels, given.get("--python"));
  const expected = join(folder, "expected.f32");
  // The peer tunes while ours compiles.
  const prepared = peer.prepare({
    model: path,
    kind: c.peer,
    inputs,
    mode: c.mode,
    expected,
    dynamic: c.open !== undefined,
  });
  const features = take(probeCuda());
  const target = targets.get(features.targets[0]!)!;
  const began = performance.now();
  const compiled = take(compileModel(model, { target }));
  const compileSeconds = (performance.now() - began) / 1000;
  const start = (overlap: boolean) => {
    const { model: kept, plan } = overlap
      ? compiled
      : take(compileModel(model, { target, overlap }));
    const instance = take(
      createCudaInstance(plan.program, target, { device: take(features.open()) }),
    );
    const session = new ModelSession(plan.program, instance, { weight: weightReader(kept) });
    return { instance, session };
  };
  const { instance, session } = start(true);
  const apart = given.has("--apart") ? start(false) : undefined;
  const answer = await prepared;
  if (answer.error !== undefined) throw new Error(`peer: ${answer.error}`);
  await turn();
  const names = compiled.model.graph.inputs.map((v) => compiled.model.graph.values[v]!.name);
  const fed: Feeds = Object.fromEntries(
    names.map((name, i) => [name, toStored(feeds[inputNames[i]!]!)]),
  );
  const resultOf = (own: ModelSession) => {
    own.poison();
    return take(own.run(fed))[compiled.nests.outputs[0]!]!.data as ArrayLike<number>;
  };
  const data = resultOf(session);
  const want = new Float32Array(new Uint8Array(readFileSync(expected)).buffer);
  const error = differenceOf(data, want);
  const isRight = error <= Math.max(answer.error64! * 4, 2e-3);
  const row = await timeBoth(c.name, { instance, sizes: sizesOf(c), peer });
  console.log(
    `${isRight ? "" : "WRONG "}${c.name}: ${row.ours.toFixed(1)} us, inductor ${row.peer.toFixed(1)} us (${c.mode}), ` +
      `${row.ratio.toFixed(3)} [${row.low.toFixed(3)}, ${row.high.toFixed(3)}], error ${error.toExponential(1)} ` +
      `(inductor ${answer.error64!.toExponential(1)}) of the norm, ${compiled.plan.program.kernels.length} kernels, compiled in ${compileSeconds.toFixed(0)} s`,
  );
  profile(instance, compiled, sizesOf(c));
  if (apart) {
    const both = [instance, apart.instance].map((own) => batchOf(own, sizesOf(c)));
    await compareApart(both, [data, resultOf(apart.session)]);
  }
  if (isRight) console.log(JSON.stringify(row));
  peer.end();
  instance.dispose();
  apart?.instance.dispose();
}

type Sizes = Readonly<Record<string, number>>;

/** Of the extents that are open to ours. */
function sizesOf({ open, dims }: SuiteCase): Sizes {
  const [first] = Object.values(dims);
  const named = extentNames.map((name, axis) => [name, first![axis]!] as const);
  return Object.fromEntries(named.filter(([name]) => open && name in open));
}

function openModel(c: SuiteCase) {
  const row = findModel(c.model)!;
  const bytes = unwrap(fetchModel(row));
  const [first] = Object.values(c.dims);
  const shapes = Object.fromEntries(
    extentNames.flatMap((name, axis) =>
      row.shapes && name in row.shapes ? [[name, c.open?.[name] ?? String(first![axis])]] : [],
    ),
  );
  const specs: InputSpec[] = row.cases[0]!.inputs.map((i) => ({ ...i, dims: c.dims[i.name]! }));
  const hints = { ...hintsFor(row), ...(row.shapes && { shapes }) };
  const model = unwrap(importOnnx(bytes, importOptions(hints)));
  const feeds: Tensors = randomInputs({ name: c.name, inputs: specs }, new Rng(inputSeed));
  return { model: model as Model, inputNames: model.inputNames, feeds, path: modelPath(row)! };
}

/** Waits until the parent says that the device is free. */
async function turn(): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log("ready");
  await lines.next();
}

/** The norm of the difference, in norms of what is wanted. */
function differenceOf(data: ArrayLike<number>, want: Float32Array): number {
  if (data.length !== want.length) {
    throw new Error(`${data.length} results where the peer has ${want.length}`);
  }
  let [off, size] = [0, 0];
  for (let i = 0; i < want.length; i++) {
    off += (Number(data[i]) - want[i]!) ** 2;
    size += want[i]! ** 2;
  }
  const error = Math.sqrt(off / size);
  return Number.isNaN(error) ? Infinity : error;
}

function quantile(times: readonly number[], q: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(q * (times.length - 1))]!;
}

/** Milliseconds of a run, of as many as are asked for. */
function batchOf(instance: CudaInstance, sizes: Sizes): (runs: number) => number {
  const { device, stream } = instance;
  const [start, end] = [createEvent(device), createEvent(device)];
  return (runs) => {
    device.makeCurrent();
    start.record(stream);
    take(instance.repeat(sizes, runs));
    end.record(stream);
    return end.since(start) / runs;
  };
}

/** Launches that overlap beside the same ones apart, in turns; both give the same values. */
async function compareApart(
  [ours, apart]: readonly ((runs: number) => number)[],
  [data, other]: readonly ArrayLike<number>[],
): Promise<void> {
  const isSame = Array.from(data!).every((x, i) => Object.is(x, other![i]));
  const runs = Math.max(2, Math.min(100, Math.ceil(5 / ours!(5))));
  const ratios = Array.from({ length: 15 }, () => {
    const mine = ours!(runs);
    return apart!(runs) / mine;
  }).slice(2);
  const [low, ratio, high] = [0.1, 0.5, 0.9].map((q) => quantile(ratios, q).toFixed(3));
  console.log(
    `    launches that overlap: ${ratio} [${low}, ${high}] times as fast as apart, ${isSame ? "the same values" : "OTHER VALUES"}`,
  );
}

interface Timed {
  readonly instance: CudaInstance;
  readonly sizes: Sizes;
  readonly peer: TorchPeer;
}

async function timeBoth(name: string, { instance, sizes, peer }: Timed): Promise<Row> {
  const batch = batchOf(instance, sizes);
  batch(3);
  await peer.time(3);
  // Batches of some five milliseconds, so that clocks and caches are those of steady work.
  const runs = Math.max(2, Math.min(100, Math.ceil(5 / batch(5))));
  const [ours, theirs] = [[] as number[], [] as number[]];
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds || ours.length < 13) {
    ours.push(batch(runs));
    theirs.push(await peer.time(runs));
  }
  const [mine, its] = [ours.slice(2), theirs.slice(2)];
  const ratios = its.map((t, i) => t / mine[i]!);
  const [low, ratio, high] = [0.1, 0.5, 0.9].map((q) => quantile(ratios, q));
  const us = (times: readonly number[]): number => 1000 * quantile(times, 0.5);
  return { case: name, ours: us(mine), peer: us(its), ratio: ratio!, low: low!, high: high! };
}

/** Kernels of one run apart, those of the same computation together: the longest first. */
function profile(instance: CudaInstance, { regions }: CompiledModel, sizes: Sizes): void {
  const kernels = take(instance.timeLaunches(sizes, 20));
  const found = new Map(regions.map((r) => [r.name, r]));
  const groups = new Map<string, { count: number; us: number; priced: number; first: string }>();
  for (const k of kernels) {
    const region = found.get(k.kernel);
    const directives = region?.scheduled.schedule.directives ?? [];
    const main = directives.find((d) => ["multiply", "rows", "attend"].includes(d.kind));
    const how = main ? printDirective(main).replace(/ S\d+\S*/, "") : "loops";
    const bytes = region ? `${region.flops} flops ${region.bytes} bytes` : k.kernel;
    const key = `${how}, ${bytes}`;
    const group = groups.get(key) ?? { count: 0, us: 0, priced: 0, first: k.kernel };
    group.count++;
    group.us += 1000 * k.ms;
    group.priced += (region?.price.estimateNs ?? 0) / 1000;
    groups.set(key, group);
  }
  const rows = [...groups].sort(([, a], [, b]) => b.us - a.us).slice(0, slowest);
  for (const [how, { count, us, priced, first }] of rows) {
    const origin = found.get(first)?.origins.join(" ").slice(0, 90) ?? "";
    console.log(
      `    ${us.toFixed(1)} us in ${count} (priced ${priced.toFixed(1)}) ${first} ${how}: ${origin}`,
    );
  }
}
