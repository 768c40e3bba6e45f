/**
 * Parses isl's notation of sets and maps,
 *
 *   [N] -> { S[i, j] -> A[i + 1, floor((j)/2)] : 0 <= i < N and exists (e: j = 2e); T[] -> B[0] }
 *
 * with chained and listed comparisons, and/or/not/exists/true/false, mod, floor, ceil, ranges `0:9`
 * and entries `i = 3` in tuples. Each disjunct becomes a piece. Bad text is TXT001, what is not affine
 * AFF001, numbers out of range AFF002, notation outside this subset AFF003: `not` of an `exists`, `implies`,
 * powers. A set `{ : }` of parameters alone and one of a tuple without dimensions are the same thing here.
 */
import { attempt, type Result, reject } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";
import { atMost, type Constraint, equals, PieceBuilder } from "./build.ts";
import { type Affine, affine } from "./expression.ts";
import {
  alwaysFalse,
  alwaysTrue,
  type Conjunction,
  conjunction,
  type Formula,
  normalForm,
} from "./formula.ts";
import {
  notationText,
  parseSum,
  parseWhole,
  type Ratio,
  type Resolve,
  requireShallow,
  safeAdd,
  safeScale,
  spelledName,
} from "./notation-expression.ts";
import { alignParams } from "./operations.ts";
import type { IntegerMap, IntegerSet, Piece, SetOrMap, Tuple } from "./types.ts";

export function parseSet(text: string): Result<IntegerSet> {
  return attempt(() => {
    const { params, pieces } = parseRelation(text);
    if (pieces.some((p) => p.input)) refuseKind("a set", "a map");
    return { kind: "set", params, pieces };
  });
}

export function parseMap(text: string): Result<IntegerMap> {
  return attempt(() => {
    const { params, pieces } = parseRelation(text);
    if (pieces.some((p) => !p.input)) refuseKind("a map", "a set");
    return { kind: "map", params, pieces };
  });
}

/** An expression by itself, for bounds and tests. */
export function parseAffine(text: string): Result<Affine> {
  return attempt(() => {
    requireShallow(text);
    const reader = new TextReader(notationText(text));
    const value = parseWhole(reader, (name) => affine(name));
    if (reader.peek().kind !== "end") reader.fail("the end of the expression");
    return value;
  });
}

function refuseKind(wanted: string, found: string): never {
  return reject("AFF003", `expected ${wanted}, found ${found}`);
}

