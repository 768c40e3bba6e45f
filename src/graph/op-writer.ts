/**
 * Where nodes are written to: the interface that definitions of composites, frontends and rewrites
 * program against, with the short forms (arithmetic with broadcasting, reductions, matrix products).
 * GraphBuilder (builder.ts) implements the abstract part.
 */

import type { ReduceKind } from "../semantics/core-ops.ts";
import { type DType, isBigDType } from "../semantics/dtype.ts";
import {
  constantValue,
  floorDiv,
  type IndexExpr,
  type IndexLike,
  mul,
  toIndex,
} from "../semantics/index-expr.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import type { Tensor } from "../semantics/tensor.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";
import type { Graph, OpAttrs, OpKind, TensorType, ValueId } from "./graph.ts";

export interface NodeOptions {
  /** What the user calls the node; absent: that of the enclosing `withOrigin`. */
  readonly origin?: string;
  /** Wanted names of the outputs; made unique. */
  readonly names?: readonly string[];
  /** Wanted names of symbols that the node introduces (extents that the data decide). */
  readonly symbolNames?: readonly string[];
}

/** An input of a subgraph under construction. */
export interface InputDeclaration {
  readonly name: string;
  readonly type: TensorType;
}

export type SubgraphBody = (writer: OpWriter, inputs: readonly ValueId[]) => readonly ValueId[];

export abstract class OpWriter {
  /** Adds a node and returns all its outputs. Rejects (DiagnosticError) what does not type. */
  abstract nodes<K extends OpKind>(
    op: K,
    inputs: readonly ValueId[],
    attrs: OpAttrs[K],
    options?: NodeOptions,
  ): readonly ValueId[];

  /** A small constant (inline). */
  abstract constant(tensor: Tensor, name?: string): ValueId;

  abstract typeOf(value: ValueId): TensorType;

  /** The elements of a value that is an inline constant. */
  abstract constantOf(value: ValueId): Tensor | undefined;

  /** A graph for an attribute; it sees the symbols of this one. */
  abstract subgraph(name: string, inputs: readonly InputDeclaration[], body: SubgraphBody): Graph;

  /** Adds a node and returns its first output. */
  node<K extends OpKind>(
    op: K,
    inputs: readonly ValueId[],
    attrs: OpAttrs[K],
    options?: NodeOptions,
  ): ValueId {
    return this.nodes(op, inputs, attrs, options)[0]!;
  }

  /** A scalar constant. */
  scalar(value: number | bigint, dtype: DType): ValueId {
    if (isBigDType(dtype) && typeof value === "number" && !Number.isInteger(value)) {
      reject("GRF002", `the number ${value} among ${dtype}`, {
        help: "convert the operands to floats first",
      });
    }
    return this.constant(fromRef(refTensor(dtype, [], [value] as number[])));
  }

  /** A scalar constant of the element type of `like`. */
  scalarLike(value: number, like: ValueId): ValueId {
    return this.scalar(value, this.dtypeOf(like));
  }

  /** An i64 vector constant. */
  integers(values: readonly number[]): ValueId {
    return this.constant(fromRef(refTensor("i64", [values.length], values)));
  }

  dtypeOf(value: ValueId): DType {
    return this.typeOf(value).dtype;
  }

  shapeOf(value: ValueId): readonly IndexExpr[] {
    return this.typeOf(value).shape;
  }

  rankOf(value: ValueId): number {
    return this.shapeOf(value).length;
  }

  /** An elementwise operator; operands broadcast. */
  apply(op: ScalarOp, ...operands: readonly ValueId[]): ValueId {
    return this.node(op, operands, {} as OpAttrs[ScalarOp]);
  }

  add(a: ValueId, b: ValueId): ValueId {
    return this.apply("add", a, b);
  }

  sub(a: ValueId, b: ValueId): ValueId {
    return this.apply("sub", a, b);
  }

  mul(a: ValueId, b: ValueId): ValueId {
    return this.apply("mul", a, b);
  }

  div(a: ValueId, b: ValueId): ValueId {
    return this.apply("div", a, b);
  }

  /** The operator with a number on the right. */
  applyNumber(op: ScalarOp, a: ValueId, b: number): ValueId {
    return this.apply(op, a, this.scalarLike(b, a));
  }

  select(condition: ValueId, yes: ValueId, no: ValueId): ValueId {
    return this.apply("select", condition, yes, no);
  }

  /** A conversion, or the value itself when it already has the type. */
  cast(value: ValueId, to: DType): ValueId {
    return this.dtypeOf(value) === to ? value : this.node("cast", [value], { to, saturate: true });
  }

