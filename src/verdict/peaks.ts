/**
 * What this machine reaches, measured by two programs of our own in the same process and form as the
 * candidates: a register tile of multiply-adds for arithmetic, and a sum over arrays that fit each memory
 * level for bandwidth. One thread is measured and counted once for each: on a busy machine more would show
 * less than it can do, and a bound must never be too high. Where the target's own figures are better, the
 * machine was disturbed, and they are taken.
 */
import { parseProgram } from "../program/program-parse.ts";
import type { LevelPeak, Peaks } from "../runtime/measure/roofline.ts";
import { DiagnosticError } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { BlockLimits, Target } from "../target/target.ts";
import type { Bench } from "./candidate.ts";
import { CandidateSession, type Step } from "./candidate-session.ts";

const [depth, rows] = [256, 64];
const [tileRows, tileVectors] = [4, 4];
/** Rounds that the best is taken of: a peak is what the machine can do, not what it usually does. */
const protocol = { rounds: 25, warmUp: 20, leastSampleNs: 3e5 };
/** Share of a level that a probe's array fills, so that it stays there. */
const share = 0.5;
/** Array for the level without a capacity: larger than any cache that counts. */
const memoryBytes = 128 * 1024 * 1024;

/** Peaks of a target on the threads of a bench; of a GPU, those of its data sheet, which it cannot pass. */
export async function measurePeaks(target: Target, bench: Bench): Promise<Step<Peaks>> {
  if (target.blocks) return { kind: "done", value: sheetPeaks(target, target.blocks) };
  const { threads } = bench;
  const alone = { ...bench, threads: 1 };
  const lanes = target.vectorBytes / 4;
  const arithmetic = await bestNs(tileProgram(target), alone);
  if (arithmetic.kind !== "done") return arithmetic;
  const flops = (2 * rows * depth * tileVectors * lanes) / arithmetic.value;
  const flopsPerNs = threads * Math.max(flops, target.f32FlopsPerNsPerCore.value);
  const levels: LevelPeak[] = [];
  for (const { name, capacityBytes, bytesPerNsPerCore } of target.memory) {
    const bytes = capacityBytes ? capacityBytes.value * share : memoryBytes;
    const chunks = Math.max(1, Math.floor(bytes / (target.vectorBytes * sums * chunk)));
    const ns = await bestNs(sumProgram(target, chunks), alone);
    if (ns.kind !== "done") return ns;
    const found = (chunks * chunk * sums * target.vectorBytes) / ns.value;
    const bytesPerNs = threads * Math.max(found, bytesPerNsPerCore.value);
    const capacity = capacityBytes && { capacityBytes: capacityBytes.value * threads };
    levels.push({ name, bytesPerNs, ...capacity });
  }
  return { kind: "done", value: { flopsPerNs, levels: rising(levels) } };
}

function sheetPeaks(target: Target, blocks: BlockLimits): Peaks {
  const { cores, nearBytes, nearBytesPerNs, memoryBytesPerNs } = blocks;
  return {
    flopsPerNs: target.f32FlopsPerNsPerCore.value * cores,
    levels: [
      { name: "shared cache", capacityBytes: nearBytes, bytesPerNs: nearBytesPerNs.value },
      { name: "memory", bytesPerNs: memoryBytesPerNs.value },
    ],
  };
}

/** A level is at least as fast as those behind it: what it cannot show of itself they have shown. */
function rising(levels: readonly LevelPeak[]): readonly LevelPeak[] {
  return levels.map((level, i) => ({
    ...level,
    bytesPerNs: Math.max(...levels.slice(i).map((l) => l.bytesPerNs)),
  }));
}

