/** Programs of small transposes through shared memory, which `campaign -- gpu-mutants` plants faults in. */
import { describe, it } from "vitest";
import { type TurnCase, turnText } from "../../campaign/ptx/turn-programs.ts";
import { checkGolden } from "./golden-file.ts";

/** Whole tiles and cut ones, a thread that takes several vectors, an operand that lies as the results do. */
const turns: readonly (readonly [string, TurnCase])[] = [
  ["f32", { dtype: "f32", shape: [32, 32], how: "tile (16, 32) threads 64 lanes (4, 4)" }],
  ["cut", { dtype: "f32", shape: [2, 19, 23], how: "tile (16, 16) threads 32 lanes (1, 1)" }],
  ["cut below", { dtype: "f32", shape: [2, 16, 23], how: "tile (16, 16) threads 32 lanes (1, 1)" }],
  [
    "cut beside",
    { dtype: "f32", shape: [2, 19, 16], how: "tile (16, 16) threads 32 lanes (1, 1)" },
  ],
  [
    "pairs",
    { dtype: "bf16", shape: [24, 40], added: true, how: "tile (32, 16) threads 64 lanes (8, 4)" },
  ],
  ["bytes", { dtype: "i8", shape: [36, 24], how: "tile (16, 32) threads 32 lanes (8, 4)" }],
];

describe("transposes by blocks", () => {
  it("are the programs last looked at", () => {
    const texts = new Map(turns.map(([name, given]) => [name, turnText(given)]));
    checkGolden("turns.txt", "transposes as the compiler lowers them through shared memory", texts);
  });
});
