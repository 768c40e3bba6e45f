/**
 * Rebuilding a graph: every transform walks the old graph in order, says what becomes of a node, and
 * leaves names, symbols, constraints and subgraphs to this walk. Types are inferred anew, so that a
 * transform cannot make a graph that does not type.
 */
import {
  type IndexExpr,
  type IndexLike,
  sub,
  substitute,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf, simplify } from "../../semantics/index-range.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { reject } from "../../support/diagnostic.ts";
import { type AnyAttrs, attrParts, mapAttrs } from "../attr-schema.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, OpKind, TensorType, ValueId, Weight } from "../graph.ts";
import { infoOf, schemaOf, subgraphsOf, traitsOf } from "../op-table.ts";

/** A rebuilt graph, with the elements of new constants that are too large to be inline. */
export interface Rebuilt {
  readonly graph: Graph;
  readonly constants: ReadonlyMap<string, Tensor>;
}

/** Where a transform is when it is asked about a node. */
export interface RebuildSite {
  readonly b: GraphBuilder;
  readonly old: Graph;
  /** The node with its attributes already rewritten; ids are those of the old graph. */
  readonly node: Node;
  /** Its operands in the new graph. */
  readonly inputs: readonly ValueId[];
  /** The new value for an old one. */
  readonly newValue: (old: ValueId) => ValueId;
}

export interface RebuildRule {
  /** Results in place of the node's; undefined: the node stays. */
  readonly node?: (site: RebuildSite) => readonly ValueId[] | undefined;
  /** A value in place of a weight; undefined: the weight stays. */
  readonly weight?: (b: GraphBuilder, weight: Weight, old: Graph) => ValueId | undefined;
  /** Values that are kept, of this graph; absent: all. Asked per graph, subgraphs included. */
  readonly live?: (graph: Graph) => ReadonlySet<ValueId>;
  /** Symbols that are replaced. */
  readonly bindings?: ReadonlyMap<string, IndexLike>;
}

export function rebuildGraph(graph: Graph, rule: RebuildRule): Rebuilt {
  const b = new GraphBuilder(graph.name);
  b.reserveKeys(storedKeys(graph));
  const walk = new Walk(graph, rule, { b, bindings: new Map(rule.bindings ?? []) });
  return { graph: walk.run(true), constants: b.storedConstants };
}

/** Keys of the stored weights of a graph and its subgraphs. */
function storedKeys(graph: Graph): readonly string[] {
  return [
    ...graph.weights.flatMap(({ source }) => (source.kind === "stored" ? [source.key] : [])),
    ...graph.nodes.flatMap((node) => subgraphsOf(node).flatMap(storedKeys)),
  ];
}

/** Symbols that a node introduces because only the data decide an extent. */
export function symbolsIntroduced(node: Node, graph: Graph): readonly string[] {
  if (!traitsOf(node, graph).dataDependentShape) return [];
  const typesOf = (ids: readonly ValueId[]) => ids.flatMap((id) => graph.values[id]!.type.shape);
  const { dims } = attrParts(schemaOf(node.op), node.attrs as AnyAttrs);
  const known = variablesOf(...typesOf(graph.inputs), ...typesOf(node.inputs), ...dims);
  const own = new Set(graph.symbols.map((s) => s.name));
  return [...variablesOf(...typesOf(node.outputs))].filter(
    (name) => own.has(name) && !known.has(name),
  );
}

interface WalkState {
  readonly b: GraphBuilder;
  /** Old symbols that are now something else; shared with subgraphs. */
  readonly bindings: Map<string, IndexLike>;
}

class Walk {
  readonly #graph: Graph;
  readonly #rule: RebuildRule;
  readonly #state: WalkState;
  readonly #values = new Map<ValueId, ValueId>();

  constructor(graph: Graph, rule: RebuildRule, state: WalkState) {
    this.#graph = graph;
    this.#rule = rule;
    this.#state = state;
  }

