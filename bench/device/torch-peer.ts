/**
 * torch in a Python process as a peer: it answers one line for each line that it is sent, so only one of the
 * two has work on the device at a time, and each times its own batches by events.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type CompiledModel, type CompileOptions, compileModel } from "../../src/compile.ts";
import type { Model } from "../../src/graph/graph.ts";
import type { CudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { parseSchedule, printDirective } from "../../src/schedule/directive-text.ts";
import { take } from "./ptx-launch.ts";

export interface PeerAnswer {
  /** Of one run. */
  readonly ms?: number;
  readonly error?: string;
  /** Of the peer's own results from those in float64, in norms of the latter, where `prepare` measured it. */
  readonly error64?: number;
}

/** @param text Python that defines `prepare(m)`, which gives a function to be timed, for a message of op `case` */
export class TorchPeer {
  readonly #child;
  readonly #lines;

  constructor(text: string, python = "python3") {
    this.#child = spawn(python, ["-c", text + answering], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Prepares a case: later batches are of it. */
  prepare(message: object): Promise<PeerAnswer> {
    return this.#ask({ op: "case", ...message });
  }

  /** Times a batch of runs. */
  async time(runs: number): Promise<number> {
    const { ms, error } = await this.#ask({ op: "time", runs });
    if (ms === undefined) throw new Error(`peer: ${error}`);
    return ms;
  }

  async #ask(message: object): Promise<PeerAnswer> {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error("the peer ended");
      // Compilers print what they like.
      if (value.startsWith("{")) return JSON.parse(value) as PeerAnswer;
    }
  }

  end(): void {
    this.#child.stdin.end();
  }
}

/** Medians in microseconds, and of the ratios of neighbouring batches, peer over ours, the outer tenths as well. */
export interface InTurns {
  readonly ours: number;
  readonly peer: number;
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

const quantile = (times: readonly number[], q: number): number =>
  [...times].sort((a, b) => a - b)[Math.floor(q * (times.length - 1))]!;

interface Timing {
  readonly flops: number;
  readonly seconds: number;
}

/** Runs of a batch: some tenths of a millisecond. */
const runsOf = (flops: number): number => Math.max(4, Math.min(40, Math.round(1e11 / flops)));

/** Milliseconds of a run, of a batch of so many. */
function batchesOf(instance: CudaInstance): (runs: number) => number {
  const [start, end] = [createEvent(instance.device), createEvent(instance.device)];
  return (runs) => {
    start.record(instance.stream);
    for (let i = 0; i < runs; i++) take(instance.repeat({}, 1));
    end.record(instance.stream);
    return end.since(start) / runs;
  };
}

/** The median of batches of ours, in microseconds. */
export function timeAlone(instance: CudaInstance, { flops, seconds }: Timing): number {
  const batch = batchesOf(instance);
  const times: number[] = [];
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds || times.length < 9)
    times.push(batch(runsOf(flops)));
  return 1000 * quantile(times.slice(2), 0.5);
}

/** Batches of ours and of the peer's in turns for so many seconds; the first two only warm the clocks. */
export async function timeInTurns(
  instance: CudaInstance,
  peer: TorchPeer,
  { flops, seconds }: Timing,
): Promise<InTurns> {
  const runs = runsOf(flops);
  const batch = batchesOf(instance);
  const [ours, theirs] = [[] as number[], [] as number[]];
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds || ours.length < 9) {
    ours.push(batch(runs));
    theirs.push(await peer.time(runs));
  }
  const [mine, its] = [ours.slice(2), theirs.slice(2)];
  const ratios = its.map((t, i) => t / mine[i]!);
  return {
    ours: 1000 * quantile(mine, 0.5),
    peer: 1000 * quantile(its, 0.5),
    ratio: quantile(ratios, 0.5),
    low: quantile(ratios, 0.1),
    high: quantile(ratios, 0.9),
  };
}

