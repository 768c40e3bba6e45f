/**
 * Operators on strings, computed at import (strings are known there; see host-value.ts). Reading texts
 * as numbers stands with Cast, moving them in string-codes.ts.
 */
import { broadcastShapes, broadcastStrides, elementCount } from "../../../../semantics/shape.ts";
import { type RefTensor, refTensor } from "../../../../semantics/tensor.ts";
import type { StringTensor } from "../../host-value.ts";
import type { NodeView } from "../node-view.ts";
import { type Bound, constantFromRef } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { compileFullMatch } from "../regular-expression.ts";

function strings(shape: readonly number[], elements: readonly string[]): StringTensor {
  return { kind: "strings", shape, elements };
}

/** Texts are computed at import, so that what a small file may make of them is bounded. */
const mostTexts = 2 ** 20;
const mostCharacters = 2 ** 24;
/** Steps of a regular expression over all texts of one node. */
const mostMatchSteps = 2 ** 27;

function checkCount(node: NodeView, texts: number): void {
  if (texts > mostTexts) node.refuse(`${texts} texts`, `at most ${mostTexts}`);
}

function concatenate(node: NodeView): Bound {
  const [a, b] = [node.strings(0), node.strings(1)];
  const shape = broadcastShapes(a.shape, b.shape);
  if (!shape) node.refuse(`shapes [${a.shape}] and [${b.shape}]`, "shapes that broadcast");
  checkCount(node, elementCount(shape));
  const [x, y] = [a, b].map((t) => spread(t, shape)) as [string[], string[]];
  const length = totalLength(x) + totalLength(y);
  if (length > mostCharacters) node.refuse(`${length} characters`, `at most ${mostCharacters}`);
  return strings(
    shape,
    x.map((text, i) => text + y[i]!),
  );
}

function totalLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/** Elements repeated along broadcast axes, in row-major order. */
function spread({ shape, elements }: StringTensor, to: readonly number[]): string[] {
  const strides = broadcastStrides(shape, to);
  return Array.from({ length: elementCount(to) }, (_, flat) => {
    let rest = flat;
    let offset = 0;
    for (let axis = to.length - 1; axis >= 0; axis--) {
      offset += (rest % to[axis]!) * strides[axis]!;
      rest = Math.floor(rest / to[axis]!);
    }
    return elements[offset]!;
  });
}

/** Parts of each text in a new last axis, filled with empty texts; and how many parts there are. */
function split(node: NodeView): readonly Bound[] {
  const { shape, elements } = node.strings(0);
  const delimiter = node.attributes.string("delimiter") ?? "";
  const most = node.attributes.int("maxsplit") ?? Infinity;
  const parts = elements.map((text) =>
    delimiter === "" ? splitAtSpaces(text, most) : splitAt(text, delimiter, most),
  );
  const width = parts.reduce((most, p) => Math.max(most, p.length), 0);
  checkCount(node, elements.length * width);
  const filled = parts.flatMap((p) => Array.from({ length: width }, (_, i) => p[i] ?? ""));
  const counts = refTensor(
    "i64",
    shape,
    parts.map((p) => p.length),
  );
  return [strings([...shape, width], filled), constantFromRef(counts)];
}

function splitAt(text: string, delimiter: string, most: number): string[] {
  if (text === "") return [];
  const parts = text.split(delimiter);
  if (parts.length <= most + 1) return parts;
  return [...parts.slice(0, most), parts.slice(most).join(delimiter)];
}

/** Runs of white space separate; those at the ends do not count. */
function splitAtSpaces(text: string, most: number): string[] {
  const parts: string[] = [];
  let rest = text.trimStart();
  while (rest !== "" && parts.length < most) {
    const end = rest.search(/\s/);
    if (end < 0) break;
    parts.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  if (rest !== "") parts.push(rest.trimEnd());
  return parts;
}

/** Drops stop words, then changes the case; what leaves nothing is one empty text. */
function normalize(node: NodeView): Bound {
  const { attributes } = node;
  const { shape, elements } = node.strings(0);
  const change = attributes.choice("case_change_action", "NONE", "LOWER", "UPPER");
  const sensitive = attributes.flag("is_case_sensitive", false);
  attributes.ignore("locale");
  const key = (text: string) => (sensitive ? text : text.toLowerCase());
  const stopWords = new Set((attributes.strings("stopwords") ?? []).map(key));
  if (shape.length !== 1 && !(shape.length === 2 && shape[0] === 1)) {
    node.refuse(`texts of shape [${shape}]`, "shape [C] or [1, C]");
  }
  const kept = elements.filter((text) => !stopWords.has(key(text)));
  const changed = kept.map((text) => {
    if (change === "NONE") return text;
    return change === "LOWER" ? text.toLowerCase() : text.toUpperCase();
  });
  const results = changed.length > 0 ? changed : [""];
  return strings([...shape.slice(0, -1), results.length], results);
}

function fullMatch(node: NodeView): Bound {
  const pattern = node.attributes.string("pattern") ?? "";
  const compiled = compileFullMatch(pattern);
  if (!compiled) node.attributes.refuse("pattern", JSON.stringify(pattern), "a subset of RE2");
  const { shape, elements } = node.strings(0);
  const steps = compiled.states * (totalLength(elements) + elements.length);
  if (steps > mostMatchSteps)
    node.refuse(`${steps} steps of matching`, `at most ${mostMatchSteps}`);
  return constantFromRef(
    refTensor(
      "bool",
      shape,
      elements.map((t) => Number(compiled.matches(t))),
    ),
  );
}

/** The numbers that texts spell, for Cast. */
export function parseNumbers(node: NodeView, { shape, elements }: StringTensor): RefTensor {
  const words: Readonly<Record<string, number>> = { inf: Infinity, "-inf": -Infinity, nan: NaN };
  const values = elements.map((text) => {
    const word = words[text.toLowerCase().replace("infinity", "inf").replace("+", "")];
    if (word !== undefined) return word;
    const value = text.trim() === "" ? NaN : Number(text);
    return Number.isNaN(value) ? node.refuse(`the text ${JSON.stringify(text)}`, "numbers") : value;
  });
  return refTensor("f64", shape, values);
}

export const stringRows = {
  StringConcat: { since: [20], convert: concatenate },
  StringSplit: { since: [20], convert: split },
  StringNormalizer: { since: [10], convert: normalize },
  RegexFullMatch: { since: [20], convert: fullMatch },
} satisfies OperatorTable;
