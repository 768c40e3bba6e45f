/** Runs on the caller's arrays in place of the program's own memory. */
import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { type LentArray, lendApart, lentArray } from "../lent-arrays.ts";
import { ModelSession } from "../model-session.ts";
import { probeNativeFeatures } from "./features.ts";
import { createNativeInstance, type NativeInstance } from "./native-instance.ts";

const here = probeNativeFeatures();

/** y[i] = x[N - 1 - i] + s[i], and s becomes t = x: elements of y are written before all of x is read. */
const text = `
program turn for "x64-avx2" {
  parameter N in 1 to 64
  buffer x : input memory f32 [N] source "x"
  buffer s : state memory f32 [64] source "s"
  buffer t : output memory f32 [64] source "t"
  buffer y : output memory f32 [N] source "y"
  keep s -> t
  kernel k region "k" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < N over th {
        store y[i] = add(load.f32 x[N - 1 - i], load.f32 s[i])
        store t[i] = load.f32 x[i]
      }
    }
  }
  tasks { launch k after previous }
}`;

function vector(data: Float32Array): Tensor {
  return { dtype: "f32", shape: [data.length], data };
}

function ascending(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

describe.skipIf(!here.ok)("runs on lent arrays", () => {
  const open = (threads = 1): { instance: NativeInstance; session: ModelSession } => {
    const program = parseProgram(text);
    invariant(program.ok && here.ok, () => JSON.stringify(program));
    const { system } = here.value;
    const options = { system, threads, parallelism: 2 };
    const made = createNativeInstance(program.value, targets.get("x64-avx2")!, options);
    invariant(made.ok, () => JSON.stringify(made));
    const weight = (): never => {
      throw new Error("it has no weights");
    };
    return {
      instance: made.value,
      session: new ModelSession(program.value, made.value, { weight }),
    };
  };
  const run = (session: ModelSession, x: Float32Array, y?: Float32Array): number[] => {
    const outcome = session.run({ x: vector(x) }, y && { y: vector(y) });
    invariant(outcome.ok, () => JSON.stringify(outcome));
    return [...outcome.value.y!.data].map(Number);
  };

  it.each([1, 2])(
    "leaves our own memory alone, whatever the extent, with %i threads",
    (threads) => {
      const { instance, session } = open(threads);
      for (const count of [64, 5, 1]) {
        session.poison();
        session.resetStates();
        // At the end of its array: what is written behind it would be seen by the next.
        const all = new Float32Array(count + 3).fill(7);
        const y = all.subarray(1, count + 1);
        expect(run(session, Float32Array.from(ascending(0, count)), y)).toEqual(
          ascending(0, count).toReversed(),
        );
        expect([all[0], all[count + 1], all[count + 2]]).toEqual([7, 7, 7]);
        expect(instance.bytes("y").every((b) => b === 0xff)).toBe(true);
      }
      void session.dispose();
    },
  );

  it("makes new arrays for outputs, full of NaN behind poison", () => {
    const { session } = open();
    session.poison();
    session.resetStates();
    const first = session.run({ x: vector(Float32Array.of(1, 2)) });
    invariant(first.ok, () => JSON.stringify(first));
    expect([...first.value.y!.data]).toEqual([2, 1]);
    // The kernel writes two elements of t.
    expect([...first.value.t!.data].slice(0, 3)).toEqual([1, 2, Number.NaN]);
    const y = first.value.y!.data;
    expect(run(session, Float32Array.of(5, 6))).toEqual([7, 7]);
    expect([...y]).toEqual([2, 1]);
    void session.dispose();
  });

  it("copies an output that lies over an input", () => {
    const { session } = open();
    for (const shift of [0, 1, 3, -2]) {
      session.resetStates();
      const all = new Float32Array(40);
      const x = all.subarray(8, 24);
      x.set(ascending(0, 16));
      const y = all.subarray(8 + shift, 24 + shift);
      expect(run(session, x, y)).toEqual(ascending(0, 16).toReversed());
    }
    void session.dispose();
  });

  it("keeps states, and runs beside the caller and after failures on its own memory", async () => {
    const { session } = open(2);
    expect(run(session, Float32Array.of(1, 2, 3), new Float32Array(3))).toEqual([3, 2, 1]);
    expect(run(session, Float32Array.of(1, 1, 1), new Float32Array(3))).toEqual([2, 3, 4]);
    const refused = session.run({ x: vector(new Float32Array(65)) });
    expect(refused.ok).toBe(false);
    const beside = await session.runAsync({ x: vector(Float32Array.of(1, 2, 3)) });
    invariant(beside.ok, () => JSON.stringify(beside));
    expect([...beside.value.y!.data]).toEqual([4, 3, 2]);
    await session.dispose();
    expect(() => session.run({ x: vector(Float32Array.of(1)) })).toThrow("disposed");
  });
});

it("lends what no output lies over, as one pair at a time finds it", () => {
  const rng = new Rng(11);
  for (let round = 0; round < 500; round++) {
    const memory = new Uint8Array(40);
    const arrays = Array.from({ length: 1 + rng.integer(0, 5) }, (_, i): LentArray => {
      const from = rng.integer(0, 29);
      const data = memory.subarray(from, from + rng.integer(0, 9));
      return Object.assign(lentArray(`b${i}`, rng.integer(0, 1) === 0), { data });
    });
    lendApart(arrays, (data) => BigInt(4096 + data.byteOffset));
    const lent = arrays.filter((a) => a.isLent);
    const touched = ({ data }: LentArray): number[] =>
      ascending(data!.byteOffset, data!.byteOffset + data!.byteLength);
    for (const a of lent) {
      for (const b of lent) {
        if (a === b || !(a.isWritten || b.isWritten)) continue;
        expect(touched(a).filter((at) => touched(b).includes(at))).toEqual([]);
      }
    }
    for (const a of arrays) {
      const isAlone = arrays.every(
        (b) => a === b || !touched(a).some((n) => touched(b).includes(n)),
      );
      const isInput = !a.isWritten;
      if ((isAlone || isInput) && touched(a).length > 0) expect(a.isLent).toBe(true);
    }
  }
});
