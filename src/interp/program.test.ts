import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Program } from "../program/program.ts";
import { parseProgram } from "../program/program-parse.ts";
import { Rng } from "../support/rng.ts";
import { runProgram } from "./program.ts";

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
