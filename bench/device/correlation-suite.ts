/**
 * How well prices rank measured times on a device: of each workload (correlation-cases.ts) candidates drawn
 * uniformly by a seed from the legal ones, each proved and assembled by one of several processes, then run on the same
 * random operands (results compared with those of the chosen schedule, outputs poisoned), then timed in turns.
 * Where whole-region strategies apply (tiles of a product, rows, attention) candidates are theirs: loops bound to
 * threads are dominated there. Prices are analytical: they know the device's rates and nothing of these times. The
 * ceiling is how well one half of the rounds ranks the other.
 * Shapes are those that no price was made by; `--known` takes the others.
 * `--replay FILE` judges today's prices by the times in another run's `--json`, without a device.
 * Usage: node correlation-suite.mjs [--only FAMILY,…] [--seed N] [--processes N] [--known] [--list] [--json] [--replay FILE]
 */
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { compileModel } from "../../src/compile.ts";
import { priceRegion } from "../../src/cost/region-price.ts";
import { lowerRegionProgram } from "../../src/lower/region-program.ts";
import type { Program } from "../../src/program/program.ts";
import { capacityBytes } from "../../src/program/storage-sizes.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import { createEvent, createStream } from "../../src/runtime/cuda/stream.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { enumerateBlockSchedules } from "../../src/schedule/blocks/block-candidates.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { printDirective } from "../../src/schedule/directive-text.ts";
import { checkSchedule } from "../../src/schedule/legality/legality.ts";
import { type DType, dtypes } from "../../src/semantics/dtype.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { judgePrices } from "../correlation/judge-prices.ts";
import { type CorrelationCase, heldOutCases, knownCases } from "./correlation-cases.ts";
import { loadProgram, needDevice, openDevice, prepareLaunch, take } from "./ptx-launch.ts";

const flags = new Set(["--json", "--list", "--known"]);
const given = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i]!;
  given.set(name, flags.has(name) ? "" : process.argv[++i]!);
}
const seed = Number(given.get("--seed") ?? 1);
const processes = Number(given.get("--processes") ?? 12);
const target = targets.get("h200")!;
const only = (given.get("--only") ?? "").split(",");
const shapes = given.has("--known") ? knownCases : heldOutCases;
const cases = shapes.filter((c) => only.some((part) => c.family.includes(part)));
const wholeRegion = new Set(["multiply", "rows", "attend"]);
const rounds = 8;
const sampleMs = 1.5;

interface Candidate {
  readonly schedule: Schedule;
  readonly priceNs: number;
  readonly program: () => Program;
}

interface Drawn {
  /** The chosen schedule first, which is none of the drawn unless it was drawn too. */
  readonly chosen: Candidate;
  readonly candidates: readonly Candidate[];
  readonly legal: number;
}

/** The dearest region of a workload: the others make its operands. */
function draw({ model, count }: CorrelationCase): Drawn {
  const { regions, regionRequires } = take(compileModel(model(), { target }));
  const dearest = regions.toSorted((a, b) => b.price.estimateNs - a.price.estimateNs)[0]!;
  const { region } = dearest.scheduled;
  const candidateOf = (schedule: Schedule): Candidate | undefined => {
    const applied = applySchedule(region, schedule);
    const legal = applied.ok ? checkSchedule(applied.value) : applied;
    if (!legal.ok) return undefined;
    return {
      schedule,
      priceNs: priceRegion(legal.value, target).estimateNs,
      program: () => take(lowerRegionProgram(legal.value, target, regionRequires)).program,
    };
  };
  const all = enumerateBlockSchedules(region, target).filter((s) => s.directives.length > 0);
  const whole = all.filter((s) => s.directives.some((d) => wholeRegion.has(d.kind)));
  const legal = (whole.length > 0 ? whole : all).flatMap((s) => candidateOf(s) ?? []);
  const rng = new Rng(seed);
  const order = legal.map((c) => [rng.uniform(), c] as const).sort((a, b) => a[0] - b[0]);
  return {
    chosen: candidateOf(dearest.scheduled.schedule)!,
    candidates: order.slice(0, count).map(([, c]) => c),
    legal: legal.length,
  };
}

function list(): void {
  for (const c of cases) {
    const { candidates, legal, chosen } = draw(c);
    console.log(`${c.family} ${c.shape} ${c.dtype}: ${candidates.length} of ${legal} legal`);
    for (const one of [chosen, ...candidates]) {
      console.log(`  ${(one.priceNs / 1000).toFixed(1)} us priced: ${spelled(one.schedule)}`);
    }
  }
}