/** Geometric mean of the ratios, and the least. */
export function summary(rows: readonly { readonly ratio: number }[]): {
  readonly geomean: number;
  readonly worst: number;
} {
  const logs = rows.reduce((sum, row) => sum + Math.log(row.ratio), 0);
  return {
    geomean: Math.exp(logs / Math.max(1, rows.length)),
    worst: Math.min(...rows.map((row) => row.ratio)),
  };
}

/** What the command line says by name; flags have no value. */
export function readOptions(flags: readonly string[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (let i = 2; i < process.argv.length; i++) {
    const name = process.argv[i]!;
    given.set(name, flags.includes(name) ? "" : process.argv[++i]!);
  }
  return given;
}

/** Runs each case; what it throws is a failure that is told, and the next one runs. How many failed. */
export async function runCases<T>(
  cases: readonly T[],
  nameOf: (one: T) => string,
  run: (one: T) => Promise<void>,
): Promise<number> {
  let failed = 0;
  for (const one of cases) {
    try {
      await run(one);
    } catch (e) {
      failed++;
      console.error(`FAILED ${nameOf(one)}: ${String((e as Error).message).slice(0, 600)}`);
    }
  }
  return failed;
}

/** The product of a compiled model by other schedules: directives of `multiply`, with semicolons between them. */
export async function measureOthers(
  hows: string,
  {
    model,
    chosen,
    options,
  }: {
    readonly model: Model;
    readonly chosen: CompiledModel;
    readonly options: CompileOptions;
  },
  measure: (compiled: CompiledModel) => Promise<void>,
): Promise<void> {
  const region = chosen.regions.find(({ scheduled }) => scheduled.products.length > 0)?.name;
  if (region === undefined) return;
  for (const how of hows.split(";").filter((h) => h.trim() !== "")) {
    const text = `schedule "${region}" for "${options.target.name}" { multiply ${region} ${how.trim()} }`;
    const measured = new Map([[region, take(parseSchedule(text))]]);
    const other = compileModel(model, { ...options, measured });
    if (other.ok) await measure(other.value);
    else console.error(`  ${how}: ${other.diagnostics[0]?.message ?? "refused"}`);
  }
}

type Pool = Uint8Array | Int8Array | Uint16Array | Float32Array;

/** Fills an operand with the elements of a pool over and over, from one of them on. */
export function uploadRepeated(
  { device, memory }: CudaInstance,
  operand: string,
  { pool, place, count }: { readonly pool: Pool; readonly place: number; readonly count: number },
): void {
  const to = memory.addressOf(operand);
  for (let from = 0; from < count; ) {
    const start = (from + place) % pool.length;
    const length = Math.min(pool.length - start, count - from);
    const { buffer, byteOffset, byteLength } = pool.subarray(start, start + length);
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    device.upload(to + BigInt(pool.BYTES_PER_ELEMENT * from), bytes);
    from += length;
  }
}

/** The schedules of a model's regions, and what they are priced at together. */
export function scheduleOf({ regions }: CompiledModel): {
  readonly schedule: string;
  readonly pricedUs: number;
} {
  const schedule = regions
    .map(({ scheduled }) => scheduled.schedule.directives.map(printDirective).join("; "))
    .join(" | ");
  return { schedule, pricedUs: regions.reduce((sum, r) => sum + r.price.estimateNs / 1000, 0) };
}

const answering = `
import json, sys
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
run = None
for line in sys.stdin:
    m = json.loads(line)
    try:
        if m["op"] == "case":
            run = None
            torch.cuda.empty_cache()
            run = prepare(m)
            torch.cuda.synchronize()
            answer = {"torch": torch.__version__, **getattr(run, "found", {})}
        else:
            start.record()
            for _ in range(m["runs"]): run()
            end.record()
            torch.cuda.synchronize()
            answer = {"ms": start.elapsed_time(end) / m["runs"]}
    except Exception as e:
        answer = {"error": str(e)[:300]}
    print(json.dumps(answer), flush=True)
`;
