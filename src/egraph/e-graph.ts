/**
 * The e-graph: a set of terms and of equalities between them, closed under congruence once `rebuild`
 * has run. In go operators with payloads over ids; out come ids, classes and their data. The arrays
 * are node-store.ts, the reasons proof-forest.ts, the knowledge analysis.ts; rules run over it in
 * saturate.ts.
 */
import { invariant } from "../support/invariant.ts";
import { type Analysis, Contradiction } from "./analysis.ts";
import { type NodeId, NodeStore } from "./node-store.ts";
import { congruenceReason, ProofForest } from "./proof-forest.ts";
import { type HeadId, type OpId, type Payload, type PayloadId, Vocabulary } from "./vocabulary.ts";

export interface EGraphOptions<D> {
  readonly analysis?: Analysis<D>;
  /** Keep reasons, for explain.ts. */
  readonly proofs?: boolean;
  /** Shared, where several graphs use one set of names. */
  readonly vocabulary?: Vocabulary;
}

/** Two facts about one class that cannot both hold. */
export interface Inconsistency {
  readonly message: string;
  readonly id: NodeId;
  /** The rule (or named union) whose step led there. */
  readonly cause: string;
}

export class EGraph<D = undefined> {
  readonly vocabulary: Vocabulary;
  readonly store: NodeStore;
  readonly forest: ProofForest | undefined;
  readonly #analysis: Analysis<D> | undefined;
  readonly #data: (D | undefined)[] = [];
  /** Nodes whose class must take in what the node says now. */
  readonly #stale: NodeId[] = [];
  /** 1 for nodes that are in `#stale`. */
  #isStale = new Uint8Array(1 << 10);
  readonly #modified: NodeId[] = [];
  readonly #causes: string[] = ["input"];
  readonly #causeIds = new Map<string, number>([["input", 0]]);
  #inconsistency: Inconsistency | undefined;

  constructor(options: EGraphOptions<D> = {}) {
    this.vocabulary = options.vocabulary ?? new Vocabulary();
    this.store = new NodeStore(this.vocabulary);
    this.forest = options.proofs ? new ProofForest() : undefined;
    this.#analysis = options.analysis;
  }

  // Reading.

  /** The id that stands for the class of a node. */
  find(id: NodeId): NodeId {
    return this.store.find(id);
  }

  equal(a: NodeId, b: NodeId): boolean {
    return this.find(a) === this.find(b);
  }

  /** Nodes that are not copies of others; hidden ones count. */
  get nodeCount(): number {
    return this.store.liveNodes;
  }

  /** Nodes that searches and extraction see. */
  get visibleCount(): number {
    return this.store.liveNodes - this.store.hiddenNodes;
  }

  get classCount(): number {
    return this.store.classCount;
  }

  get bytes(): number {
    return this.store.bytes + (this.forest?.bytes ?? 0);
  }

  get inconsistency(): Inconsistency | undefined {
    return this.#inconsistency;
  }

  get hasAnalysis(): boolean {
    return this.#analysis !== undefined;
  }

  data(id: NodeId): D {
    return this.#data[this.find(id)] as D;
  }

  op(node: NodeId): OpId {
    return this.vocabulary.headOp[this.store.head(node)]!;
  }

  opName(node: NodeId): string {
    return this.vocabulary.opName(this.op(node));
  }

  payload(node: NodeId): PayloadId {
    return this.vocabulary.headPayload[this.store.head(node)]!;
  }

  payloadValue(node: NodeId): unknown {
    return this.vocabulary.payloadValue(this.payload(node));
  }

  /** Classes of the children. */
  children(node: NodeId): NodeId[] {
    const { keys } = this.store;
    return Array.from({ length: this.store.arity(node) }, (_, i) =>
      this.find(keys[4 * node + 1 + i]!),
    );
  }

  child(node: NodeId, index: number): NodeId {
    return this.find(this.store.keys[4 * node + 1 + index]!);
  }

