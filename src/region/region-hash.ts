/**
 * A hash of what a region computes, whatever its names: tensors, symbols, loops and statements are named
 * by the order in which the statements meet them. Two layers of one shape are one question.
 */

import { type IndexExpr, substitute, variable } from "../semantics/index-expr.ts";
import { sha256Text } from "../support/hash.ts";
import type { Access, Region, Statement } from "./nest.ts";
import { canonicalStatement, printStatement } from "./nest-text.ts";
import { renameVariables, substituteVariables } from "./statement.ts";

/** `sha256:` and 64 hexadecimal digits. */
export function regionHash(region: Region): string {
  return `sha256:${sha256Text(spell(region).text)}`;
}

/** Regions that differ by names alone: their loops, counted, are each other's, and so are their tensors. */
export interface RegionClass {
  readonly key: string;
  /** The region's own names, in the order in which the statements meet them. */
  readonly tensors: readonly string[];
}

/** Values never change: each is spelled once. */
const classes = new WeakMap<Region, RegionClass>();
const spelled = new WeakMap<Region, ReturnType<typeof spellAnew>>();

/** The class of a region; to it belong, other than to the hash, what is constant and how far symbols go. */
export function regionClass(region: Region): RegionClass {
  const known = classes.get(region) ?? classAnew(region);
  classes.set(region, known);
  return known;
}

function classAnew(region: Region): RegionClass {
  const { text, tensors } = spell(region);
  const roles = tensors.map((name) => region.tensors.get(name)!.role);
  const ranges = region.symbols.map(({ range }) => `${range.min}..${range.max}`);
  return { key: [roles.join(), ranges.join(), text].join("\n"), tensors };
}

function spell(region: Region): ReturnType<typeof spellAnew> {
  const known = spelled.get(region) ?? spellAnew(region);
  spelled.set(region, known);
  return known;
}

function spellAnew(region: Region): { readonly text: string; readonly tensors: readonly string[] } {
  const tensors = new Map<string, string>();
  const nameOf = (tensor: string): string => {
    const known = tensors.get(tensor) ?? `t${tensors.size}`;
    tensors.set(tensor, known);
    return known;
  };
  const symbols = new Map<string, IndexExpr>(
    region.symbols.map((s, i) => [s.name, variable(`s${i}`)]),
  );
  const statements = region.statements.map((s, i) => renamed(s, i, symbols, nameOf));
  const lines = [...tensors].map(([name, short]) => {
    const { dtype, shape, role } = region.tensors.get(name)!;
    const kind = role === "local" ? "local" : "shared";
    return `${short} ${kind} ${dtype} ${shape.map((e) => substitute(e, symbols).key).join(",")}`;
  });
  return { text: [...lines, ...statements].join("\n"), tensors: [...tensors.keys()] };
}

function renamed(
  source: Statement,
  number: number,
  symbols: ReadonlyMap<string, IndexExpr>,
  nameOf: (tensor: string) => string,
): string {
  const ordered = canonicalStatement(source);
  const variables = [...ordered.loops, ...ordered.indirects].map((v) => v.name);
  const own = new Map(variables.map((name, i) => [name, `v${i}`]));
  const inOwnNames = renameVariables(ordered, (name) => own.get(name)!);
  const statement = substituteVariables(inOwnNames, symbols);
  const access = (a: Access): Access => ({ ...a, tensor: nameOf(a.tensor) });
  return printStatement({
    ...statement,
    name: `S${number}`,
    origin: "",
    loops: statement.loops.map((l) => ({ ...l, extent: substitute(l.extent, symbols) })),
    indirects: statement.indirects.map((v) => ({
      ...v,
      extent: substitute(v.extent, symbols),
      access: access(v.access),
    })),
    reads: statement.reads.map(access),
    finishReads: statement.finishReads.map(access),
    writes: statement.writes.map((w) => ({ ...w, tensor: nameOf(w.tensor) })),
  });
}
