/** What copies of rows into shared memory lose where these are shorter than a line. */
import { lineBytes } from "./block-access.ts";

/** Such copies reach a part of the rates of caches and memory (H200). */
const shortLines = 0.7;

/** Part of the rates that copies reach whose rows have so many bytes. */
export function rateOfRows(bytes: number): number {
  return bytes < lineBytes ? shortLines : 1;
}