  /** One extent may be -1: what is left. Gives the value itself when the shape is the same. */
  reshape(value: ValueId, shape: readonly IndexLike[]): ValueId {
    const from = this.shapeOf(value);
    const target = shape.map((d) => (d === -1 ? this.#restOf(from, shape) : toIndex(d)));
    const same = target.length === from.length && target.every((d, i) => d.key === from[i]!.key);
    return same ? value : this.node("reshape", [value], { shape: target });
  }

  /** The extent for -1: what the others leave, axes that are empty on both sides set against each other. */
  #restOf(from: readonly IndexExpr[], shape: readonly IndexLike[]): IndexExpr {
    const known = shape.filter((d) => d !== -1);
    const isEmpty = known.some((d) => constantValue(d) === 0);
    const counted = (list: readonly IndexLike[]): readonly IndexLike[] =>
      isEmpty ? list.filter((d) => constantValue(d) !== 0) : list;
    return floorDiv(mul(...counted(from)), mul(...counted(known)));
  }

  transpose(value: ValueId, permutation: readonly number[]): ValueId {
    if (permutation.every((axis, i) => axis === i)) return value;
    return this.node("transpose", [value], { permutation });
  }

  reduce(kind: ReduceKind, value: ValueId, axes: readonly number[], keepDims: boolean): ValueId {
    return this.node("reduce", [value], { kind, axes, keepDims });
  }

  /** The range [start, start + size) of one axis. */
  sliceAxis(value: ValueId, axis: number, start: IndexLike, size: IndexLike): ValueId {
    const shape = this.shapeOf(value);
    const at = (i: number, inside: IndexLike, outside: IndexLike) =>
      toIndex(i === axis ? inside : outside);
    return this.node("slice", [value], {
      starts: shape.map((_, i) => at(i, start, 0)),
      steps: shape.map(() => 1),
      sizes: shape.map((d, i) => at(i, size, d)),
    });
  }

  concat(values: readonly ValueId[], axis: number): ValueId {
    return values.length === 1 ? values[0]! : this.node("concat", values, { axis });
  }

  iota(shape: readonly IndexLike[], axis: number, dtype: DType): ValueId {
    return this.node("iota", [], { shape: shape.map(toIndex), axis, dtype });
  }

  /** The product of some extents of a value as a scalar: a constant if they are. */
  extentProduct(value: ValueId, axes: readonly number[], dtype: DType): ValueId {
    const fixed = constantValue(mul(...axes.map((axis) => this.shapeOf(value)[axis]!)));
    if (fixed !== undefined) return this.scalar(fixed, dtype);
    const sizes = axes.map((axis) => this.cast(this.node("dimSize", [value], { axis }), dtype));
    return sizes.reduce((a, b) => this.mul(a, b));
  }

  /** `contract` with labels spelled as in `"i k, k j -> i j"`. */
  einsum(equation: string, lhs: ValueId, rhs: ValueId, accumulator?: DType): ValueId {
    const [left, right, output] = equation
      .split(/,|->/)
      .map((part) => part.split(" ").filter((label) => label !== "")) as [
      string[],
      string[],
      string[],
    ];
    return this.node("contract", [lhs, rhs], {
      lhs: left,
      rhs: right,
      output,
      accumulator: accumulator ?? this.dtypeOf(lhs),
    });
  }

  /** Numpy's matrix product: vectors count as rows or columns, leading axes broadcast. */
  matMul(a: ValueId, b: ValueId, accumulator?: DType): ValueId {
    const [rankA, rankB] = [this.rankOf(a), this.rankOf(b)];
    const batch = Math.max(rankA, rankB, 2) - 2;
    const names = Array.from({ length: batch }, (_, i) => `b${i}`);
    const left = this.#dropUnitBatch(a, b, names.slice(batch - Math.max(0, rankA - 2)));
    const right = this.#dropUnitBatch(b, a, names.slice(batch - Math.max(0, rankB - 2)));
    const row = rankA > 1 ? ["i"] : [];
    const column = rankB > 1 ? ["j"] : [];
    const present = names.filter((n) => left.names.includes(n) || right.names.includes(n));
    const product = this.node("contract", [left.value, right.value], {
      lhs: [...left.names, ...row, "k"],
      rhs: [...right.names, "k", ...column],
      output: [...present, ...row, ...column],
      accumulator: accumulator ?? this.dtypeOf(a),
    });
    if (present.length === names.length) return product;
    const found = this.shapeOf(product);
    const outer = names.map((n) => found[present.indexOf(n)] ?? toIndex(1));
    return this.reshape(product, [...outer, ...found.slice(present.length)]);
  }

  /** Batch axes of extent 1 that the other operand has longer (or not at all in both) are dropped. */
  #dropUnitBatch(
    value: ValueId,
    other: ValueId,
    names: readonly string[],
  ): { readonly value: ValueId; readonly names: readonly string[] } {
    const shape = this.shapeOf(value);
    const otherShape = this.shapeOf(other);
    const kept = names.map((_, i) => {
      if (constantValue(shape[i]!) !== 1) return true;
      const partner = otherShape[otherShape.length - shape.length + i];
      return partner !== undefined && constantValue(partner) === 1;
    });
    if (kept.every((k) => k)) return { value, names };
    const extents = shape.filter((_, i) => i >= names.length || kept[i]!);
    return { value: this.reshape(value, extents), names: names.filter((_, i) => kept[i]!) };
  }
}
