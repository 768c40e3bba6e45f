/**
 * Reads the directives that only schedule trees can say, as affine/tree/directive-text.ts spells them,
 * and the parts that they share with the others.
 *
 *   skew S0:j by i times 1
 *   diamond S0:t with x by 8 slope 1 -> wave tile
 *   pipeline i (S0 0, S1 1)
 *   roles i (S0 "load", S1 "math")
 *   split-reduction S0:k by 16 -> k0 k1
 *   buffer "t" over i in 2
 */
import type { TextReader } from "../../support/text-reader.ts";
import type { Directive, TreeOnlyDirective } from "../directive.ts";

type Kind = TreeOnlyDirective["kind"];
type Of<K extends Kind> = Extract<TreeOnlyDirective, { readonly kind: K }>;

const readers: { readonly [K in Kind]: (reader: TextReader, kind: K) => Of<K> } = {
  interchange: (reader, kind) => {
    const [statement, loop] = readLoop(reader);
    reader.expect("with");
    return { kind, statement, loop, other: reader.name("a loop") };
  },
  jam: (reader, kind) => ({ kind, ...readSplit(reader) }),
  "split-reduction": (reader, kind) => ({ kind, ...readSplit(reader) }),
  "split-scan": (reader, kind) => ({ kind, ...readSplit(reader) }),
  skew: (reader, kind) => {
    const [statement, loop] = readLoop(reader);
    reader.expect("by");
    const by = reader.name("a loop");
    reader.expect("times");
    return { kind, statement, loop, by, factor: reader.number("a factor") };
  },
  shift: (reader, kind) => {
    const [statement, loop] = readLoop(reader);
    reader.expect("by");
    return { kind, statement, loop, by: reader.number("a number of iterations") };
  },
  diamond: (reader, kind) => {
    const [statement, loop] = readLoop(reader);
    reader.expect("with");
    const by = reader.name("a loop");
    reader.expect("by");
    const factor = reader.number("a factor");
    reader.expect("slope");
    const slope = reader.number("a slope");
    reader.expect("->");
    const [wave, tile] = [reader.name("a loop"), reader.name("a loop")];
    return { kind, statement, loop, by, factor, slope, wave, tile };
  },
  fission: (reader, kind) => {
    const [statement, loop] = readLoop(reader);
    return { kind, statement, loop };
  },
  pipeline: (reader, kind) => {
    const loop = reader.name("a loop");
    return { kind, loop, stages: readPairs(reader, () => reader.number("a stage")) };
  },
  roles: (reader, kind) => {
    const loop = reader.name("a loop");
    return { kind, loop, roles: readPairs(reader, () => reader.string("a role in quotes")) };
  },
  fold: (reader, kind) => {
    const array = reader.string("a tensor in quotes");
    reader.expect("axis");
    const axis = reader.number("an axis");
    reader.expect("to");
    return { kind, array, axis, modulus: reader.number("a number of positions") };
  },
  overwrite: (reader, kind) => {
    const over = reader.string("a tensor in quotes");
    reader.expect("with");
    return { kind, array: reader.string("a tensor in quotes"), over };
  },
  buffer: (reader, kind) => {
    const array = reader.string("a tensor in quotes");
    reader.expect("over");
    const loop = reader.name("a loop");
    reader.expect("in");
    return { kind, array, loop, copies: reader.number("a number of copies") };
  },
  overlap: (reader, kind) => {
    const statement = reader.name("a statement");
    reader.expect("into");
    const into = reader.name("a statement");
    reader.expect(":");
    const loops = readNames(reader);
    reader.expect("by");
    const factors = readFactors(reader);
    reader.expect("->");
    return {
      ...{ kind, statement, into, loops, factors },
      ...{ outer: readNames(reader), inner: readNames(reader) },
    };
  },
};

/** The rest of the directive behind its first word; undefined when the word is another's. */
export function readTreeDirective(
  reader: TextReader,
  kind: Directive["kind"],
): TreeOnlyDirective | undefined {
  if (!Object.hasOwn(readers, kind)) return undefined;
  const read = readers[kind as Kind] as (reader: TextReader, kind: Kind) => TreeOnlyDirective;
  return read(reader, kind as Kind);
}

function readSplit(
  reader: TextReader,
): Pick<Of<"jam">, "statement" | "loop" | "factor" | "outer" | "inner"> {
  const [statement, loop] = readLoop(reader);
  reader.expect("by");
  const factor = reader.number("a factor");
  reader.expect("->");
  return { statement, loop, factor, outer: reader.name("a loop"), inner: reader.name("a loop") };
}

function readPairs<T>(reader: TextReader, value: () => T): ReadonlyMap<string, T> {
  reader.expect("(");
  const pairs = new Map<string, T>();
  reader.list(")", () => {
    const { text } = reader.peek();
    if (pairs.has(text)) reader.fail(`each statement once (${text} is there already)`);
    pairs.set(reader.name("a statement"), value());
  });
  return pairs;
}

export function readLoop(reader: TextReader): readonly [string, string] {
  const statement = reader.name("a statement");
  reader.expect(":");
  return [statement, reader.name("a loop")];
}

export function readNames(reader: TextReader): string[] {
  reader.expect("(");
  return reader.list(")", () => reader.name("a loop"));
}

export function readFactors(reader: TextReader): number[] {
  reader.expect("(");
  return reader.list(")", () => reader.number("a factor"));
}
