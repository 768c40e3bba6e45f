/**
 * Regular expressions in the syntax of RE2 as far as RegexFullMatch needs it, matched in time that is
 * linear in the text (a set of states is moved along it; Thompson, "Regular Expression Search
 * Algorithm", 1968), since patterns come from model files. A pattern outside the subset is refused by
 * returning undefined: look-around, back references and named classes of Unicode.
 */

/** What a state needs to go on: a character of a set, or a place in the text. */
type Step =
  | { readonly kind: "take"; readonly accepts: (code: number) => boolean; readonly next: number }
  | { readonly kind: "fork"; readonly next: readonly number[] }
  | { readonly kind: "check"; readonly holds: (at: Place) => boolean; readonly next: number }
  | { readonly kind: "match" };

interface Place {
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** A part of the expression: given where to go afterwards, adds states and says where it begins. */
type Part = (machine: Step[], next: number) => number;

const mostStates = 100_000;
const longestPattern = 10_000;
const mostRepeats = 1000;
const deepestGroup = 100;

const isWord = (c: number | undefined): boolean =>
  c !== undefined && /\w/.test(String.fromCodePoint(c));
const between = (low: string, high: string) => (c: number) =>
  c >= low.codePointAt(0)! && c <= high.codePointAt(0)!;
const spaces = new Set([..."\t\n\f\r "].map((c) => c.codePointAt(0)!));
const classes: Readonly<Record<string, (c: number) => boolean>> = {
  d: between("0", "9"),
  w: isWord,
  s: (c) => spaces.has(c),
};
const controls: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f", v: "\v" };

class Unsupported extends Error {}

class Parser {
  readonly #text: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#text = [...pattern];
  }

  parse(): Part {
    const whole = this.#alternatives();
    if (this.#at < this.#text.length) throw new Unsupported();
    return whole;
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }

  #take(expected?: string): string {
    const c = this.#text[this.#at++];
    if (c === undefined || (expected !== undefined && c !== expected)) throw new Unsupported();
    return c;
  }

  #alternatives(): Part {
    const branches = [this.#sequence()];
    while (this.#peek() === "|") {
      this.#take();
      branches.push(this.#sequence());
    }
    if (branches.length === 1) return branches[0]!;
    return (machine, next) => add(machine, fork(branches.map((b) => b(machine, next))));
  }

  #sequence(): Part {
    const parts: Part[] = [];
    for (let c = this.#peek(); c !== undefined && c !== "|" && c !== ")"; c = this.#peek()) {
      parts.push(this.#repeated(this.#atom()));
    }
    return (machine, next) => parts.reduceRight((then, part) => part(machine, then), next);
  }

  #repeated(part: Part): Part {
    let result = part;
    for (;;) {
      const counts = this.#counts();
      if (!counts) return result;
      if (this.#peek() === "?") this.#take();
      result = repeat(result, ...counts);
    }
  }

  #counts(): readonly [number, number] | undefined {
    const c = this.#peek();
    if (c !== "*" && c !== "+" && c !== "?" && c !== "{") return undefined;
    if (c !== "{") {
      this.#take();
      return [c === "+" ? 1 : 0, c === "?" ? 1 : Infinity];
    }
    const rest = this.#text.slice(this.#at).join("");
    const found = /^\{(\d+)(,(\d*))?\}/.exec(rest);
    if (!found) return undefined;
    this.#at += found[0].length;
    const low = Number(found[1]);
    const high = found[2] === undefined ? low : found[3] === "" ? Infinity : Number(found[3]);
    if (Math.max(low, high === Infinity ? 0 : high) > mostRepeats || high < low) {
      throw new Unsupported();
    }
    return [low, high];
  }

  #atom(): Part {
    const c = this.#take();
    if (c === "(") return this.#group();
    if (c === "[") return one(this.#set());
    if (c === ".") return one((code) => code !== 10);
    if (c === "^") return check((at) => at.before === undefined);
    if (c === "$") return check((at) => at.after === undefined);
    if (c === "*" || c === "+" || c === "?" || c === ")") throw new Unsupported();
    if (c !== "\\") return one(exactly(c));
    const escaped = this.#take();
    const word = (at: Place) => isWord(at.before) !== isWord(at.after);
    if (escaped === "b") return check(word);
    if (escaped === "B") return check((at) => !word(at));
    if (escaped === "A") return check((at) => at.before === undefined);
    if (escaped === "z") return check((at) => at.after === undefined);
    return one(escapeClass(escaped));
  }

