/**
 * What a user may say about symbolic dimensions: a value (`W=320`), a range (`W=32..960`), or an
 * expression over new symbols (`H=32*h`), which makes divisibility provable.
 */

import type { SymbolScope } from "../../../graph/symbol-scope.ts";
import {
  constantValue,
  type IndexExpr,
  toIndex,
  variable,
  variablesOf,
} from "../../../semantics/index-expr.ts";
import type { IndexRange } from "../../../semantics/index-range.ts";
import { readIndexExpr } from "../../../semantics/index-text.ts";
import {
  attempt,
  type Diagnostic,
  diagnostic,
  type Result,
  reject,
} from "../../../support/diagnostic.ts";
import { TextReader } from "../../../support/text-reader.ts";
import { spellName } from "./assembly.ts";

export type ShapeOverride = number | IndexRange | IndexExpr;
/** By the model's name of the dimension, or its spelling in the graph. */
export type ShapeOverrides = Readonly<Record<string, ShapeOverride>>;

/** Parses the VALUE of `--shape NAME=VALUE`: `320`, `32..960`, `1..` or `32*h`. */
export function parseShapeOverride(text: string): Result<ShapeOverride> {
  return attempt(() => {
    const range = /^(\d+)\.\.(\d*)$/.exec(text);
    if (range) return { min: Number(range[1]), max: range[2] ? Number(range[2]) : Infinity };
    const reader = new TextReader(text);
    const expr = readIndexExpr(reader);
    if (reader.peek().kind !== "end") reader.fail("the end of the expression");
    return constantValue(expr) ?? expr;
  });
}

/** Symbols of dimensions that nobody overrides start at 1: an empty tensor has to be asked for. */
const anyExtent: IndexRange = { min: 1, max: Infinity };

/** Gives each symbolic dimension of a model its expression, and remembers what was asked for. */
export class ShapeOverrideTable {
  readonly #symbols: SymbolScope;
  readonly #overrides: ReadonlyMap<string, ShapeOverride>;
  readonly #used = new Set<string>();

  constructor(overrides: ShapeOverrides, symbols: SymbolScope) {
    this.#symbols = symbols;
    this.#overrides = new Map(Object.entries(overrides));
  }

  /** The extent that a symbolic dimension stands for. */
  resolve(name: string): IndexExpr {
    const spelled = spellName(name, "dim");
    const key = this.#overrides.has(name) ? name : spelled;
    const override = this.#overrides.get(key);
    if (override === undefined) return this.#symbol(spelled, anyExtent);
    this.#used.add(key);
    if (typeof override === "number") return toIndex(checkExtent(key, override));
    if ("min" in override) return this.#symbol(spelled, checkRange(key, override));
    for (const free of variablesOf(override)) this.resolveFree(free);
    return override;
  }

  /** A dimension of an input whose value is given: the tensor says it, but an override of it names something. */
  passOver(name: string): void {
    const key = this.#overrides.has(name) ? name : spellName(name, "dim");
    this.#used.add(key);
    const override = this.#overrides.get(key);
    if (override === undefined || typeof override === "number" || "min" in override) return;
    for (const free of variablesOf(override)) this.#used.add(free);
  }

  /** A new symbol of an override's expression; it may have a value or a range of its own. */
  resolveFree(name: string): void {
    const own = this.#overrides.get(name);
    if (own === undefined || (typeof own !== "number" && !("min" in own))) {
      this.#symbol(name, anyExtent);
      return;
    }
    this.#used.add(name);
    const range = typeof own === "number" ? { min: own, max: own } : own;
    this.#symbol(name, checkRange(name, range));
  }

  /** A diagnostic for each override that names no dimension of the model. */
  unused(known: readonly string[]): readonly Diagnostic[] {
    const names = [...this.#overrides.keys()].filter((name) => !this.#used.has(name));
    return names.map((name) =>
      diagnostic("ONX015", `the model has no dimension ${JSON.stringify(name)}`, {
        at: `shape override ${name}`,
        help:
          known.length > 0
            ? `its dimensions are ${known.join(", ")}`
            : "all its dimensions are fixed",
      }),
    );
  }

  #symbol(name: string, range: IndexRange): IndexExpr {
    if (!this.#symbols.ranges.has(name)) this.#symbols.declare({ name, ...range });
    return variable(name);
  }
}

function checkExtent(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0 && value <= 2 ** 40) return value;
  return refuse(name, String(value));
}

function checkRange(name: string, range: IndexRange): IndexRange {
  const { min, max } = range;
  const whole = Number.isSafeInteger(min) && (Number.isSafeInteger(max) || max === Infinity);
  return whole && min >= 0 && min <= max ? range : refuse(name, `${min}..${max}`);
}

function refuse(name: string, found: string): never {
  return reject("ONX015", `${name} = ${found} is no extent`, {
    at: `shape override ${name}`,
    help: "give a number (320), a range (32..960) or an expression (32*h)",
  });
}
