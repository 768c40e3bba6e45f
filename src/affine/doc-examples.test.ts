import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  type Answer,
  affineHull,
  coalesce,
  countInParams,
  countPoints,
  formatCount,
  formatSet,
  type IntegerSet,
  isEmpty,
  lexMax,
  lexMin,
  parseSet,
  polyhedralHull,
  simpleHull,
} from "./index.ts";

const page = readFileSync(new URL("../../docs/affine.md", import.meta.url), "utf8");

function spelled<T>(found: Answer<T>, spell: (value: T) => string): string {
  return found.kind === "known" ? spell(found.value) : `unknown: ${found.reason}`;
}

const commands: Readonly<Record<string, (set: IntegerSet) => string>> = {
  isEmpty: (set) => isEmpty(set),
  lexMin: (set) => spelled(lexMin(set), formatSet),
  lexMax: (set) => spelled(lexMax(set), formatSet),
  coalesce: (set) => spelled(coalesce(set), formatSet),
  affineHull: (set) => spelled(affineHull(set), formatSet),
  polyhedralHull: (set) => spelled(polyhedralHull(set), formatSet),
  simpleHull: (set) => spelled(simpleHull(set), formatSet),
  count: (set) => spelled(countPoints(set), String),
  formula: (set) => spelled(countInParams(set), formatCount),
};

describe("the examples of docs/affine.md", () => {
  const blocks = [...page.matchAll(/```example\n(.*?)```/gs)].map((m) => m[1]!);
  const lines = blocks.flatMap((b) => b.trim().split("\n"));

  it.each(lines)("%s", (line) => {
    const [, command, text, expected] = /^(\w+) (.*) => (.*)$/.exec(line)!;
    const set = parseSet(text!);
    if (!set.ok) throw new Error(set.diagnostics[0]!.message);
    expect(commands[command!]!(set.value)).toBe(expected);
  });

  it("are there", () => expect(lines.length).toBeGreaterThan(10));
});
