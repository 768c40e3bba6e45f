/**
 * Where a rule is about to apply: the match by the names of the pattern, with types, attributes and
 * facts, and, for right sides that are written by code, the sink for their terms.
 */
import type { Builder, Match, NodeId } from "../egraph/index.ts";
import type { AnyAttrs } from "../graph/attr-schema.ts";
import type { OpAttrs, OpKind, TensorType } from "../graph/graph.ts";
import { type IndexExpr, toIndex } from "../semantics/index-expr.ts";
import { type RefTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import type { FactScope, Facts } from "./facts.ts";
import { addCall, constantOp, constantPayload, type Leaf, leafOp } from "./terms.ts";

const noAttrs: AnyAttrs = {};

export class Site {
  readonly match: Match<Facts>;
  readonly scope: FactScope;
  readonly #builder: Builder | undefined;

  constructor(match: Match<Facts>, scope: FactScope, builder?: Builder) {
    this.match = match;
    this.scope = scope;
    this.#builder = builder;
  }

  static extent(n: number): IndexExpr {
    return toIndex(n);
  }

  facts(name: string): Facts {
    return this.match.data(name);
  }

  type(name: string): TensorType {
    const { type } = this.match.data(name);
    invariant(type, () => `?${name} is no tensor`);
    return type;
  }

  shape(name: string): readonly IndexExpr[] {
    return this.type(name).shape;
  }

  rootType(): TensorType {
    const { type } = this.match.rootData(0);
    invariant(type, () => "the left side is no tensor");
    return type;
  }

  /** Attributes that a payload variable is bound to; the caller knows of which op. */
  attrs<K extends OpKind>(name: string): OpAttrs[K] {
    return (this.key(name) === "" ? noAttrs : this.match.value(name)) as OpAttrs[K];
  }

  key(name: string): string {
    return this.match.key(name);
  }

  id(name: string): NodeId {
    return this.match.id(name);
  }

  /** Adds a term; for right sides that code writes. */
  add<K extends OpKind>(op: K, inputs: readonly NodeId[], attrs: OpAttrs[K]): NodeId {
    invariant(this.#builder, () => "a condition writes a term");
    return addCall(this.#builder, op, inputs, attrs);
  }

  /** Adds a tensor; for right sides that code writes. */
  constant(tensor: Tensor): NodeId {
    invariant(this.#builder, () => "a condition writes a term");
    return this.#builder.add(constantOp, [], constantPayload(tensor));
  }

  /** The elements of a weight, where they are at hand. */
  elements(name: string): RefTensor | undefined {
    const { value } = this.facts(name);
    if (value) return value;
    const { graph } = this.match;
    const leaf = graph.nodes(this.id(name)).find((node) => graph.opName(node) === leafOp);
    const read = leaf === undefined ? undefined : (graph.payloadValue(leaf) as Leaf).read;
    return read && toRef(read());
  }

  /** The nodes that read what a variable is bound to, in the order of their making. */
  users(name: string): readonly NodeId[] {
    const { store } = this.match.graph;
    const found: NodeId[] = [];
    for (let cell = store.firstUseOf(this.id(name)); cell !== 0; cell = store.links[cell]!) {
      const user = store.ownerOf(cell);
      if (!store.isDead(user) && !store.isHidden(user)) found.push(user);
    }
    return found.sort((a, b) => a - b);
  }

  typeOf(id: NodeId): TensorType | undefined {
    return this.match.dataOf(id).type;
  }
}
