/**
 * A scheduled region as a program of its own: what it reads are inputs and weights, in the layouts in
 * which the region meets them, what it writes are outputs. Candidates are compared, checked and timed in this form, one region at a time.
 */
import type { NestProgram, NestTensor, Region, TensorRole } from "../region/nest.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import type { Condition } from "../semantics/condition.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import type { Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { lowerProgram } from "./lower-program.ts";
import type { MemoryPlan } from "./memory-plan.ts";

/** @param requires what holds of the model's symbols; what speaks of others than the region's is left out */
export function lowerRegionProgram(
  scheduled: ScheduledRegion,
  target: Target,
  requires: readonly Condition[] = [],
): Result<MemoryPlan> {
  const { region } = scheduled;
  const known = new Set(region.symbols.map((s) => s.name));
  const own = requires.filter((c) => [...variablesOf(c.expr)].every((name) => known.has(name)));
  const nests = nestsOf(region);
  return lowerProgram({ nests, scheduled: [scheduled], requires: own, states: [] }, target);
}

function nestsOf(region: Region): NestProgram {
  const written = new Set(region.statements.flatMap((s) => s.writes.map((w) => w.tensor)));
  const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const [name, { stored: _, ...tensor }] of region.tensors) {
    tensors.set(name, { ...tensor, role: roleOf(tensor.role, written.has(name)) });
  }
  const named = (role: TensorRole) => [...tensors.values()].filter((t) => t.role === role);
  return {
    name: "region",
    symbols: region.symbols,
    tensors,
    items: region.statements.map((statement) => ({ kind: "statement", statement })),
    inputs: named("input").map((t) => t.name),
    outputs: named("output").map((t) => t.name),
  };
}

function roleOf(role: TensorRole | "local", isWritten: boolean): TensorRole {
  if (role === "local") return "intermediate";
  if (isWritten) return "output";
  return role === "weight" ? "weight" : "input";
}
