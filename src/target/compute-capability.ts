/**
 * Compute capabilities of NVIDIA GPUs: two numbers, compared as numbers (8.9 < 9.0 < 10.0 < 12.1; as
 * text "10.0" would stand before "8.9").
 */

export interface ComputeCapability {
  readonly major: number;
  readonly minor: number;
}

/** Reads `9.0` or `12.1`; undefined when the text is no compute capability. */
export function parseComputeCapability(text: string): ComputeCapability | undefined {
  const match = /^\s*(\d{1,3})\.(\d{1,2})\s*$/.exec(text);
  return match ? { major: Number(match[1]), minor: Number(match[2]) } : undefined;
}

/** Below zero: `a` is the older one. */
export function compareComputeCapability(a: ComputeCapability, b: ComputeCapability): number {
  return a.major - b.major || a.minor - b.minor;
}

export function printComputeCapability({ major, minor }: ComputeCapability): string {
  return `${major}.${minor}`;
}
