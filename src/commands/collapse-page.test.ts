/** docs/collapse.md says what the program does: its example is run, and its numbers are the program's. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { exhaustiveOptimum } from "../search/check.ts";
import { priceOf } from "../search/problem.ts";
import { readProblem } from "../search/problem-file.ts";
import { solverNames } from "../search/solvers.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/collapse.md"), "utf8");
const example = /```json\n([\s\S]*?)```/.exec(page)![1]!;
const folder = mkdtempSync(join(tmpdir(), "wavetile-page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("prints what the page prints", async () => {
  const path = join(folder, "three-layers.json");
  writeFileSync(path, example);
  const { out } = await runCaptured(["schedule", path]);
  const printed = /```\n(three layers: [\s\S]*?)```/.exec(page)![1]!;
  expect(out).toBe(printed);
});

it("has the prices that the page works out", () => {
  const read = readProblem(example);
  if (!read.ok) throw new Error("the example does not read");
  const price = (...states: number[]): number => priceOf(read.value, Int32Array.from(states));
  expect([price(1, 0, 0), price(0, 0, 0), price(1, 1, 1)]).toEqual([22, 17, 18]);
  expect(exhaustiveOptimum(read.value)).toBe(17);
});

it("lists every solver", () => {
  for (const name of solverNames) expect(page).toContain(`| \`${name}\``);
});
