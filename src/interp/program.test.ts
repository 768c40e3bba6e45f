import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  dependentFaults,
  megakernelFaults,
  type PlantedFault,
  pipelinedFaults,
} from "../../test/golden/program/faults.ts";
import type { Program } from "../program/program.ts";
import { parseProgram } from "../program/program-parse.ts";
import { decodeFloat, encodeFloat, roundToFloat } from "../semantics/float-codec.ts";
import { Rng } from "../support/rng.ts";
import { type ProgramOutcome, runProgram } from "./program.ts";

function golden(name: string): string {
  return readFileSync(new URL(`../../test/golden/program/${name}.txt`, import.meta.url), "utf8");
}

function parse(text: string): Program {
  const read = parseProgram(text);
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  return read.value;
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer);
}

function randomFloats(rng: Rng, count: number): Float32Array {
  return Float32Array.from({ length: count }, () => rng.normal());
}

interface Mlp {
  readonly x: Float32Array;
  readonly w: Float32Array;
  readonly b: Float32Array;
}

function mlpData(rows: number, seed: number): Mlp {
  const rng = new Rng(seed);
  return {
    x: randomFloats(rng, rows * 13),
    w: randomFloats(rng, 13 * 16),
    b: randomFloats(rng, 16),
  };
}

function mlpRun(text: string, rows: number, { seed, threads }: { seed: number; threads: number }) {
  const { x, w, b } = mlpData(rows, seed);
  const packed = Float32Array.from({ length: 2 * 13 * 8 }, (_, i) => {
    const [j0, k, j1] = [Math.floor(i / 104), Math.floor(i / 8) % 13, i % 8];
    return w[k * 16 + 8 * j0 + j1]!;
  });
  const contents = new Map([
    ["x", bytesOf(x)],
    ["w", bytesOf(packed)],
    ["b", bytesOf(b)],
  ]);
  return runProgram(parse(text), { parameters: { M: rows }, contents, threads, seed });
}

test("the CPU matrix kernel computes relu(x w + b) for all tails and thread counts", () => {
  const text = golden("matmul-bias-relu-cpu");
  for (const [rows, threads] of [
    [1, 1],
    [3, 2],
    [7, 3],
    [12, 2],
    [17, 1],
    [40, 4],
  ] as const) {
    const outcome = mlpRun(text, rows, { seed: rows, threads });
    if (outcome.kind !== "finished") throw new Error(JSON.stringify(outcome.fault));
    const y = new Float32Array(outcome.contents.get("y")!.buffer);
    const { x, w, b } = mlpData(rows, rows);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < 16; j++) {
        let sum = b[j]!;
        for (let k = 0; k < 13; k++) sum += x[i * 13 + k]! * w[k * 16 + j]!;
        expect(y[i * 16 + j]).toBeCloseTo(Math.max(0, sum), 4);
      }
    }
  }
});

/** What a run of the text with a seed gives. */
type Runner = (text: string, seed: number) => ProgramOutcome;

function bf16(rng: Rng, count: number): { readonly values: number[]; readonly bytes: Uint8Array } {
  const values = Array.from({ length: count }, () => roundToFloat("bf16", rng.normal()));
  const patterns = Uint16Array.from(values, (v) => encodeFloat("bf16", v));
  expect(decodeFloat("bf16", patterns[0]!)).toBe(values[0]);
  return { values, bytes: new Uint8Array(patterns.buffer) };
}

function pipelinedData() {
  const rng = new Rng(5);
  return { x: bf16(rng, 64 * 320), w: bf16(rng, 16 * 320), bias: randomFloats(rng, 16) };
}

const runPipelined: Runner = (text, seed) => {
  const { x, w, bias } = pipelinedData();
  const contents = new Map([
    ["x", x.bytes],
    ["w", w.bytes],
    ["bias", bytesOf(bias)],
  ]);
  return runProgram(parse(text), { parameters: {}, contents, threads: 1, seed });
};

test("the pipelined matrix kernel computes relu(x w^T + b) whatever the schedule", () => {
  const { x, w, bias } = pipelinedData();
  for (const seed of [1, 2]) {
    const outcome = runPipelined(golden("matmul-pipelined"), seed);
    if (outcome.kind !== "finished") throw new Error(JSON.stringify(outcome.fault));
    const y = new Float32Array(outcome.contents.get("y")!.buffer);
    for (let i = 0; i < 64; i++) {
      for (let j = 0; j < 16; j++) {
        let sum = bias[j]!;
        for (let k = 0; k < 320; k++) sum += x.values[i * 320 + k]! * w.values[j * 320 + k]!;
        expect(Math.abs(y[i * 16 + j]! - Math.max(0, sum))).toBeLessThan(1e-3);
      }
    }
  }
});

