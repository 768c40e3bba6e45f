/**
 * One ONNX node as its converter sees it: operands by position, attributes by type, the operator
 * version, and the means to emit ops. What a converter cannot accept it refuses here, with the node's
 * name, operator, operand or attribute, and the cure.
 */
import type { OpAttrs, OpKind, TensorType } from "../../../graph/graph.ts";
import { type DType, dtypes, isBigDType } from "../../../semantics/dtype.ts";
import { roundToFloat } from "../../../semantics/float-codec.ts";
import { constant, constantValue, type IndexExpr, toIndex } from "../../../semantics/index-expr.ts";
import { elementCount } from "../../../semantics/shape.ts";
import { refTensor, type Tensor, toRef } from "../../../semantics/tensor.ts";
import { type Result, reject } from "../../../support/diagnostic.ts";
import { dtypeOf, onnxTypeName } from "../data-types.ts";
import type { GraphProto } from "../generated/onnx_pb.ts";
import type { StringTensor } from "../host-value.ts";
import type { Attributes } from "./attributes.ts";
import type { Emitter, Origin } from "./emitter.ts";
import {
  type Bound,
  constantFromRef,
  describeBound,
  isOperand,
  type Operand,
  symbolicElements,
  symbolicOperand,
} from "./operand.ts";
import type { OpenSubgraph } from "./subgraph.ts";
import { integerOf, type SymbolicNumber, wholeNumber } from "./symbolic-number.ts";

/** Operands that one node of the graph joins. */
const mostSideBySide = 32;

/** Numbers of a table that a converter makes of a model's attributes. */
const largestTable = 2 ** 24;

/** What converters of control flow may ask of the graph walk. */
export interface SubgraphImporter {
  /** Converts a branch in place: its nodes join the current graph. */
  inline(body: GraphProto, inputs?: readonly Bound[]): readonly Bound[];
  /** What a name of the model stands for, where the node stands. */
  find(name: string): Bound | undefined;
  /** Converts, leaving no problem behind where that fails. */
  attempt<T>(body: () => T): Result<T>;
  /** Converts a body that takes inputs of these types, for closeSubgraphs. */
  open(body: GraphProto, inputs: readonly TensorType[]): OpenSubgraph;
}

export interface NodeViewParts {
  readonly op: string;
  /** The operator version in force: the greatest `since` not above the model's operator set. */
  readonly version: number;
  readonly inputs: readonly (Bound | undefined)[];
  /** Names of the outputs; an empty name is not wanted. */
  readonly outputs: readonly string[];
  readonly attributes: Attributes;
  readonly emitter: Emitter;
  readonly origin: Origin;
  readonly subgraphs: SubgraphImporter;
  /** Told what would have to be known, before the node is refused without. */
  readonly onUnknown: (bound: Bound) => void;
}

export class NodeView {
  readonly op: string;
  readonly version: number;
  readonly attributes: Attributes;
  readonly emitter: Emitter;
  readonly origin: Origin;
  readonly subgraphs: SubgraphImporter;
  readonly inputs: readonly (Bound | undefined)[];
  readonly outputs: readonly string[];
  readonly onUnknown: (bound: Bound) => void;

  constructor(parts: NodeViewParts) {
    this.op = parts.op;
    this.version = parts.version;
    this.attributes = parts.attributes;
    this.emitter = parts.emitter;
    this.origin = parts.origin;
    this.subgraphs = parts.subgraphs;
    this.inputs = parts.inputs;
    this.outputs = parts.outputs;
    this.onUnknown = parts.onUnknown;
  }

  /** The same node with other operands. */
  withInputs(inputs: readonly (Bound | undefined)[]): NodeView {
    return new NodeView({ ...this, inputs });
  }

  /** A required operand that is a tensor. */
  input(index: number): Operand {
    const bound = this.bound(index);
    if (isOperand(bound)) return bound;
    return this.refuse(`operand ${index} is ${describeBound(bound)}`, "a tensor of numbers");
  }

