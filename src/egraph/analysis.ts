/**
 * What is known of an e-class: a value of a join semilattice, computed for each node from its
 * children's values and joined over the nodes of a class (egg's e-class analyses). `modify` may turn
 * knowledge into nodes. Two facts that cannot both hold join to a Contradiction, which ends
 * saturation and names the rule at work.
 */
import type { EGraph } from "./e-graph.ts";
import type { NodeId } from "./node-store.ts";

/** The facts cannot both hold: `join` returns it in place of a value. */
export class Contradiction {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

export interface Analysis<D> {
  /** What the node alone says; the data of its children's classes are at hand. */
  make(node: NodeId, graph: EGraph<D>): D;
  /** Commutative, associative and idempotent up to `equals`; must climb a lattice of finite height. */
  join(a: D, b: D): D | Contradiction;
  /** Whether joining changed nothing; identity when absent. */
  equals?(a: D, b: D): boolean;
  /** Called on a class that is new or whose data or members changed: may add, union and hide. */
  modify?(root: NodeId, graph: EGraph<D>): void;
}

/** Nothing is known of any class. */
export const noAnalysis: Analysis<undefined> = { make: () => undefined, join: () => undefined };
