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

  it("guards loads and divides indices", () => {
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
               store y[floorDiv(i, W), mod(i, W)] = neg(s)
             }
           }
         }`,
      ),
      { W: 11 },
    );
  });

  it("moves vectors of every width, mixes types and lanes", () => {
    check(
      oneKernel(
        `buffer a : input memory u8 [64]
         buffer h : input memory f16 [64]
         buffer b : input memory bool [64]
         buffer i8s : output memory i8 [64]
         buffer f : output memory f32 [64]
         buffer g : output memory bf16 [64]
         buffer p : output memory f32 [32]
         buffer m : output memory bool [64]`,
        `role main copies 1 threads 1 {
           for i < 4 over t {
             let v = cast.f32(load.u8x16 a[16*i])
             let w = cast.f32(load.f16x16 h[16*i])
             let big = less(splat.16(f32(100)), v)
             store i8s[16*i] = cast.i8.saturate(sub(v, f32x16(128)))
             store f[16*i] = select(big, add(v, w), splat.16(extract.3(w)))
             store g[16*i] = cast.bf16(mul(v, w))
             store m[16*i] = and(big, load.boolx16 b[16*i])
             for q < 4 {
               let pair = load.f16x2 h[16*i + 4*q]
               store p[8*i + 2*q] = cast.f32(add(pair, pair))
             }
           }
         }`,
      ),
    );
  });

  it("keeps local buffers apart and packs lanes", () => {
    check(
      oneKernel(
        `buffer x : input memory f32 [40]
         buffer y : output memory f32 [40]`,
        `buffer tmp : scratch local f32 [8]
         buffer r : scratch register f32 [2]
         role main copies 1 threads 1 {
           for i < 10 over t {
             for q < 8 {
               store tmp[q] = mul(load.f32 x[mod(4*i + q, 40)], cast.f32(index.i32(q - i)))
             }
             store r[0] = load.f32 tmp[7]
             store r[1] = exp(f32(0))
             store y[4*i] = pack(load.f32 tmp[0], load.f32 r[0], load.f32 r[1], load.f32 tmp[3])
           }
         }`,
      ),
    );
  });

  it("walks backwards and below a buffer's start without trapping", () => {
    check(
      oneKernel(
        `parameter N in 1 to 100
         buffer x : input memory f32 [N]
         buffer y : output memory f32 [N]`,
        `role main copies 1 threads 1 {
           for i < N over t {
             for k < 3 {
               if k - 1 == 0 {
                 store y[i] = add(load.f32 x[N - 1 - i],
                   add(load.f32 x[i + k - 2] where {i + k - 2 >= 0} else 0,
                       load.f32 x[i - 20*k] where {i - 20*k >= 0} else 1))
               }
             }
           }
         }`,
      ),
      { N: 57 },
    );
  });

  it("gathers through checked and proved indices", () => {
    const text = oneKernel(
      `buffer table : input memory f32 [256, 4]
       buffer rows : input memory u8 [30]
       buffer y : output memory f32 [30, 4]`,
      `role main copies 1 threads 1 {
         for i < 30 over t {
           index row < 256 proved = load.u8 rows[i]
           let double = mul(load.f32x4 table[row, 0], f32x4(2))
           index other < 256 checked wraps = sub(cast.i64(load.u8 rows[29 - i]), i64(256))
           store y[i, 0] = add(double, load.f32x4 table[other, 0])
         }
       }`,
    );
    check(text);
    const bad = instance(parse(text.replaceAll("i64(256)", "i64(999)")), true);
    expect(bad.runSync({})).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN006", at: "kernel k: index other" }],
    });
    bad.dispose();
  });
});

describe("tasks", () => {
  const kernels = `
    kernel scale region "scale" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < 16 over t { store s[i] = add(mul(load.f32 s[i], f32(0.5)), cast.f32(index.i32(layer))) }
      }
    }
    kernel start region "start" {
      grid threads (t < 1)
      role main copies 1 threads 1 { for i < 16 { store s[i] = load.f32 x[i] } }
    }
    kernel weigh region "weigh" {
      grid threads (t < 4, u < 2)
      role main copies 1 threads 1 {
        for i < 2 { store s[4*t + 2*u + i] = add(load.f32 s[4*t + 2*u + i], load.f32 w[4*t + 2*u + i]) }
      }
    }
    kernel count region "count" {
      grid threads (t < 1)
      role main copies 1 threads 1 {
        store left[0] = sub(load.i32 left[0], i32(1))
      }
    }
    kernel set region "set" {
      grid threads (t < 1)
      role main copies 1 threads 1 { store left[0] = i32(5) }
    }
    kernel finish region "finish" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < 16 over t { store y[i] = load.f32 s[i] } }
    }`;
  const text = (tasks: string) => `
    program p for "wasm" {
      parameter M in 0 to 9
      buffer x : input memory f32 [16]
      buffer w0 : weight memory f32 [16] at weights + (0)
      buffer w1 : weight memory f32 [16] at weights + (64)
      buffer w2 : weight memory f32 [16] at weights + (128)
      buffer s : scratch memory f32 [16]
      buffer left : scratch memory i32 [1]
      buffer y : output memory f32 [16]
      ${kernels}
      tasks { launch start after previous launch set after previous ${tasks} launch finish after previous }
    }`;

  it("repeats with tables and bindings, branches and loops on memory", () => {
    for (const M of [0, 1, 4]) {
      check(
        text(`
          repeat layer < 3 table w = [w0, w1, w2] {
            launch weigh after previous
            launch scale after previous bind layer = 2*layer + M
          }
          while element left[0] at most 7 {
            launch scale after previous bind layer = 1
            launch count after previous
          }
          if (M - 1 >= 0) { launch scale after previous bind layer = M } else {
            repeat q < 2 table w = [w2, w0] { launch weigh after previous }
          }
          if not element left[0] { launch finish after previous stop }`),
        { M },
      );
    }
  });

  it("stops a loop that makes too many trips (RUN007) and checks parameters (RUN008)", () => {
    const endless = text("while element left[0] at most M { launch weigh after previous }").replace(
      "load.f32 w[",
      "load.f32 w0[",
    );
    const runner = instance(parse(endless), true);
    expect(runner.runSync({ M: 3 })).toMatchObject({ diagnostics: [{ code: "RUN007" }] });
    expect(runner.runSync({ M: 10 })).toMatchObject({ diagnostics: [{ code: "RUN008" }] });
    runner.dispose();
  });

  it("refuses what it cannot print (EMT001)", () => {
    const program = parse(text("").replaceAll("role main copies 1", "role main copies 2"));
    expect(createWasmInstance(program, { relaxedFma: false })).toMatchObject({
      ok: false,
      diagnostics: [{ code: "EMT001" }],
    });
  });
});