function spelled({ directives }: Schedule): string {
  return directives.map(printDirective).join("; ");
}

/** Why a candidate is none: its place among those drawn, the chosen one at 0. */
interface Refused {
  readonly case: string;
  readonly at: number;
  readonly why: string;
}

/** Proves this process's share and has the driver assemble it, which remembers that. */
function preparePart(): void {
  const part = Number(given.get("--part"));
  const device = openDevice();
  for (const c of cases) {
    const { chosen, candidates } = draw(c);
    [chosen, ...candidates].forEach(({ schedule, program }, i) => {
      if (i % processes !== part) return;
      try {
        const made = program();
        take(validateProgram(made));
        loadProgram(device, made).unload();
      } catch (error) {
        const why = `${spelled(schedule)}: ${String((error as Error).message).slice(0, 160)}`;
        process.send!({ case: `${c.family} ${c.shape}`, at: i, why } satisfies Refused);
      }
    });
  }
  process.disconnect();
}

async function runAll(): Promise<void> {
  const refused: Refused[] = [];
  let ended = 0;
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: processes }, (_, part) => {
      const child = fork(process.argv[1]!, [...process.argv.slice(2), "--part", String(part)], {
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      child.on("message", (one) => refused.push(one as Refused));
      return new Promise<void>((resolve) => {
        child.on("exit", (code) => {
          if (code !== 0) ended++;
          resolve();
        });
      });
    }),
  );
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  console.log(`proved and assembled by ${processes} processes in ${seconds} s`);
  for (const one of refused) console.error(`not proved: ${one.case}: ${one.why}`);
  const rows = cases.map((c) => {
    const places = refused.filter((r) => r.case === `${c.family} ${c.shape}`).map((r) => r.at);
    return measure(c, new Set(places));
  });
  const failed = ended + rows.reduce((sum, r) => sum + r.wrong, 0);
  if (given.has("--json")) console.log(JSON.stringify({ rows, failed }));
  summarise(rows, failed);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Prices as they are now against times as they were. */
function replay(file: string): void {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .find((l) => l.startsWith("{"));
  if (line === undefined) throw new Error(`${file}: no line of --json`);
  const { rows } = JSON.parse(line) as { readonly rows: readonly Row[] };
  const found = cases.flatMap((c) => {
    const row = rows.find((r) => r.case === `${c.family} ${c.shape}`);
    if (!row) return [];
    const { chosen, candidates, legal } = draw(c);
    const known = new Map(row.times.map((t) => [t[2], t]));
    const both = candidates.flatMap((one) => {
      const t = known.get(spelled(one.schedule));
      return t ? [{ priceUs: one.priceNs / 1000, us: t[1], how: t[2] }] : [];
    });
    const chosenUs = known.get(spelled(chosen.schedule))?.[1] ?? Number.NaN;
    const halves = both.map((t) => [t.us, t.us] as const);
    return [rowOf(c, { both, halves, chosenUs, legal, unproved: 0, wrong: 0 })];
  });
  summarise(found, 0);
}

interface Row {
  readonly case: string;
  readonly n: number;
  readonly legal: number;
  readonly wrong: number;
  readonly rho: number;
  readonly rhoTop: number;
  readonly regret1: number;
  readonly regret10: number;
  readonly ceiling: number;
  /** How much slower than the fastest candidate the schedule is that the compiler chooses. */
  readonly chosenRegret: number;
  readonly times: readonly (readonly [priceUs: number, us: number, schedule: string])[];
}

function measure(c: CorrelationCase, unproved: ReadonlySet<number>): Row {
  const { chosen, candidates: drawn, legal } = draw(c);
  const candidates = drawn.filter((_, i) => !unproved.has(i + 1));
  const bench = new DeviceBench(c.dtype);
  try {
    const runs = [chosen, ...candidates].map((one) => bench.prepare(one.program()));
    const [want, ...found] = runs.map((run) => bench.outputOf(run));
    const wrong = found.map((got, i) => {
      const off = differenceOf(got, want!);
      if (off <= 1) return false;
      console.error(`WRONG by ${off.toFixed(2)}: ${c.family} ${spelled(candidates[i]!.schedule)}`);
      return true;
    });
    const times = bench.time(runs);
    const halves = times.slice(1);
    const measured = halves.map(([a, b]) => Math.sqrt(a * b));
    const both = candidates.map((one, i) => ({
      priceUs: one.priceNs / 1000,
      us: measured[i]!,
      how: spelled(one.schedule),
    }));
    const [first, second] = times[0]!;
    const told = { halves, legal, unproved: unproved.size, wrong: wrong.filter((is) => is).length };
    return rowOf(c, { both, chosenUs: Math.sqrt(first * second), ...told });
  } finally {
    bench.close();
  }
}

