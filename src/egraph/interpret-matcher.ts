/**
 * A matcher that walks its plan: what compile-matcher.ts writes as code, for engines where code from
 * text is forbidden. Same rows in the same order.
 */
import type { Matcher, SearchLimits } from "./compile-matcher.ts";
import type { Atom, MatchPlan } from "./match-plan.ts";
import type { NodeId } from "./node-store.ts";
import type { RowBuffer } from "./row-buffer.ts";
import type { Snapshot } from "./snapshot.ts";

export function interpretMatcher(plan: MatchPlan): Matcher {
  return (snapshot, rows, limits) => new Search(plan, snapshot, rows, limits).run();
}

class Search {
  readonly #plan: MatchPlan;
  readonly #snapshot: Snapshot;
  readonly #rows: RowBuffer;
  readonly #limits: SearchLimits;
  readonly #classes: Int32Array;
  readonly #payloads: Int32Array;
  readonly #nodes: Int32Array;
  #work = 0;
  #count = 0;
  #isOver = false;

  constructor(plan: MatchPlan, snapshot: Snapshot, rows: RowBuffer, limits: SearchLimits) {
    this.#plan = plan;
    this.#snapshot = snapshot;
    this.#rows = rows;
    this.#limits = limits;
    this.#classes = new Int32Array(plan.classVariables);
    this.#payloads = new Int32Array(plan.payloadVariables);
    this.#nodes = new Int32Array(plan.atoms.length);
  }

  run(): number {
    this.#visit(0, false);
    this.#rows.count = this.#count;
    return this.#work;
  }

  #visit(index: number, fresh: boolean): void {
    const atom = this.#plan.atoms[index];
    if (!atom) {
      if (fresh) this.#writeRow();
      return;
    }
    const { opStart, opRows, classStart, classRows, roots } = this.#snapshot;
    switch (atom.source.kind) {
      case "classes":
        this.#tryRange(index, fresh, [roots, 0, roots.length]);
        return;
      case "scan":
        this.#tryRange(index, fresh, [opRows, opStart[atom.op]!, opStart[atom.op + 1]!]);
        return;
      case "members": {
        const root = this.#classes[atom.classVariable]!;
        if (!fresh && !this.#mayBeFresh(index)) return;
        this.#tryRange(index, fresh, [classRows, classStart[root]!, classStart[root + 1]!]);
        return;
      }
      case "uses":
        this.#tryUses(index, fresh, atom.source.slot);
        return;
    }
  }

  /** Whether a class that is still to be looked into has news. */
  #mayBeFresh(index: number): boolean {
    const { ahead } = this.#plan.atoms[index]!;
    if (!ahead) return true;
    return ahead.some(
      (variable) => this.#snapshot.freshest[this.#classes[variable]!]! > this.#limits.since,
    );
  }

  #tryRange(index: number, fresh: boolean, [rows, from, to]: [Int32Array, number, number]): void {
    for (let i = from; i < to && !this.#isOver; i++) {
      if (index === 0 && this.#work > this.#limits.work) {
        this.#isOver = true;
        return;
      }
      this.#work++;
      this.#try(index, fresh, rows[i]!);
    }
  }

  #tryUses(index: number, fresh: boolean, slot: number): void {
    const { store } = this.#snapshot;
    const child = this.#classes[this.#plan.atoms[index]!.slots[slot]!.variable]!;
    for (let cell = store.firstUseOf(child); cell !== 0; cell = store.links[cell]!) {
      if (this.#isOver) return;
      this.#work++;
      const node = store.ownerOf(cell);
      if (cell - 4 * node !== slot + 1 || store.isDead(node) || store.isHidden(node)) continue;
      this.#try(index, fresh, node);
    }
  }

  #try(index: number, fresh: boolean, node: NodeId): void {
    const atom = this.#plan.atoms[index]!;
    const { store, freshest } = this.#snapshot;
    const isClass = atom.source.kind === "classes";
    if (!isClass && !this.#fitsHead(atom, store.keys[4 * node]!)) return;
    if (!this.#bind(atom.classVariable, store.parent[node]!, atom.classBound)) return;
    for (const [i, slot] of atom.slots.entries()) {
      if (!this.#bind(slot.variable, store.keys[4 * node + 1 + i]!, slot.bound)) return;
    }
    for (const { variable, bit } of atom.masks) {
      if ((this.#snapshot.opMask[this.#classes[variable]!]! & bit) === 0) return;
    }
    this.#nodes[index] = node;
    const stamp = isClass ? freshest[node]! : store.stamp(node);
    this.#visit(index + 1, fresh || stamp > this.#limits.since);
  }

  #bind(variable: number, root: NodeId, bound: boolean): boolean {
    if (bound) return this.#classes[variable] === root;
    this.#classes[variable] = root;
    return true;
  }

  #fitsHead(atom: Atom, head: number): boolean {
    if (atom.head >= 0) return head === atom.head;
    const { headOp, headArity, headPayload } = this.#snapshot.store.vocabulary;
    if (headOp[head] !== atom.op) return false;
    const arity = headArity[head]!;
    if (atom.open ? arity < atom.arity : arity !== atom.arity) return false;
    const payload = headPayload[head]!;
    if (atom.payloadKey >= 0 && payload !== atom.payloadKey) return false;
    if (atom.payload < 0) return true;
    if (atom.payloadBound) return this.#payloads[atom.payload] === payload;
    this.#payloads[atom.payload] = payload;
    return true;
  }

  #writeRow(): void {
    const { width } = this.#plan.layout;
    const at = this.#count * width;
    while (at + width > this.#rows.cells.length) this.#rows.grow();
    for (const [i, column] of this.#plan.columns.entries()) {
      const value =
        column.kind === "node"
          ? this.#nodes[column.atom]!
          : column.kind === "class"
            ? this.#classes[column.variable]!
            : this.#payloads[column.variable]!;
      this.#rows.cells[at + i] = value;
    }
    if (++this.#count >= this.#limits.rows) this.#isOver = true;
  }
}
