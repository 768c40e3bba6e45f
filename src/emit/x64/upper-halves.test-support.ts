/**
 * Where emitted code goes to code that is not ours with the upper halves of vector registers in use. In:
 * a program's code. Out: the calls through a register, and the returns to the caller, that some path
 * reaches from an instruction on 256 or 512 bits without vzeroupper on the way (Intel Optimization
 * Reference Manual, "Mixing Intel AVX and Intel SSE Code"). The instructions are read from the listing and
 * walked as one graph: a call goes to its function, and each of its returns to behind every call of it.
 */
import type { LinkedCode } from "./link.ts";

interface Line {
  readonly at: number;
  readonly text: string;
  readonly op: string;
}

/** What the check reads of an emitted program; `text` in place of the code's own is a listing with a fault. */
export interface Checked {
  readonly code: Pick<LinkedCode, "text" | "entries" | "functions">;
  readonly entries: Readonly<Record<string, number>>;
}

export function leaksOf({ code, entries }: Checked, text = code.text()): readonly string[] {
  return new Walk(code, new Set(Object.values(entries)), linesOf(text)).leaks();
}

function linesOf(text: string): readonly Line[] {
  return text.split("\n").flatMap((line) => {
    const read = /^ {2}([0-9a-f]{6}) {2}(\S+)(.*)$/.exec(line);
    if (!read) return [];
    const [, at, op, rest] = read as unknown as [string, string, string, string];
    return [{ at: Number.parseInt(at, 16), op, text: `${op}${rest}` }];
  });
}

class Walk {
  readonly #code: Checked["code"];
  readonly #outer: ReadonlySet<number>;
  readonly #lines: readonly Line[];
  readonly #lineAt: ReadonlyMap<number, number>;
  /** Lines behind the calls of a function, by where it begins. */
  readonly #behind = new Map<number, number[]>();
  /** Of each line, bits of the states that it is reached in: 1 clean, 2 in use. */
  readonly #states: Uint8Array;
  readonly #open: (readonly [line: number, state: 1 | 2])[] = [];
  readonly #leaks = new Set<string>();

  constructor(code: Checked["code"], outer: ReadonlySet<number>, lines: readonly Line[]) {
    this.#code = code;
    this.#outer = outer;
    this.#lines = lines;
    this.#states = new Uint8Array(lines.length);
    // Where nothing stands at an address (a label at an aligned place), the next line does.
    this.#lineAt = new Map(lines.map((line, i) => [line.at, i]));
    lines.forEach((line, i) => {
      const called = line.op === "call" ? this.#labelOf(line) : undefined;
      if (called === undefined) return;
      const start = this.#lines[called]!.at;
      this.#behind.set(start, [...(this.#behind.get(start) ?? []), i + 1]);
    });
  }

  leaks(): readonly string[] {
    for (const at of this.#outer) this.#reach(this.#lineFrom(at), 1);
    for (let next = this.#open.pop(); next; next = this.#open.pop()) this.#step(...next);
    return [...this.#leaks];
  }

  #reach(line: number, state: 1 | 2): void {
    if ((this.#states[line]! & state) !== 0) return;
    this.#states[line]! |= state;
    this.#open.push([line, state]);
  }

  #step(line: number, before: 1 | 2): void {
    const { op, text } = this.#lines[line]!;
    if (op === "ret") {
      this.#return(line, before);
      return;
    }
    const target = /^(j|call)/.test(op) ? this.#labelOf(this.#lines[line]!) : undefined;
    if (op === "call" && target === undefined && before === 2) this.#leak(line);
    const state = op === "vzeroupper" ? 1 : /\b[yz]mm\d/.test(text) ? 2 : before;
    if (target !== undefined) this.#reach(target, state);
    if (op !== "jmp" && !(op === "call" && target !== undefined)) this.#reach(line + 1, state);
  }

  #return(line: number, state: 1 | 2): void {
    const { at } = this.#lines[line]!;
    const { start } = this.#functionAt(at);
    if (this.#outer.has(start) && state === 2) this.#leak(line);
    for (const behind of this.#behind.get(start) ?? []) this.#reach(behind, state);
  }

  #leak(line: number): void {
    const { at, text } = this.#lines[line]!;
    this.#leaks.add(`${this.#functionAt(at).name}: ${text}`);
  }

  #functionAt(at: number) {
    const found = this.#code.functions.find((f) => f.start <= at && at < f.end);
    if (!found) throw new Error(`no function at ${at.toString(16)}`);
    return found;
  }

  #labelOf({ text }: Line): number | undefined {
    const label = / L(\d+)$/.exec(text)?.[1];
    return label === undefined ? undefined : this.#lineFrom(this.#code.entries.get(Number(label))!);
  }

  #lineFrom(at: number): number {
    const found = this.#lineAt.get(at) ?? this.#lines.findIndex((line) => line.at >= at);
    if (found < 0) throw new Error(`no instruction at ${at.toString(16)}`);
    return found;
  }
}