interface Found {
  readonly both: readonly { readonly priceUs: number; readonly us: number; readonly how: string }[];
  readonly halves: readonly (readonly [number, number])[];
  readonly chosenUs: number;
  readonly legal: number;
  readonly unproved: number;
  readonly wrong: number;
}

function rowOf(
  { family, shape, dtype }: CorrelationCase,
  { both, halves, chosenUs, legal, unproved, wrong }: Found,
): Row {
  const measured = both.map((t) => t.us);
  const prices = both.map((t) => t.priceUs);
  const judged = judgePrices({ measured, halves }, prices) as Record<string, number>;
  const { rho, low, high, rhoTop, regret1, regret10, ceiling, spread } = judged;
  const best = Math.min(...measured);
  const chosenRegret = chosenUs / best - 1;
  const text = (n: number): string => n.toFixed(3);
  console.log(
    `${family} ${shape} ${dtype}: rho ${text(rho!)} [${text(low!)}, ${text(high!)}], ceiling ${text(ceiling!)}, fastest tenth ${text(rhoTop!)}, regret@1 ${text(regret1!)}, @10 ${text(regret10!)}, chosen ${text(chosenRegret)}, n ${both.length} of ${legal}, ${unproved} not proved, slowest ${spread!.toFixed(1)} x fastest (${best.toFixed(1)} us)`,
  );
  return {
    ...{ case: `${family} ${shape}`, n: both.length, legal, chosenRegret, wrong },
    ...{ rho: rho!, rhoTop: rhoTop!, regret1: regret1!, regret10: regret10!, ceiling: ceiling! },
    times: both.map((t) => [t.priceUs, t.us, t.how]),
  };
}

function summarise(rows: readonly Row[], failed: number): void {
  const mean = (of: (r: Row) => number): string =>
    (rows.reduce((sum, r) => sum + of(r), 0) / rows.length).toFixed(3);
  const least = Math.min(...rows.map((r) => r.rho)).toFixed(3);
  console.log(
    `${rows.length} families, analytical: mean rho ${mean((r) => r.rho)}, least ${least}, of the fastest tenth ${mean((r) => r.rhoTop)}, regret@1 ${mean((r) => r.regret1)}, @10 ${mean((r) => r.regret10)}, chosen ${mean((r) => r.chosenRegret)}, ceiling ${mean((r) => r.ceiling)}, ${failed} failed`,
  );
}

/** The largest difference, in units of what rounding of a type allows of values of usual size. */
function differenceOf(found: Float64Array, want: Float64Array): number {
  const usual = Math.sqrt(want.reduce((sum, v) => sum + v * v, 0) / want.length);
  let worst = 0;
  for (let i = 0; i < want.length; i++) {
    const off = Math.abs(found[i]! - want[i]!) / Math.max(usual, Math.abs(want[i]!));
    worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
  }
  return worst / allowed;
}
/** Types of 16 bits round once more, f32 sums in another order. */
const allowed = 2 ** -6;
/** Results that are compared, dealt out over the output. */
const compared = 1 << 16;

interface PreparedRun {
  readonly run: () => void;
  readonly outputs: readonly {
    readonly at: bigint;
    readonly count: number;
    readonly dtype: DType;
  }[];
}

/** One workload's operands on the device, and its candidates loaded. */
class DeviceBench {
  readonly #device = openDevice();
  readonly #stream = createStream(this.#device);
  readonly #events = [createEvent(this.#device), createEvent(this.#device)] as const;
  /** Memory by buffer: candidates share it. */
  readonly #held = new Map<string, { readonly at: bigint; readonly bytes: number }>();
  readonly #closers: (() => void)[] = [];
  readonly #dtype: DType;

  constructor(dtype: DType) {
    this.#dtype = dtype;
  }