function megakernelData() {
  const rng = new Rng(9);
  const x = Float32Array.from({ length: 8 }, () => 0.1 + rng.uniform());
  return { x, layers: [0, 1, 2].map(() => randomFloats(rng, 64).map((v) => v / 10)) };
}

const runMegakernel: Runner = (text, seed) => {
  const { x, layers } = megakernelData();
  const contents = new Map([["x", bytesOf(x)]]);
  layers.forEach((w, i) => {
    contents.set(`w${i}`, bytesOf(w));
  });
  return runProgram(parse(text), { parameters: {}, contents, threads: 1, seed });
};

test("the megakernel runs its layers, its loop and its early stop", () => {
  const { x, layers } = megakernelData();
  let h = Array.from(x);
  for (const w of layers) {
    h = h.map(
      (v, i) =>
        v +
        Math.max(
          0,
          h.reduce((s, u, j) => s + w[i * 8 + j]! * u, 0),
        ),
    );
  }
  while (h[0]! < 10) h = h.map((v) => 2 * v);
  for (let seed = 0; seed < 8; seed++) {
    const outcome = runMegakernel(golden("megakernel"), seed);
    if (outcome.kind !== "finished") throw new Error(JSON.stringify(outcome.fault));
    const y = new Float32Array(outcome.contents.get("y")!.buffer);
    h.forEach((v, i) => {
      expect(y[i]).toBeCloseTo(v, 3);
    });
  }
  const early = golden("megakernel").replace("lessEqual(f32(10)", "lessEqual(f32(-1)");
  expect(runMegakernel(early, 1).kind).toBe("finished");
  const endless = golden("megakernel").replace("f32(2))", "f32(1))");
  expect(runMegakernel(endless, 1)).toMatchObject({ fault: { kind: "tooManyTrips" } });
});

/** Every planted fault that a run can show is shown by one of a few seeds. */
function checkFaults(
  name: string,
  faults: readonly PlantedFault[],
  { run, seeds }: { readonly run: Runner; readonly seeds: number },
): void {
  const text = golden(name);
  const missed = faults.flatMap(({ what, from, to, run: wanted }) => {
    if (!wanted) return [];
    if (!text.includes(from)) return [`${what}: ${from} does not occur`];
    const found: string[] = [];
    for (let seed = 0; seed < seeds; seed++) {
      const outcome = run(text.replace(from, to), seed);
      const kind = outcome.kind === "fault" ? outcome.fault.kind : undefined;
      if (kind && wanted.includes(kind)) return [];
      found.push(kind ?? "nothing");
    }
    return [`${what}: ${found.join(", ")}`];
  });
  expect(missed).toEqual([]);
}

test("faults planted in the megakernel show in a run", () => {
  checkFaults("megakernel", megakernelFaults, { run: runMegakernel, seeds: 12 });
});

test("faults planted in the pipelined kernel show in a run", () => {
  checkFaults("matmul-pipelined", pipelinedFaults, { run: runPipelined, seeds: 3 });
});

function runDependents(text: string, seed: number): ProgramOutcome {
  const [x, w] = [1, 2].map((s) => bytesOf(randomFloats(new Rng(s), 64)));
  const contents = new Map([
    ["x", x!],
    ["w", w!],
  ]);
  return runProgram(parse(text), { parameters: {}, contents, threads: 1, seed });
}

test("launches that overlap give the values of launches apart, and planted faults show", () => {
  const apart = golden("dependents").replaceAll("after started", "after previous");
  const wanted = runDependents(apart, 1);
  expect(wanted.kind).toBe("finished");
  for (let seed = 0; seed < 8; seed++)
    expect(runDependents(golden("dependents"), seed)).toEqual(wanted);
  checkFaults("dependents", dependentFaults, { run: runDependents, seeds: 12 });
});

test("bytes in the wrong swizzle give wrong numbers", () => {
  const text = golden("matmul-pipelined").replace(
    "[2, 8, 64] swizzle 128",
    "[2, 8, 64] swizzle 64",
  );
  const right = runPipelined(golden("matmul-pipelined"), 1);
  const wrong = runPipelined(text, 1);
  expect(wrong.kind === "finished" && right.kind === "finished").toBe(true);
  if (wrong.kind !== "finished" || right.kind !== "finished") return;
  expect(wrong.contents.get("y")).not.toEqual(right.contents.get("y"));
});
