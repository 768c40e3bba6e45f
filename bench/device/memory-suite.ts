/**
 * Kernels that memory bounds, as the compiler makes them, against the copy rate of the device: elementwise
 * chains, rotary embeddings, reductions over each axis, norms and softmax, scans of many and of few lines, places of
 * the largest and the 50 largest, inputs of 256 MB and more. Correctness first
 * (outputs poisoned, float64 at sampled rows or columns), then times of ours and of a copy of as many bytes,
 * interleaved with warm clocks. Bytes are those of the problem: each operand once. The ratio is our rate
 * over the copy's.
 * `--columns N` takes rows of another length, as many as make about the same bytes; `--measure N` times also
 * the next N schedules of cases that are one region.
 * Usage: node memory-suite.mjs [--only TEXT,…] [--seconds S] [--columns N] [--measure N] [--json]
 */
import type { CompiledRegion } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
import { priceRegion } from "../../src/cost/region-price.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { ValueId } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
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
import { take } from "./ptx-launch.ts";
import { resultRoundings, softmaxRoundings } from "./roundings.ts";

const given = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i]!;
  given.set(name, name === "--json" ? "" : process.argv[++i]!);
}
const seconds = Number(given.get("--seconds") ?? 0.3);
const measured = Number(given.get("--measure") ?? 0);

type Kind = "f32" | "bf16" | "f16";

interface MemoryCase {
  readonly name: string;
  readonly dtype: Kind;
  readonly shape: readonly [rows: number, columns: number];
  /** Inputs of that shape, and vectors along the columns. */
  readonly inputs: number;
  readonly vectors: number;
  /** Behind them, inputs with as many rows of so many elements. */
  readonly tables?: readonly number[];
  readonly build: (g: GraphBuilder, operands: readonly ValueId[]) => ValueId;
  /** Results of one line in float64; lines are rows, or columns where results are one a column. */
  readonly line: (operands: readonly Float64Array[]) => ArrayLike<number>;
  readonly along: "row" | "column";
  /** Results of a line; absent: one, or as many as it has elements. */
  readonly perLine?: number;
  /** Results are positions. */
  readonly places?: boolean;
  /** Results are of the other type, of f32 and bf16. */
  readonly converts?: boolean;
}

function resultType({ dtype, converts }: MemoryCase): Kind {
  return !converts ? dtype : dtype === "f32" ? "bf16" : "f32";
}

const sum = (x: ArrayLike<number>): number => Array.prototype.reduce.call(x, add, 0) as number;
function add(a: unknown, b: unknown): number {
  return (a as number) + (b as number);
}
const gelu = (x: number): number => 0.5 * x * (1 + Math.tanh(0.79788456 * (x + 0.044715 * x ** 3)));

function cumulative(g: GraphBuilder, x: ValueId, reverse: boolean): ValueId {
  return g.node("cumulative", [x], { kind: "sum", axis: 1, exclusive: false, reverse });
}

function upToEach(x: Float64Array): Float64Array {
  let total = 0;
  return x.map((v) => {
    total += v;
    return total;
  });
}

const columns = Number(given.get("--columns") ?? 8192);

/** Elements of a head. */
const headSize = 128;

/** Every token's heads turned by its angles. */
function rotary(interleaved: boolean) {
  const half = headSize / 2;
  const step = interleaved ? 1 : half;
  const first = (pair: number): number => (interleaved ? 2 * pair : pair);
  return {
    ...({ inputs: 1, vectors: 0, tables: [half, half], along: "row", perLine: columns } as const),
    build: (g: GraphBuilder, [x, cos, sin]: readonly ValueId[]): ValueId => {
      const tokens = g.shapeOf(x!)[0]!;
      const [heads, ...tables] = [
        g.reshape(x!, [tokens, columns / headSize, headSize]),
        ...[cos!, sin!].map((table) => g.reshape(table, [tokens, 1, half])),
      ];
      const attrs = { interleaved, rotaryDims: headSize };
      return g.reshape(g.node("rotaryEmbedding", [heads, ...tables], attrs), [tokens, columns]);
    },
    line: ([x, cos, sin]: readonly Float64Array[]): Float64Array =>
      x!.map((v, i) => {
        const [head, place] = [Math.floor(i / headSize) * headSize, i % headSize];
        const pair = interleaved ? place >> 1 : place % half;
        const isFirst = place === first(pair);
        const other = x![head + first(pair) + (isFirst ? step : 0)]!;
        return v * cos![pair]! + (isFirst ? -other : other) * sin![pair]!;
      }),
  };
}

