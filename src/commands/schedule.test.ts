import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { type Captured, runCaptured } from "../cli/run-captured.test-support.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-schedule-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const example = join(import.meta.dirname, "../../examples/problems/attention-12kb.json");

function schedule(...argv: string[]): Promise<Captured> {
  return runCaptured(["schedule", ...argv]);
}

function fileOf(problem: object): string {
  const path = join(folder, "p.json");
  writeFileSync(path, JSON.stringify({ schema: "wavetile/problem/1", name: "p", ...problem }));
  return path;
}

it("prints states, price, bound and gap, as text and as JSON", async () => {
  const text = await schedule(example);
  expect(text).toMatchObject({ exit: 0, err: "" });
  expect(text.out).toContain("score 2.849379074, bound 2.849379074, gap 0.0000 %");
  const json = JSON.parse((await schedule(example, "--json", "--solver", "viterbi")).out);
  expect(json).toMatchObject({
    ok: true,
    schema: "wavetile/schedule/1",
    data: { status: "optimal", solver: "viterbi", gap: 0, solution: { Softmax: "16x16 row sram" } },
  });
});

it("writes the problem as .wcsp, which reads back to the same optimum", async () => {
  const wcsp = join(folder, "attention.wcsp");
  expect((await schedule(example, "--wcsp", wcsp)).exit).toBe(0);
  expect(readFileSync(wcsp, "utf8")).toMatch(/^attention_block 6 66 /);
  const again = JSON.parse((await schedule(wcsp, "--json")).out);
  expect(again.data).toMatchObject({ status: "optimal", variables: 6 });
});

it("ends with 1 and PRB009 when there is no solution", async () => {
  const path = fileOf({
    variables: [{ name: "a", prices: [1], forbid: [{ constraint: "too big", states: [0] }] }],
  });
  const found = await schedule(path);
  expect(found.exit).toBe(1);
  expect(found.err).toContain("PRB009");
  expect(found.err).toContain('note: a: "too big" excludes 1 of 1 states');
  expect(found.err).toContain('help: allow "#0" of a in spite of "too big"');
});

it("lists further solutions and the front of price against a budget", async () => {
  const path = fileOf({
    variables: ["a", "b"].map((name) => ({ name, prices: [1, 2] })),
    budgets: [
      { name: "m", capacity: 9, uses: ["a", "b"].map((v) => ({ variable: v, amounts: [4, 1] })) },
    ],
  });
  const json = JSON.parse((await schedule(path, "--best", "3", "--pareto", "m", "--json")).out);
  const prices = (list: { objective: number }[]) => list.map((s) => s.objective);
  expect(prices(json.data.best.solutions)).toEqual([2, 3, 3]);
  expect(json.data.pareto.map((p: { amount: number }) => p.amount)).toEqual([8, 5, 2]);
  expect((await schedule(path, "--pareto", "z")).err).toContain("PRB004");
});

it("gives the linear program to HiGHS", async () => {
  const toy = join(import.meta.dirname, "../../examples/problems/toy-64kb.json");
  const json = JSON.parse((await schedule(toy, "--solver", "milp", "--json")).out);
  expect(json.data).toMatchObject({ status: "optimal", solver: "milp" });
});

it("ends with 5 and PRB010 when the solver cannot say", async () => {
  const path = fileOf({
    variables: [{ name: "a", prices: [1, 2] }],
    budgets: [{ name: "m", capacity: 1, uses: [{ variable: "a", amounts: [1, 1] }] }],
  });
  const found = await schedule(path, "--solver", "viterbi");
  expect(found.exit).toBe(5);
  expect(found.err).toContain("PRB010");
});

it("ends with 2 for an unknown solver and 1 for a bad file", async () => {
  expect((await schedule(example, "--solver", "magic")).exit).toBe(2);
  expect((await schedule(fileOf({ variables: [], surprise: 1 }))).err).toContain("PRB002");
  expect((await schedule(join(folder, "none.json"))).exit).toBe(1);
});
