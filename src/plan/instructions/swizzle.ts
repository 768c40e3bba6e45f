/**
 * Swizzles of shared memory and the banks they avoid. A swizzle of S bytes exchanges 16-byte chunks within
 * every S bytes of a row by the number of the row (PTX ISA 9.0, 5.5.6 "Swizzling modes"). Bank conflicts
 * are counted, not argued: 32 banks of 4 bytes, one wavefront serves 128 bytes.
 */

export const swizzleSpans = [0, 32, 64, 128] as const;
export type SwizzleSpan = (typeof swizzleSpans)[number];

const chunkBytes = 16;
const wavefrontBytes = 128;

/** Where the byte at `address` of a tile lies; the tile begins at a multiple of 1024 bytes. */
export function swizzleAddress(address: number, span: SwizzleSpan): number {
  if (span === 0) return address;
  const chunks = span / chunkBytes;
  // 128 bytes: bits 4-6 by bits 7-9; 64 bytes: bits 4-5 by 7-8; 32 bytes: bit 4 by bit 7.
  const row = Math.floor(address / wavefrontBytes) % chunks;
  const chunk = Math.floor(address / chunkBytes) % chunks;
  return address + ((chunk ^ row) - chunk) * chunkBytes;
}

/** Whether the map takes every byte of a tile to a place of its own in the tile. */
export function isBijection(tileBytes: number, span: SwizzleSpan): boolean {
  const taken = new Uint8Array(tileBytes);
  for (let address = 0; address < tileBytes; address++) {
    const place = swizzleAddress(address, span);
    if (place < 0 || place >= tileBytes || taken[place] === 1) return false;
    taken[place] = 1;
  }
  return true;
}

/**
 * Wavefronts of one access in which each thread reads 16 bytes: threads go in groups of eight, and a
 * group takes as many wavefronts as the most loaded bank has words.
 */
export function wavefrontsOf(addresses: readonly number[]): number {
  let total = 0;
  for (let first = 0; first < addresses.length; first += 8) {
    const words = new Map<number, Set<number>>();
    for (const address of addresses.slice(first, first + 8)) {
      for (let word = address / 4; word < (address + chunkBytes) / 4; word++) {
        const bank = word % 32;
        words.set(bank, (words.get(bank) ?? new Set()).add(word));
      }
    }
    total += Math.max(...[...words.values()].map((w) => w.size));
  }
  return total;
}

export interface SwizzleChoice {
  readonly span: SwizzleSpan;
  /** Wavefronts to read a column of 8 x 16 bytes; 1 is free of conflicts. */
  readonly wavefronts: number;
}

/**
 * The widest swizzle that a row of `rowBytes` has room for, with what reading 16 bytes of eight rows (one
 * 8 x 8 matrix of 16-bit elements) costs under it.
 */
export function chooseSwizzle(rowBytes: number): SwizzleChoice {
  const span = swizzleSpans.filter((s) => s === 0 || (rowBytes >= s && rowBytes % s === 0)).at(-1)!;
  return { span, wavefronts: columnWavefronts(rowBytes, span) };
}

/** Of the worst 16-byte column of eight rows. A wide row is stored as several boxes of `span` bytes. */
export function columnWavefronts(rowBytes: number, span: SwizzleSpan): number {
  const pitch = span === 0 ? rowBytes : span;
  let worst = 0;
  for (let column = 0; column < pitch; column += chunkBytes) {
    const addresses = Array.from({ length: 8 }, (_, row) =>
      swizzleAddress(row * pitch + column, span),
    );
    worst = Math.max(worst, wavefrontsOf(addresses));
  }
  return worst;
}