const builders = {
  "rotary embedding of halves": rotary(false),
  "rotary embedding of pairs": rotary(true),
  add: {
    ...{ inputs: 2, vectors: 0, along: "row" },
    build: (g, [x, y]) => g.add(x!, y!),
    line: ([x, y]) => x!.map((v, i) => v + y![i]!),
  },
  "bias, gelu": {
    ...{ inputs: 1, vectors: 1, along: "row" },
    build: (g, [x, b]) => g.node("gelu", [g.add(x!, b!)], { approximate: "tanh" } as never),
    line: ([x, b]) => x!.map((v, i) => gelu(v + b![i]!)),
  },
  "silu, gate": {
    ...{ inputs: 2, vectors: 0, along: "row" },
    build: (g, [x, y]) => g.mul(g.mul(x!, g.apply("sigmoid", x!)), y!),
    line: ([x, y]) => x!.map((v, i) => (v / (1 + Math.exp(-v))) * y![i]!),
  },
  conversion: {
    ...{ inputs: 1, vectors: 0, along: "row", converts: true },
    build: (g, [x]) => {
      const isWide = g.typeOf(x!).dtype === "f32";
      return g.node("cast", [x!], { to: isWide ? "bf16" : "f32", saturate: true });
    },
    line: ([x]) => x!,
  },
  "sum of rows": {
    ...{ inputs: 1, vectors: 0, along: "row" },
    build: (g, [x]) => g.reduce("sum", x!, [1], false),
    line: ([x]) => [sum(x!)],
  },
  "largest of columns": {
    ...{ inputs: 1, vectors: 0, along: "column" },
    build: (g, [x]) => g.reduce("max", x!, [0], false),
    line: ([x]) => [x!.reduce((a, b) => Math.max(a, b))],
  },
  softmax: {
    ...{ inputs: 1, vectors: 0, along: "row" },
    build: (g, [x]) => g.node("softmax", [x!], { axis: 1 }),
    line: ([x]) => {
      const e = x!.map((v) => Math.exp(v));
      const total = sum(e);
      return e.map((v) => v / total);
    },
  },
  "rms norm": {
    ...{ inputs: 1, vectors: 1, along: "row" },
    build: (g, [x, s]) => g.node("rmsNorm", [x!, s!], { axis: 1, epsilon: 1e-5 }),
    line: ([x, s]) => {
      const size = Math.sqrt(sum(x!.map((v) => v * v)) / x!.length + 1e-5);
      return x!.map((v, i) => (v / size) * s![i]!);
    },
  },
  "layer norm": {
    ...{ inputs: 1, vectors: 2, along: "row" },
    build: (g, [x, s, b]) => g.node("layerNorm", [x!, s!, b!], { axis: 1, epsilon: 1e-5 }),
    line: ([x, s, b]) => {
      const mean = sum(x!) / x!.length;
      const size = Math.sqrt(sum(x!.map((v) => (v - mean) ** 2)) / x!.length + 1e-5);
      return x!.map((v, i) => ((v - mean) / size) * s![i]! + b![i]!);
    },
  },
  "sum up to each": {
    ...{ inputs: 1, vectors: 0, along: "row" },
    build: (g, [x]) => cumulative(g, x!, false),
    line: ([x]) => upToEach(x!),
  },
  "sum from each on": {
    ...{ inputs: 1, vectors: 0, along: "row" },
    build: (g, [x]) => cumulative(g, x!, true),
    line: ([x]) => upToEach(x!.toReversed()).toReversed(),
  },
  "sum up to each of few": {
    ...{ inputs: 1, vectors: 0, along: "row", lines: 4 },
    build: (g, [x]) => cumulative(g, x!, false),
    line: ([x]) => upToEach(x!),
  },
  "place of the largest": {
    ...{ inputs: 1, vectors: 0, along: "row", places: true },
    build: (g, [x]) =>
      g.node("argReduce", [x!], { kind: "max", axis: 1, keepDims: false, selectLast: false }),
    line: ([x]) => [x!.indexOf(x!.reduce((a, b) => Math.max(a, b)))],
  },
  "largest 50": {
    ...{ inputs: 1, vectors: 0, along: "row", perLine: 50 },
    build: (g, [x]) =>
      g.nodes("topK", [x!], { axis: 1, k: constant(50), largest: true, sorted: true })[0]!,
    line: ([x]) => x!.toSorted().toReversed().slice(0, 50),
  },
} satisfies Readonly<
  Record<string, Omit<MemoryCase, "name" | "dtype" | "shape"> & { readonly lines?: number }>
