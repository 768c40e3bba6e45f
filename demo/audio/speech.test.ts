import { describe, expect, test } from "vitest";
import { float32Tensor, type Session, type Tensors } from "../../bench/sessions/session.ts";
import { Rng } from "../../src/support/rng.ts";
import { sampleRate, synthesiseVoice } from "./signal.ts";
import { detectSpeech } from "./speech.ts";

describe("synthesiseVoice", () => {
  test("is the same for the same seed and loud in the middle third only", () => {
    const signal = synthesiseVoice(0.3, new Rng(5));
    expect(signal).toEqual(synthesiseVoice(0.3, new Rng(5)));
    expect(signal.length).toBe(0.3 * sampleRate);
    const power = (part: number) => {
      const third = signal.subarray((part * signal.length) / 3, ((part + 1) * signal.length) / 3);
      return third.reduce((sum, v) => sum + v * v, 0) / third.length;
    };
    expect(power(1)).toBeGreaterThan(100 * Math.max(power(0), power(2)));
  });
});

describe("detectSpeech", () => {
  test("windows overlap by the context and the state is fed back", async () => {
    const seen: Tensors[] = [];
    const session: Session = {
      inputs: [],
      outputs: [],
      release: async () => {},
      run: async (feeds) => {
        seen.push(feeds);
        const state = Float32Array.from(feeds.state!.data as Float32Array, (v) => v + 1);
        return {
          output: float32Tensor([1, 1], Float32Array.of(state[0]! / 10)),
          stateN: float32Tensor([2, 1, 128], state),
        };
      },
    };
    const signal = Float32Array.from({ length: 512 * 3 + 100 }, (_, i) => i);
    const probabilities = await detectSpeech(session, signal);
    expect(probabilities.map((p) => Math.round(p * 10))).toEqual([1, 2, 3]);
    const inputs = seen.map((feeds) => feeds.input!.data as Float32Array);
    expect(inputs.map((d) => d.length)).toEqual([576, 576, 576]);
    expect(inputs.map((d) => d[0])).toEqual([0, 448, 960]);
    expect(inputs.map((d) => d[64])).toEqual([0, 512, 1024]);
    expect(seen[0]!.sr!.dims).toEqual([]);
  });
});
