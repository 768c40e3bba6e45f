/**
 * The e-graph laid out for one search: nodes by operator, and nodes by class sorted by operator, both
 * ascending by id, so that matchers read runs of integers and rows come in one order on every machine.
 * Taken after a rebuild; valid until the next step. Hidden nodes and copies are not in it.
 */
import { invariant } from "../support/invariant.ts";
import { hiddenStamp, type NodeStore } from "./node-store.ts";

export interface Snapshot {
  readonly store: NodeStore;
  /** Nodes by operator: those of `op` are `opRows[opStart[op]]` up to `opStart[op + 1]`. */
  readonly opStart: Int32Array;
  readonly opRows: Int32Array;
  /** Nodes by class, by the id of its root. */
  readonly classStart: Int32Array;
  readonly classRows: Int32Array;
  /** A bit for each operator of the class (operator modulo 32). */
  readonly opMask: Int32Array;
  /** The latest stamp among the members of a class. */
  readonly freshest: Int32Array;
  /** Roots, ascending. */
  readonly roots: Int32Array;
  readonly nodeCount: number;
  /** By head: 1 where a node has it. */
  readonly hasHead: Uint8Array;
}

export function takeSnapshot(store: NodeStore): Snapshot {
  invariant(store.isClean, () => "a search of an e-graph that needs rebuilding");
  const { used } = store;
  const opCount = store.vocabulary.opCount;
  const opStart = new Int32Array(opCount + 1);
  const classStart = new Int32Array(used + 1);
  const hasHead = new Uint8Array(store.vocabulary.headOp.length);
  const rootCount = countRows(store, opStart, classStart, hasHead);
  const nodeCount = accumulate(opStart);
  accumulate(classStart);
  const opRows = new Int32Array(nodeCount);
  const roots = new Int32Array(rootCount);
  fillByOp(store, { fill: opStart.slice(), opRows, roots });
  const classRows = new Int32Array(nodeCount);
  const opMask = new Int32Array(used);
  const freshest = new Int32Array(used);
  fillByClass(store, opRows, { fill: classStart.slice(), classRows, opMask, freshest });
  const byOp = { opStart, opRows, hasHead };
  return { store, ...byOp, classStart, classRows, opMask, freshest, roots, nodeCount };
}

/** Counts at index + 1, and every node's parent set to its root. Gives the number of classes. */
function countRows(
  store: NodeStore,
  opStart: Int32Array,
  classStart: Int32Array,
  hasHead: Uint8Array,
): number {
  const { keys, parent, links, used } = store;
  const { headOp } = store.vocabulary;
  let roots = 0;
  for (let node = 1; node < used; node++) {
    if (parent[node]! < 0) continue;
    const root = store.find(node);
    parent[node] = root;
    if (root === node) roots++;
    const head = keys[4 * node]!;
    if (head < 0 || links[4 * node] === hiddenStamp) continue;
    hasHead[head] = 1;
    const op = headOp[head]!;
    opStart[op + 1] = opStart[op + 1]! + 1;
    classStart[root + 1] = classStart[root + 1]! + 1;
  }
  return roots;
}

/** Counts to starts; gives the total. */
function accumulate(starts: Int32Array): number {
  let sum = 0;
  for (let i = 1; i < starts.length; i++) {
    sum += starts[i]!;
    starts[i] = sum;
  }
  return sum;
}

function fillByOp(
  store: NodeStore,
  into: { fill: Int32Array; opRows: Int32Array; roots: Int32Array },
): void {
  const { keys, parent, links, used } = store;
  const { headOp } = store.vocabulary;
  const { fill, opRows, roots } = into;
  let rootCount = 0;
  for (let node = 1; node < used; node++) {
    if (parent[node]! < 0) continue;
    if (parent[node] === node) roots[rootCount++] = node;
    const head = keys[4 * node]!;
    if (head < 0 || links[4 * node] === hiddenStamp) continue;
    const op = headOp[head]!;
    const at = fill[op]!;
    opRows[at] = node;
    fill[op] = at + 1;
  }
}

function fillByClass(
  store: NodeStore,
  opRows: Int32Array,
  into: { fill: Int32Array; classRows: Int32Array; opMask: Int32Array; freshest: Int32Array },
): void {
  const { keys, parent, links } = store;
  const { headOp } = store.vocabulary;
  const { fill, classRows, opMask, freshest } = into;
  for (let i = 0; i < opRows.length; i++) {
    const node = opRows[i]!;
    const root = parent[node]!;
    const at = fill[root]!;
    classRows[at] = node;
    fill[root] = at + 1;
    opMask[root] = opMask[root]! | (1 << (headOp[keys[4 * node]!]! & 31));
    const stamp = links[4 * node]!;
    if (stamp > freshest[root]!) freshest[root] = stamp;
  }
}
