/**
 * Parses isl's spelling of quasi-affine expressions: `2i - j + floor((k + 1)/4)`, `[i/2]`,
 * `floord(i, 2)`, `ceil(i/2)`, `i mod 3`, `i % 3`. A value is kept as numerator / denominator until a
 * floor or a comparison settles it.
 */
import { reject } from "../support/diagnostic.ts";
import type { TextReader } from "../support/text-reader.ts";
import { type Affine, add, affine, atomKey, floorDivide, scale, type Term } from "./expression.ts";

/** numerator / denominator, denominator >= 1. */
export interface Ratio {
  readonly numerator: Affine;
  readonly denominator: number;
}

/** Names whose meaning a parser may change, as in tuples where a name is a variable's first use. */
export interface Resolve {
  (name: string): Affine;
  /** A name for the least or greatest of values, where there is a formula to say which it is. */
  readonly extreme?: (kind: "min" | "max", values: readonly Affine[]) => Affine;
}

/**
 * The text as the shared token reader takes it: `%` is no part of a name, `'` is (as `$`), and the
 * `2e0` of isl is 2 times e0, not a power of ten.
 */
export function notationText(text: string): string {
  return text
    .replaceAll("%", " % ")
    .replaceAll("'", "$")
    .replaceAll(/(?<![\w.$])(\d+)(?=[A-Za-z_])/g, "$1 ");
}

/** isl's spelling of a name that the reader holds with `$` for `'`. */
export function spelledName(name: string): string {
  return name.replaceAll("$", "'");
}

function inRange(value: number): number {
  if (!Number.isSafeInteger(value)) {
    reject("AFF002", "a coefficient is not an integer within ±(2^53 - 1)", {
      help: "write smaller integers",
    });
  }
  return value;
}

/** The sum, or AFF002. */
export function safeAdd(a: Affine, b: Affine): Affine {
  const own = new Map(a.terms.map((t) => [atomKey(t.atom), t.coefficient]));
  inRange(a.constant + b.constant);
  for (const t of b.terms) inRange((own.get(atomKey(t.atom)) ?? 0) + t.coefficient);
  return add(a, b);
}

/** The product, or AFF002. */
export function safeScale(factor: number, e: Affine): Affine {
  inRange(e.constant * factor);
  for (const t of e.terms) inRange(t.coefficient * factor);
  return scale(factor, e);
}

/** Brackets, signs and quantifiers may stand this deep in each other. */
const deepest = 250;

/** Refuses (AFF003) what would take a recursive parser too deep. */
export function requireShallow(text: string): void {
  let depth = 0;
  for (const item of text.split(";")) {
    let quantifiers = 0;
    for (const [word] of item.matchAll(/[()[\]{}]|exists\b/g)) {
      if ("([{".includes(word)) depth++;
      else if (")]}".includes(word)) depth--;
      else quantifiers++;
      if (depth > deepest || quantifiers > 4 * deepest) tooDeep();
    }
    if (/(?:-\s*){250}|(?:(?:not\b|!)\s*){250}/.test(item)) tooDeep();
  }
}

function tooDeep(): never {
  return reject("AFF003", `the text nests more than ${deepest} levels`);
}

export function parseSum(reader: TextReader, resolve: Resolve): Ratio {
  const first = parseTerm(reader, resolve);
  if (!reader.at("+") && !reader.at("-")) return first;
  const sum = new Sum(first);
  for (;;) {
    if (reader.accept("+")) sum.add(parseTerm(reader, resolve), 1);
    else if (reader.accept("-")) sum.add(parseTerm(reader, resolve), -1);
    else return sum.value();
  }
}

/** A sum in the making; each term costs what it is long itself. */
class Sum {
  #constant = 0;
  #denominator = 1;
  readonly #terms = new Map<string, Term>();

  constructor(first: Ratio) {
    this.add(first, 1);
  }

  add({ numerator, denominator }: Ratio, sign: 1 | -1): void {
    if (denominator !== 1) this.#scaleBy(denominator);
    const factor = denominator === 1 ? this.#denominator : this.#denominator / denominator;
    this.#constant = inRange(this.#constant + inRange(sign * factor * numerator.constant));
    for (const { coefficient, atom } of numerator.terms) {
      const key = atomKey(atom);
      const before = this.#terms.get(key)?.coefficient ?? 0;
      const after = inRange(before + inRange(sign * factor * coefficient));
      this.#terms.set(key, { coefficient: after, atom });
    }
  }