  prepare(program: Program): PreparedRun {
    const loaded = loadProgram(this.#device, program);
    this.#closers.push(loaded.unload);
    const addresses = new Map<string, bigint>();
    for (const b of program.buffers) {
      if (b.viewOf !== undefined) continue;
      const isGiven = b.kind === "input" || b.kind === "weight";
      addresses.set(b.name, this.#memory(b.name, capacityBytes(program, b), isGiven));
    }
    for (const b of program.buffers) {
      if (b.viewOf !== undefined) addresses.set(b.name, addresses.get(b.viewOf)!);
    }
    const bound = { addresses, indices: new Map<string, number>() };
    const launches = program.tasks.map((task) => {
      if (task.kind !== "launch") throw new Error(`a region has a task ${task.kind}`);
      return prepareLaunch(this.#device, loaded, task.kernel, bound, task.after === "started");
    });
    const outputs = program.buffers.flatMap((b) =>
      b.kind === "output"
        ? [
            {
              at: addresses.get(b.name)!,
              count: (8 * capacityBytes(program, b)) / dtypes[b.dtype].bits,
              dtype: b.dtype,
            },
          ]
        : [],
    );
    return { run: () => launches.forEach((l) => void l.launch(this.#stream.handle)), outputs };
  }

  #memory(name: string, bytes: number, isGiven: boolean): bigint {
    const key = `${name} ${bytes}`;
    const known = this.#held.get(key);
    if (known) return known.at;
    const memory = take(this.#device.allocate(bytes));
    this.#closers.push(() => this.#device.free(memory));
    this.#held.set(key, { at: memory.address, bytes });
    if (isGiven) this.#fill(memory.address, bytes);
    return memory.address;
  }

  /** Normal values that come again after a prime number of them. */
  #fill(at: bigint, bytes: number): void {
    const rng = new Rng(seed);
    const period = 1_048_573;
    const values = Float32Array.from({ length: period }, () => rng.normal());
    const size = dtypes[this.#dtype].bits / 8;
    const dtype = this.#dtype;
    const stored =
      dtype === "f32"
        ? values
        : Uint16Array.from(values, (v) => encodeFloat(dtype as "bf16" | "f16", v));
    const part = new Uint8Array(stored.buffer);
    for (let from = 0; from < bytes; from += period * size) {
      this.#device.upload(at + BigInt(from), part.subarray(0, Math.min(part.length, bytes - from)));
    }
  }

  /** Results of a run after poison. */
  outputOf({ run, outputs }: PreparedRun): Float64Array {
    for (const { at, count, dtype } of outputs) {
      this.#device.fill(at, 0xff, (count * dtypes[dtype].bits) / 8);
    }
    run();
    this.#stream.synchronize();
    return Float64Array.from(outputs.flatMap((o) => [...this.#sampled(o)]));
  }

  #sampled({ at, count, dtype }: PreparedRun["outputs"][number]): Float64Array {
    const size = dtypes[dtype].bits / 8;
    const bytes = new Uint8Array(count * size);
    this.#device.download(at, bytes);
    const raw = size === 4 ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
    const length = Math.min(count, compared);
    return Float64Array.from({ length }, (_, i) => {
      const value = raw[Math.floor((i * count) / length)]!;
      return size === 4 ? value : decodeFloat(dtype as "bf16" | "f16", value);
    });
  }

  /** Microseconds of each run in the rounds of even numbers and of odd ones: the medians. */
  time(runs: readonly PreparedRun[]): readonly (readonly [number, number])[] {
    const once = runs.map(({ run }) => this.#ms(run, 2));
    const found = runs.map(() => [[], []] as [number[], number[]]);
    for (let round = 0; round < rounds; round++) {
      for (const [i, { run }] of runs.entries()) {
        const repeats = Math.max(1, Math.min(200, Math.round(sampleMs / once[i]!)));
        found[i]![round % 2]!.push(1000 * this.#ms(run, repeats));
      }
    }
    return found.map(([even, odd]) => [median(even), median(odd)]);
  }

  /** Milliseconds of one of several runs behind each other. */
  #ms(run: () => void, count: number): number {
    const [start, end] = this.#events;
    start.record(this.#stream);
    for (let i = 0; i < count; i++) run();
    end.record(this.#stream);
    return end.since(start) / count;
  }

  close(): void {
    this.#stream.synchronize();
    for (const close of this.#closers) close();
    this.#device.close();
  }
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

if (given.has("--list")) list();
else if (given.has("--replay")) replay(given.get("--replay")!);
else if (given.has("--part")) preparePart();
else {
  needDevice();
  await runAll();
}