  #group(): Part {
    if (this.#peek() === "?") {
      this.#take();
      if (this.#peek() === "P") {
        this.#take();
        this.#take("<");
        while (this.#take() !== ">");
      } else this.#take(":");
    }
    if (++this.#depth > deepestGroup) throw new Unsupported();
    const inner = this.#alternatives();
    this.#depth--;
    this.#take(")");
    return inner;
  }

  #set(): (c: number) => boolean {
    const negated = this.#peek() === "^";
    if (negated) this.#take();
    const accepts: ((c: number) => boolean)[] = [];
    do accepts.push(this.#member());
    while (this.#peek() !== "]");
    this.#take("]");
    return (c) => accepts.some((a) => a(c)) !== negated;
  }

  #member(): (c: number) => boolean {
    const c = this.#take();
    if (c === "[" && this.#peek() === ":") throw new Unsupported();
    if (c === "\\") {
      const escaped = this.#take();
      if (classes[escaped.toLowerCase()] || this.#peek() !== "-") return escapeClass(escaped);
      return exactly(controls[escaped] ?? escaped);
    }
    const isRange = this.#peek() === "-" && this.#text[this.#at + 1] !== "]";
    if (!isRange) return exactly(c);
    this.#take("-");
    const high = this.#take();
    return between(c, high === "\\" ? this.#take() : high);
  }
}

function exactly(c: string): (code: number) => boolean {
  const wanted = c.codePointAt(0)!;
  return (code) => code === wanted;
}

function escapeClass(c: string): (code: number) => boolean {
  const known = classes[c.toLowerCase()];
  if (known) return c === c.toLowerCase() ? known : (code) => !known(code);
  if (controls[c]) return exactly(controls[c]);
  if (/[A-Za-z0-9]/.test(c)) throw new Unsupported();
  return exactly(c);
}

function add(machine: Step[], step: Step): number {
  if (machine.length >= mostStates) throw new Unsupported();
  return machine.push(step) - 1;
}

const fork = (next: readonly number[]): Step => ({ kind: "fork", next });
const one =
  (accepts: (code: number) => boolean): Part =>
  (machine, next) =>
    add(machine, { kind: "take", accepts, next });
const check =
  (holds: (at: Place) => boolean): Part =>
  (machine, next) =>
    add(machine, { kind: "check", holds, next });

function repeat(part: Part, low: number, high: number): Part {
  return (machine, next) => {
    let start = next;
    if (high === Infinity) {
      const loop = add(machine, fork([next]));
      machine[loop] = fork([part(machine, loop), next]);
      start = loop;
    } else {
      for (let i = low; i < high; i++) start = add(machine, fork([part(machine, start), next]));
    }
    for (let i = 0; i < low; i++) {
      const states = machine.length;
      start = part(machine, start);
      // Nothing repeated is nothing: without this, repeats of repeats of it would take for ever.
      if (machine.length === states) break;
    }
    return start;
  };
}

/** A pattern that is ready. */
export interface FullMatch {
  /** Whether a text matches as a whole, in at most `states` steps a character. */
  readonly matches: (text: string) => boolean;
  readonly states: number;
}

/** Undefined for a pattern outside the subset. */
export function compileFullMatch(pattern: string): FullMatch | undefined {
  if (pattern.length > longestPattern) return undefined;
  const machine: Step[] = [{ kind: "match" }];
  try {
    const start = new Parser(pattern).parse()(machine, 0);
    return { matches: (text) => matches(machine, start, text), states: machine.length };
  } catch (error) {
    if (error instanceof Unsupported) return undefined;
    throw error;
  }
}

function matches(machine: readonly Step[], start: number, text: string): boolean {
  const codes = Array.from(text, (c) => c.codePointAt(0)!);
  let states: readonly number[] = [start];
  for (let i = 0; i <= codes.length; i++) {
    const place = { before: codes[i - 1], after: codes[i] };
    const reached = closure(machine, states, place);
    if (i === codes.length) return reached.has(0);
    states = [...reached].flatMap((s) => {
      const step = machine[s]!;
      return step.kind === "take" && step.accepts(codes[i]!) ? [step.next] : [];
    });
  }
  return false;
}

/** States that are reached without taking a character. */
function closure(machine: readonly Step[], from: readonly number[], at: Place): Set<number> {
  const seen = new Set<number>();
  const open = [...from];
  for (let s = open.pop(); s !== undefined; s = open.pop()) {
    if (seen.has(s)) continue;
    seen.add(s);
    const step = machine[s]!;
    if (step.kind === "fork") open.push(...step.next);
    else if (step.kind === "check" && step.holds(at)) open.push(step.next);
  }
  return seen;
}