  #scaleBy(factor: number): void {
    this.#denominator = inRange(this.#denominator * factor);
    this.#constant = inRange(this.#constant * factor);
    for (const [key, { coefficient, atom }] of this.#terms) {
      this.#terms.set(key, { coefficient: inRange(coefficient * factor), atom });
    }
  }

  value(): Ratio {
    const kept = [...this.#terms].filter(([, t]) => t.coefficient !== 0);
    kept.sort(([a], [b]) => (a < b ? -1 : 1));
    const numerator = { constant: this.#constant + 0, terms: kept.map(([, t]) => t) };
    return { numerator, denominator: this.#denominator };
  }
}

/** A sum that has to be a whole expression, not a fraction. */
export function parseWhole(reader: TextReader, resolve: Resolve): Affine {
  const line = reader.peek().line;
  const ratio = parseSum(reader, resolve);
  if (ratio.denominator !== 1) refuse("a fraction without floor(…) or ceil(…) around it", line);
  return ratio.numerator;
}

function whole(numerator: Affine): Ratio {
  return { numerator, denominator: 1 };
}

function parseTerm(reader: TextReader, resolve: Resolve): Ratio {
  let value = parseFactor(reader, resolve);
  for (;;) {
    const { line } = reader.peek();
    if (reader.accept("*")) value = multiply(value, parseFactor(reader, resolve), line);
    else if (reader.accept("/")) value = divide(value, parseFactor(reader, resolve), line);
    else return value;
  }
}

function multiply(a: Ratio, b: Ratio, line: number): Ratio {
  const [constant, other] = b.numerator.terms.length === 0 ? [b, a] : [a, b];
  if (constant.numerator.terms.length > 0) refuse("a product of two variables", line);
  return {
    numerator: safeScale(constant.numerator.constant, other.numerator),
    denominator: inRange(a.denominator * b.denominator),
  };
}

function divide(a: Ratio, b: Ratio, line: number): Ratio {
  const by = constantOf(b, line);
  return { numerator: a.numerator, denominator: inRange(a.denominator * by) };
}

function constantOf(value: Ratio, line: number): number {
  const { numerator, denominator } = value;
  const constant = numerator.constant;
  if (numerator.terms.length > 0 || denominator !== 1 || constant < 1) {
    refuse("a divisor that is not a positive constant", line);
  }
  return constant;
}

/** v mod m for a whole v. */
function remainderOf(value: Ratio, divisor: number, line: number): Affine {
  if (value.denominator !== 1) refuse("the remainder of a fraction", line);
  const multiple = safeScale(-divisor, floorDivide(value.numerator, divisor));
  return safeAdd(value.numerator, multiple);
}

/** As in isl, a remainder binds closer than a product or a sign: `3i mod 4` is 3(i mod 4). */
function parseFactor(reader: TextReader, resolve: Resolve): Ratio {
  let sign: 1 | -1 = 1;
  while (reader.accept("-")) sign = sign === 1 ? -1 : 1;
  if (reader.peek().kind === "number") return parseNumber(reader, resolve, sign);
  const value = withRemainder(parsePrimary(reader, resolve), reader, resolve);
  if (sign === 1) return value;
  return { numerator: scale(-1, value.numerator), denominator: value.denominator };
}

function withRemainder(of: Ratio, reader: TextReader, resolve: Resolve): Ratio {
  let value = of;
  for (;;) {
    const { line } = reader.peek();
    if (!reader.accept("%") && !reader.accept("mod")) return value;
    value = whole(remainderOf(value, constantOf(parsePrimary(reader, resolve), line), line));
  }
}

function parsePrimary(reader: TextReader, resolve: Resolve): Ratio {
  if (reader.peek().kind === "number") return whole(affine(readNumber(reader)));
  if (reader.accept("(")) {
    const inner = parseSum(reader, resolve);
    reader.expect(")");
    return inner;
  }
  if (reader.accept("[")) {
    const inner = parseSum(reader, resolve);
    reader.expect("]");
    return whole(floorDivide(inner.numerator, inner.denominator));
  }
  const name = reader.name("an expression");
  const rounding = roundings[name];
  if (rounding && reader.at("(")) return whole(parseRounding(reader, resolve, rounding));
  if ((name === "min" || name === "max") && reader.at("(")) {
    return whole(parseExtreme(reader, resolve, name));
  }
  return whole(resolve(spelledName(name)));
}

/** `min(a, b, …)`. */
function parseExtreme(reader: TextReader, resolve: Resolve, kind: "min" | "max"): Affine {
  const { line } = reader.peek();
  reader.expect("(");
  const values = reader.list(")", () => parseWhole(reader, resolve));
  if (!resolve.extreme || values.length === 0) return refuse(`${kind} here`, line);
  return resolve.extreme(kind, values);
}

/** `3`, and isl's juxtaposition `3i`, `3(i + 1)`, `3 floor(i/2)`. */
function parseNumber(reader: TextReader, resolve: Resolve, sign: 1 | -1): Ratio {
  const { line } = reader.peek();
  const value = whole(affine(sign * readNumber(reader)));
  const next = reader.peek();
  const joins = (next.kind === "name" && !reserved.has(next.text)) || reader.at("(");
  if (!joins) return withRemainder(value, reader, resolve);
  return multiply(value, parseFactor(reader, resolve), line);
}

function readNumber(reader: TextReader): number {
  const token = reader.next();
  const value = Number(token.text);
  if (!Number.isSafeInteger(value)) {
    reject("AFF002", `${token.text} is not an integer within ±(2^53 - 1)`, {
      at: `line ${token.line}`,
      help: "write a smaller integer",
    });
  }
  return value;
}

/** Words of the notation that can follow a number without multiplying it. */
const reserved = new Set(["and", "or", "mod", "exists", "not", "implies"]);

/** What the rounding functions add before the floor, as a multiple of (denominator - 1). */
const roundings: Readonly<Record<string, { readonly up: boolean; readonly two: boolean }>> = {
  floor: { up: false, two: false },
  ceil: { up: true, two: false },
  floord: { up: false, two: true },
  ceild: { up: true, two: true },
};

function parseRounding(
  reader: TextReader,
  resolve: Resolve,
  rounding: { readonly up: boolean; readonly two: boolean },
): Affine {
  reader.expect("(");
  let value = parseSum(reader, resolve);
  if (rounding.two) {
    reader.expect(",");
    const { line } = reader.peek();
    value = divide(value, parseFactor(reader, resolve), line);
  }
  reader.expect(")");
  const lift = rounding.up ? value.denominator - 1 : 0;
  return floorDivide(safeAdd(value.numerator, affine(lift)), value.denominator);
}

function refuse(what: string, line: number): never {
  return reject("AFF001", `${what} is not an affine expression`, {
    at: `line ${line}`,
    help: "use integer multiples of variables, sums, and divisions by positive constants",
  });
}
