/**
 * Applies the matches of one rule: tests the side condition, makes the right side, unites it with the
 * left. The general form: conditions, computed payloads, built right sides, analyses. Plain rules on a
 * graph without analysis run as code (compile-applier.ts); tests hold both equal.
 */
import type { EGraph } from "./e-graph.ts";
import { type Builder, Match } from "./match.ts";
import type { MatchPlan } from "./match-plan.ts";
import type { NodeId } from "./node-store.ts";
import { type MakeStep, type Operand, planRight, type RightPlan } from "./right-plan.ts";
import type { RowBuffer } from "./row-buffer.ts";
import type { Rule } from "./rule.ts";
import type { PayloadId } from "./vocabulary.ts";

export interface ApplyLimits {
  /** Applying ends when the graph has this many nodes. */
  readonly nodes: number;
  /** Applying ends after this many rows. */
  readonly rows: number;
}

export interface Applied {
  /** Rows looked at. */
  readonly rows: number;
  /** Rows that changed the graph. */
  readonly changes: number;
  /** Whether a condition read the nodes of a class. */
  readonly readsGraph: boolean;
}

export type Applier = (rows: RowBuffer, limits: ApplyLimits) => Applied;

export function interpretApplier<D>(graph: EGraph<D>, rule: Rule<D>, plan: MatchPlan): Applier {
  const application = new Application(graph, rule, plan);
  return (rows, limits) => application.run(rows, limits);
}

class Application<D> {
  readonly #graph: EGraph<D>;
  readonly #rule: Rule<D>;
  readonly #plan: MatchPlan;
  readonly #right: RightPlan | undefined;
  readonly #match: Match<D>;
  readonly #made: NodeId[] = [];
  /** With proofs: for each node made, its id, head, number of children and children as asked for. */
  #journal: number[] = [];
  readonly #builder: Builder;
  #cells = new Int32Array(0);
  #at = 0;
  #changed = false;

  constructor(graph: EGraph<D>, rule: Rule<D>, plan: MatchPlan) {
    this.#graph = graph;
    this.#rule = rule;
    this.#plan = plan;
    this.#right = rule.right && planRight(rule.right, plan.layout, graph.vocabulary);
    this.#match = new Match(graph, plan.layout);
    const { vocabulary } = graph;
    this.#builder = {
      add: (op, children = [], payload = "") => {
        const key = vocabulary.payload(payload);
        return this.#add(vocabulary.head(vocabulary.op(op), key, children.length), children, -1);
      },
    };
  }

  run(rows: RowBuffer, limits: ApplyLimits): Applied {
    const { store } = this.#graph;
    this.#graph.setCause(this.#rule.name);
    const most = Math.min(rows.count, limits.rows);
    let changes = 0;
    let row = 0;
    this.#cells = rows.cells;
    for (; row < most; row++) {
      if (store.liveNodes >= limits.nodes || this.#graph.inconsistency) break;
      this.#at = row * this.#plan.layout.width;
      this.#changed = false;
      this.#applyRow();
      if (this.#changed) changes++;
    }
    return { rows: row, changes, readsGraph: this.#match.readsGraph };
  }

  #applyRow(): void {
    const match = this.#match.moveTo(this.#cells, this.#at);
    const { when, build } = this.#rule;
    if (when && !when(match)) return;
    this.#journal.length = 0;
    if (build) {
      const built = build(match, this.#builder);
      if (built === undefined) return;
      const ids = typeof built === "number" ? [built] : built;
      for (const [root, id] of ids.entries()) this.#uniteRoot(root, id);
      return;
    }
    const computed = this.#computePayloads();
    if (!computed) return;
    this.#makeRight(this.#right!, computed);
  }

  #computePayloads(): ReadonlyMap<string, PayloadId> | undefined {
    const payloads = new Map<string, PayloadId>();
    for (const [name, compute] of Object.entries(this.#rule.compute)) {
      const payload = compute(this.#match);
      if (payload === undefined) return undefined;
      payloads.set(name, this.#graph.vocabulary.payload(payload));
    }
    return payloads;
  }

  #makeRight(right: RightPlan, computed: ReadonlyMap<string, PayloadId>): void {
    this.#made.length = 0;
    for (const step of right.steps) {
      const operands = step.operands.map((operand) => this.#operand(operand));
      const head = this.#headOf(step, computed);
      const before = this.#graph.store.used;
      const node = this.#add(head, operands, step.root);
      this.#made.push(node);
      if (step.root >= 0 && node < before) this.#uniteRoot(step.root, node);
    }
    for (const { root, column } of right.bare)
      this.#uniteRoot(root, this.#cells[this.#at + column]!);
  }

  #operand(operand: Operand): NodeId {
    if (operand.kind === "made") return this.#made[operand.index]!;
    return this.#cells[this.#at + operand.column]!;
  }

  #headOf(step: MakeStep, computed: ReadonlyMap<string, PayloadId>): number {
    if (step.head >= 0) return step.head;
    const source = step.payload!;
    const payload =
      source.kind === "column"
        ? this.#cells[this.#at + source.column]!
        : computed.get(source.name)!;
    return this.#graph.vocabulary.head(step.op, payload, step.operands.length);
  }

  #root(index: number): NodeId {
    return this.#cells[this.#at + this.#plan.layout.rootColumns[index]!]!;
  }

  /** Adds a node; a new one joins the class of that left root, or with -1 has its own. */
  #add(head: number, operands: readonly NodeId[], rootIndex: number): NodeId {
    const { store, forest } = this.#graph;
    const before = store.used;
    const root = rootIndex < 0 ? 0 : this.#root(rootIndex);
    const node = store.addMany(head, [...operands], root === 0 ? 0 : store.find(root));
    if (forest) this.#journal.push(node, head, operands.length, ...operands);
    if (node < before) return node;
    if (root === 0) this.#graph.noteAdded(node, operands);
    else {
      this.#changed = true;
      const reason = () => this.#record(rootIndex, node);
      this.#graph.noteJoined(node, operands, { matched: root, reason });
    }
    return node;
  }

  #uniteRoot(index: number, id: NodeId): void {
    const root = this.#root(index);
    if (this.#graph.equal(root, id)) return;
    this.#changed = true;
    this.#graph.unite(root, id, () => this.#record(index, id));
  }

  /** Writes down what this step does: the root's place, the matched nodes, the nodes made. */
  #record(index: number, right: NodeId): number {
    const forest = this.#graph.forest!;
    const { layout, atoms } = this.#plan;
    const step = forest.step("rule", this.#rule.name);
    const record = forest.record(step, this.#root(index), right);
    forest.extend(index);
    for (let i = 0; i < atoms.length; i++) {
      forest.extend(this.#cells[this.#at + layout.nodesColumn + i]!);
    }
    for (const cell of this.#journal) forest.extend(cell);
    forest.close(record);
    return record;
  }
}
