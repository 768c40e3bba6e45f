/** The clock of callers who bring none: milliseconds from a fixed point, never backwards. */
export function steadyNowMs(): number {
  return performance.now();
}
