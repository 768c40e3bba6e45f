/**
 * Why two nodes are equal: reads the proof forest and writes a proof (proof.ts). Along the path between
 * the nodes each edge becomes a lemma: congruence from its children's proofs, or an instance of a rule with
 * the steps that lead from the terms as they were added to that instance and back. Paths only use
 * edges older than what they explain, so it ends. Pairs wait on an own stack, so that deep terms do.
 */
import { invariant } from "../support/invariant.ts";
import type { EGraph } from "./e-graph.ts";
import type { NodeId } from "./node-store.ts";
import { atomCount, type Pattern } from "./pattern.ts";
import { type Lemma, type Link, type Proof, type ProofTerm, turned } from "./proof.ts";
import { congruenceReason, type ProofForest } from "./proof-forest.ts";
import type { Rule } from "./rule.ts";

/** The proof that two nodes are equal, or undefined when they are not. The graph must keep proofs. */
export function explain<D>(
  graph: EGraph<D>,
  rules: readonly Rule<D>[],
  a: NodeId,
  b: NodeId,
): Proof | undefined {
  if (!graph.equal(a, b)) return undefined;
  return new Explanation(graph, rules).prove(a, b);
}

/** Two nodes whose equality is needed. */
type Wanted = readonly [NodeId, NodeId];
/** Work that asks for pairs and is given their links. */
type Work<T> = Generator<Wanted, T, Link>;

/** A term that stands for a node, and the way from the node's own term to it. */
interface Stand {
  readonly term: number;
  readonly link: Link;
}

const same: Link = { lemma: -1, reversed: false };

class Explanation<D> {
  readonly #graph: EGraph<D>;
  readonly #forest: ProofForest;
  readonly #rules: ReadonlyMap<string, Rule<D>>;
  readonly #terms: ProofTerm[] = [];
  readonly #termPlaces = new Map<string, number>();
  readonly #termOfNode = new Map<NodeId, number>();
  readonly #lemmas: Lemma[] = [];
  readonly #known = new Map<string, Link>();

  constructor(graph: EGraph<D>, rules: readonly Rule<D>[]) {
    const { forest } = graph;
    invariant(forest, () => "the graph keeps no proofs");
    this.#graph = graph;
    this.#forest = forest;
    this.#rules = new Map(rules.map((rule) => [rule.name, rule]));
  }

