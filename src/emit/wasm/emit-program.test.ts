import binaryen from "binaryen";
import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { emitProgram, type WasmProgram } from "./emit-program.ts";

function emit(text: string): WasmProgram {
  const parsed = parseProgram(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  const emitted = emitProgram(parsed.value, { relaxedFma: false, sharedMemory: true });
  if (!emitted.ok) throw new Error(JSON.stringify(emitted.diagnostics));
  return emitted.value;
}

const rows = [0, 1, 2, 3];
const points = rows.flatMap((r) => rows.map((v) => ({ r, v })));

/** A register tile of 4 x 16 with symbolic rows and constant depth, the operands placed in arenas. */
const tile = `
program p for "wasm" {
  parameter M in 4 to 400
  buffer x : input memory f32 [M, 96] at caller + (0)
  buffer w : weight memory f32 [4, 96, 16] at weights + (64)
  buffer y : output memory f32 [M, 64] at caller + (153600)
  kernel tile region "tile" {
    grid threads (t < threads)
    buffer acc : scratch register f32x4 [4, 4]
    role main copies 1 threads 1 {
      for i < floorDiv(M, 4) over t {
        for j < 4 {
          ${points.map((p) => `store acc[${p.r}, ${p.v}] = f32x4(0)`).join("\n")}
          for k < 96 {
            ${rows.map((v) => `let w${v} = load.f32x4 w[j, k, ${4 * v}]`).join("\n")}
            ${rows.map((r) => `let a${r} = splat.4(load.f32 x[4*i + ${r}, k])`).join("\n")}
            ${points.map((p) => `store acc[${p.r}, ${p.v}] = fma.f32x4(a${p.r}, w${p.v}, load.f32x4 acc[${p.r}, ${p.v}])`).join("\n")}
          }
          ${points.map((p) => `store y[4*i + ${p.r}, 16*j + ${4 * p.v}] = load.f32x4 acc[${p.r}, ${p.v}]`).join("\n")}
        }
      }
    }
  }
  tasks { launch tile after previous }
}`;

/** How often each instruction occurs in the loop before a function's first store. */
function innermostLoop(bytes: Uint8Array, name: string): Map<string, number> {
  const module = binaryen.readBinary(bytes);
  const text = module.emitText();
  module.dispose();
  const body = text.slice(text.indexOf(`(func $${name} `));
  const firstStore = body.indexOf("v128.store");
  const loop = body.slice(body.lastIndexOf("(loop", firstStore), firstStore);
  const counts = new Map<string, number>();
  for (const [, op] of loop.matchAll(/\(([\w.]+)/g)) counts.set(op!, (counts.get(op!) ?? 0) + 1);
  return counts;
}

describe("emitProgram", () => {
  it("leaves only loads, arithmetic, two pointer steps and the count in the inner loop", () => {
    const counts = innermostLoop(emit(tile).bytes, "tile");
    expect(counts.get("v128.load")).toBe(4);
    expect(counts.get("v128.load32_splat")).toBe(4);
    expect(counts.get("f32x4.mul")).toBe(16);
    expect(counts.get("f32x4.add")).toBe(16);
    expect(counts.get("i32.add")).toBe(3);
    expect(counts.get("i32.mul") ?? 0).toBe(0);
  });

  it("parks what a loop has accumulated where a function comes after it, and only there", () => {
    const squashed = tile.replaceAll(
      /= load\.f32x4 acc\[(\d), (\d)\]$/gm,
      "= tanh(load.f32x4 acc[$1, $2])",
    );
    const counts = (text: string) => {
      const module = binaryen.readBinary(emit(text).bytes);
      const body = module.emitText().split("(func $tile ")[1]!.split("(func $")[0]!;
      module.dispose();
      return ["v128.store", "v128.load"].map((op) => {
        return body.split("\n").filter((line) => line.trim().split(/[ (]/).includes(op)).length;
      });
    };
    expect(counts(tile)).toEqual([16, 4]);
    expect(counts(squashed)).toEqual([32, 20]);
    expect(emit(squashed).layout.localBytes - emit(squashed).layout.parkedAt).toBe(512);
  });

  it("maps code back to kernels and statements", () => {
    const { map, bytes } = emit(tile);
    const subjects = map.map((r) => r.subject);
    expect(subjects).toContain("tile: for k");
    expect(subjects).toContain("tile: store y");
    expect(subjects).toContain("launch tile");
    for (const { start, end } of map)
      expect(0 < start && start <= end && end <= bytes.length).toBe(true);
  });

  it("gives the same bytes each time", () => {
    expect(emit(tile).bytes).toEqual(emit(tile).bytes);
  });
});