function parseRelation(text: string): { params: readonly string[]; pieces: Piece[] } {
  requireShallow(text);
  const reader = new TextReader(notationText(text));
  const declared = reader.at("[") ? parseParams(reader) : { names: [], fixed: [] };
  reader.expect("{");
  const found: { params: readonly string[]; pieces: Piece[] }[] = [];
  const spelled = new Set(text.match(/[A-Za-z_][\w.$']*/g));
  while (!reader.accept("}")) {
    found.push(new ItemParser(reader, declared.names, spelled).parse(declared.fixed));
    if (!reader.accept(";") && !reader.at("}")) reader.fail('";" or "}"');
  }
  if (reader.peek().kind !== "end") reader.fail("the end of the set");
  const params = [...new Set([...declared.names, ...found.flatMap((f) => f.params)])];
  const pieces = found.flatMap((f) => {
    const value: SetOrMap = { kind: "set", ...f };
    return alignParams(value, params).pieces;
  });
  return { params, pieces };
}

/** `[N, M = 5] ->` */
function parseParams(reader: TextReader): { names: string[]; fixed: Constraint[] } {
  reader.expect("[");
  const fixed: Constraint[] = [];
  const names = reader.list("]", () => {
    const name = spelledName(reader.name("a parameter name"));
    if (reader.accept("=")) {
      fixed.push(
        equals(
          name,
          parseWhole(reader, (n) => affine(n)),
        ),
      );
    }
    return name;
  });
  reader.expect("->");
  return { names, fixed };
}

/** One `tuple -> tuple : formula` of a relation. */
class ItemParser {
  readonly #reader: TextReader;
  readonly #params: readonly string[];
  /** Every name of the text: a dimension without one must not be taken for one further on. */
  readonly #spelled: ReadonlySet<string>;
  /** Dimension names seen so far in this item. */
  readonly #dims: string[] = [];
  /** How often each name is declared where we are: as a parameter, a dimension, by `exists`. */
  readonly #declared = new Map<string, number>();
  readonly #entries: Formula[] = [];
  /** Names of minima and maxima in the expressions just read, and what they are. */
  #extremes: { readonly name: string; readonly is: Formula }[] = [];
  #extremesSeen = 0;

  constructor(reader: TextReader, params: readonly string[], spelled: ReadonlySet<string>) {
    this.#reader = reader;
    this.#params = params;
    this.#spelled = spelled;
    for (const name of params) this.#declare(name, 1);
  }

  #declare(name: string, times: 1 | -1): void {
    const count = (this.#declared.get(name) ?? 0) + times;
    if (count > 0) this.#declared.set(name, count);
    else this.#declared.delete(name);
  }

  #addDim(name: string): void {
    this.#dims.push(name);
    this.#declare(name, 1);
  }

  parse(fixed: readonly Constraint[]): { params: readonly string[]; pieces: Piece[] } {
    let output: Tuple = { name: "", dims: [] };
    let input: Tuple | undefined;
    if (!this.#reader.at(":")) {
      output = this.#tuple();
      if (this.#reader.accept("->")) {
        input = output;
        output = this.#tuple();
      }
    }
    const formula =
      this.#reader.accept(":") && !this.#reader.at("}") && !this.#reader.at(";")
        ? this.#or()
        : alwaysTrue;
    return this.#build({ input, output }, fixed, conjunction([...this.#entries, formula]));
  }

  #build(
    frame: { input: Tuple | undefined; output: Tuple },
    entries: readonly Constraint[],
    formula: Formula,
  ): { params: readonly string[]; pieces: Piece[] } {
    const pieces: Piece[] = [];
    for (const c of normalForm(formula)) {
      const piece = this.#piece(frame, entries, c);
      if (piece) pieces.push(piece);
    }
    return { params: this.#params, pieces };
  }

  #piece(
    frame: { input: Tuple | undefined; output: Tuple },
    entries: readonly Constraint[],
    { constraints, existentials }: Conjunction,
  ): Piece | undefined {
    const builder = new PieceBuilder(frame, this.#params);
    return builder.build([...entries, ...constraints], existentials);
  }

  #tuple(): Tuple {
    const reader = this.#reader;
    const name = reader.peek().kind === "name" ? spelledName(reader.name()) : "";
    reader.expect("[");
    if (this.#startsTuple()) return this.#nestedTuple(name);
    const dims: string[] = [];
    if (!reader.accept("]")) {
      do dims.push(this.#entry());
      while (reader.accept(","));
      reader.expect("]");
    }
    return { name, dims };
  }

  /** Whether a tuple is ahead, rather than an entry: `A[` or `[` with a `->` behind it. */
  #startsTuple(): boolean {
    const reader = this.#reader;
    const named = reader.peek().kind === "name" && reader.peek(1).text === "[";
    if (named) return true;
    if (!reader.at("[")) return false;
    let depth = 0;
    for (let ahead = 0; ; ahead++) {
      const { text, kind } = reader.peek(ahead);
      if (kind === "end") return false;
      if (text === "[") depth++;
      if (text === "]" && --depth === 0) return reader.peek(ahead + 1).text === "->";
    }
  }

  /** `A[…] -> B[…]]`, behind the bracket that opens it. */
  #nestedTuple(name: string): Tuple {
    const reader = this.#reader;
    const from = this.#tuple();
    reader.expect("->");
    const to = this.#tuple();
    reader.expect("]");
    return { name, dims: [...from.dims, ...to.dims], nested: { from, to } };
  }

  /** A new name, `name = value`, a range `low:high`, or an expression in names seen before. */
  #entry(): string {
    const reader = this.#reader;
    const token = reader.peek();
    const after = reader.peek(1);
    if (token.kind === "name" && after.kind === "punctuation" && /^[,\]=]$/.test(after.text)) {
      const name = spelledName(token.text);
      if (!this.#declared.has(name)) {
        reader.next();
        this.#addDim(name);
        if (reader.accept("=")) this.#value(name);
        return name;
      }
    }
    // As in isl, `*` is any value: a dimension without a constraint.
    const name = this.#unnamed();
    if (!reader.accept("*")) this.#value(name);
    this.#addDim(name);
    return name;
  }

  #value(name: string): void {
    const reader = this.#reader;
    const first = parseWhole(reader, this.#resolve);
    const stated: Constraint[] = [];
    if (!reader.accept(":")) stated.push(equals(name, first));
    else {
      const last = parseWhole(reader, this.#resolve);
      stated.push(atMost(first, name), atMost(name, last));
    }
    this.#entries.push(this.#withExtremes(conjunction(stated.map(holds))));
  }

  #unnamed(): string {
    for (let i = this.#dims.length; ; i++) {
      const name = `o${i}`;
      if (!this.#declared.has(name) && !this.#spelled.has(name)) return name;
    }
  }

  /** The least value is at most all of them and one of them; the greatest likewise. */
  #nameExtreme(kind: "min" | "max", values: readonly Affine[]): Affine {
    const name = `m$${this.#extremesSeen++}`;
    const [beyond, one] = [
      values.map((v) => holds(kind === "min" ? atMost(name, v) : atMost(v, name))),
      values.map((v) => holds(equals(name, v))),
    ];
    const is = conjunction([...beyond, { kind: "or", parts: one }]);
    this.#extremes.push({ name, is });
    return affine(name);
  }

  /** The formula where the names of extremes in it stand for these. */
  #withExtremes(body: Formula): Formula {
    if (this.#extremes.length === 0) return body;
    const [names, sides] = [this.#extremes.map((e) => e.name), this.#extremes.map((e) => e.is)];
    this.#extremes = [];
    return { kind: "let", names, side: conjunction(sides), body };
  }

  readonly #resolveName = (name: string): Affine => {
    if (!this.#declared.has(name)) {
      reject("AFF003", `unknown name "${name}"`, {
        at: `line ${this.#reader.peek().line}`,
        help: `declare it as a parameter: [${name}] -> { … }`,
      });
    }
    return affine(name);
  };

  readonly #resolve: Resolve = Object.assign(this.#resolveName, {
    extreme: (kind: "min" | "max", values: readonly Affine[]) => this.#nameExtreme(kind, values),
  });

  #or(): Formula {
    const parts = [this.#and()];
    while (this.#reader.accept("or") || this.#reader.accept("||")) parts.push(this.#and());
    return parts.length === 1 ? parts[0]! : { kind: "or", parts };
  }

  #and(): Formula {
    const parts = [this.#atom()];
    while (this.#reader.accept("and") || this.#reader.accept("&&")) parts.push(this.#atom());
    return conjunction(parts);
  }

  #atom(): Formula {
    const reader = this.#reader;
    if (reader.accept("not") || reader.accept("!")) return { kind: "not", body: this.#atom() };
    if (reader.accept("true")) return alwaysTrue;
    if (reader.accept("false")) return alwaysFalse;
    if (reader.accept("exists")) return this.#exists();
    if (reader.at("(") && this.#holdsFormula()) {
      reader.expect("(");
      const inner = this.#or();
      reader.expect(")");
      return inner;
    }
    return this.#comparison();
  }

  /** Whether the parenthesis ahead encloses a formula rather than an expression. */
  #holdsFormula(): boolean {
    let depth = 0;
    for (let ahead = 0; ; ahead++) {
      const token = this.#reader.peek(ahead);
      if (token.kind === "end") return false;
      if (token.text === "(") depth++;
      if (token.text === ")" && --depth === 0) return false;
      if (formulaWords.has(token.text)) return true;
    }
  }

  #exists(): Formula {
    const reader = this.#reader;
    const closes = reader.accept("(");
    const names: string[] = [];
    const definitions: Formula[] = [];
    do {
      const name = spelledName(reader.name("a variable name"));
      names.push(name);
      this.#declare(name, 1);
      if (reader.accept("=")) {
        const value = parseWhole(reader, this.#resolve);
        definitions.push(this.#withExtremes(holds(equals(name, value))));
      }
    } while (reader.accept(","));
    const rest = reader.accept(":") ? this.#or() : alwaysTrue;
    if (closes) reader.expect(")");
    for (const name of names) this.#declare(name, -1);
    return { kind: "exists", names, body: { kind: "and", parts: [...definitions, rest] } };
  }

  /** `a, b < c <= d`: every item of a list against every item of the next. */
  #comparison(): Formula {
    let left = this.#operands();
    const parts: Formula[] = [];
    do {
      const operator = this.#operator();
      const right = this.#operands();
      for (const a of left) for (const b of right) parts.push(compareRatios(a, operator, b));
      left = right;
    } while (comparisons.has(this.#reader.peek().text));
    return this.#withExtremes(conjunction(parts));
  }

  #operands(): Ratio[] {
    const items = [parseSum(this.#reader, this.#resolve)];
    while (this.#reader.accept(",")) items.push(parseSum(this.#reader, this.#resolve));
    return items;
  }

  #operator(): string {
    const { text, kind } = this.#reader.peek();
    if (kind !== "punctuation" || !comparisons.has(text)) this.#reader.fail("a comparison");
    this.#reader.next();
    if (text === "<" && this.#reader.at("<")) {
      reject("AFF003", "comparing tuples with << is not supported");
    }
    return text;
  }
}

function holds(constraint: Constraint): Formula {
  return { kind: "constraint", constraint };
}

const comparisons = new Set(["<", "<=", "=", "==", "!=", ">=", ">"]);
const formulaWords = new Set([...comparisons, "and", "or", "not", "exists", "true", "false"]);

function compareRatios(a: Ratio, operator: string, b: Ratio): Formula {
  const left = safeScale(b.denominator, a.numerator);
  const right = safeScale(a.denominator, b.numerator);
  const above = safeAdd(left, safeScale(-1, right));
  const below = safeScale(-1, above);
  const strictly = (e: Affine): Affine => safeAdd(e, affine(-1));
  const constraint = (kind: Constraint["kind"], expression: Affine): Formula => ({
    kind: "constraint",
    constraint: { kind, expression },
  });
  switch (operator) {
    case "<":
      return constraint("inequality", strictly(below));
    case "<=":
      return constraint("inequality", below);
    case ">":
      return constraint("inequality", strictly(above));
    case ">=":
      return constraint("inequality", above);
    case "!=":
      return { kind: "not", body: constraint("equality", above) };
    default:
      return constraint("equality", above);
  }
}
