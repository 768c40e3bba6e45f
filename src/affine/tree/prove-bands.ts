/** A tree with its bands marked permutable and their loops coincident where that is proved. */
import { bandProperties } from "../band.ts";
import type { LegalityOptions } from "../legality.ts";
import type { IntegerSet } from "../types.ts";
import type { TreeQuestion } from "./check.ts";
import { flattenTree, type TimePaths } from "./flatten.ts";
import { type BandNode, mapChildren, type ScheduleTree } from "./tree.ts";

export function proveBands(question: TreeQuestion, context?: IntegerSet): ScheduleTree {
  const flat = flattenTree(question.tree, question.statements);
  const options: LegalityOptions = context ? { context } : {};
  const prove = (tree: ScheduleTree): ScheduleTree => {
    const below = mapChildren(tree, prove);
    if (tree.kind !== "band" || below.kind !== "band") return below;
    const first = firstDimension(flat.paths, tree);
    if (first === undefined) return below;
    const band = { first, count: tree.members.length };
    const found = bandProperties(flat, question.dependences, band, options);
    const members = below.members.map((m, i) => ({
      ...m,
      coincident: found.coincident[i] === "yes",
    }));
    return { ...below, members, permutable: found.permutable === "yes" };
  };
  return prove(question.tree);
}

/** The place of a band's first loop in the time vectors; undefined when no statement runs in it. */
function firstDimension(paths: TimePaths, band: BandNode): number | undefined {
  for (const parts of paths.values()) {
    const at = parts.findIndex((p) => p.node === band);
    if (at >= 0) return at;
  }
  return undefined;
}
