/**
 * The effect of rewriting on a GPU: models of the table, all dimensions fixed to the first case of their row,
 * compiled with rewriting and without. A model whose program is the same both ways has no time; the others are
 * compared on seeded inputs, outputs poisoned, then timed without transfers, in turns, one model after the
 * other. Without a device (`--target T`) it says which they are. Models compile side by side.
 * Usage: node rewrite-suite.mjs [--only NAME,…] [--seconds S] [--jobs N] [--target T]
 */
import { spawn } from "node:child_process";
import { mkdirSync, rmdirSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { type CompiledModel, compileModel, prepareFor } from "../../src/compile.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { splitAtData } from "../../src/graph/transforms/split-at-data.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { type CudaFeatures, probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { type Feeds, ModelSession, type Outputs } from "../../src/runtime/model-session.ts";
import { isRepeated } from "../../src/scheduled-graph.ts";
import { sha256Text } from "../../src/support/hash.ts";
import { type Target, targets } from "../../src/target/index.ts";
import { modelTable } from "../models/table.ts";
import { toStored } from "../sessions/stored-tensors.ts";
import { type DeviceCase, openCase } from "./model-cases.ts";
import { needDevice, take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);

const seconds = Number(given.get("--seconds") ?? 0.3);

/** What a process says of its model: a ratio above one where the rewritten program is the faster. */
type Outcome =
  | { readonly kind: "same" }
  /** Data decide sizes: there is no one program, but programs with references between them. */
  | { readonly kind: "stages" }
  | { readonly kind: "other" }
  | { readonly kind: "timed"; readonly ratio: number; readonly high: number };

const one = given.get("--one");
if (one !== undefined) await runOne(one);
else {
  if (!given.has("--target")) needDevice();
  await runAll();
}

async function runAll(): Promise<void> {
  const only = given.get("--only")?.split(",");
  const names = modelTable
    .map((row) => row.name)
    .filter((name) => only === undefined || only.includes(name));
  const waiting = [...names];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const outcome = await startModel(name);
      if (outcome) outcomes.push(outcome);
    }
  };
  const jobs = Number(given.get("--jobs") ?? availableParallelism());
  await Promise.all(Array.from({ length: jobs }, work));
  const timed = outcomes.flatMap((o) => (o.kind === "timed" ? [o] : []));
  const count = (kind: Outcome["kind"]): number => outcomes.filter((o) => o.kind === kind).length;
  const ratios = timed.map((o) => o.ratio);
  const mean =
    timed.length > 0
      ? `, geomean ${geometricMean(ratios).toFixed(3)} worst ${Math.min(...ratios).toFixed(3)}`
      : "";
  const slower = timed.filter((o) => o.high < 1).length;
  const failed = names.length - outcomes.length;
  console.log(
    `${names.length} models, ${count("same")} the same program, ${count("other")} not timed, ` +
      `${timed.length} timed${mean} slower ${slower}, ${count("stages")} in stages, ${failed} failed`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
}

async function startModel(name: string): Promise<Outcome | undefined> {
  const rest = [...given].flat();
  const child = spawn(process.execPath, [
    ...process.execArgv,
    process.argv[1]!,
    "--one",
    name,
    ...rest,
  ]);
  let text = "";
  for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (d) => (text += String(d)));
  const code = await new Promise((resolve) => child.on("close", resolve));
  const lines = text.trimEnd().split("\n");
  const outcome = code === 0 ? (JSON.parse(lines.pop()!) as Outcome) : undefined;
  console.log(`${outcome ? "" : "FAILED "}${name}: ${lines.join("; ").slice(0, 1500)}`);
  return outcome;
}

interface Side {
  readonly compiled: CompiledModel;
  readonly program: string;
}

async function runOne(name: string): Promise<void> {
  const named = given.get("--target");
  const features = named === undefined ? take(probeCuda()) : undefined;
  const target = targets.get(named ?? features!.targets[0]!)!;
  const opened = openCase(name);
  const compile = (rewrite: "on" | "off"): Side => {
    const compiled = take(compileModel(opened.model, { target, rewrite }));
    return { compiled, program: printProgram(compiled.plan.program) };
  };
  const { graph } = prepareFor(opened.model, target);
  if (splitAtData(graph, (node) => isRepeated(node, graph, target))) {
    console.log(JSON.stringify({ kind: "stages" } satisfies Outcome));
    return;
  }
  const rewritten = compile("on");
  // What the search keeps of the graphs that it is given.
  const isImport = rewritten.compiled.competitors.at(-1)!.isKept;
  const plain = isImport ? rewritten : compile("off");
  const outcome = compareSides([rewritten, plain], opened, { target, features });
  console.log(JSON.stringify(await outcome));
}

