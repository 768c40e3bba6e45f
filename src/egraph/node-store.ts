/**
 * The memory of an e-graph: nodes, the table that makes equal nodes one, the union-find over them and
 * the lists of class members and of uses, all in typed arrays. It knows heads and ids, nothing of
 * analyses, rules or proofs (e-graph.ts).
 *
 * A node lies in cells: `keys[4n]` is its head, `keys[4n + 1 + i]` child i, so up to three children
 * take one group of four cells and n, its id, is the number of its first group. `links` has the same
 * cells: `links[4n]` is the node's stamp, `links[4n + 1 + i]` the next use of that child's class. A class
 * has the id of one of its nodes, and what changes when a node joins it lies in one record. Id 0 is no node. Sources: egg's deferred
 * rebuilding (Willsey et al., 2021); the layout is our own.
 */
import { invariant } from "../support/invariant.ts";
import type { HeadId, Vocabulary } from "./vocabulary.ts";

export type NodeId = number;

/** Offsets in a record of four cells: three of the class, one of the node. */
const firstUse = 0;
const lastUse = 1;
const weight = 2;
const nextMember = 3;

/** Stamp of a node that is in no search and no extraction. */
export const hiddenStamp = -1;

/** Share of the table's cells in use: a run of full cells is one line of the cache. */
const mostLoad = 0.65;

/** 27 bits of node and 5 of hash share a table cell. */
const mostGroups = 1 << 27;

export class NodeStore {
  readonly vocabulary: Vocabulary;
  keys: Int32Array;
  links: Int32Array;
  /** Parent in the union-find; of a group that continues a wide node the complement of its first. */
  parent: Int32Array;
  /** Four cells a group: the class's first and last use and weight (uses and members), the node's next in its class (a ring). */
  records: Int32Array;
  table: Int32Array;
  #shift: number;
  #occupied = 0;
  /** Groups in use; the next node's id. */
  used = 1;
  /** Written on every node that is new or changes; the search for news compares it. */
  now = 1;
  /** Nodes that are not copies of others. */
  liveNodes = 0;
  /** Those among them that are hidden. */
  hiddenNodes = 0;
  classCount = 0;
  /** Segments of uses (first, last, cause) whose nodes must be put in canonical form. */
  readonly #dirty: number[] = [];
  /** Told which rule or step is at work; it goes with the dirty segments. */
  cause = 0;

  constructor(vocabulary: Vocabulary, groups = 1 << 10) {
    this.vocabulary = vocabulary;
    this.keys = new Int32Array(groups * 4);
    this.links = new Int32Array(groups * 4);
    this.parent = new Int32Array(groups);
    this.records = new Int32Array(groups * 4);
    this.table = new Int32Array(groups * 2);
    this.#shift = 32 - Math.log2(groups * 2);
  }

  /** Bytes held by all arrays. */
  get bytes(): number {
    const arrays = [this.keys, this.links, this.parent, this.records, this.table];
    return arrays.reduce((sum, array) => sum + array.byteLength, 0);
  }

  find(id: NodeId): NodeId {
    const parent = this.parent;
    let at = id;
    let up = parent[at]!;
    while (up !== at) {
      const above = parent[up]!;
      parent[at] = above;
      at = above;
      up = parent[at]!;
    }
    return at;
  }

  isDead(node: NodeId): boolean {
    return this.keys[4 * node]! < 0;
  }

  isHidden(node: NodeId): boolean {
    return this.links[4 * node]! === hiddenStamp;
  }

  head(node: NodeId): HeadId {
    const head = this.keys[4 * node]!;
    return head < 0 ? ~head : head;
  }

  arity(node: NodeId): number {
    return this.vocabulary.headArity[this.head(node)]!;
  }

  /** The node that a cell of a use list belongs to. */
  ownerOf(cell: number): NodeId {
    const group = cell >> 2;
    const up = this.parent[group]!;
    return up < 0 ? ~up : group;
  }

  firstUseOf(root: NodeId): number {
    return this.records[4 * root + firstUse]!;
  }

