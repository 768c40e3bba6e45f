/**
 * The virtual machine of a layer problem: one small fast memory before a large slow one, and a peak. It stands in
 * the problem file itself; nothing here names a real machine.
 */
export interface Machine {
  readonly name: string;
  readonly sramBytes: number;
  readonly sramBandwidthGbps: number;
  readonly dramBandwidthGbps: number;
  readonly computeGflops: number;
  readonly alignmentBytes: number;
}

export const bytesPerElement = 4;

/** Weight of a transition's penalty in the objective: tight memories make conversions dear. */
export function transitionWeight(machine: Machine): number {
  return Math.min(0.5, Math.max(0.01, 4096 / machine.sramBytes));
}