async function compareSides(
  sides: readonly [Side, Side],
  opened: DeviceCase,
  { target, features }: { readonly target: Target; readonly features: CudaFeatures | undefined },
): Promise<Outcome> {
  const [rewritten, plain] = sides;
  if (rewritten.program === plain.program) {
    console.log(`same program ${sha256Text(plain.program).slice(0, 12)}`);
    return { kind: "same" };
  }
  const [after, before] = sides.map(({ compiled }) => describe(compiled));
  console.log(`${before} before, ${after} after`);
  if (!features) return { kind: "other" };
  const device = take(features.open());
  const open = ({ compiled }: Side) => {
    const { program } = compiled.plan;
    const instance = take(createCudaInstance(program, target, { device }));
    const session = new ModelSession(program, instance, { weight: weightReader(compiled.model) });
    return { compiled, instance, session };
  };
  const [ours, peer] = sides.map(open) as [ReturnType<typeof open>, ReturnType<typeof open>];
  return alone(() => {
    const [mine, its] = [ours, peer].map(({ session, compiled }) => {
      session.poison();
      return take(session.run(feedsOf(compiled, opened)));
    }) as [Outputs, Outputs];
    const worst = differenceOf([ours.compiled, mine], [peer.compiled, its], opened.tolerances);
    if (!(worst <= 1)) throw new Error(`outputs differ by ${worst.toFixed(2)} of what is allowed`);
    const { ratio, low, high, us } = timeBoth(ours.instance, peer.instance);
    const [on, off] = us.map((t) => t.toFixed(1));
    console.log(
      `${on} us rewritten, ${off} us not, ${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}], ` +
        `outputs differ by ${worst.toFixed(3)} of what is allowed`,
    );
    return { kind: "timed", ratio, high };
  });
}

function describe({ regions, plan }: CompiledModel): string {
  const sum = (of: "flops" | "bytes"): number => regions.reduce((n, r) => n + r[of], 0);
  const priced = regions.reduce((n, r) => n + r.price.estimateNs, 0) / 1000;
  return `${plan.program.kernels.length} kernels, ${sum("flops")} flops, ${sum("bytes")} bytes, priced ${priced.toFixed(1)} us`;
}

function feedsOf({ model }: CompiledModel, { feeds, inputNames }: DeviceCase): Feeds {
  const { inputs, values } = model.graph;
  return Object.fromEntries(
    inputs.map((id, i) => [values[id]!.name, toStored(feeds[inputNames[i]!]!)]),
  );
}

/** The largest difference of an output, relative to its largest value, over what is allowed. */
function differenceOf(
  [ours, mine]: readonly [CompiledModel, Outputs],
  [peer, its]: readonly [CompiledModel, Outputs],
  tolerances: readonly number[],
): number {
  let worst = 0;
  for (const [number, name] of peer.nests.outputs.entries()) {
    const want = its[name]!.data as ArrayLike<number | bigint>;
    const got = mine[ours.nests.outputs[number]!]!.data as ArrayLike<number | bigint>;
    if (got.length !== want.length) return Infinity;
    let [scale, off] = [1e-30, 0];
    for (let i = 0; i < want.length; i++) {
      const [a, b] = [Number(got[i]), Number(want[i])];
      if (Object.is(a, b)) continue;
      scale = Math.max(scale, Math.abs(b));
      off = Number.isNaN(a - b) ? Infinity : Math.max(off, Math.abs(a - b));
    }
    if (off > 0) worst = Math.max(worst, off / scale / tolerances[number]!);
  }
  return worst;
}

function timeBoth(ours: CudaInstance, peer: CudaInstance) {
  const timer = ({ device, stream }: CudaInstance, instance: CudaInstance) => {
    const [start, end] = [createEvent(device), createEvent(device)];
    return (runs: number): number => {
      start.record(stream);
      take(instance.repeat({}, runs));
      end.record(stream);
      return (1000 * end.since(start)) / runs;
    };
  };
  const [mine, its] = [timer(ours, ours), timer(peer, peer)];
  mine(3);
  its(3);
  // Batches of some five milliseconds, so that clocks and caches are those of steady work.
  const runs = Math.max(2, Math.min(200, Math.ceil(5000 / its(5))));
  const pairs: (readonly [number, number])[] = [];
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds || pairs.length < 15) {
    const first = pairs.length % 2 === 0;
    const [a, b] = first ? [mine(runs), its(runs)] : [its(runs), mine(runs)].reverse();
    pairs.push([a!, b!]);
  }
  const ratios = pairs.slice(2).map(([a, b]) => b / a);
  const [low, ratio, high] = [0.1, 0.5, 0.9].map((q) => quantile(ratios, q)) as [
    number,
    number,
    number,
  ];
  const us = [0, 1].map((side) =>
    quantile(
      pairs.map((p) => p[side]!),
      0.5,
    ),
  );
  return { ratio, low, high, us };
}

function quantile(values: readonly number[], q: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))]!;
}

/** Runs while no other process of this script does. */
async function alone<T>(body: () => T): Promise<T> {
  const lock = join(tmpdir(), "wavetile-device-lock");
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  try {
    return body();
  } finally {
    rmdirSync(lock);
  }
}
