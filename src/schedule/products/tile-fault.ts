/** Why no block computes a tile (SCH035), and what to change so that one does. */
export interface TileFault {
  readonly why: string;
  /** An instruction that fits this cause. */
  readonly cure: string;
}

export function unfit(why: string, cure: string): TileFault {
  return { why, cure };
}
