/**
 * One call per op: infers the type, then either computes the result at once (all operands constant:
 * the references; small symbolic operands: symbolic-ops.ts) or appends a node. Operands that are
 * constants or symbolic become weights or dimension arithmetic at the moment a node needs them.
 */

import {
  definitionGraph,
  inferCall,
  inferDefinition,
  inlineBytes,
} from "../../../graph/builder.ts";
import type { CompositeKind } from "../../../graph/composite-table.ts";
import type { CompositeAttrs } from "../../../graph/composites.ts";
import type { OpAttrs, OpKind, TensorType, ValueId } from "../../../graph/graph.ts";
import type { InferContext } from "../../../graph/op-info.ts";
import { isComposite, opTable } from "../../../graph/op-table.ts";
import { SymbolScope } from "../../../graph/symbol-scope.ts";
import { printType } from "../../../graph/tensor-type.ts";
import { constantValue, type IndexExpr } from "../../../semantics/index-expr.ts";
import { simplify } from "../../../semantics/index-range.ts";
import { elementCount } from "../../../semantics/shape.ts";
import { reject } from "../../../support/diagnostic.ts";
import { invariant } from "../../../support/invariant.ts";
import { Assembly } from "./assembly.ts";
import { checkShapeSize } from "./extent-limits.ts";
import { type FoldBudget, foldConstants, smallResult } from "./fold.ts";
import { materializeElements, scalarIndex } from "./materialize.ts";
import {
  constantOperand,
  largestSymbolic,
  type Operand,
  symbolicElements,
  symbolicOperand,
  type ValueOperand,
} from "./operand.ts";
import { symbolicArithmetic } from "./symbolic-number.ts";
import { evaluateSymbolic } from "./symbolic-ops.ts";

/** Where the emitted ops stand in the model. */
export interface Origin {
  /** `node "Conv_3" (Conv)`, for diagnostics. */
  readonly at: string;
  /** What the graph's nodes carry. */
  readonly label: string;
}

interface InferredComposite {
  readonly types: readonly TensorType[];
  readonly equalities: readonly (readonly [IndexExpr, IndexExpr])[];
}

export class Emitter {
  readonly assembly: Assembly;
  readonly budget: FoldBudget;
  readonly #weightIds = new Map<object, ValueId>();
  readonly #symbolIds = new Map<string, ValueOperand>();
  readonly #composites = new Map<string, InferredComposite>();
  readonly #captures = new Map<Assembly, Map<ValueId, ValueId>>();
  /** Values of enclosing graphs that this one reads. */
  readonly captured: ValueOperand[] = [];
  /** That of the enclosing graph, if this one fills a subgraph. */
  readonly #outer: Emitter | undefined;

  constructor(assembly: Assembly, budget: FoldBudget, outer?: Emitter) {
    this.assembly = assembly;
    this.budget = budget;
    this.#outer = outer;
  }

  /** An emitter for a subgraph, which sees the symbols of this graph and captures its values. */
  nested(): Emitter {
    const { symbols, stored } = this.assembly;
    return new Emitter(new Assembly(new SymbolScope(symbols), stored), this.budget, this);
  }

