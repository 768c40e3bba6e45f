/**
 * Elements of tensors that a region computes on its way, each found once: with a value and an error, in pages,
 * since a check by samples meets whole rows here and there in tensors that may be far larger than memory.
 */
import type { NumberFrame } from "../interp/number-approximate.ts";

const pageElements = 1024;

interface Page {
  readonly values: Float64Array;
  /** NaN where the element is not known yet. */
  readonly errors: Float64Array;
}

export class ComputedElements {
  readonly #pages = new Map<number, Page>();
  #lastNumber = -1;
  #last: Page | undefined;

  /** Puts a known element into a slot; false where it is not known. */
  read(offset: number, into: NumberFrame, slot: number): boolean {
    const page = this.#pageOf(offset);
    const at = offset % pageElements;
    const error = page.errors[at]!;
    if (Number.isNaN(error)) return false;
    into.values[slot] = page.values[at]!;
    into.errors[slot] = error;
    return true;
  }

  write(offset: number, from: NumberFrame, slot: number): void {
    const page = this.#pageOf(offset);
    const at = offset % pageElements;
    page.values[at] = from.values[slot]!;
    page.errors[at] = from.errors[slot]!;
  }

  #pageOf(offset: number): Page {
    const number = Math.floor(offset / pageElements);
    if (number === this.#lastNumber) return this.#last!;
    const page = this.#pages.get(number) ?? {
      values: new Float64Array(pageElements),
      errors: new Float64Array(pageElements).fill(Number.NaN),
    };
    this.#pages.set(number, page);
    this.#lastNumber = number;
    this.#last = page;
    return page;
  }
}
