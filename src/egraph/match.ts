/**
 * What a side condition or a built right side sees: one match, by the names of its pattern, with the
 * classes' data. Reading data keeps delta matching exact, since a change of data makes the match news;
 * reading the nodes of a class does not, so a rule that does so is searched in full from then on
 * (`readsGraph`).
 */
import { invariant } from "../support/invariant.ts";
import type { EGraph } from "./e-graph.ts";
import type { RowLayout } from "./match-plan.ts";
import type { NodeId } from "./node-store.ts";
import type { Payload } from "./vocabulary.ts";

export class Match<D> {
  readonly #graph: EGraph<D>;
  readonly #layout: RowLayout;
  #cells = new Int32Array(0);
  #at = 0;
  #readsGraph = false;

  constructor(graph: EGraph<D>, layout: RowLayout) {
    this.#graph = graph;
    this.#layout = layout;
  }

  /** Whether a condition looked beyond data: at the nodes of a class. */
  get readsGraph(): boolean {
    return this.#readsGraph;
  }

  /** Moves to another row. */
  moveTo(cells: Int32Array<ArrayBuffer>, at: number): this {
    this.#cells = cells;
    this.#at = at;
    return this;
  }

  /** The class that a variable or a named inner term is bound to. */
  id(name: string): NodeId {
    return this.#graph.find(this.#column(this.#layout.classColumns, name));
  }

  data(name: string): D {
    return this.#graph.data(this.id(name));
  }

  /** Key of a bound payload. */
  key(name: string): string {
    return this.#graph.vocabulary.payloadKey(this.#column(this.#layout.payloadColumns, name));
  }

  /** Value of a bound payload. */
  value(name: string): unknown {
    return this.#graph.vocabulary.payloadValue(this.#column(this.#layout.payloadColumns, name));
  }

  /** The node that matched a left side's root. */
  root(index = 0): NodeId {
    return this.#cells[this.#at + this.#layout.rootColumns[index]!]!;
  }

  /** The node that matched an inner term with a name, for its children and payload. */
  node(name: string): NodeId {
    return this.#column(this.#layout.nodeColumns, name);
  }

  rootData(index = 0): D {
    return this.#graph.data(this.root(index));
  }

  /** Classes of the children of a matched node: what `...` stood for is among them. */
  children(node: NodeId): readonly NodeId[] {
    return this.#graph.children(node);
  }

  /** Data of a child that a pattern left open. */
  dataOf(id: NodeId): D {
    return this.#graph.data(id);
  }

  /** The graph, to look at the nodes of classes. */
  get graph(): EGraph<D> {
    this.#readsGraph = true;
    return this.#graph;
  }

  #column(columns: ReadonlyMap<string, number>, name: string): number {
    const column = columns.get(name);
    invariant(column !== undefined, () => `the left side has no ?${name}`);
    return this.#cells[this.#at + column]!;
  }
}

/** Makes the nodes of a right side that is computed. */
export interface Builder {
  add(op: string, children?: readonly NodeId[], payload?: Payload | string): NodeId;
}
