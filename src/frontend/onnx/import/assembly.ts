/**
 * A graph under construction: values, weights and nodes are appended, typed already (emitter.ts).
 * Unlike graph/'s builder it settles names at the end, when it is known which value is whose output,
 * and takes weights that are read on demand. Inputs and outputs keep the model's names where the text
 * form can spell them.
 */

import { inlineBytes } from "../../../graph/builder.ts";
import type {
  Graph,
  Node,
  OpAttrs,
  OpKind,
  ShapeConstraint,
  TensorType,
  Value,
  ValueId,
  Weight,
} from "../../../graph/graph.ts";
import type { SymbolScope } from "../../../graph/symbol-scope.ts";
import { type IndexExpr, toIndex, variable } from "../../../semantics/index-expr.ts";
import type { IndexRange } from "../../../semantics/index-range.ts";
import { reservedWords } from "../../../semantics/index-text.ts";
import type { Tensor } from "../../../semantics/tensor.ts";

/** Contents of a constant: read when needed, so that large weights are not held twice. */
export interface ConstantSource {
  readonly bytes: number;
  readonly read: () => Tensor;
}

export class Assembly {
  readonly symbols: SymbolScope;
  readonly weights: Weight[] = [];
  readonly stored: Map<string, () => Tensor>;
  readonly inputs: ValueId[] = [];
  readonly #types: TensorType[] = [];
  readonly #hints: string[] = [];
  readonly #nodes: Node[] = [];
  readonly #constraints = new Map<string, ShapeConstraint>();

  /** `stored` collects the large weights of the model by key. */
  constructor(symbols: SymbolScope, stored: Map<string, () => Tensor>) {
    this.symbols = symbols;
    this.stored = stored;
  }

  get nodes(): readonly Node[] {
    return this.#nodes;
  }

  get constraints(): readonly ShapeConstraint[] {
    return [...this.#constraints.values()];
  }

  /** Records that two extents must be equal, once. */
  constrain(left: IndexExpr, right: IndexExpr, origin: string): void {
    const key = `${left.key} = ${right.key}`;
    if (!this.#constraints.has(key)) this.#constraints.set(key, { left, right, origin });
  }

  typeOf(id: ValueId): TensorType {
    return this.#types[id]!;
  }

  get valueCount(): number {
    return this.#types.length;
  }

  addInput(name: string, type: TensorType): ValueId {
    const id = this.#addValue(type, name);
    this.inputs.push(id);
    return id;
  }

  addWeight(name: string, type: TensorType, source: ConstantSource): ValueId {
    const id = this.#addValue(type, name);
    if (source.bytes <= inlineBytes) {
      this.weights.push({ value: id, source: { kind: "inline", tensor: source.read() } });
    } else {
      let key = name;
      for (let i = 1; this.stored.has(key); i++) key = `${name}.${i}`;
      this.stored.set(key, source.read);
      this.weights.push({ value: id, source: { kind: "stored", key } });
    }
    return id;
  }

  addNode<K extends OpKind>(
    op: K,
    inputs: readonly ValueId[],
    attrs: OpAttrs[K],
    result: { readonly types: readonly TensorType[]; readonly origin: string },
  ): readonly ValueId[] {
    const outputs = result.types.map((type) => this.#addValue(type, ""));
    const id = this.#nodes.length;
    this.#nodes.push({ id, op, inputs, outputs, attrs, origin: result.origin } as unknown as Node);
    return outputs;
  }

  /** Suggests a name; the first suggestion wins unless a later one is `final`. */
  suggestName(id: ValueId, name: string, final = false): void {
    if (final || this.#hints[id] === "") this.#hints[id] = name;
  }

  /** A symbol that no other has the name of, or the only value it can have. */
  addSymbol(hint: string, { min, max }: IndexRange): IndexExpr {
    if (min === max) return toIndex(min);
    const name = this.symbols.unusedName(spellName(hint, "dim"));
    this.symbols.declare({ name, min, max });
    return variable(name);
  }

  finish(
    name: string,
    outputs: readonly ValueId[],
    inputs: readonly ValueId[] = this.inputs,
  ): Graph {
    return {
      name: spellName(name, "graph"),
      symbols: [...this.symbols.own],
      constraints: this.constraints,
      values: this.#nameValues(),
      inputs,
      weights: this.weights,
      nodes: this.#nodes,
      outputs,
      states: [],
    };
  }

  #nameValues(): Value[] {
    const taken = new Set([...this.symbols.ranges.keys(), ...reservedWords]);
    const counters = new Map<string, number>();
    return this.#types.map((type, id) => {
      const base = spellName(this.#hints[id]!, `t${id}`);
      let name = base;
      while (taken.has(name)) {
        const next = (counters.get(base) ?? 0) + 1;
        counters.set(base, next);
        name = `${base}_${next}`;
      }
      taken.add(name);
      return { id, name, type };
    });
  }

  #addValue(type: TensorType, hint: string): ValueId {
    this.#hints.push(hint);
    return this.#types.push(type) - 1;
  }
}

/** The nearest name that the text forms can spell. */
export function spellName(name: string, otherwise: string): string {
  if (name === "") return otherwise;
  const spelled = name.replaceAll(/[^\w.$%]/g, "_");
  return /^[A-Za-z_]/.test(spelled) ? spelled : `_${spelled}`;
}