  /** Applies an op; the results of a multi-output op in order. */
  emitAll<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    origin: Origin,
  ): readonly Operand[] {
    const types = this.#infer(op, inputs, attrs, origin);
    const known = this.#evaluate(op, inputs, attrs, { types, origin });
    return known ?? this.#append(op, inputs, attrs, { types, origin });
  }

  /** As `emit`, where the result is cheaper computed than kept although all operands are known. */
  emitComputed<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    origin: Origin,
  ): Operand {
    const types = this.#infer(op, inputs, attrs, origin);
    return this.#append(op, inputs, attrs, { types, origin })[0]!;
  }

  #append<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    { types, origin }: { readonly types: readonly TensorType[]; readonly origin: Origin },
  ): readonly Operand[] {
    const ids = inputs.map((operand) => this.valueOf(operand, origin));
    const outputs = this.assembly.addNode(op, ids, attrs, { types, origin: origin.label });
    return outputs.map(
      (id, i): Operand => ({
        kind: "value",
        type: types[i]!,
        home: this.assembly,
        id,
      }),
    );
  }

  emit<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    origin: Origin,
  ): Operand {
    return this.emitAll(op, inputs, attrs, origin)[0]!;
  }

  /** The value of an operand in the graph: constants become weights, symbolic tensors arithmetic. */
  valueOf(operand: Operand, origin: Origin): ValueId {
    if (operand.kind === "value") return this.#localId(operand);
    if (operand.kind === "symbolic") return materializeElements(this, operand, origin);
    const seen = this.#weightIds.get(operand.source);
    if (seen !== undefined) return seen;
    if (this.#outer && operand.source.bytes > inlineBytes) {
      return this.#localId(this.#outer.#valueOperand(operand, origin));
    }
    const id = this.assembly.addWeight(operand.name || "const", operand.type, operand.source);
    this.#weightIds.set(operand.source, id);
    return id;
  }

  #valueOperand(operand: Operand, origin: Origin): ValueOperand {
    const id = this.valueOf(operand, origin);
    return { kind: "value", type: operand.type, home: this.assembly, id };
  }

  #inferContext(origin: Origin): InferContext {
    const { symbols } = this.assembly;
    const context: InferContext = {
      ranges: symbols.ranges,
      at: origin.at,
      requireEqual: (left, right) => this.assembly.constrain(left, right, origin.at),
      freshSymbol: (hint, range) => this.assembly.addSymbol(hint, range),
      inferDefinition: (op, inputs, attrs) => this.#inferComposite(op, inputs, attrs, context),
    };
    return context;
  }

  /** Models repeat their layers: a composite is inferred once for equal operands and attributes. */
  #inferComposite<K extends CompositeKind>(
    op: K,
    inputs: readonly TensorType[],
    attrs: CompositeAttrs[K],
    context: InferContext,
  ): readonly TensorType[] {
    const key = `${op} ${inputs.map(printType).join(" ")} ${JSON.stringify(attrs)}`;
    let found = this.#composites.get(key);
    if (!found) {
      const equalities: (readonly [IndexExpr, IndexExpr])[] = [];
      const requireEqual = (a: IndexExpr, b: IndexExpr) => equalities.push([a, b]);
      const types = inferDefinition(op, inputs, attrs, { ...context, requireEqual });
      found = { types, equalities };
      this.#composites.set(key, found);
    }
    for (const [a, b] of found.equalities) context.requireEqual(a, b);
    return found.types;
  }

  #infer<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    origin: Origin,
  ): readonly TensorType[] {
    checkShapeAttrs(attrs, origin);
    const types = inputs.map((operand) => operand.type);
    const { ranges } = this.assembly.symbols;
    return inferCall(op, types, attrs, this.#inferContext(origin)).map(({ dtype, shape }) => {
      checkExtents(shape, origin);
      return { dtype, shape: shape.map((d) => simplify(d, ranges)) };
    });
  }

  #evaluate<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    context: { readonly types: readonly TensorType[]; readonly origin: Origin },
  ): readonly Operand[] | undefined {
    const { types, origin } = context;
    if (inputs.some((operand) => operand.kind === "value") || isOpaque(op)) return undefined;
    const shapes = types.map((t) => t.shape.map(constantValue));
    if (shapes.some((s) => s.includes(undefined))) return undefined;
    const counts = shapes.map((s) => elementCount(s as number[]));
    if (isComposite(op)) return this.#expand(op, inputs, attrs, { counts, origin });
    if (inputs.every((operand) => operand.kind === "constant")) {
      return foldConstants({ op, inputs, attrs }, { counts, types, origin, budget: this.budget });
    }
    if (types.length !== 1 || counts[0]! > largestSymbolic) return undefined;
    const elements = inputs.map(symbolicElements);
    if (elements.includes(undefined)) return undefined;
    const tensors = inputs.map((operand, i) => ({
      dtype: operand.type.dtype,
      shape: operand.kind === "value" ? [] : operand.shape,
      elements: elements[i]!,
    }));
    const result = { dtype: types[0]!.dtype, shape: shapes[0] as number[] };
    const arithmetic = symbolicArithmetic(this.assembly.symbols.ranges);
    const found = evaluateSymbolic({ op, inputs: tensors, attrs, result }, arithmetic);
    return found && [symbolicOperand(result.dtype, result.shape, found)];
  }

  /** A composite of known operands is computed through its definition, if that is small. */
  #expand<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
    context: { readonly counts: readonly number[]; readonly origin: Origin },
  ): readonly Operand[] | undefined {
    const { counts, origin } = context;
    if (!isComposite(op) || Math.max(...counts) > smallResult) return undefined;
    const types = inputs.map((operand) => operand.type);
    const inference = { ranges: this.assembly.symbols.ranges, at: origin.at };
    const definition = definitionGraph(op, types, attrs as never, inference);
    const known = new Map<ValueId, Operand>(definition.inputs.map((id, i) => [id, inputs[i]!]));
    for (const { value, source } of definition.weights) {
      if (source.kind === "stored") return undefined;
      known.set(value, constantOperand(source.tensor));
    }
    for (const node of definition.nodes) {
      const operands = node.inputs.map((id) => known.get(id)!);
      const results = this.emitAll(node.op as OpKind, operands, node.attrs, origin);
      for (const [i, id] of node.outputs.entries()) known.set(id, results[i]!);
    }
    return definition.outputs.map((id) => known.get(id)!);
  }

  /** A value of an enclosing graph becomes an input of this one, once. */
  #localId(operand: ValueOperand): ValueId {
    if (operand.home === this.assembly) return operand.id;
    const seen = this.#captures.get(operand.home) ?? new Map<ValueId, ValueId>();
    this.#captures.set(operand.home, seen);
    const known = seen.get(operand.id);
    if (known !== undefined) return known;
    const id = this.assembly.addInput(`capture_${this.captured.length}`, operand.type);
    seen.set(operand.id, id);
    this.captured.push(operand);
    return id;
  }

  /** The symbol's value: an axis of some value whose extent is the symbol, or a multiple of it. */
  materializeSymbol(name: string, origin: Origin): Operand {
    const seen = this.#symbolIds.get(name);
    if (seen) return seen;
    const { assembly } = this;
    for (let id = 0; id < assembly.valueCount; id++) {
      const type = assembly.typeOf(id);
      const axis = type.shape.findIndex((d) => isMultipleOf(d, name));
      if (axis < 0) continue;
      const value: Operand = { kind: "value", type, home: assembly, id };
      const size = this.emit("dimSize", [value], { axis }, origin);
      const factor = type.shape[axis]!.terms[0]!.coefficient;
      const symbol =
        factor === 1 ? size : this.emit("div", [size, scalarIndex(factor)], {}, origin);
      invariant(symbol.kind === "value", () => `extent ${name} is no value`);
      this.#symbolIds.set(name, symbol);
      return symbol;
    }
    if (this.#outer) return this.#outer.materializeSymbol(name, origin);
    return reject("ONX013", `the extent ${name} is needed as a number, but no value has it`, {
      at: origin.at,
      help: "fix the dimension (--shape)",
    });
  }
}

