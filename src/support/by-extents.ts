/**
 * Values by lists of extents, as the shapes of a run's inputs: the few that came last are compared number by
 * number, which costs less than spelling a key. In: extents and their value; out: the value of equal ones.
 */

/** Of each thing that has a shape, or nothing where it is not given. */
export type Extents = readonly (readonly number[] | undefined)[];

export class ByExtents<V> {
  readonly #most: number;
  /** Most recently used first. */
  readonly #kept: { readonly extents: Extents; readonly value: V }[] = [];

  /** @param most how many are kept; the least recently used leaves for another */
  constructor(most: number) {
    this.#most = most;
  }

  find(extents: Extents): V | undefined {
    const kept = this.#kept;
    for (let at = 0; at < kept.length; at++) {
      const found = kept[at]!;
      if (!areSame(found.extents, extents)) continue;
      if (at > 0) {
        kept.splice(at, 1);
        kept.unshift(found);
      }
      return found.value;
    }
    return undefined;
  }

  /** The extents are copied: their owner may change them. */
  keep(extents: Extents, value: V): void {
    if (this.#kept.length >= this.#most) this.#kept.pop();
    this.#kept.unshift({ extents: extents.map((shape) => shape && [...shape]), value });
  }
}

function areSame(a: Extents, b: Extents): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [left, right] = [a[i], b[i]];
    if (left?.length !== right?.length) return false;
    if (!left || !right) continue;
    for (let axis = 0; axis < left.length; axis++) if (left[axis] !== right[axis]) return false;
  }
  return true;
}
