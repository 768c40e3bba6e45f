/**
 * Makes an extraction problem smaller without losing its optimum, before any solver (the simplifications
 * of monotone circuits, Sun et al. 2024, and dominators): nodes that no derivation can use, nodes
 * dominated by a cheaper one of the same class that needs less, classes that cost nothing, classes with one
 * node and one user, and classes that every solution contains, which become roots of their own. What is
 * left falls into blocks that share nothing. `expand` turns a choice of the blocks into one of the whole.
 */

import { componentsOf, strongComponents } from "./components.ts";
import { MustContain } from "./dominators.ts";
import { CheapestTrees, usersOf } from "./knuth.ts";
import { type Choice, type ExtractionProblem, makeProblem } from "./problem.ts";

export interface DraftNode {
  cost: number;
  children: number[];
  /** Nodes of the original problem that are chosen with this one. */
  readonly chosen: number[];
}

export type DraftClass = DraftNode[];

/** A part that shares no class with the others. */
export interface Block {
  readonly problem: ExtractionProblem;
  /** Nodes of the original problem that choosing a block's node chooses. */
  readonly chosen: readonly (readonly number[])[];
}

export interface Reduction {
  readonly blocks: readonly Block[];
  /** Cost of what every solution contains and is in no block. */
  readonly fixedCost: number;
  /** A choice of each block to one of the original problem, which may choose more than is needed. */
  expand(choices: readonly Choice[]): Choice;
  /** Without a derivation of every root there is no solution. */
  readonly isSolvable: boolean;
}

/** Beyond this many classes the rows of MustContain would take too much memory. */
const mostClassesForDominators = 24_000;

export function reduceProblem(problem: ExtractionProblem): Reduction {
  const draft = new Draft(problem);
  while (draft.simplify());
  return draft.finish();
}

/** The problem as lists, without nodes that need their own class. */
export function draftOf(problem: ExtractionProblem): DraftClass[] {
  const { classCount, classStart, childStart, children, cost } = problem;
  return Array.from({ length: classCount }, (_, c) => {
    const nodes: DraftNode[] = [];
    for (let n = classStart[c]!; n < classStart[c + 1]!; n++) {
      const needs = [...children.subarray(childStart[n]!, childStart[n + 1]!)];
      if (!needs.includes(c)) nodes.push({ cost: cost[n]!, children: needs, chosen: [n] });
    }
    return nodes;
  });
}

class Draft {
  readonly #problem: ExtractionProblem;
  readonly #classes: DraftClass[];
  #roots: Set<number>;
  #order: number[] = [];
  /** Chosen whatever else is. */
  readonly #fixed: number[] = [];
  #fixedCost = 0;
  #isSolvable = true;

  constructor(problem: ExtractionProblem) {
    this.#problem = problem;
    this.#classes = draftOf(problem);
    this.#roots = new Set(problem.roots);
    this.#dropUnproductive();
  }

  /** One round; whether it changed anything. */
  simplify(): boolean {
    if (!this.#isSolvable) return false;
    const before = this.#size();
    this.#dropUnreachable();
    this.#passFreeClasses();
    this.#useDominators();
    this.#absorbSingles();
    this.#fixRoots();
    return this.#size() !== before;
  }

  /** Shrinks with every simplification. */
  #size(): string {
    let nodes = 0;
    let edges = 0;
    for (const members of this.#classes) {
      nodes += members.length;
      for (const { children } of members) edges += children.length;
    }
    return `${nodes} ${edges} ${this.#roots.size}`;
  }

  #asProblem(): ExtractionProblem {
    return makeProblem(this.#classes, [...this.#roots]);
  }

