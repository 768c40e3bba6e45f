/**
 * A synthetic sound for the speech detector: noise, then a voice-like tone (a gliding pulse train
 * through three resonances, as in formant synthesis), then noise again. Same seed, same samples.
 */
import type { Rng } from "../../src/support/rng.ts";

export const sampleRate = 16000;

/** Centre frequencies (Hz) and strengths of the vowel's resonances. */
const formants: readonly (readonly [number, number])[] = [
  [700, 1],
  [1220, 0.5],
  [2600, 0.25],
];

/** `seconds` of samples in [-1, 1]; the voice sounds in the middle third. */
export function synthesiseVoice(seconds: number, rng: Rng): Float32Array {
  const samples = new Float32Array(Math.round(seconds * sampleRate));
  let phase = 0;
  let sincePulse = 0;
  for (let i = 0; i < samples.length; i++) {
    const time = i / sampleRate;
    const pitch = 120 + 25 * Math.sin(2 * Math.PI * 2.5 * time);
    phase += pitch / sampleRate;
    sincePulse = phase >= 1 ? 0 : sincePulse + 1 / sampleRate;
    phase %= 1;
    const voiced = i * 3 >= samples.length && i * 3 < 2 * samples.length;
    const noise = 0.005 * rng.normal();
    samples[i] = Math.max(-1, Math.min(1, noise + (voiced ? 0.4 * ring(sincePulse) : 0)));
  }
  return samples;
}

/** Damped resonances `t` seconds after a pulse of the voice. */
function ring(t: number): number {
  let sum = 0;
  for (const [frequency, strength] of formants) {
    sum += strength * Math.exp(-t * 400) * Math.sin(2 * Math.PI * frequency * t);
  }
  return sum;
}
