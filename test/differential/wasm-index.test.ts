/**
 * Index arithmetic as WebAssembly computes it, against semantics/index-expr.ts: random expressions with
 * negative numerators, divisors that are powers of two, other constants and symbols, at every depth of
 * a loop nest, as values, as lanes, as conditions, and as the places that stores go to.
 */
import { describe, it } from "vitest";
import { type ProgramRun, runProgram } from "../../src/interp/program.ts";
import { forLoop, ifThen, indexValue, literalExpr, storeTo } from "../../src/program/expr.ts";
import type { Buffer, Program } from "../../src/program/program.ts";
import type { Statement } from "../../src/program/statement.ts";
import type { Condition } from "../../src/semantics/condition.ts";
import * as ix from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { runInWasm } from "./run-in-wasm.ts";

const [rows, columns] = [5, 7];
const unwritten = -123456;
const v = ix.variable;

/** Over the loops, the parameter M (at least 1) and what is bound; values stay below 2^20. */
function randomIndex(rng: Rng, names: readonly string[], depth: number): ix.IndexExpr {
  if (depth === 0) {
    return rng.uniform() < 0.7 ? v(rng.pick(names)) : ix.constant(rng.integer(-9, 9));
  }
  const a = randomIndex(rng, names, depth - 1);
  const b = randomIndex(rng, names, depth - 1);
  const spread = ix.add(ix.mul(a, rng.integer(-9, 9)), ix.mul(b, rng.integer(-9, 9)));
  const shifted = ix.add(spread, rng.integer(-40, 10));
  const divisor = rng.pick([rng.integer(1, 13), 2 ** rng.integer(0, 5), v("M")]);
  return rng.pick([
    () => shifted,
    () => ix.floorDiv(shifted, divisor),
    () => ix.mod(shifted, divisor),
    () => ix.mul(a, v(rng.pick(names))),
    () => ix.min(a, b, shifted),
    () => ix.max(a, b),
  ])();
}

interface Sample {
  readonly expr: ix.IndexExpr;
  readonly kind: "value" | "lanes" | "zero" | "nonNegative" | "place";
  /** Loops around it: the parameter alone, the rows, or rows and columns. */
  readonly depth: 0 | 1 | 2;
}

const kinds = ["value", "lanes", "zero", "nonNegative", "place"] as const;
const lanes = 4;
/** Elements of y that a sample fills: one a point, four of them for lanes. */
const block = rows * columns * lanes;

function randomSample(rng: Rng): Sample {
  const depth = rng.pick([0, 1, 2, 2, 2] as const);
  const names = ["M", "i", "j"].slice(0, 1 + depth);
  return { expr: randomIndex(rng, names, rng.integer(1, 3)), kind: rng.pick(kinds), depth };
}

/** Where the sample's result at the present point goes. */
function slot(at: number, { depth }: Sample): ix.IndexExpr {
  const point = depth === 2 ? ix.add(ix.mul(columns, v("i")), v("j")) : v("i");
  return ix.add(at * block, depth === 0 ? 0 : ix.mul(lanes, point));
}

function statementOf(at: number, sample: Sample): Statement {
  const { expr, kind } = sample;
  const to = slot(at, sample);
  if (kind === "value") return storeTo("y", [to], indexValue(expr, "i32"));
  if (kind === "lanes") return storeTo("y", [to], indexValue(expr, "i32", lanes, 3));
  if (kind === "place") {
    return storeTo("y", [ix.add(to, ix.mod(expr, lanes))], literalExpr(7, "i32"));
  }
  const condition: Condition = { kind, expr };
  const [yes, no] = [1, 2].map((n) => storeTo("y", [to], literalExpr(n, "i32")));
  return ifThen([condition], [yes!], [no!]);
}

function programOf(samples: readonly Sample[]): Program {
  const at = (depth: number): Statement[] =>
    samples.flatMap((s, n) => (s.depth === depth ? [statementOf(n, s)] : []));
  const total = ix.constant(samples.length * block);
  const y: Buffer = {
    name: "y",
    kind: "output",
    scope: "memory",
    dtype: "i32",
    lanes: 1,
    shape: [total],
  };
  const inner = forLoop("j", columns, at(2));
  const clear = forLoop("c", total, [storeTo("y", [v("c")], literalExpr(unwritten, "i32"))]);
  const body = [clear, ...at(0), forLoop("i", rows, [...at(1), inner])];
  const axes = [{ name: "t", extent: ix.constant(1) }];
  return {
    name: "p",
    target: "wasm",
    parameters: [{ name: "M", min: 1, max: 12 }],
    requires: [],
    buffers: [y],
    counters: [],
    kernels: [
      {
        name: "k",
        grid: { unit: "threads", axes, clusterSize: 1, resident: false },
        buffers: [],
        counters: [],
        roles: [{ name: "main", copies: 1, threads: 1, body }],
        region: "k",
      },
    ],
    tasks: [
      { kind: "launch", kernel: "k", after: "previous", bindings: [], waits: [], signals: [] },
    ],
    states: [],
  };
}

/** What y has to hold; undefined where nothing is written. */
function wanted(samples: readonly Sample[], M: number): (number | undefined)[] {
  const y = new Array<number | undefined>(samples.length * block).fill(undefined);
  samples.forEach((sample, n) => {
    for (let i = 0; i < (sample.depth > 0 ? rows : 1); i++) {
      for (let j = 0; j < (sample.depth > 1 ? columns : 1); j++) {
        const at = new Map(Object.entries({ M, i, j }));
        const to = ix.evaluate(slot(n, sample), at);
        const value = ix.evaluate(sample.expr, at);
        if (sample.kind === "value") y[to] = value;
        if (sample.kind === "lanes") {
          for (let l = 0; l < lanes; l++) y[to + l] = value + 3 * l;
        }
        if (sample.kind === "zero") y[to] = value === 0 ? 1 : 2;
        if (sample.kind === "nonNegative") y[to] = value >= 0 ? 1 : 2;
        if (sample.kind === "place") y[to + ix.positiveMod(value, lanes)] = 7;
      }
    }
  });
  return y;
}

function interpreted(program: Program, run: ProgramRun): ReadonlyMap<string, Uint8Array> {
  const outcome = runProgram(program, run);
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  return outcome.contents;
}

describe("emitted index expressions", () => {
  it("have the values that their meaning says, in code and in the interpreter", () => {
    for (let seed = 0; seed < 40; seed++) {
      const rng = new Rng(seed);
      const samples = Array.from({ length: 30 }, () => randomSample(rng));
      const M = rng.integer(1, 12);
      const program = programOf(samples);
      const run = { parameters: { M }, contents: new Map(), threads: 1, seed };
      const found: ReadonlyMap<string, Uint8Array>[] = [runInWasm(program, run)];
      if (seed < 4) found.push(interpreted(program, run));
      for (const contents of found) {
        const bytes = contents.get("y")!;
        const got = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
        wanted(samples, M).forEach((want, at) => {
          const { expr, kind } = samples[Math.floor(at / block)]!;
          if (got[at] === (want ?? unwritten)) return;
          const place = `${kind} of ${expr.key}, element ${at % block}, M = ${M}, seed ${seed}`;
          throw new Error(`${place}: ${got[at]}, not ${want}`);
        });
      }
    }
  });
});
