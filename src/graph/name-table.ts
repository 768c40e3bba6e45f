/** Value names: unique within a graph, spelled as names of the text form, deterministic. */
import { reservedWords } from "../semantics/index-text.ts";

export class NameTable {
  readonly #taken = new Set<string>(reservedWords);
  readonly #next = new Map<string, number>();
  readonly #reserved = new Set<string>();

  /** Keeps names for whoever asks for exactly them; invented names avoid them. */
  reserve(names: Iterable<string>): void {
    for (const name of names) this.#reserved.add(name);
  }

  #isFree(name: string): boolean {
    return !this.#taken.has(name) && !this.#reserved.has(name);
  }

  /** `wanted` with other characters replaced, and a number if it is taken. */
  take(wanted: string): string {
    const base = spellName(wanted);
    if (!this.#taken.has(base)) {
      this.#taken.add(base);
      return base;
    }
    let count = (this.#next.get(base) ?? 0) + 1;
    while (!this.#isFree(`${base}_${count}`)) count++;
    this.#next.set(base, count);
    this.#taken.add(`${base}_${count}`);
    return `${base}_${count}`;
  }

  /** The first of PREFIX0, PREFIX1, … that is free. */
  takeNumbered(prefix: string): string {
    let count = this.#next.get(`#${prefix}`) ?? 0;
    while (!this.#isFree(`${prefix}${count}`)) count++;
    this.#next.set(`#${prefix}`, count + 1);
    this.#taken.add(`${prefix}${count}`);
    return `${prefix}${count}`;
  }
}

/** The text as a name token: letters, digits, `_ . $ %`, not starting with a digit. */
export function spellName(text: string): string {
  const safe = text.replace(/[^\w.$%]/g, "_");
  return /^[A-Za-z_]/.test(safe) ? safe : `_${safe}`;
}
