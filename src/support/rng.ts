/**
 * Seeded pseudo-random numbers: xoshiro128** seeded through splitmix32 (Blackman and Vigna, 2018).
 * The only source of randomness in pure code, so that the same seed gives the same bytes everywhere.
 */

export class Rng {
  readonly #state = new Uint32Array(4);

  /** @param seed any integer; its low 32 bits are used. */
  constructor(seed: number) {
    let s = seed | 0;
    for (let i = 0; i < 4; i++) {
      s = (s + 0x9e3779b9) | 0;
      let z = s;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      this.#state[i] = (z ^ (z >>> 16)) >>> 0;
    }
  }

  /** The next 32 random bits as an unsigned integer. */
  bits(): number {
    const s = this.#state;
    const s1 = s[1]!;
    const product = Math.imul(s1, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const t = s1 << 9;
    s[2] = s[2]! ^ s[0]!;
    s[3] = s[3]! ^ s1;
    s[1] = s1 ^ s[2]!;
    s[0] = s[0]! ^ s[3]!;
    s[2] = s[2]! ^ t;
    const s3 = s[3]!;
    s[3] = (s3 << 11) | (s3 >>> 21);
    return result;
  }

  /** Uniform in [0, 1). */
  uniform(): number {
    return this.bits() / 4294967296;
  }

  /** Uniform integer in [low, high], both ends included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** Standard normal (Box-Muller). */
  normal(): number {
    const u = 1 - this.uniform();
    return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * this.uniform());
  }

  /** One element of a non-empty list. */
  pick<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)]!;
  }

  /** An independent generator, for a named sub-task. */
  fork(): Rng {
    return new Rng(this.bits());
  }
}
