/**
 * How fast emitted WebAssembly runs the inner loop that matters most: a 4x16 register tile of a matrix
 * product on operands that stay in L1 and L2, one thread. Suite `ceiling` gives the share of this ceiling
 * that whole products reach. Relaxed fused multiply-add is used where the engine has it.
 */
import { parseProgram } from "../src/program/program-parse.ts";
import { probeWasmFeatures } from "../src/runtime/wasm/features.ts";
import { createWasmInstance, type WasmInstance } from "../src/runtime/wasm/wasm-instance.ts";
import { unwrap } from "./sessions/import-hints.ts";

const [rows, columns, depth] = [64, 64, 256];
const [tileRows, tileVectors] = [4, 4];

function tileProgram(): string {
  const points = Array.from({ length: tileRows * tileVectors }, (_, i) => ({
    r: Math.floor(i / tileVectors),
    v: i % tileVectors,
  }));
  const acc = ({ r, v }: { r: number; v: number }) => `acc[${r}, ${v}]`;
  const each = (line: (p: { r: number; v: number }) => string) => points.map(line).join("\n");
  return `
program gemm for "wasm" {
  buffer x : input memory f32 [${rows}, ${depth}]
  buffer w : weight memory f32 [${columns / 16}, ${depth}, 16]
  buffer y : output memory f32 [${rows}, ${columns}]
  kernel tile region "gemm" {
    grid threads (t < threads)
    buffer acc : scratch register f32x4 [${tileRows}, ${tileVectors}]
    role main copies 1 threads 1 {
      for i < ${rows / tileRows} over t {
        for j < ${columns / 16} {
          ${each((p) => `store ${acc(p)} = f32x4(0)`)}
          for k < ${depth} {
            ${[0, 1, 2, 3].map((v) => `let w${v} = load.f32x4 w[j, k, ${4 * v}]`).join("\n")}
            ${each((p) => {
              const a = p.v === 0 ? `let a${p.r} = splat.4(load.f32 x[4*i + ${p.r}, k])\n` : "";
              return `${a}store ${acc(p)} = fma.f32x4(a${p.r}, w${p.v}, load.f32x4 ${acc(p)})`;
            })}
          }
          ${each((p) => `store y[4*i + ${p.r}, 16*j + ${4 * p.v}] = load.f32x4 ${acc(p)}`)}
        }
      }
    }
  }
  tasks { launch tile after previous }
}`;
}

/** Multiplications and additions of one run of the tile program. */
export const tileFlops = 2 * rows * columns * depth;

/** A run of the tile program on this thread. */
export function openWasmTile(): () => void {
  const instance = openTile();
  return () => void unwrap(instance.runSync({}));
}

function openTile(): WasmInstance {
  const { relaxedFma } = probeWasmFeatures();
  const gemm = unwrap(createWasmInstance(unwrap(parseProgram(tileProgram())), { relaxedFma }));
  for (const name of ["x", "w"]) {
    const bytes = gemm.bytes(name);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    for (let i = 0; i < values.length; i++) values[i] = Math.sin(i);
  }
  return gemm;
}