  /** A required operand, whatever it is. */
  bound(index: number): Bound {
    const bound = this.inputs[index];
    if (bound) return bound;
    return reject("ONX010", `operand ${index} is missing`, {
      at: this.origin.at,
      help: "export the model again; the operator needs this operand",
    });
  }

  optional(index: number): Operand | undefined {
    return this.inputs[index] && this.input(index);
  }

  /** An operand that is strings, which are known at import. */
  strings(index: number): StringTensor {
    const bound = this.bound(index);
    if (bound.kind === "strings") return bound;
    return this.refuse(`operand ${index} is ${describeBound(bound)}`, "a tensor of strings");
  }

  /** An operand that is a sequence, whose length is known at import. */
  sequence(index: number): readonly Bound[] {
    const bound = this.bound(index);
    if (bound.kind === "sequence") return bound.elements;
    return this.refuse(`operand ${index} is ${describeBound(bound)}`, "a sequence");
  }

  /** All operands, none of which may be absent. */
  allInputs(): readonly Operand[] {
    return this.inputs.map((_, i) => this.input(i));
  }

  /** Whether somebody may read output `index`. */
  wants(index: number): boolean {
    return (this.outputs[index] ?? "") !== "";
  }

  emit<K extends OpKind>(op: K, inputs: readonly Operand[], attrs: OpAttrs[K]): Operand {
    return this.emitter.emit(op, inputs, attrs, this.origin);
  }

  /** As `emit`, where the result is cheaper computed than kept although all operands are known. */
  emitComputed<K extends OpKind>(op: K, inputs: readonly Operand[], attrs: OpAttrs[K]): Operand {
    return this.emitter.emitComputed(op, inputs, attrs, this.origin);
  }

  emitAll<K extends OpKind>(
    op: K,
    inputs: readonly Operand[],
    attrs: OpAttrs[K],
  ): readonly Operand[] {
    return this.emitter.emitAll(op, inputs, attrs, this.origin);
  }

  /** A constant with one value in every place, on the grid of the dtype. */
  splat(dtype: DType, value: number, shape: readonly number[] = []): Operand {
    if (isBigDType(dtype) && !Number.isInteger(value)) {
      this.refuse(`the number ${value} among ${dtype}`, "floats");
    }
    const grid = dtypes[dtype].kind === "float" ? roundToFloat(dtype, value) : value;
    const count = elementCount(shape);
    if (count > largestTable) {
      const one = constantFromRef(refTensor(dtype, [], [grid]));
      return this.emit("broadcast", [one], { shape: shape.map(constant) });
    }
    return constantFromRef(refTensor(dtype, shape, new Array<number>(count).fill(grid)));
  }

  /** Operands side by side along an axis; very many of them in groups, so that no kernel has a part for each. */
  concat(inputs: readonly Operand[], axis: number): Operand {
    if (inputs.length === 1) return inputs[0]!;
    if (inputs.length <= mostSideBySide) return this.emit("concat", inputs, { axis });
    const groups: Operand[] = [];
    for (let at = 0; at < inputs.length; at += mostSideBySide) {
      groups.push(this.concat(inputs.slice(at, at + mostSideBySide), axis));
    }
    return this.concat(groups, axis);
  }

  /** Rejects (ONX009) tables whose size the model's numbers decide and that no model needs so large. */
  checkTable(elements: number, what: string): void {
    if (elements >= 0 && elements <= largestTable) return;
    this.refuse(`${what} of ${elements} numbers`, `at most ${largestTable}`);
  }

  cast(x: Operand, to: DType, saturate = false): Operand {
    return x.type.dtype === to ? x : this.emit("cast", [x], { to, saturate });
  }

  reshape(x: Operand, shape: readonly IndexExpr[]): Operand {
    const same =
      x.type.shape.length === shape.length && x.type.shape.every((d, i) => d.key === shape[i]!.key);
    return same ? x : this.emit("reshape", [x], { shape });
  }

  transpose(x: Operand, permutation: readonly number[]): Operand {
    return permutation.every((p, i) => p === i) ? x : this.emit("transpose", [x], { permutation });
  }