  /** Every group that starts a node, dead ones too, in the order of their making. */
  isNode(group: number): boolean {
    return this.parent[group]! >= 0;
  }

  // Looking up and adding. `into` is 0 for a class of its own, else the class that a new node joins.

  add0(head: HeadId, into: NodeId): NodeId {
    const h = mix(startHash, head);
    const { keys, table } = this;
    const mask = table.length - 1;
    let slot = h >>> this.#shift;
    for (let e = table[slot]!; e !== 0; e = table[slot]!) {
      if ((e & 31) === (h & 31) && keys[(e >>> 5) << 2] === head) return e >>> 5;
      slot = (slot + 1) & mask;
    }
    const node = this.#insert(head, into, slot, h);
    this.#makeRoom();
    return node;
  }

  add1(head: HeadId, a: NodeId, into: NodeId): NodeId {
    const x = this.find(a);
    const h = mix(mix(startHash, head), x);
    const { keys, table } = this;
    const mask = table.length - 1;
    let slot = h >>> this.#shift;
    for (let e = table[slot]!; e !== 0; e = table[slot]!) {
      if ((e & 31) === (h & 31)) {
        const at = (e >>> 5) << 2;
        if (keys[at + 1] === x && keys[at] === head) return e >>> 5;
      }
      slot = (slot + 1) & mask;
    }
    const node = this.#insert(head, into, slot, h);
    this.#addUse(4 * node + 1, x);
    this.#makeRoom();
    return node;
  }

  add2(head: HeadId, a: NodeId, b: NodeId, into: NodeId): NodeId {
    const x = this.find(a);
    const y = this.find(b);
    const h = mix(mix(mix(startHash, head), x), y);
    const { keys, table } = this;
    const mask = table.length - 1;
    let slot = h >>> this.#shift;
    for (let e = table[slot]!; e !== 0; e = table[slot]!) {
      if ((e & 31) === (h & 31)) {
        const at = (e >>> 5) << 2;
        if (keys[at + 1] === x && keys[at + 2] === y && keys[at] === head) return e >>> 5;
      }
      slot = (slot + 1) & mask;
    }
    const node = this.#insert(head, into, slot, h);
    this.#addUse(4 * node + 1, x);
    this.#addUse(4 * node + 2, y);
    this.#makeRoom();
    return node;
  }

  /** Any arity; `children` is overwritten with canonical ids. */
  addMany(head: HeadId, children: number[] | Int32Array, into: NodeId): NodeId {
    const arity = this.vocabulary.headArity[head]!;
    let h = mix(startHash, head);
    for (let i = 0; i < arity; i++) {
      const child = this.find(children[i]!);
      children[i] = child;
      h = mix(h, child);
    }
    const { keys, table } = this;
    const mask = table.length - 1;
    let slot = h >>> this.#shift;
    for (let e = table[slot]!; e !== 0; e = table[slot]!) {
      if ((e & 31) === (h & 31)) {
        const at = (e >>> 5) << 2;
        let i = keys[at] === head ? 0 : arity + 1;
        while (i < arity && keys[at + 1 + i] === children[i]) i++;
        if (i === arity) return e >>> 5;
      }
      slot = (slot + 1) & mask;
    }
    const node = this.#insert(head, into, slot, h);
    for (let i = 0; i < arity; i++) this.#addUse(4 * node + 1 + i, children[i]!);
    this.#makeRoom();
    return node;
  }

  /** The node with this head and these children, or 0. */
  lookup(head: HeadId, children: readonly NodeId[]): NodeId {
    let h = mix(startHash, head);
    const canonical = children.map((child) => this.find(child));
    for (const child of canonical) h = mix(h, child);
    const mask = this.table.length - 1;
    for (let slot = h >>> this.#shift; this.table[slot] !== 0; slot = (slot + 1) & mask) {
      const at = (this.table[slot]! >>> 5) << 2;
      if (this.keys[at] !== head) continue;
      if (canonical.every((child, i) => this.keys[at + 1 + i] === child)) return at >> 2;
    }
    return 0;
  }