  run(top: boolean): Graph {
    const graph = this.#graph;
    const { b } = this.#state;
    const live = this.#rule.live?.(graph);
    this.#declareSymbols();
    b.reserveNames(graph.values.map((value) => value.name));
    for (const id of graph.inputs) {
      const { name, type } = graph.values[id]!;
      this.#values.set(id, b.input(name, this.#type(type)));
    }
    const weights = new Map(graph.weights.map((w) => [w.value, w] as const));
    const producers = new Map(graph.nodes.map((n) => [n.outputs[0]!, n] as const));
    const isLive = (ids: readonly ValueId[]) => !live || ids.some((id) => live.has(id));
    for (const { id } of graph.values) {
      const weight = weights.get(id);
      const node = producers.get(id);
      if (weight && isLive([id])) this.#values.set(id, this.#rebuildWeight(weight));
      if (node && isLive(node.outputs)) this.#rebuildNode(node);
    }
    const outputs = graph.outputs.map((id) => (top ? this.#namedOutput(id) : this.#newValue(id)));
    for (const { input, output } of graph.states) {
      b.state(this.#newValue(input), outputs[graph.outputs.indexOf(output)]!);
    }
    return b.finish(outputs);
  }

  #declareSymbols(): void {
    const { b, bindings } = this.#state;
    const introduced = new Set(
      this.#graph.nodes.flatMap((node) => symbolsIntroduced(node, this.#graph)),
    );
    for (const { name, min, max } of this.#graph.symbols) {
      if (!introduced.has(name) && !bindings.has(name)) b.symbol(name, min, max);
    }
    // Constraints on extents that the data decide come back when their nodes are inferred.
    for (const { left, right, origin } of this.#graph.constraints) {
      const mentions = [...variablesOf(left, right)];
      if (!mentions.some((name) => introduced.has(name))) this.#constrain(left, right, origin);
    }
  }

  #constrain(left: IndexExpr, right: IndexExpr, origin: string): void {
    const { b } = this.#state;
    const [l, r] = [this.#dim(left), this.#dim(right)];
    const difference = simplify(sub(l, r), b.ranges);
    const range = rangeOf(difference, b.ranges);
    if (range.min > 0 || range.max < 0) {
      reject("GRF013", `${left.key} == ${right.key} becomes ${l.key} == ${r.key}`, { at: origin });
    }
    if (difference.key !== "0") b.constrain(l, r, origin);
  }

  #dim(d: IndexExpr): IndexExpr {
    return substitute(d, this.#state.bindings);
  }

  #type(type: TensorType): TensorType {
    return { dtype: type.dtype, shape: type.shape.map((d) => this.#dim(d)) };
  }

  #newValue(old: ValueId): ValueId {
    const id = this.#values.get(old);
    if (id === undefined) {
      return reject("GRF007", `value "${this.#graph.values[old]?.name}" is not defined`);
    }
    return id;
  }

  #rebuildWeight(weight: Weight): ValueId {
    const { b } = this.#state;
    const replaced = this.#rule.weight?.(b, weight, this.#graph);
    if (replaced !== undefined) return replaced;
    const { name, type } = this.#graph.values[weight.value]!;
    const { source } = weight;
    if (source.kind === "inline") return b.constant(source.tensor, name);
    return b.weight(name, this.#type(type), source.key);
  }

  #rebuildNode(old: Node): void {
    const { b } = this.#state;
    const graph = this.#graph;
    const introduced = symbolsIntroduced(old, graph);
    const node = { ...old, attrs: this.#attrs(old) } as Node;
    const inputs = old.inputs.map((id) => this.#newValue(id));
    const before = b.valueCount;
    const build = () =>
      this.#rule.node?.({ b, old: graph, node, inputs, newValue: (id) => this.#newValue(id) });
    const replaced = old.origin === undefined ? build() : b.withOrigin(old.origin, build);
    const results = replaced ?? this.#copyNode(node, inputs, introduced);
    for (const [i, id] of old.outputs.entries()) {
      const result = results[i]!;
      this.#values.set(id, result);
      const { name, type } = graph.values[id]!;
      if (replaced && result >= before) b.rename(result, name);
      this.#bindIntroduced(introduced, type.shape, b.shapeOf(result));
    }
  }

  #copyNode(
    node: Node,
    inputs: readonly ValueId[],
    symbolNames: readonly string[],
  ): readonly ValueId[] {
    const names = node.outputs.map((id) => this.#graph.values[id]!.name);
    const origin = node.origin === undefined ? {} : { origin: node.origin };
    const { op, attrs } = node as NodeOf<OpKind>;
    return this.#state.b.nodes(op, inputs, attrs, { names, symbolNames, ...origin });
  }

  #attrs(node: Node): NodeOf<OpKind>["attrs"] {
    const { op, attrs } = node as NodeOf<OpKind>;
    return mapAttrs(infoOf(op).schema, attrs, {
      dim: (d) => this.#dim(d),
      graph: (inner) => {
        const nested = { ...this.#state, b: this.#state.b.nested(inner.name) };
        return new Walk(inner, this.#rule, nested).run(false);
      },
    });
  }

  /** What an old data-dependent extent is now called. */
  #bindIntroduced(
    names: readonly string[],
    before: readonly IndexExpr[],
    after: readonly IndexExpr[],
  ): void {
    for (const [axis, extent] of before.entries()) {
      const name = extent.key;
      if (names.includes(name) && after[axis]!.key !== name) {
        this.#state.bindings.set(name, after[axis]!);
      }
    }
  }

  /** An output keeps its name: a value that has another one is copied. */
  #namedOutput(old: ValueId): ValueId {
    const { b } = this.#state;
    const id = this.#newValue(old);
    const { name } = this.#graph.values[old]!;
    if (b.nameOf(id) === name) return id;
    return b.node("reshape", [id], { shape: b.shapeOf(id) }, { names: [name] });
  }
}
