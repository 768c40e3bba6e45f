import { afterAll, describe, expect, it } from "vitest";
import { runProgram } from "../../src/interp/program.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmInstance, type WasmInstance } from "../../src/runtime/wasm/wasm-instance.ts";
import { WorkerPool } from "../../src/runtime/wasm/worker-pool.ts";
import { type DType, storageBytes } from "../../src/semantics/dtype.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";

const pool = new WorkerPool({ threads: 3, host: nodeWorkerHost, stallMilliseconds: 20_000 });
afterAll(() => pool.dispose());

function parse(text: string): Program {
  const parsed = parseProgram(text);
  if (!parsed.ok) throw new Error(parsed.diagnostics.map((d) => `${d.at} ${d.message}`).join("\n"));
  return parsed.value;
}

function instance(program: Program, withPool: boolean): WasmInstance {
  const made = createWasmInstance(program, { relaxedFma: false, ...(withPool ? { pool } : {}) });
  if (!made.ok) throw new Error(made.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  return made.value;
}

/** Random contents that are ordinary numbers in every dtype. */
function fill(rng: Rng, dtype: DType, bytes: Uint8Array): void {
  if (dtype === "f32")
    new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4).forEach((_, i, a) => {
      a[i] = Math.fround(rng.normal());
    });
  else if (dtype === "f16" || dtype === "bf16") {
    new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2).forEach((_, i, a) => {
      a[i] = rng.integer(0, 0x3fff) | (rng.integer(0, 1) << 15);
    });
  } else if (dtype === "bool")
    bytes.forEach((_, i) => {
      bytes[i] = rng.integer(0, 1);
    });
  else
    bytes.forEach((_, i) => {
      bytes[i] = rng.integer(0, 255);
    });
}

/** Runs on one thread, on a pool, and in the interpreter; outputs must be the same bytes. */
function check(text: string, parameters: Record<string, number> = {}): void {
  const program = parse(text);
  const rng = new Rng(5);
  const given = program.buffers.filter((b) => b.kind === "input" || b.kind === "weight");
  const outputs = program.buffers.filter((b) => b.kind === "output");
  const contents = new Map<string, Uint8Array>();
  const single = instance(program, false);
  for (const b of given) {
    const bindings = new Map(Object.entries(parameters));
    const elements = b.shape.reduce((n, e) => n * evaluate(e, bindings), 1);
    const bytes = new Uint8Array(storageBytes(b.dtype, elements));
    fill(rng, b.dtype, bytes);
    contents.set(b.name, bytes);
  }
  const truth = runProgram(program, { parameters, contents, threads: 3, seed: 1 });
  if (truth.kind === "fault") throw new Error(JSON.stringify(truth.fault));
  for (const runner of [single, instance(program, true)]) {
    for (const [name, bytes] of contents) runner.bytes(name).set(bytes);
    for (const b of outputs) runner.bytes(b.name).fill(0xa5);
    const outcome = runner.runSync(parameters);
    expect(outcome).toMatchObject({ ok: true });
    for (const b of outputs) {
      const wanted = truth.contents.get(b.name)!;
      expect(runner.bytes(b.name).slice(0, wanted.length)).toEqual(wanted);
    }
    runner.dispose();
  }
}

const oneKernel = (buffers: string, kernel: string, grid = "grid threads (t < threads)") => `
program p for "wasm" {
  ${buffers}
  kernel k region "k" {
    ${grid}
    ${kernel}
  }
  tasks { launch k after previous }
}`;

describe("emitted programs", () => {
  it("multiplies matrices with a register tile, any number of rows", () => {
    const tile = [0, 1, 2, 3];
    const text = oneKernel(
      `parameter M in 1 to 64
       buffer x : input memory f32 [M, 24]
       buffer w : weight memory f32 [24, 32]
       buffer y : output memory f32 [M, 32]`,
      `buffer acc : scratch register f32x4 [4]
       role main copies 1 threads 1 {
         for i < M over t {
           for j < 2 {
             ${tile.map((c) => `store acc[${c}] = f32x4(0)`).join("\n")}
             for k < 24 {
               let a = splat.4(load.f32 x[i, k])
               ${tile.map((c) => `store acc[${c}] = add(mul(a, load.f32x4 w[k, 16*j + ${4 * c}]), load.f32x4 acc[${c}])`).join("\n")}
             }
             ${tile.map((c) => `store y[i, 16*j + ${4 * c}] = relu(load.f32x4 acc[${c}])`).join("\n")}
           }
         }
       }`,
    );
    for (const M of [1, 2, 7, 64]) check(text, { M });
  });

  it("guards loads, divides and wraps indices", () => {
    check(
      oneKernel(
        `parameter W in 3 to 20
         buffer x : input memory f32 [5, W]
         buffer y : output memory f32 [5, W]`,
        `role main copies 1 threads 1 {
           for i < 5*W over t {
             let s = add(load.f32 x[floorDiv(i, W), mod(i, W) - 1] where {mod(i, W) - 1 >= 0} else 7,
                         load.f32 x[floorDiv(i, W), mod(i, W) + 1] where {W - mod(i, W) - 2 >= 0} else -3)
             if mod(i, 3) == 0 {
               store y[floorDiv(i, W), mod(i, W)] = s
             } else {
               store y[floorDiv(i, W), W - 1 - mod(W - 1 - i, W)] = neg(s)
             }
           }
         }`,
      ).replace("W - 1 - mod(W - 1 - i, W)", "mod(i, W)"),
      { W: 11 },
    );
  });
});
