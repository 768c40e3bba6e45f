/** Parts of a model that are compiled one after another: what is found of one is no other answer for the next. */
import { expect, it } from "vitest";
import { compileModel } from "./compile.ts";
import { parseGraph } from "./graph/graph-text.ts";
import { noWeights } from "./interp/graph.ts";
import { printProgram } from "./program/program-text.ts";
import { printSchedule } from "./schedule/directive-text.ts";
import { emptySchedulingMemory, type SchedulingMemory } from "./scheduled-graph.ts";
import { targets } from "./target/index.ts";

const target = targets.get("wasm")!;

/** Two layers that names tell apart, in sizes of their own. */
function compiled(name: string, columns: number, memory?: SchedulingMemory): string {
  const read = parseGraph(`graph g(x_${name}: f32[24, 48], w_${name}: f32[48, ${columns}]) -> (y) {
    p_${name} = contract(x_${name}, w_${name}) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[24, ${columns}]
    y = tanh(p_${name}) : f32[24, ${columns}]
  }`);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  const made = compileModel(
    { graph: read.value, weights: noWeights },
    { target, ...(memory && { memory }) },
  );
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  const { regions, plan, certificate } = made.value;
  const schedules = regions.map((r) => printSchedule(r.scheduled.schedule));
  return [printProgram(plan.program), ...schedules, JSON.stringify(certificate)].join("\n");
}

it("is the same with what was found of other parts as without", () => {
  const memory = emptySchedulingMemory();
  for (const [name, columns] of [
    ["a", 32],
    ["b", 32],
    ["c", 20],
    ["b", 32],
  ] as const) {
    expect(compiled(name, columns, memory)).toBe(compiled(name, columns));
  }
  expect(memory.proved.size).toBeGreaterThan(0);
});