  prove(a: NodeId, b: NodeId): Proof {
    const by = this.#run([a, b]);
    const [left, right] = [this.#term(a), this.#term(b)];
    return { terms: this.#terms, lemmas: this.#lemmas, left, right, by };
  }

  /** Runs the pair and all that it asks for, innermost first. */
  #run(goal: Wanted): Link {
    const stack = [{ pair: goal, work: this.#path(goal) }];
    let answer: Link = same;
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const step = top.work.next(answer);
      if (step.done) {
        this.#known.set(pairKey(top.pair), step.value);
        stack.pop();
        answer = step.value;
        continue;
      }
      const known = this.#lookUp(step.value);
      if (known) answer = known;
      else stack.push({ pair: step.value, work: this.#path(step.value) });
    }
    return answer;
  }

  #lookUp([a, b]: Wanted): Link | undefined {
    if (this.#term(a) === this.#term(b)) return same;
    const known = this.#known.get(pairKey([a, b]));
    if (known) return known;
    const back = this.#known.get(pairKey([b, a]));
    return back && turned(back);
  }

  *#path([a, b]: Wanted): Work<Link> {
    const path = this.#forest.path(a, b);
    invariant(path, () => `no reason joins ${a} and ${b}`);
    const links: Link[] = [];
    for (const [i, reason] of path.reasons.entries()) {
      const [x, y] = [path.nodes[i]!, path.nodes[i + 1]!];
      links.push(yield* this.#edge(x, y, reason));
    }
    return this.#chain(this.#term(a), links);
  }

  /** From the term of x to the term of y. */
  *#edge(x: NodeId, y: NodeId, reason: number): Work<Link> {
    if (reason === congruenceReason) {
      const children: Link[] = [];
      for (let i = 0; i < this.#arity(x); i++) {
        children.push(yield [this.#forest.originalChild(x, i), this.#forest.originalChild(y, i)]);
      }
      return this.#congruence(this.#term(x), children);
    }
    const key = `reason ${reason}`;
    const [step, left, right, ...rest] = this.#forest.readRecord(reason);
    let link = this.#known.get(key);
    if (!link) {
      const { kind, name } = this.#forest.steps[step!]!;
      if (kind === "rule") link = yield* this.#ruleStep(name, [left!, right!], rest);
      else if (kind === "evaluated") link = yield* this.#evaluation(name, [left!, right!], rest);
      else link = this.#add({ kind, name, left: this.#term(left!), right: this.#term(right!) });
      this.#known.set(key, link);
    }
    return x === left ? link : turned(link);
  }

  *#evaluation(name: string, [left, right]: Wanted, constants: readonly NodeId[]): Work<Link> {
    const children: Link[] = [];
    for (const [i, constant] of constants.entries()) {
      children.push(yield [this.#forest.originalChild(left, i), constant]);
    }
    const link = this.#congruence(this.#term(left), children);
    const from = this.#end(this.#term(left), link);
    const value = this.#add({ kind: "evaluated", name, left: from, right: this.#term(right) });
    return this.#chain(this.#term(left), [link, value]);
  }

  *#ruleStep(name: string, [left, right]: Wanted, rest: readonly number[]): Work<Link> {
    const rule = this.#rules.get(name);
    invariant(rule, () => `no rule "${name}" is at hand to explain with`);
    const atoms = rule.left.reduce((sum, pattern) => sum + atomCount(pattern), 0);
    const [side, ...nodes] = rest.slice(0, 1 + atoms);
    const instance = new Instance(nodes);
    let first = same;
    let from = 0;
    for (const [i, pattern] of rule.left.entries()) {
      const stand = yield* this.#leftSide(pattern, instance.nextNode(), instance);
      if (i !== side) continue;
      first = stand.link;
      from = stand.term;
    }
    const entries = readJournal(rest.slice(1 + atoms));
    const made = rule.right
      ? yield* this.#staticRight(rule.right, side!, { instance, entries, right })
      : yield* this.#builtRight(entries, right);
    for (const payload of Object.keys(rule.compute)) {
      this.#notePayload(rule.right ?? [], payload, instance, made.term, side!);
    }
    const lemma = this.#add({
      kind: "rule",
      rule: name,
      side: side!,
      classes: Object.fromEntries([...instance.stands].map(([v, stand]) => [v, stand.term])),
      payloads: Object.fromEntries(instance.payloads),
      left: from,
      right: made.term,
    });
    return this.#chain(this.#term(left), [first, lemma, turned(made.link)]);
  }

  /** The instance of a left pattern that the node matched, in the order of the atoms. */
  *#leftSide(pattern: Pattern, node: NodeId, instance: Instance): Work<Stand> {
    if (pattern.kind === "variable") return instance.bind(pattern.name, node, this.#own(node));
    const children: Link[] = [];
    for (let i = 0; i < this.#arity(node); i++) {
      const child = pattern.children[i];
      const own = this.#forest.originalChild(node, i);
      if (!child) children.push(same);
      else if (child.kind === "variable") {
        const bound = instance.nodes.get(child.name);
        if (bound === undefined) {
          instance.bind(child.name, own, this.#own(own));
          children.push(same);
        } else children.push(yield* this.#toStand(own, bound, instance.stands.get(child.name)!));
      } else {
        const inner = instance.nextNode();
        const stand = yield* this.#leftSide(child, inner, instance);
        children.push(yield* this.#toStand(own, inner, stand));
      }
    }
    const { payload } = pattern;
    if (payload.kind === "variable") instance.payloads.set(payload.name, this.#payloadOf(node));
    const link = this.#congruence(this.#term(node), children);
    const stand = { term: this.#end(this.#term(node), link), link };
    return pattern.name === undefined ? stand : instance.bind(pattern.name, node, stand);
  }

  /** From the term of `node` to what stands for `other`, which it equals. */
  *#toStand(node: NodeId, other: NodeId, stand: Stand): Work<Link> {
    const link = yield [node, other];
    return this.#chain(this.#term(node), [link, stand.link]);
  }

  /** The instance of a right pattern; its link leads from the term of `right` to it. */
  *#staticRight(
    patterns: readonly Pattern[],
    side: number,
    at: { instance: Instance; entries: readonly Entry[]; right: NodeId },
  ): Work<Stand> {
    const before = patterns.slice(0, side).reduce((sum, p) => sum + nodeCount(p), 0);
    const cursor = { next: before };
    const pattern = patterns[side]!;
    if (pattern.kind === "variable") {
      const stand = at.instance.stands.get(pattern.name)!;
      const node = at.instance.nodes.get(pattern.name)!;
      return { term: stand.term, link: yield* this.#toStand(at.right, node, stand) };
    }
    return (yield* this.#madeNode(pattern, at, cursor)).stand;
  }

  *#madeNode(
    pattern: Pattern & { kind: "node" },
    at: { instance: Instance; entries: readonly Entry[] },
    cursor: { next: number },
  ): Work<{ node: NodeId; stand: Stand }> {
    const parts: { node: NodeId; stand: Stand }[] = [];
    for (const child of pattern.children) {
      if (child.kind === "node") parts.push(yield* this.#madeNode(child, at, cursor));
      else {
        const { nodes, stands } = at.instance;
        parts.push({ node: nodes.get(child.name)!, stand: stands.get(child.name)! });
      }
    }
    const { node } = at.entries[cursor.next++]!;
    const links: Link[] = [];
    for (const [i, part] of parts.entries()) {
      links.push(yield* this.#toStand(this.#forest.originalChild(node, i), part.node, part.stand));
    }
    const link = this.#congruence(this.#term(node), links);
    return { node, stand: { term: this.#end(this.#term(node), link), link } };
  }

  /** What a rule built, as it asked for it. */
  *#builtRight(entries: readonly Entry[], right: NodeId): Work<Stand> {
    const stands = new Map<NodeId, Stand>();
    for (const { node, children } of entries) {
      const links: Link[] = [];
      for (const [i, child] of children.entries()) {
        const stand = stands.get(child) ?? this.#own(child);
        links.push(yield* this.#toStand(this.#forest.originalChild(node, i), child, stand));
      }
      const link = this.#congruence(this.#term(node), links);
      stands.set(node, { term: this.#end(this.#term(node), link), link });
    }
    return stands.get(right) ?? this.#own(right);
  }

  /** A computed payload is read off the term that was made with it. */
  #notePayload(
    patterns: readonly Pattern[],
    name: string,
    instance: Instance,
    term: number,
    side: number,
  ): void {
    const find = (pattern: Pattern, at: number): void => {
      if (pattern.kind === "variable") return;
      const { payload, children } = this.#terms[at]!;
      if (pattern.payload.kind === "variable" && pattern.payload.name === name) {
        instance.payloads.set(name, payload);
      }
      for (const [i, child] of pattern.children.entries()) find(child, children[i]!);
    };
    if (patterns[side]) find(patterns[side], term);
  }

  #own(node: NodeId): Stand {
    return { term: this.#term(node), link: same };
  }

  #arity(node: NodeId): number {
    return this.#graph.vocabulary.headArity[this.#forest.originalHead(node)]!;
  }

  #payloadOf(node: NodeId): string {
    const { vocabulary } = this.#graph;
    return vocabulary.payloadKey(vocabulary.headPayload[this.#forest.originalHead(node)]!);
  }

  /** The term that a node was made as. */
  #term(node: NodeId): number {
    const { vocabulary } = this.#graph;
    const stack = [node];
    while (stack.length > 0) {
      const at = stack[stack.length - 1]!;
      const own = Array.from({ length: this.#arity(at) }, (_, i) =>
        this.#forest.originalChild(at, i),
      );
      const missing = own.filter((child) => !this.#termOfNode.has(child));
      if (this.#termOfNode.has(at)) stack.pop();
      else if (missing.length > 0) stack.push(...missing);
      else {
        stack.pop();
        const op = vocabulary.opName(vocabulary.headOp[this.#forest.originalHead(at)]!);
        const children = own.map((child) => this.#termOfNode.get(child)!);
        this.#termOfNode.set(at, this.#intern({ op, payload: this.#payloadOf(at), children }));
      }
    }
    return this.#termOfNode.get(node)!;
  }

  #intern(term: ProofTerm): number {
    const key = JSON.stringify([term.op, term.payload, term.children]);
    const known = this.#termPlaces.get(key);
    if (known !== undefined) return known;
    this.#termPlaces.set(key, this.#terms.length);
    return this.#terms.push(term) - 1;
  }

  #add(lemma: Lemma): Link {
    return { lemma: this.#lemmas.push(lemma) - 1, reversed: false };
  }

  /** The term that a link leads to from this one. */
  #end(from: number, { lemma, reversed }: Link): number {
    if (lemma < 0) return from;
    const { left, right } = this.#lemmas[lemma]!;
    return reversed ? left : right;
  }

  #congruence(left: number, children: readonly Link[]): Link {
    if (children.every(({ lemma }) => lemma < 0)) return same;
    const term = this.#terms[left]!;
    const changed = children.map((link, i) => this.#end(term.children[i]!, link));
    const right = this.#intern({ ...term, children: changed });
    return this.#add({ kind: "congruence", left, right, children });
  }

  #chain(left: number, links: readonly Link[]): Link {
    const used = links.filter(({ lemma }) => lemma >= 0);
    if (used.length <= 1) return used[0] ?? same;
    const right = used.reduce((at, link) => this.#end(at, link), left);
    return this.#add({ kind: "chain", left, right, links: used });
  }
}

/** What the variables of a rule stand for in one step. */
class Instance {
  readonly nodes = new Map<string, NodeId>();
  readonly stands = new Map<string, Stand>();
  readonly payloads = new Map<string, string>();
  readonly #matched: readonly NodeId[];
  #next = 0;

  constructor(matched: readonly NodeId[]) {
    this.#matched = matched;
  }

  /** Matched nodes come depth first, as the patterns have them. */
  nextNode(): NodeId {
    return this.#matched[this.#next++]!;
  }

  bind(name: string, node: NodeId, stand: Stand): Stand {
    if (this.nodes.has(name)) return stand;
    this.nodes.set(name, node);
    this.stands.set(name, stand);
    return stand;
  }
}

/** A node that a rule made, with the children as it asked for them. */
interface Entry {
  readonly node: NodeId;
  readonly children: readonly NodeId[];
}

function readJournal(cells: readonly number[]): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < cells.length; ) {
    const arity = cells[at + 2]!;
    entries.push({ node: cells[at]!, children: cells.slice(at + 3, at + 3 + arity) });
    at += 3 + arity;
  }
  return entries;
}

function nodeCount(pattern: Pattern): number {
  if (pattern.kind === "variable") return 0;
  return pattern.children.reduce((sum, child) => sum + nodeCount(child), 1);
}

function pairKey([a, b]: Wanted): string {
  return `${a} ${b}`;
}