>;

const cases: readonly MemoryCase[] = Object.entries(builders).flatMap(([name, parts]) =>
  (["f32", "bf16"] as const).map((dtype) => {
    const elements = dtype === "f32" ? 2 ** 26 : 2 ** 27;
    const length = "lines" in parts ? elements / parts.lines : columns;
    const shape = [Math.ceil(elements / length), length] as const;
    return {
      name: `${name} ${dtype} ${shape.join("x")}`,
      dtype,
      shape,
      ...(parts as typeof builders.add),
    };
  }),
);

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
const rows: { case: string; oursUs: number; peerUs: number; ratio: number; schedule: string }[] =
  [];
let failed = 0;
const only = (given.get("--only") ?? "").split(",");
for (const c of cases.filter((one) => only.some((part) => one.name.includes(part)))) {
  try {
    const chosen = runCase(c);
    if (chosen.length === 1) for (const other of othersOf(chosen[0]!)) runCase(c, other);
  } catch (error) {
    failed++;
    console.error(`FAILED ${c.name}: ${String((error as Error).message).slice(0, 400)}`);
  }
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
  return priced.slice(0, measured).map((p) => p.schedule);
}

/** The chosen schedule, or another one, which is no row of the suite. */
function runCase(c: MemoryCase, other?: Schedule): readonly CompiledRegion[] {
  const [m, n] = c.shape;
  const { tables = [] } = c;
  const g = new GraphBuilder("memory");
  const operands = [
    ...Array.from({ length: c.inputs }, (_, i) => input(g, `x${i}`, c.dtype, [m, n])),
    ...Array.from({ length: c.vectors }, (_, i) => input(g, `v${i}`, c.dtype, [n])),
    ...tables.map((length, i) => input(g, `t${i}`, c.dtype, [m, length])),
  ];
  const graph = g.finish([c.build(g, operands)]);
  const use = other && { measured: new Map([[other.region, other]]) };
  const { plan, nests, regions, model } = take(
    compileModel({ graph, weights: noWeights }, { target, ...use }),
  );
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const size = dtypes[c.dtype].bits / 8;
    model.graph.inputs.forEach((id, operand) => {
      const table = tables[operand - c.inputs - c.vectors];
      const count = operand < c.inputs ? m * n : table === undefined ? n : m * table;
      const at = instance.memory.addressOf(model.graph.values[id]!.name);
      for (let from = 0; from < count; ) {
        const start = (from + 1009 * operand) % period;
        const length = Math.min(period - start, count - from);
        const part = stored[c.dtype].subarray(start, start + length);
        const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
        device.upload(at + BigInt(from * size), bytes);
        from += length;
      }
    });
    const [output] = nests.outputs;
    const y = instance.memory.addressOf(output!);
    const results = resultCount(c);
    const resultSize = c.places ? 8 : dtypes[resultType(c)].bits / 8;
    device.fill(y, 0xff, results * resultSize);
    take(instance.repeat({}, 1));
    instance.stream.synchronize();
    const error = worstError(c, (at, bytes) => device.download(y + BigInt(at * resultSize), bytes));
    if (!(error <= 1)) failed++;
    const beside = c.vectors * n + m * sum(tables);
    const bytes = size * (c.inputs * m * n + beside) + resultSize * results;
    const half = Math.ceil(bytes / 32) * 16;
    const from = instance.memory.take(half);
    const to = instance.memory.take(half);
    device.upload(from, new Uint8Array(stored.f32.buffer));
    const copy = (): void =>
      device.driver.call("cuMemcpyDtoDAsync_v2", to, from, half, instance.stream.handle);
    const ours = { run: (): void => void take(instance.repeat({}, 1)), times: [] as number[] };
    const peer = { run: copy, times: [] as number[] };
    const events = [createEvent(device), createEvent(device)] as const;
    const begin = performance.now();
    while (performance.now() - begin < 1000 * seconds || ours.times.length < 5) {
      for (const { run, times } of [ours, peer]) {
        events[0].record(instance.stream);
        for (let i = 0; i < 4; i++) run();
        events[1].record(instance.stream);
        times.push(events[1].since(events[0]) / 4);
      }
    }
    const [oursUs, peerUs] = [ours, peer].map(({ times }) => 1000 * median(times.slice(2))) as [
      number,
      number,
    ];
    const schedule = regions
      .map(({ scheduled }) => scheduled.schedule.directives.map(printDirective).join("; "))
      .join(" | ");
    if (!other) rows.push({ case: c.name, oursUs, peerUs, ratio: peerUs / oursUs, schedule });
    const price = regions.reduce((us, r) => us + r.price.estimateNs / 1000, 0);
    console.error(
      `${error <= 1 ? "  " : "WRONG "}${other ? "  also " : ""}${c.name}: ${oursUs.toFixed(1)} us (priced ${price.toFixed(1)}), ${(bytes / oursUs / 1000).toFixed(0)} GB/s, ${(peerUs / oursUs).toFixed(3)} x copy (${(bytes / peerUs / 1000).toFixed(0)} GB/s), error ${error.toFixed(2)}, ${plan.program.kernels.length} kernels: ${schedule}`,
    );
  } finally {
    instance.dispose();
  }
  return regions;
}