  /** The nodes of a class, without hidden ones and copies, in the order of their making. */
  nodes(id: NodeId): NodeId[] {
    const root = this.find(id);
    const members: NodeId[] = [];
    let node = root;
    do {
      if (!this.store.isDead(node) && !this.store.isHidden(node)) members.push(node);
      node = this.store.nextMember(node);
    } while (node !== root);
    return members.sort((a, b) => a - b);
  }

  /** The roots of all classes, ascending. */
  classes(): NodeId[] {
    const roots: NodeId[] = [];
    const { parent, used } = this.store;
    for (let node = 1; node < used; node++) if (parent[node] === node) roots.push(node);
    return roots;
  }

  // Writing.

  /** Adds a node, or finds the equal one. */
  add(op: string, children: readonly NodeId[] = [], payload: Payload | string = ""): NodeId {
    const { vocabulary } = this;
    const head = vocabulary.head(vocabulary.op(op), vocabulary.payload(payload), children.length);
    return this.addHead(head, children);
  }

  addHead(head: HeadId, children: readonly NodeId[]): NodeId {
    const before = this.store.used;
    const node = this.store.addMany(head, [...children], 0);
    if (node >= before) this.noteAdded(node, children);
    return node;
  }

  /** The node that `add` would find, or undefined where it would make one. */
  lookup(op: string, children: readonly NodeId[] = [], payload: Payload | string = "") {
    const { vocabulary } = this;
    const head = vocabulary.head(vocabulary.op(op), vocabulary.payload(payload), children.length);
    const node = this.store.lookup(head, children);
    return node === 0 ? undefined : node;
  }

  /** States that two nodes are equal, as a fact with a name; whether that was news. */
  union(a: NodeId, b: NodeId, name = "given"): boolean {
    this.setCause(name);
    const { forest } = this;
    return this.unite(a, b, () => {
      const record = forest!.record(forest!.step("given", name), a, b);
      forest!.close(record);
      return record;
    });
  }

  /**
   * States that `node`, with `constants` in place of its children, evaluates to `result`: the
   * constants are equal to the children one by one.
   */
  unionEvaluated(
    node: NodeId,
    constants: readonly NodeId[],
    result: NodeId,
    name: string,
  ): boolean {
    const { forest } = this;
    const own = this.children(node);
    invariant(
      constants.length === own.length && constants.every((c, i) => this.find(c) === own[i]),
      () => `the constants of "${name}" are not known to equal the children`,
    );
    return this.unite(node, result, () => {
      const record = forest!.record(forest!.step("evaluated", name), node, result);
      for (const constant of constants) forest!.extend(constant);
      forest!.close(record);
      return record;
    });
  }

  /** Takes a node out of search and extraction: it stays equal to its class. */
  hide(node: NodeId): void {
    this.store.hide(node);
  }

  /** Restores congruence and propagates data; gives the work done. */
  rebuild(): number {
    let work = 0;
    const join = (kept: NodeId, dead: NodeId) => {
      this.unite(kept, dead, () => congruenceReason);
    };
    do {
      while (!this.store.isClean) work += this.store.repairNext(join);
      work += this.#propagate();
    } while (!this.store.isClean);
    return work;
  }

  // For the rules at work (apply-*.ts).

  /** Names what the following steps are due to. */
  setCause(name: string): void {
    let id = this.#causeIds.get(name);
    if (id === undefined) {
      id = this.#causes.push(name) - 1;
      this.#causeIds.set(name, id);
    }
    this.store.cause = id;
  }