  /** Nodes over classes without a finite derivation go; keeps an order with children first. */
  #dropUnproductive(): void {
    const problem = this.#asProblem();
    const trees = new CheapestTrees(problem, usersOf(problem));
    trees.run(problem.cost);
    this.#order = [...trees.order.subarray(0, trees.settledCount)];
    const isProductive = (c: number) => trees.choice[c]! >= 0;
    this.#isSolvable = [...this.#roots].every(isProductive);
    for (const [c, members] of this.#classes.entries()) {
      this.#classes[c] = members.filter(({ children }) => children.every(isProductive));
    }
  }

  #dropUnreachable(): void {
    const reached = new Set(this.#roots);
    for (const c of reached) {
      for (const { children } of this.#classes[c]!)
        for (const child of children) reached.add(child);
    }
    for (const c of this.#classes.keys()) if (!reached.has(c)) this.#classes[c] = [];
    this.#order = this.#order.filter((c) => reached.has(c));
  }

  /** A class with one node of cost 0 is replaced, wherever it is needed, by what the node needs. */
  #passFreeClasses(): void {
    const free = new Map<number, readonly number[]>();
    const passed = (children: number[]): number[] => {
      if (!children.some((child) => free.has(child))) return children;
      const kept = children.filter((child) => !free.has(child));
      return ascending([...kept, ...children.flatMap((child) => free.get(child) ?? [])]);
    };
    // Children of a class with one node come before it, so their lists are final.
    for (const c of this.#order) {
      const [only, ...others] = this.#classes[c]!;
      if (!only || others.length > 0 || only.cost !== 0 || this.#roots.has(c)) continue;
      free.set(c, passed(only.children));
      this.#fixed.push(...only.chosen);
    }
    if (free.size === 0) return;
    for (const c of this.#order) {
      if (free.has(c)) this.#classes[c] = [];
      for (const node of this.#classes[c]!) node.children = passed(node.children);
    }
    this.#dropSelfUsers();
  }

  #dropSelfUsers(): void {
    for (const [c, members] of this.#classes.entries()) {
      this.#classes[c] = members.filter(({ children }) => !children.includes(c));
    }
    this.#order = this.#order.filter((c) => this.#classes[c]!.length > 0);
  }

  #useDominators(): void {
    if (this.#order.length > mostClassesForDominators) return;
    const must = new MustContain(this.#classes, this.#order);
    for (const c of this.#order) {
      const usable = this.#classes[c]!.filter(({ children }) => !must.anyHas(children, c));
      this.#classes[c] = withoutDominated(usable, must);
    }
    for (const root of [...this.#roots]) {
      for (const c of must.members(root)) this.#roots.add(c);
    }
    this.#dropCertainChildren();
  }

  /** A class that is in every solution need not be asked for, unless a cycle could come of it. */
  #dropCertainChildren(): void {
    const component = strongComponents(this.#asProblem());
    for (const c of this.#order) {
      for (const node of this.#classes[c]!) {
        const isCertain = (child: number) =>
          this.#roots.has(child) && component[child] !== component[c];
        if (node.children.some(isCertain)) {
          node.children = node.children.filter((child) => !isCertain(child));
        }
      }
    }
  }

  /** A class with one node that one node alone uses becomes part of that node. */
  #absorbSingles(): void {
    const users = new Map<number, DraftNode[]>();
    for (const c of this.#order) {
      for (const node of this.#classes[c]!) {
        for (const child of node.children) users.set(child, [...(users.get(child) ?? []), node]);
      }
    }
    for (const c of this.#order) {
      const [only, ...others] = this.#classes[c]!;
      if (!only || others.length > 0 || this.#roots.has(c)) continue;
      const [user, ...moreUsers] = users.get(c) ?? [];
      if (!user || moreUsers.length > 0) continue;
      user.cost += only.cost;
      user.children = ascending([
        ...user.children.filter((child) => child !== c),
        ...only.children,
      ]);
      user.chosen.push(...only.chosen);
      for (const child of only.children) {
        users.set(child, [...new Set(users.get(child)!.map((n) => (n === only ? user : n)))]);
      }
      this.#classes[c] = [];
    }
    this.#dropSelfUsers();
  }

  /** A root with one node that no node uses is decided: its children are roots. */
  #fixRoots(): void {
    const used = new Set(
      this.#order.flatMap((c) => this.#classes[c]!.flatMap(({ children }) => children)),
    );
    for (const c of this.#roots) {
      const [only, ...others] = this.#classes[c]!;
      if (!only || others.length > 0 || used.has(c)) continue;
      this.#roots.delete(c);
      this.#fixed.push(...only.chosen);
      this.#fixedCost += only.cost;
      for (const child of only.children) this.#roots.add(child);
      this.#classes[c] = [];
    }
    this.#order = this.#order.filter((c) => this.#classes[c]!.length > 0);
  }

  finish(): Reduction {
    this.#dropUnreachable();
    const parts = componentsOf(this.#classes, this.#order);
    const blocks = parts.map((members): Block => {
      const number = new Map(members.map((c, i) => [c, i]));
      const inner = members.map((c) =>
        this.#classes[c]!.map(({ cost, children }) => ({
          cost,
          children: children.map((child) => number.get(child)!),
        })),
      );
      const roots = members.filter((c) => this.#roots.has(c)).map((c) => number.get(c)!);
      const chosen = members.flatMap((c) => this.#classes[c]!.map((node) => node.chosen));
      return { problem: makeProblem(inner, roots), chosen };
    });
    const { nodeClass, classCount } = this.#problem;
    return {
      blocks,
      fixedCost: this.#fixedCost,
      isSolvable: this.#isSolvable,
      expand: (choices) => {
        const whole = new Int32Array(classCount).fill(-1);
        const take = (node: number) => {
          whole[nodeClass[node]!] = node;
        };
        for (const node of this.#fixed) take(node);
        for (const [i, { chosen }] of blocks.entries()) {
          for (const node of choices[i]!) if (node >= 0) chosen[node]!.forEach(take);
        }
        return whole;
      },
    };
  }
}

function ascending(list: readonly number[]): number[] {
  return [...new Set(list)].sort((a, b) => a - b);
}

/** Keeps of each class the nodes that no other makes superfluous; of two that are equal, the first. */
function withoutDominated(nodes: DraftClass, must: MustContain): DraftClass {
  const isBelow = (a: DraftNode, b: DraftNode): boolean =>
    a.cost <= b.cost && a.children.every((child) => must.anyHas(b.children, child));
  const kept: DraftClass = [];
  for (const node of nodes) {
    if (kept.some((other) => isBelow(other, node))) continue;
    for (let i = kept.length - 1; i >= 0; i--) if (isBelow(node, kept[i]!)) kept.splice(i, 1);
    kept.push(node);
  }
  return kept;
}