  #insert(head: HeadId, into: NodeId, slot: number, hash: number): NodeId {
    const node = this.used;
    const groups = (this.vocabulary.headArity[head]! + 4) >> 2;
    if (node + groups > this.parent.length) this.reserve(groups);
    this.used = node + groups;
    for (let i = 1; i < groups; i++) this.parent[node + i] = ~node;
    const { keys, links, parent, records } = this;
    keys[4 * node] = head;
    links[4 * node] = this.now;
    if (into === 0) {
      parent[node] = node;
      records[4 * node + nextMember] = node;
      records[4 * node + weight] = 1;
      this.classCount++;
    } else {
      parent[node] = into;
      records[4 * node + nextMember] = records[4 * into + nextMember]!;
      records[4 * into + nextMember] = node;
      records[4 * into + weight] = records[4 * into + weight]! + 1;
    }
    this.liveNodes++;
    this.#occupy(slot, (node << 5) | (hash & 31));
    return node;
  }

  #occupy(slot: number, entry: number): void {
    this.table[slot] = entry;
    this.#occupied++;
  }

  /** Called when the node is whole: a new table reads its cells. */
  #makeRoom(): void {
    const { length } = this.table;
    // Unless the new table would be half empty without its stale entries, it is larger.
    if (this.#occupied > length * mostLoad) {
      this.#rehash(this.liveNodes * 2 > length ? length * 2 : length);
    }
  }

  #addUse(cell: number, child: NodeId): void {
    const { links, records } = this;
    this.keys[cell] = child;
    const record = 4 * child;
    const first = records[record + firstUse]!;
    links[cell] = first;
    records[record + firstUse] = cell;
    if (first === 0) records[record + lastUse] = cell;
    records[record + weight] = records[record + weight]! + 1;
  }

  /** Room at once for about so many more nodes: growing step by step copies more. */
  expect(nodes: number): void {
    const need = this.used + nodes;
    if (need > this.parent.length) this.#resize(need);
    let { length } = this.table;
    while (length * mostLoad < this.liveNodes + nodes) length *= 2;
    if (length > this.table.length) this.#rehash(length);
  }

  /** Room for this many more groups. */
  reserve(groups: number): void {
    const need = this.used + groups;
    if (need <= this.parent.length) return;
    invariant(need < mostGroups, () => `an e-graph of ${need} groups of cells`);
    this.#resize(Math.max(need, this.parent.length * 2));
  }

  #resize(groups: number): void {
    const size = Math.min(mostGroups, groups);
    this.keys = grown(this.keys, size * 4);
    this.links = grown(this.links, size * 4);
    this.parent = grown(this.parent, size);
    this.records = grown(this.records, size * 4);
  }

  /** A new table of this size, without the entries that are stale. */
  #rehash(wanted: number): void {
    this.table = new Int32Array(wanted);
    this.#shift = 32 - Math.log2(wanted);
    this.#occupied = 0;
    const { keys, table, parent } = this;
    const { headArity } = this.vocabulary;
    const mask = wanted - 1;
    for (let node = 1; node < this.used; node++) {
      const head = keys[4 * node]!;
      if (parent[node]! < 0 || head < 0) continue;
      const h = this.#hashOf(node, head, headArity[head]!);
      let slot = h >>> this.#shift;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = (node << 5) | (h & 31);
      this.#occupied++;
    }
  }

  #hashOf(node: NodeId, head: HeadId, arity: number): number {
    let h = mix(startHash, head);
    for (let i = 1; i <= arity; i++) h = mix(h, this.keys[4 * node + i]!);
    return h;
  }

  /** The root with more members and uses: the one to keep. */
  heavier(a: NodeId, b: NodeId): NodeId {
    return this.records[4 * a + weight]! >= this.records[4 * b + weight]! ? a : b;
  }

  /** Makes two classes one. The uses of the lost one wait in the worklist for `repairNext`. */
  unite(keep: NodeId, lose: NodeId): void {
    const { links, records } = this;
    this.#touchMembers(lose);
    this.parent[lose] = keep;
    const next = records[4 * keep + nextMember]!;
    records[4 * keep + nextMember] = records[4 * lose + nextMember]!;
    records[4 * lose + nextMember] = next;
    const first = records[4 * lose + firstUse]!;
    if (first !== 0) {
      const last = records[4 * lose + lastUse]!;
      this.#dirty.push(first, last, this.cause);
      const mine = records[4 * keep + firstUse]!;
      links[last] = mine;
      if (mine === 0) records[4 * keep + lastUse] = last;
      records[4 * keep + firstUse] = first;
    }
    records[4 * keep + weight] = records[4 * keep + weight]! + records[4 * lose + weight]!;
    this.classCount--;
  }

  #touchMembers(root: NodeId): void {
    let node = root;
    do {
      this.touch(node);
      node = this.nextMember(node);
    } while (node !== root);
  }

  /** The next node of the class, copies and hidden ones too: a ring. */
  nextMember(node: NodeId): NodeId {
    return this.records[4 * node + nextMember]!;
  }

  /** The search for news compares it (`hiddenStamp`: it is in no search). */
  stamp(node: NodeId): number {
    return this.links[4 * node]!;
  }

  /** Marks the node as news for the next search. */
  touch(node: NodeId): void {
    if (this.links[4 * node] !== hiddenStamp) this.links[4 * node] = this.now;
  }

  /** Takes the node out of search and extraction; equal nodes still find it. */
  hide(node: NodeId): void {
    if (!this.isHidden(node) && !this.isDead(node)) this.hiddenNodes++;
    this.links[4 * node] = hiddenStamp;
  }

  get isClean(): boolean {
    return this.#dirty.length === 0;
  }

  /**
   * Puts the uses of one lost class in canonical form. `onCongruent` is told of each node that now
   * equals another, with the dead one second; it unites their classes. Gives the work done.
   */
  repairNext(onCongruent: (kept: NodeId, dead: NodeId) => void): number {
    this.cause = this.#dirty.pop()!;
    const last = this.#dirty.pop()!;
    let cell = this.#dirty.pop()!;
    let work = 1;
    for (;;) {
      const next = this.links[cell]!;
      const node = this.ownerOf(cell);
      if (this.keys[4 * node]! >= 0) {
        work++;
        const same = this.#recanonicalise(node);
        if (same !== node) {
          this.keys[4 * node] = ~this.keys[4 * node]!;
          this.liveNodes--;
          if (this.isHidden(node)) this.hiddenNodes--;
          onCongruent(same, node);
        }
      }
      if (cell === last) return work;
      cell = next;
    }
  }

  /** Rewrites the children to roots; gives another node that has the same key now, or this one. */
  #recanonicalise(node: NodeId): NodeId {
    const { keys, table } = this;
    const at = 4 * node;
    const head = keys[at]!;
    const arity = this.vocabulary.headArity[head]!;
    let h = mix(startHash, head);
    for (let i = 1; i <= arity; i++) {
      const child = this.find(keys[at + i]!);
      keys[at + i] = child;
      h = mix(h, child);
    }
    this.touch(node);
    const mask = table.length - 1;
    let slot = h >>> this.#shift;
    for (let e = table[slot]!; e !== 0; e = table[slot]!) {
      if ((e & 31) === (h & 31)) {
        const other = (e >>> 5) << 2;
        let i = 0;
        while (i <= arity && keys[other + i] === keys[at + i]) i++;
        if (i > arity) return other >> 2;
      }
      slot = (slot + 1) & mask;
    }
    this.#occupy(slot, (node << 5) | (h & 31));
    this.#makeRoom();
    return node;
  }
}

const startHash = 0x2545f491;

function mix(h: number, x: number): number {
  const product = Math.imul(h ^ x, 0x9e3779b1);
  return product ^ (product >>> 15);
}

function grown(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(array);
  return larger;
}
