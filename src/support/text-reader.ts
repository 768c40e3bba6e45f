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
}

const tokenPattern =
  /(?<space>\s+|#[^\n]*)|(?<name>[A-Za-z_][\w.$%]*)|(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<string>"(?:[^"\\\n]|\\.)*")|(?<punctuation>->|<=|>=|==|!=|&&|\|\||\.\.|:=|[-+*/%(){}[\]<>=,:;.@!?&|^~])/y;

/** Splits `text` into tokens; rejects (TXT001) at the first character that starts none. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    tokenPattern.lastIndex = at;
    const match = tokenPattern.exec(text);
    const groups = match?.groups;
    if (!match || !groups) {
      reject("TXT001", `unexpected character ${JSON.stringify(text[at])}`, { at: `line ${line}` });
    }
    const kind = (["name", "number", "string", "punctuation"] as const).find((k) => groups[k]);
    if (kind) {
      const spelled = match[0];
      tokens.push({ kind, text: kind === "string" ? decodeString(spelled, line) : spelled, line });
    }
    for (const c of match[0]) if (c === "\n") line++;
    at = tokenPattern.lastIndex;
  }
  tokens.push({ kind: "end", text: "end of text", line });
  return tokens;
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
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
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
