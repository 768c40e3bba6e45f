/** Value names: unique within a graph, spelled as names of the text form, deterministic. */
export class NameTable {
  readonly #taken = new Set<string>();
  readonly #next = new Map<string, number>();

  /** `wanted` with other characters replaced, and a number if it is taken. */
  take(wanted: string): string {
    const base = spellName(wanted);
    let name = base;
    let count = this.#next.get(base) ?? 0;
    while (this.#taken.has(name)) name = `${base}_${++count}`;
    this.#next.set(base, count);
    this.#taken.add(name);
    return name;
  }

  /** The first of PREFIX0, PREFIX1, … that is free. */
  takeNumbered(prefix: string): string {
    let count = this.#next.get(`#${prefix}`) ?? 0;
    while (this.#taken.has(`${prefix}${count}`)) count++;
    this.#next.set(`#${prefix}`, count + 1);
    this.#taken.add(`${prefix}${count}`);
    return `${prefix}${count}`;
  }

  has(name: string): boolean {
    return this.#taken.has(name);
  }
}

/** The text as a name token: letters, digits, `_ . $ %`, not starting with a digit. */
export function spellName(text: string): string {
  const safe = text.replace(/[^\w.$%]/g, "_");
  return /^[A-Za-z_]/.test(safe) ? safe : `_${safe}`;
}
