/**
 * A token reader shared by the parsers of the text forms. Tokens are names (`[A-Za-z_][\w.$%]*`),
 * numbers (decimal, hexadecimal floats are spelled with decimal digits), quoted strings (JSON
 * escapes) and punctuation. Comments run from `#` to the end of the line. Newlines and indentation
 * carry no meaning: every text form closes its blocks with braces.
 */
import { reject } from "./diagnostic.ts";

export type TokenKind = "name" | "number" | "string" | "punctuation" | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Spelling; for strings the decoded text. */
  readonly text: string;
  readonly line: number;
  /** Place of its first character in the source. */
  readonly start: number;
}

/** What may begin a token, and what may follow inside one, by character code; all else is refused. */
const space = classOf(" \t\n\r\f\v");
const nameStart = classOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
const digit = classOf("0123456789");
const namePart = classOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.$%");
const punctuation = classOf("-+*/%(){}[]<>=,:;.@!?&|^~");
const pairs = new Set(["->", "<=", ">=", "==", "!=", "&&", "||", "..", ":="]);
const [newline, hash, quote, backslash, dot] = [10, 35, 34, 92, 46];

function classOf(characters: string): Uint8Array {
  const members = new Uint8Array(65536);
  for (const c of characters) members[c.charCodeAt(0)] = 1;
  return members;
}

/** The first place from `at` on whose character is not in the class. */
function skip(text: string, at: number, members: Uint8Array): number {
  let end = at;
  while (end < text.length && members[text.charCodeAt(end)] === 1) end++;
  return end;
}

/** Splits `text` into tokens; rejects (TXT001) at the first character that starts none. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (space[code] === 1) {
      if (code === newline) line++;
      at++;
    } else if (code === hash) {
      const end = text.indexOf("\n", at);
      at = end < 0 ? text.length : end;
    } else {
      const token = readToken(text, at, line);
      tokens.push(
        token.kind === "string" ? { ...token, text: decodeString(token.text, line) } : token,
      );
      at += token.text.length;
    }
  }
  tokens.push({ kind: "end", text: "end of text", line, start: text.length });
  return tokens;
}

/** The token at `at`, as it is spelled. */
function readToken(text: string, at: number, line: number): Token {
  const code = text.charCodeAt(at);
  if (nameStart[code] === 1) {
    return { kind: "name", text: text.slice(at, skip(text, at + 1, namePart)), line, start: at };
  }
  if (digit[code] === 1)
    return { kind: "number", text: text.slice(at, endOfNumber(text, at)), line, start: at };
  const end = code === quote ? endOfString(text, at) : at;
  if (end > at) return { kind: "string", text: text.slice(at, end), line, start: at };
  if (punctuation[code] !== 1) {
    reject("TXT001", `unexpected character ${JSON.stringify(text[at])}`, { at: `line ${line}` });
  }
  const pair = text.slice(at, at + 2);
  return { kind: "punctuation", text: pairs.has(pair) ? pair : text[at]!, line, start: at };
}

/** Digits, a fraction if digits follow the point, an exponent if digits follow its letter and sign. */
function endOfNumber(text: string, start: number): number {
  let end = skip(text, start, digit);
  if (text.charCodeAt(end) === dot) {
    const fraction = skip(text, end + 1, digit);
    if (fraction > end + 1) end = fraction;
  }
  if (text[end] === "e" || text[end] === "E") {
    const sign = text[end + 1] === "+" || text[end + 1] === "-" ? 1 : 0;
    const exponent = skip(text, end + 1 + sign, digit);
    if (exponent > end + 1 + sign) end = exponent;
  }
  return end;
}

/** The place after the closing quote; the start where the line ends first. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code === newline) return start;
    if (code === backslash && text.charCodeAt(++at) === newline) return start;
  }
  return start;
}

function decodeString(spelled: string, line: number): string {
  try {
    return JSON.parse(spelled) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return reject("TXT001", `bad string ${spelled}`, { at: `line ${line}` });
  }
}

/** A cursor over tokens with the usual peek / accept / expect. */
export class TextReader {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokenize(text);
  }

  /** The source from the next token to the one after `count` tokens. */
  ahead(count: number): string {
    return this.#text.slice(this.peek().start, this.peek(count).start);
  }

  /** Passes over tokens that were read before under another name. */
  pass(count: number): void {
    this.#at = Math.min(this.#at + count, this.#tokens.length - 1);
  }

  /** Tokens passed so far. */
  get position(): number {
    return this.#at;
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)]!;
  }

  next(): Token {
    const token = this.peek();
    if (token.kind !== "end") this.#at++;
    return token;
  }

  /** Whether the next token is this spelling (never matches inside strings). */
  at(text: string): boolean {
    const token = this.peek();
    return token.kind !== "string" && token.text === text;
  }

  /** Consumes the next token if it is this spelling. */
  accept(text: string): boolean {
    if (!this.at(text)) return false;
    this.#at++;
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) this.fail(`"${text}"`);
  }

  name(what = "a name"): string {
    return this.#take("name", what);
  }

  string(what = "a quoted string"): string {
    return this.#take("string", what);
  }

  /** A number with an optional sign. */
  number(what = "a number"): number {
    const negative = this.accept("-");
    if (this.accept("inf")) return negative ? -Infinity : Infinity;
    if (this.accept("nan")) return Number.NaN;
    const value = Number(this.#take("number", what));
    return negative ? -value : value;
  }

  /** Zero or more items separated by commas, up to (and over) the closing token. */
  list<T>(close: string, item: () => T): T[] {
    const items: T[] = [];
    while (!this.accept(close)) {
      if (items.length > 0) this.expect(",");
      items.push(item());
    }
    return items;
  }

  fail(expected: string): never {
    const token = this.peek();
    return reject("TXT001", `expected ${expected}, found ${JSON.stringify(token.text)}`, {
      at: `line ${token.line}`,
    });
  }

  #take(kind: TokenKind, what: string): string {
    const token = this.peek();
    if (token.kind !== kind) this.fail(what);
    this.#at++;
    return token.text;
  }
}