  /** A node was made over these ids, in a class of its own. */
  noteAdded(node: NodeId, asked: readonly NodeId[]): void {
    this.forest?.addNode(node, this.store.head(node), asked);
    if (this.#analysis === undefined) return;
    this.#data[node] = this.#analysis.make(node, this);
    this.#modified.push(node);
    this.#settle();
  }

  /** A node was made in the class of `matched`, which it equals for a reason (asked with proofs on). */
  noteJoined(
    node: NodeId,
    asked: readonly NodeId[],
    { matched, reason }: { readonly matched: NodeId; readonly reason: () => number },
  ): void {
    if (this.forest) {
      this.forest.addNode(node, this.store.head(node), asked);
      this.forest.link(node, matched, reason());
    }
    if (this.#analysis === undefined) return;
    this.#joinInto(this.find(matched), this.#analysis.make(node, this));
    this.#modified.push(node);
    this.#settle();
  }

  /** Unites the classes of two nodes unless they are one; `reason` is asked only with proofs on. */
  unite(a: NodeId, b: NodeId, reason: () => number): boolean {
    const { store } = this;
    const left = store.find(a);
    const right = store.find(b);
    if (left === right) return false;
    const keep = store.heavier(left, right);
    if (this.forest) this.forest.link(keep === left ? b : a, keep === left ? a : b, reason());
    store.unite(keep, keep === left ? right : left);
    if (this.#analysis) this.#mergeData(keep, keep === left ? right : left);
    this.#settle();
    return true;
  }

  #mergeData(keep: NodeId, lose: NodeId): void {
    const lost = this.#data[lose] as D;
    this.#data[lose] = undefined;
    // After a contradiction data mean nothing.
    if (this.#inconsistency) return;
    const joined = this.#analysis!.join(this.#data[keep] as D, lost);
    if (joined instanceof Contradiction) {
      this.#noteContradiction(keep, joined);
      return;
    }
    const unchanged = this.#same(joined, this.#data[keep] as D) && this.#same(joined, lost);
    this.#data[keep] = joined;
    if (!unchanged) this.#dataChanged(keep);
    this.#modified.push(keep);
  }

  #joinInto(root: NodeId, data: D): void {
    const joined = this.#analysis!.join(this.#data[root] as D, data);
    if (joined instanceof Contradiction) {
      this.#noteContradiction(root, joined);
      return;
    }
    if (this.#same(joined, this.#data[root] as D)) return;
    this.#data[root] = joined;
    this.#dataChanged(root);
    this.#modified.push(root);
  }

  #same(a: D, b: D): boolean {
    return this.#analysis!.equals ? this.#analysis!.equals(a, b) : Object.is(a, b);
  }

  /** Users of the class compute anew, and matches that saw its data are news again. */
  #dataChanged(root: NodeId): void {
    const { store } = this;
    if (this.#isStale.length < store.used) {
      const larger = new Uint8Array(2 * store.used);
      larger.set(this.#isStale);
      this.#isStale = larger;
    }
    for (let cell = store.firstUseOf(root); cell !== 0; cell = store.links[cell]!) {
      const user = store.ownerOf(cell);
      if (store.isDead(user)) continue;
      store.touch(user);
      if (this.#isStale[user] === 1) continue;
      this.#isStale[user] = 1;
      this.#stale.push(user);
    }
    let member = root;
    do {
      store.touch(member);
      member = store.nextMember(member);
    } while (member !== root);
  }

  #noteContradiction(id: NodeId, { message }: Contradiction): void {
    this.#modified.length = 0;
    this.#inconsistency ??= { message, id, cause: this.#causes[this.store.cause]! };
  }

  #propagate(): number {
    let work = 0;
    for (let node = this.#stale.pop(); node !== undefined; node = this.#stale.pop()) {
      work++;
      this.#isStale[node] = 0;
      if (this.store.isDead(node) || this.#inconsistency) continue;
      this.#joinInto(this.find(node), this.#analysis!.make(node, this));
      this.#settle();
    }
    return work;
  }

  #settling = false;

  /** Lets the analysis modify the classes that changed; steps it takes itself wait their turn. */
  #settle(): void {
    if (this.#settling || this.#modified.length === 0) return;
    const modify = this.#analysis?.modify;
    invariant(modify || this.#analysis, () => "classes changed without an analysis");
    if (!modify) {
      this.#modified.length = 0;
      return;
    }
    this.#settling = true;
    // First come, first served: what is known of a child is made a node before its users ask for it.
    for (let i = 0; i < this.#modified.length; i++) {
      modify.call(this.#analysis, this.find(this.#modified[i]!), this);
    }
    this.#modified.length = 0;
    this.#settling = false;
  }
}
