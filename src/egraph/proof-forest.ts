/**
 * Why nodes are equal: a forest over node ids with one reason on each edge (Nieuwenhuis and Oliveras,
 * 2005). Two nodes are equal exactly when they are in one tree, and the path between them never changes
 * afterwards, so a path uses only edges that are older than whatever it explains. Kept beside the
 * nodes as they were made, before any rebuilding. explain.ts reads it.
 */
import type { NodeId } from "./node-store.ts";

/** Reason 0: equal heads over equal children. Others are offsets of records. */
export const congruenceReason = 0;

/**
 * What a record says after its first cell, the step id: `rule` — left node, right node, the nodes that
 * matched, then the nodes made for the right side; `given` — left and right; `evaluated` — left, right,
 * then the constants that stand for left's children.
 */
export type StepKind = "rule" | "given" | "evaluated";

export interface Step {
  readonly kind: StepKind;
  readonly name: string;
}

export class ProofForest {
  #parent = new Int32Array(1 << 10);
  #reason = new Int32Array(1 << 10);
  /** Heads and children as first made, in the cells of the store's `keys`. */
  #original = new Int32Array(1 << 12);
  #records = new Int32Array(1 << 12);
  #recordEnd = 1;
  readonly steps: Step[] = [];
  readonly #stepIds = new Map<string, number>();

  get bytes(): number {
    const arrays = [this.#parent, this.#reason, this.#original, this.#records];
    return arrays.reduce((sum, array) => sum + array.byteLength, 0);
  }

  step(kind: StepKind, name: string): number {
    const key = `${kind} ${name}`;
    const known = this.#stepIds.get(key);
    if (known !== undefined) return known;
    this.#stepIds.set(key, this.steps.length);
    return this.steps.push({ kind, name }) - 1;
  }

  /** A node that was just made, over the ids that were asked for. */
  addNode(node: NodeId, head: number, children: readonly NodeId[]): void {
    const at = 4 * node;
    const end = at + 1 + children.length;
    if (end > this.#original.length) this.#grow(end);
    this.#original[at] = head;
    for (let i = 0; i < children.length; i++) this.#original[at + 1 + i] = children[i]!;
  }

  #grow(cells: number): void {
    const groups = Math.max((cells + 3) >> 2, this.#parent.length * 2);
    this.#original = grown(this.#original, groups * 4);
    this.#parent = grown(this.#parent, groups);
    this.#reason = grown(this.#reason, groups);
  }

  /** Opens a record: step, left, right; more cells follow with `extend`. Gives its offset. */
  record(step: number, left: NodeId, right: NodeId): number {
    const offset = this.#recordEnd;
    this.extend(0);
    this.extend(step);
    this.extend(left);
    this.extend(right);
    return offset;
  }

  extend(cell: number): void {
    if (this.#recordEnd === this.#records.length) {
      this.#records = grown(this.#records, this.#recordEnd * 2);
    }
    this.#records[this.#recordEnd++] = cell;
  }

  /** Closes a record, so that its length is known. */
  close(offset: number): void {
    this.#records[offset] = this.#recordEnd - offset;
  }

  /** Step id, left, right and the rest of a record. */
  readRecord(offset: number): Int32Array {
    return this.#records.subarray(offset + 1, offset + this.#records[offset]!);
  }

  originalHead(node: NodeId): number {
    return this.#original[4 * node]!;
  }

  originalChild(node: NodeId, index: number): NodeId {
    return this.#original[4 * node + 1 + index]!;
  }

  /** Joins two trees by an edge. The tree of `a` is turned to hang under `b`: give the smaller. */
  link(a: NodeId, b: NodeId, reason: number): void {
    this.#hang(a, b, reason);
  }

  /** Makes `node` the top of its tree by turning the path above it, then hangs it under `to`. */
  #hang(node: NodeId, to: NodeId, reason: number): void {
    let child = to;
    let label = reason;
    for (let at = node; at !== 0; ) {
      const up = this.#parent[at]!;
      const old = this.#reason[at]!;
      this.#parent[at] = child;
      this.#reason[at] = label;
      child = at;
      label = old;
      at = up;
    }
  }

  /** Nodes from `a` to `b` with the reason of each edge, or undefined when no path joins them. */
  path(a: NodeId, b: NodeId): { readonly nodes: NodeId[]; readonly reasons: number[] } | undefined {
    const depth = new Map<NodeId, number>();
    const up: NodeId[] = [];
    for (let at = a; at !== 0; at = this.#parent[at]!) {
      depth.set(at, up.length);
      up.push(at);
    }
    const down: NodeId[] = [];
    let meet = b;
    while (meet !== 0 && !depth.has(meet)) {
      down.push(meet);
      meet = this.#parent[meet]!;
    }
    if (meet === 0) return undefined;
    const rise = up.slice(0, depth.get(meet)! + 1);
    const reasons = rise.slice(0, -1).map((node) => this.#reason[node]!);
    down.reverse();
    reasons.push(...down.map((node) => this.#reason[node]!));
    return { nodes: [...rise, ...down], reasons };
  }
}

function grown(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(array);
  return larger;
}