function input(g: GraphBuilder, name: string, dtype: Kind, shape: readonly number[]): ValueId {
  return g.input(name, { dtype, shape: shape.map((d) => constant(d)) });
}

/** Elements of the output: as many as a line gives, for each line. */
function resultCount(c: MemoryCase): number {
  const { along, line, inputs, vectors, perLine } = c;
  const [m, n] = c.shape;
  if (perLine !== undefined) return m * perLine;
  const one = line(Array.from({ length: inputs + vectors }, () => Float64Array.of(1, 2))).length;
  return (along === "row" ? m : n) * (one === 1 ? 1 : n);
}

/** The largest difference from float64 at sampled lines, in units of what rounding allows. */
function worstError(c: MemoryCase, read: (at: number, bytes: Uint8Array) => void): number {
  const [m, n] = c.shape;
  const lines = c.along === "row" ? m : n;
  const rng = new Rng(3);
  const type = resultType(c);
  const size = dtypes[type].bits / 8;
  let worst = 0;
  for (let sample = 0; sample < 6; sample++) {
    const at = sample === 0 ? 0 : sample === 1 ? lines - 1 : rng.integer(0, lines - 1);
    const { tables = [] } = c;
    const operands = Array.from({ length: c.inputs + c.vectors + tables.length }, (_, operand) => {
      const table = tables[operand - c.inputs - c.vectors];
      const place = (i: number): number => {
        if (table !== undefined) return at * table + i;
        return operand >= c.inputs ? i : c.along === "row" ? at * n + i : i * n + at;
      };
      const length = table ?? (c.along === "row" ? n : m);
      return Float64Array.from({ length }, (_, i) => valueAt(c.dtype, operand, place(i)));
    });
    const want = c.line(operands);
    const bytes = new Uint8Array(want.length * (c.places ? 8 : size));
    read(at * want.length, bytes);
    if (c.places) {
      const places = new BigInt64Array(bytes.buffer);
      if (places.some((place, i) => place !== BigInt(want[i]!))) worst = Infinity;
      continue;
    }
    const raw = type === "f32" ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
    const unit = type === "f32" ? 2 ** -17 : type === "f16" ? 2 ** -9 : 2 ** -6;
    const roundings = c.name.startsWith("softmax") ? softmaxRoundings(operands[0]!) : undefined;
    const usual = Math.sqrt(sum(Float64Array.from(want, (v) => v * v)) / want.length);
    for (let i = 0; i < want.length; i++) {
      const found = type === "f32" ? raw[i]! : decodeFloat(type, raw[i]!);
      const allowed = unit * Math.max(1, (roundings?.[i] ?? 0) / resultRoundings);
      const off = Math.abs(found - want[i]!) / (allowed * Math.max(usual, Math.abs(want[i]!)));
      worst = Number.isNaN(off) ? Infinity : Math.max(worst, off);
    }
  }
  return worst;
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

const logs = rows.reduce((s, r) => s + Math.log(r.ratio), 0);
const geomean = Math.exp(logs / Math.max(1, rows.length));
const worst = Math.min(...rows.map((r) => r.ratio));
if (given.has("--json")) console.log(JSON.stringify({ rows, geomean, worst, failed }));
console.log(
  `${rows.length} cases, geomean ${geomean.toFixed(3)} x copy, worst ${worst.toFixed(3)}, ${failed} failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
