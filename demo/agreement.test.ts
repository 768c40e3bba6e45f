import { describe, expect, test } from "vitest";
import { float32Tensor, type Session, type Tensors } from "../bench/sessions/session.ts";
import { agrees, pairSessions } from "./agreement.ts";

const y = (...values: number[]): Tensors => ({
  y: float32Tensor([values.length], Float32Array.from(values)),
});

function fixed(outputs: Tensors): Session {
  return { inputs: [], outputs: [], run: async () => outputs, release: async () => {} };
}

describe("pairSessions", () => {
  const model = { name: "m", depth: 4, longestSum: 64 };
  const check = async (ours: number, theirs: number) => {
    const pair = pairSessions(model, fixed(y(ours)), fixed(y(theirs)));
    expect(await pair.run({})).toEqual(y(ours));
    await pair.run({});
    expect(pair.agreement().runs).toBe(2);
    return agrees(pair.agreement());
  };
  test("agreement is judged by the tolerance of the model's rounding", async () => {
    expect(await check(1, 1 + 2 ** -20)).toBe(true);
    expect(await check(1, 1 + 2 ** -17)).toBe(false);
    expect(await check(Number.NaN, 1)).toBe(false);
  });
});
