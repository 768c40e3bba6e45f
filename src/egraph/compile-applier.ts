/**
 * Applies plain rules as JavaScript: a loop over the rows that makes the right side's nodes and unites
 * them with the left root. Rules with conditions, computed payloads or built right sides, and graphs with
 * an analysis or proofs, take interpret-applier.ts; where both can run they give the same graph.
 */
import type { EGraph } from "./e-graph.ts";
import type { Applied, Applier, ApplyLimits } from "./interpret-applier.ts";
import type { MatchPlan } from "./match-plan.ts";
import type { NodeStore } from "./node-store.ts";
import { type MakeStep, type Operand, planRight, type RightPlan } from "./right-plan.ts";
import type { RowBuffer } from "./row-buffer.ts";
import type { Rule } from "./rule.ts";

type Loop = (store: NodeStore, rows: RowBuffer, limits: ApplyLimits, scratch: number[]) => Applied;

/** The applier, or undefined where the rule or the graph needs the general form. */
export function compileApplier<D>(
  graph: EGraph<D>,
  rule: Rule<D>,
  plan: MatchPlan,
): Applier | undefined {
  if (!rule.right || rule.when || Object.keys(rule.compute).length > 0) return undefined;
  if (graph.forest || graph.hasAnalysis) return undefined;
  const body = writeApplier(planRight(rule.right, plan.layout, graph.vocabulary), plan);
  const loop = new Function("store", "rows", "limits", "scratch", body) as Loop;
  const scratch: number[] = [];
  return (rows, limits) => {
    graph.setCause(rule.name);
    return loop(graph.store, rows, limits, scratch);
  };
}

/** The text of an applier's body. */
export function writeApplier(right: RightPlan, plan: MatchPlan): string {
  const steps = right.steps.map((step, i) => writeStep(step, i, plan));
  const bare = right.bare.map(({ root, column }) => writeUnion(rootCell(plan, root), cell(column)));
  return `"use strict";
const { vocabulary } = store;
const cells = rows.cells, most = Math.min(rows.count, limits.rows);
let changes = 0, row = 0;
for (let at = 0; row < most; row++, at += ${plan.layout.width}) {
if (store.liveNodes >= limits.nodes) break;
let changed = 0, root = 0, other = 0, before = 0;
${[...steps, ...bare].join("\n")}
changes += changed;
}
return { rows: row, changes, readsGraph: false };`;
}

function cell(column: number): string {
  return `cells[at + ${column}]`;
}

function rootCell(plan: MatchPlan, root: number): string {
  return cell(plan.layout.rootColumns[root]!);
}

function writeOperand(operand: Operand): string {
  return operand.kind === "made" ? `m${operand.index}` : cell(operand.column);
}

function writeStep(step: MakeStep, index: number, plan: MatchPlan): string {
  const operands = step.operands.map(writeOperand);
  const head = step.head >= 0 ? `${step.head}` : writeHead(step);
  const into = step.root < 0 ? "0" : "root";
  const made =
    operands.length <= 2
      ? `store.add${operands.length}(${[head, ...operands, into].join(", ")})`
      : `store.addMany(${head}, scratch, ${into})`;
  const fill = operands.length <= 2 ? [] : operands.map((text, i) => `scratch[${i}] = ${text};`);
  const lines = [...fill, `const m${index} = ${made};`];
  if (step.root < 0) return lines.join("\n");
  const root = rootCell(plan, step.root);
  return [
    `root = store.find(${root});`,
    "before = store.used;",
    ...lines,
    `if (m${index} >= before) changed = 1;`,
    `else {\n${writeUnion("root", `m${index}`)}\n}`,
  ].join("\n");
}

function writeHead(step: MakeStep): string {
  const source = step.payload!;
  const payload = source.kind === "column" ? cell(source.column) : "-1";
  return `vocabulary.head(${step.op}, ${payload}, ${step.operands.length})`;
}

function writeUnion(a: string, b: string): string {
  return `root = store.find(${a});
other = store.find(${b});
if (root !== other) {
const kept = store.heavier(root, other);
store.unite(kept, kept === root ? other : root);
changed = 1;
}`;
}