  /** Rejects (ONX009) an operand of another rank. */
  checkRank(x: Operand, rank: number, what: string): void {
    const found = x.type.shape.length;
    if (found !== rank) this.refuse(`${what} of rank ${found}`, `rank ${rank}`);
  }

  /** `axis` counted from 0; rejects (ONX009) axes outside the rank. */
  axis(axis: number, rank: number): number {
    const normal = axis < 0 ? axis + rank : axis;
    if (!Number.isInteger(normal) || normal < 0 || normal >= rank) {
      this.refuse(`axis ${axis} of a tensor of rank ${rank}`, "an axis in range");
    }
    return normal;
  }

  /** Sorted distinct axes counted from 0. */
  axes(axes: readonly number[], rank: number): readonly number[] {
    const normal = axes.map((a) => this.axis(a, rank)).sort((a, b) => a - b);
    if (new Set(normal).size !== normal.length) this.refuse(`axes [${axes}]`, "distinct axes");
    return normal;
  }

  /** Elements of a small operand that is known at import, as exact fractions. */
  symbolic(index: number, what: string): readonly SymbolicNumber[] {
    const elements = symbolicElements(this.input(index));
    if (elements) return elements;
    this.asks(index);
    return reject("ONX013", `operand ${index} (${what}) depends on data, not only on shapes`, {
      at: this.origin.at,
      help: "give the dimensions values (--shape) where it follows from them, fix the inputs that decide it (--value), or run the model with its inputs from files: it is computed first then",
    });
  }

  /** Integer elements of a small operand that is known at import. */
  indexList(index: number, what: string): readonly IndexExpr[] {
    return this.symbolic(index, what).map(
      (e) => integerOf(e) ?? this.refuse(`${what} with fractions`, "integers"),
    );
  }

  /** Integer elements that are plain numbers. */
  integers(index: number, what: string): readonly number[] {
    return this.indexList(index, what).map(
      (e) => constantValue(e) ?? this.#unknown(index, what, e.key),
    );
  }

  /** Contents of a constant operand. */
  constantTensor(index: number, what: string): Tensor {
    const operand = this.input(index);
    if (operand.kind === "constant") return operand.source.read();
    return this.#unknown(index, what, "a run-time value");
  }

  /** Float elements of a constant operand. */
  numbers(index: number, what: string): readonly number[] {
    return Array.from(toRef(this.constantTensor(index, what)).data, Number);
  }

  /** A small tensor of index expressions as an operand. */
  indices(values: readonly (IndexExpr | number)[], shape = [values.length]): Operand {
    return symbolicOperand(
      "i64",
      shape,
      values.map((v) => wholeNumber(toIndex(v))),
    );
  }

  /** The fixed extent of an axis; rejects (ONX013) symbolic ones. */
  fixedExtent(extent: IndexExpr, what: string): number {
    return (
      constantValue(extent) ??
      reject("ONX013", `${what} is ${extent.key}, not a number`, {
        at: this.origin.at,
        help: "fix the dimension (--shape)",
      })
    );
  }

  /** An element type given by its ONNX number. */
  dtype(onnxType: number): DType {
    const dtype = dtypeOf(onnxType);
    if (dtype !== undefined) return dtype;
    return reject("ONX003", `${onnxTypeName(onnxType)} elements are not supported`, {
      at: this.origin.at,
      help: "export the model with numeric element types",
    });
  }

  /** Rejects something this importer does not support (ONX009). */
  refuse(found: string, allowed: string): never {
    return reject("ONX009", `${found}; supported: ${allowed}`, {
      at: this.origin.at,
      help: "export the model in a supported form, or replace the operator",
    });
  }

  /** Says that the value of an operand would have to be known. */
  asks(index: number): void {
    const bound = this.inputs[index];
    if (bound) this.onUnknown(bound);
  }

  #unknown(index: number, what: string, found: string): never {
    this.asks(index);
    return reject("ONX013", `operand ${index} (${what}) is ${found}, not a constant`, {
      at: this.origin.at,
      help: "fix the inputs that decide it (--value), or export the model with a constant there",
    });
  }
}

/** The number 1 as an extent. */
export const one: IndexExpr = constant(1);
