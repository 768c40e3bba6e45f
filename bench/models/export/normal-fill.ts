/**
 * Normal numbers in bulk by seed: Box and Muller's transform with both of its numbers kept. A model's
 * weights are a hundred million of them.
 */
import { Rng } from "../../../src/support/rng.ts";

export interface NormalDraw {
  readonly mean: number;
  readonly deviation: number;
  readonly seed: number;
}

/** Fills `values` with mean + N(0, deviation²). */
export function fillNormal(values: Float32Array, { mean, deviation, seed }: NormalDraw): void {
  const rng = new Rng(seed);
  for (let i = 0; i < values.length; i += 2) {
    const radius = deviation * Math.sqrt(-2 * Math.log(1 - rng.uniform()));
    const angle = 2 * Math.PI * rng.uniform();
    values[i] = mean + radius * Math.cos(angle);
    if (i + 1 < values.length) values[i + 1] = mean + radius * Math.sin(angle);
  }
}

/** A seed of its own for each name (FNV-1a, folded with the model's seed). */
export function seedOf(name: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) | 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash;
}