async function bestNs(text: string, bench: Bench): Promise<Step<number>> {
  const program = parseProgram(text);
  if (!program.ok) throw new DiagnosticError(program.diagnostics);
  const region = { name: "probe" } as const;
  const session = new CandidateSession(
    { region, program: program.value, schedule: "probe" },
    bench,
  );
  const loaded = await session.load();
  if (loaded.kind !== "done") return loaded;
  const ran = await session.run({}, []);
  if (ran.kind !== "done") return ran;
  const timed = await session.time(protocol, bench.deadlineMs);
  await session.unload();
  if (timed.kind !== "done") return timed;
  const [samples] = timed.value;
  invariant(samples, () => "a probe without samples");
  return { kind: "done", value: Math.min(...samples) };
}

/** Accumulators in registers, operands in the nearest level. */
function tileProgram(target: Target): string {
  const lanes = target.vectorBytes / 4;
  const type = `f32x${lanes}`;
  const points = Array.from({ length: tileRows * tileVectors }, (_, i) => ({
    r: Math.floor(i / tileVectors),
    v: i % tileVectors,
  }));
  const acc = (p: { r: number; v: number }): string => `acc[${p.r}, ${p.v}]`;
  const each = (line: (p: { r: number; v: number }) => string): string =>
    points.map(line).join("\n");
  const fma = target.capabilities.has("fma");
  const step = (p: { r: number; v: number }): string => {
    const load = p.v === 0 ? `let a${p.r} = splat.${lanes}(load.f32 x[${p.r}, k])\n` : "";
    const [a, w, c] = [`a${p.r}`, `w${p.v}`, `load.${type} ${acc(p)}`];
    return `${load}store ${acc(p)} = ${fma ? `fma.${type}(${a}, ${w}, ${c})` : `add(mul(${a}, ${w}), ${c})`}`;
  };
  const trips = rows / tileRows;
  return `program peak for ${JSON.stringify(target.name)} {
  buffer x : input memory f32 [${tileRows}, ${depth}] source "x"
  buffer w : input memory f32 [${depth}, ${tileVectors * lanes}] source "w"
  buffer y : output memory f32 [${trips * tileRows}, ${tileVectors * lanes}] source "y"
  kernel tile region "probe" {
    grid threads (t < threads)
    buffer acc : scratch register ${type} [${tileRows}, ${tileVectors}]
    role main copies 1 threads 1 {
      for i < ${trips} over t {
        ${each((p) => `store ${acc(p)} = ${type}(0)`)}
        for k < ${depth} {
          ${[0, 1, 2, 3].map((v) => `let w${v} = load.${type} w[k, ${lanes * v}]`).join("\n")}
          ${each(step)}
        }
        ${each((p) => `store y[${tileRows}*i + ${p.r}, ${lanes * p.v}] = load.${type} ${acc(p)}`)}
      }
    }
  }
  tasks { launch tile after previous }
}`;
}

/** Independent sums, so that loads and not additions set the pace. */
const sums = 8;
/** Steps of each sum in a row. */
const chunk = 64;

function sumProgram(target: Target, trips: number): string {
  const lanes = target.vectorBytes / 4;
  const type = `f32x${lanes}`;
  const each = (line: (s: number) => string): string =>
    Array.from({ length: sums }, (_, s) => line(s)).join("\n");
  return `program bandwidth for ${JSON.stringify(target.name)} {
  buffer x : input memory f32 [${trips}, ${chunk}, ${sums * lanes}] source "x"
  buffer y : output memory f32 [${trips}, ${sums * lanes}] source "y"
  kernel sum region "probe" {
    grid threads (t < threads)
    buffer acc : scratch register ${type} [${sums}]
    role main copies 1 threads 1 {
      for i < ${trips} over t {
        ${each((s) => `store acc[${s}] = ${type}(0)`)}
        for k < ${chunk} {
          ${each((s) => `store acc[${s}] = add(load.${type} acc[${s}], load.${type} x[i, k, ${lanes * s}])`)}
        }
        ${each((s) => `store y[i, ${lanes * s}] = load.${type} acc[${s}]`)}
      }
    }
  }
  tasks { launch sum after previous }
}`;
}
