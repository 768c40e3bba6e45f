/** Registers of multiplications on their way, in the golden program of attention by a warpgroup. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseGolden } from "../../../test/golden/golden-sections.ts";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

const path = join(import.meta.dirname, "../../../test/golden/attention.txt");
const text = new Map(parseGolden(readFileSync(path, "utf8"))).get("by a warpgroup")!;

/** Codes of a program's proof in parts. */
function codesOf(changed: string): readonly string[] {
  const read = parseProgram(changed);
  if (!read.ok) throw new Error("it is no program");
  const valid = validateProgram(read.value, { stepsRunWhole: 0 });
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

describe("registers of asynchronous work", () => {
  it("are nobody else's between the issue and the wait, over the turn of a loop too", () => {
    expect(codesOf(text)).toEqual([]);
    const waits = text.split("\n").flatMap((line, i) => (/^\s*await mma/.test(line) ? [i] : []));
    expect(waits.length).toBe(4);
    for (const at of waits) {
      const lines = text.split("\n");
      const loosely = lines[at]!.replace(/pending (\d)/, (_, n) => `pending ${Number(n) + 1}`);
      expect(codesOf(lines.with(at, "").join("\n"))).toContain("PRG031");
      expect(codesOf(lines.with(at, loosely).join("\n"))).toContain("PRG031");
    }
  });
});