function isMultipleOf(extent: IndexExpr, name: string): boolean {
  const [term] = extent.terms;
  return (
    extent.constant === 0 &&
    extent.terms.length === 1 &&
    term!.coefficient > 0 &&
    term!.atoms.length === 1 &&
    term!.key === name
  );
}

/**
 * Ops that are not computed at import although their operands are known: dequantised weights would
 * lose the form that integer kernels need.
 */
function isOpaque(op: OpKind): boolean {
  const { traits } = opTable[op];
  const known = typeof traits === "function" ? undefined : traits;
  return (
    known?.random === true || known?.hasSubgraph === true || op === "dimSize" || op === "dequantize"
  );
}

/** Rejects results that are negative in every case, or too large. */
function checkExtents(shape: readonly IndexExpr[], origin: Origin): void {
  checkShapeSize(shape, origin.at);
  const negative = shape.find((d) => (constantValue(d) ?? 0) < 0);
  if (negative) {
    reject("ONX004", `a result has the extent ${negative.key}`, {
      at: origin.at,
      help: "extents are not negative: check the operands that give sizes",
    });
  }
}

/** Attributes that are shapes are checked before inference multiplies them. */
function checkShapeAttrs(attrs: object, origin: Origin): void {
  if ("shape" in attrs) checkShapeSize(attrs.shape as readonly IndexExpr[], origin.at);
  if ("sizes" in attrs) checkShapeSize(attrs.sizes as readonly IndexExpr[], origin.at);
}
