/**
 * Applies plain rules as JavaScript: a loop over the rows that makes the right side's nodes and unites
 * them with the left root, and with proofs writes down why. Rules with conditions, computed payloads or
 * built right sides, and graphs with an analysis, take interpret-applier.ts; where both can run they
 * give the same graph.
 */
import { compileText } from "./compile-text.ts";
import type { EGraph } from "./e-graph.ts";
import type { Applied, Applier, ApplyLimits } from "./interpret-applier.ts";
import type { MatchPlan } from "./match-plan.ts";
import type { NodeStore } from "./node-store.ts";
import type { ProofForest } from "./proof-forest.ts";
import { type MakeStep, type Operand, planRight, type RightPlan } from "./right-plan.ts";
import type { RowBuffer } from "./row-buffer.ts";
import type { Rule } from "./rule.ts";

/** What a loop works on beside its rows. */
interface Bench {
  readonly store: NodeStore;
  /** With proofs, and then the id of the rule in it. */
  readonly forest: ProofForest | undefined;
  readonly step: number;
}

type Loop = (bench: Bench, rows: RowBuffer, limits: ApplyLimits) => Applied;

/** The applier, or undefined where the rule or the graph needs the general form. */
export function compileApplier<D>(
  graph: EGraph<D>,
  rule: Rule<D>,
  plan: MatchPlan,
): Applier | undefined {
  if (!rule.right || rule.when || Object.keys(rule.compute).length > 0) return undefined;
  if (graph.hasAnalysis) return undefined;
  const { store, forest, vocabulary } = graph;
  const right = planRight(rule.right, plan.layout, vocabulary);
  const body = writeApplier(right, plan, forest !== undefined);
  const loop = compileText<Loop>(["bench", "rows", "limits"], body);
  const bench = { store, forest, step: forest ? forest.step("rule", rule.name) : -1 };
  return (rows, limits) => {
    graph.setCause(rule.name);
    return loop(bench, rows, limits);
  };
}

/** The text of an applier's body. */
export function writeApplier(right: RightPlan, plan: MatchPlan, proofs: boolean): string {
  const writer = new ApplierText(right, plan, proofs);
  return writer.write();
}

class ApplierText {
  readonly #right: RightPlan;
  readonly #plan: MatchPlan;
  readonly #proofs: boolean;

  constructor(right: RightPlan, plan: MatchPlan, proofs: boolean) {
    this.#right = right;
    this.#plan = plan;
    this.#proofs = proofs;
  }

  write(): string {
    const { steps, bare } = this.#right;
    const made = steps.map((step, i) => this.#step(step, i));
    const united = bare.map(({ root, column }) =>
      this.#union(root, cell(column), steps.length - 1),
    );
    const { width } = this.#plan.layout;
    const wide = steps.map(
      (step, i) => `const s${i} = [${step.operands.map(() => 0).join(", ")}];`,
    );
    return `"use strict";
const { store, forest, step } = bench;
const { vocabulary } = store;
${wide.join("\n")}
const cells = rows.cells, most = Math.min(rows.count, limits.rows);
let changes = 0, row = 0;
for (let at = 0; row < most; row++, at += ${width}) {
if (store.liveNodes >= limits.nodes) break;
let changed = 0, root = 0, other = 0, before = 0, record = 0;
${[...made, ...united].join("\n")}
changes += changed;
}
return { rows: row, changes, readsGraph: false };`;
  }

  #step(step: MakeStep, index: number): string {
    const operands = step.operands.map(operandText);
    const head = this.#head(step);
    const into = step.root < 0 ? "0" : "root";
    const few = operands.length <= 2;
    const fill = operands.map((text, i) => `s${index}[${i}] = ${text};`).join(" ");
    const made = few
      ? `store.add${operands.length}(${[head, ...operands, into].join(", ")})`
      : `store.addMany(${head}, s${index}, ${into})`;
    const noted = this.#proofs ? `${fill}\nforest.addNode(m${index}, ${head}, s${index});` : "";
    const lines = [...(few ? [] : [fill]), `const m${index} = ${made};`];
    if (step.root < 0) {
      const before = this.#proofs ? ["before = store.used;"] : [];
      const after = this.#proofs ? [`if (m${index} >= before) { ${noted} }`] : [];
      return [...before, ...lines, ...after].join("\n");
    }
    const matched = this.#rootCell(step.root);
    const joined = this.#proofs
      ? `${noted}\n${this.#record(step.root, `m${index}`, index)}\nforest.link(m${index}, ${matched}, record);\n`
      : "";
    return [
      `root = store.find(${matched});`,
      "before = store.used;",
      ...lines,
      `if (m${index} >= before) { ${joined}changed = 1; }`,
      `else {\n${this.#union(step.root, `m${index}`, index)}\n}`,
    ].join("\n");
  }

  #head(step: MakeStep): string {
    if (step.head >= 0) return `${step.head}`;
    const source = step.payload!;
    const payload = source.kind === "column" ? cell(source.column) : "-1";
    return `vocabulary.head(${step.op}, ${payload}, ${step.operands.length})`;
  }

  #rootCell(root: number): string {
    return cell(this.#plan.layout.rootColumns[root]!);
  }

  /** Unites a left root with a node, the last of `made` nodes. */
  #union(rootIndex: number, node: string, made: number): string {
    const matched = this.#rootCell(rootIndex);
    const [lost, kept] = [
      `kept === root ? ${node} : ${matched}`,
      `kept === root ? ${matched} : ${node}`,
    ];
    const linked = this.#proofs
      ? `${this.#record(rootIndex, node, made)}\nforest.link(${lost}, ${kept}, record);\n`
      : "";
    return `root = store.find(${matched});
other = store.find(${node});
if (root !== other) {
const kept = store.heavier(root, other);
${linked}store.unite(kept, kept === root ? other : root);
changed = 1;
}`;
  }

  /** Writes down what the step does: the root's place, the matched nodes, the nodes made so far. */
  #record(rootIndex: number, node: string, made: number): string {
    const { layout, atoms } = this.#plan;
    const matched = atoms.map((_, i) => cell(layout.nodesColumn + i));
    const journal = this.#right.steps
      .slice(0, made + 1)
      .flatMap((step, i) => [
        `m${i}`,
        this.#head(step),
        `${step.operands.length}`,
        ...step.operands.map(operandText),
      ]);
    const more = [`${rootIndex}`, ...matched, ...journal].map((text) => `forest.extend(${text});`);
    return `record = forest.record(step, ${this.#rootCell(rootIndex)}, ${node});
${more.join(" ")}
forest.close(record);`;
  }
}

function cell(column: number): string {
  return `cells[at + ${column}]`;
}

function operandText(operand: Operand): string {
  return operand.kind === "made" ? `m${operand.index}` : cell(operand.column);
}
