import { describe, expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

/** y[b] = sum of the lanes' numbers, by one exchange; parts may be replaced by a fault. */
const kernel = `program p for "h200" {
  parameter N in 1 to 100
  buffer x : input memory f32 [N, 32] source "x"
  buffer y : output memory f32 [N] source "y"
  kernel sum region "r" {
    grid blocks (b < N)
    buffer own : scratch register f32 [1]
    buffer other : scratch register f32 [1]
    role main copies 1 threads 32 as t {
      store own[0] = load.f32 x[b, t]
      issue shuffle.xor16.f32(other[0] box [1], own[0] box [1]) sync
      let s = add(load.f32 own[0], load.f32 other[0])
      if -t >= 0 {
        store y[b] = s
      }
    }
  }
  tasks {
    launch sum after previous
  }
}
`;

function codesOf(text: string): readonly string[] {
  const parsed = parseProgram(text);
  if (!parsed.ok) throw new Error(parsed.diagnostics[0]!.message);
  const valid = validateProgram(parsed.value);
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

const exchange = /issue .* sync/.exec(kernel)![0];

describe("exchanges within a warp", () => {
  it("are proved for every number of blocks", () => {
    expect(codesOf(kernel)).toEqual([]);
  });

  it.each([
    ["stores by all threads", ["if -t >= 0", "if 31 - t >= 0"], "PRG030"],
    ["a store by no thread", ["if -t >= 0", "if t - 32 >= 0"], "PRG020"],
    [
      "a store by the second thread alone, which is not proved",
      ["if -t >= 0", "if t - 1 >= 0, 1 - t >= 0"],
      "PRG030",
    ],
    [
      "registers that nothing wrote",
      ["store own[0] = load.f32 x[b, t]", "store other[0] = load.f32 x[b, t]"],
      "PRG021",
    ],
    ["part of a warp", ["threads 32", "threads 16"], "PRG043"],
    ["threads that part by their number", [exchange, `if 15 - t >= 0 { ${exchange} }`], "PRG043"],
    ["threads that part in a loop", [exchange, `for k < t + 1 { ${exchange} }`], "PRG043"],
    [
      "threads that part by what they read",
      [exchange, `when less(load.f32 own[0], f32(0)) { ${exchange} } else { ${exchange} }`],
      "PRG043",
    ],
    ["a register past the last", ["own[0] box", "own[1] box"], "PRG010"],
  ] as const)("are refused with %s", (_, [from, to], code) => {
    expect(kernel).toContain(from);
    expect(codesOf(kernel.replace(from, to))).toContain(code);
  });
});
