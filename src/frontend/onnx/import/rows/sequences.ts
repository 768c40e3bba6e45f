/**
 * Sequences and optionals. Both are lists that the importer keeps: what is put in and taken out is
 * decided at import, so that the graph sees tensors only. Positions and lengths must be known.
 */
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  min,
  mul,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { type NodeView, one } from "../node-view.ts";
import { type Bound, describeBound, isOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { sliceAxis } from "./slicing.ts";

const sequence = (elements: readonly Bound[]): Bound => ({ kind: "sequence", elements });

/** A position counted from 0; `last` is the greatest that is allowed. */
function positionOf(node: NodeView, index: number, last: number): number {
  const [given] = node.integers(index, "position");
  const length = last + 1;
  const position = given! < 0 ? given! + length : given!;
  if (position < 0 || position > last) {
    node.refuse(`position ${given} in a sequence`, `${-length} to ${last}`);
  }
  return position;
}

function insert(node: NodeView): Bound {
  const elements = node.sequence(0);
  const at = node.inputs[2] ? insertionPoint(node, elements.length) : elements.length;
  return sequence([...elements.slice(0, at), node.bound(1), ...elements.slice(at)]);
}

/** From -n to n: negative positions count from the end of what is there. */
function insertionPoint(node: NodeView, length: number): number {
  const [given] = node.integers(2, "position");
  const at = given! < 0 ? given! + length : given!;
  if (at < 0 || at > length) node.refuse(`position ${given}`, `${-length} to ${length}`);
  return at;
}

function erase(node: NodeView): Bound {
  const elements = node.sequence(0);
  const last = elements.length - 1;
  if (last < 0) node.refuse("an empty sequence", "one with elements");
  const at = node.inputs[1] ? positionOf(node, 1, last) : last;
  return sequence(elements.filter((_, i) => i !== at));
}

function elementAt(node: NodeView): Bound {
  const elements = node.sequence(0);
  return elements[positionOf(node, 1, elements.length - 1)]!;
}

/** Parts of given lengths, of one length, or single entries (which may lose their axis). */
function split(node: NodeView): Bound {
  const x = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, x.type.shape.length);
  const keepDims = node.attributes.flag("keepdims", true);
  const extent = x.type.shape[axis]!;
  const given = node.optional(1);
  const lengths = given
    ? given.type.shape.length === 0
      ? partsOf(node, extent, node.indexList(1, "split")[0]!)
      : node.indexList(1, "split")
    : partsOf(node, extent, one);
  let start: IndexExpr = constant(0);
  const parts: Operand[] = [];
  for (const size of lengths) {
    parts.push(sliceAxis(node, x, { axis, start, step: 1, size }));
    start = add(start, size);
  }
  if (given || keepDims) return sequence(parts);
  const rest = x.type.shape.filter((_, i) => i !== axis);
  return sequence(parts.map((part) => node.reshape(part, rest)));
}

function partsOf(node: NodeView, extent: IndexExpr, size: IndexExpr): readonly IndexExpr[] {
  if (constantValue(size) !== undefined && constantValue(size)! < 1) {
    node.refuse(`parts of size ${size.key}`, "positive sizes");
  }
  const count = node.fixedExtent(ceilDiv(extent, size), "the number of parts");
  if (count > largestUnroll) node.refuse(`${count} parts`, `at most ${largestUnroll}`);
  const { ranges } = node.emitter.assembly.symbols;
  return Array.from({ length: count }, (_, i) =>
    simplify(min(size, sub(extent, mul(i, size))), ranges),
  );
}

function concatenate(node: NodeView): Operand {
  const elements = tensorsOf(node, node.sequence(0));
  const [first] = elements;
  if (!first) node.refuse("an empty sequence", "one with elements");
  const given = node.attributes.int("axis") ?? 0;
  if (!node.attributes.flag("new_axis", false)) {
    const axis = node.axis(given, first.type.shape.length);
    return node.concat(elements, axis);
  }
  return stack(node, elements, node.axis(given, first.type.shape.length + 1));
}

/** Tensors of equal shape side by side along a new axis. */
export function stack(node: NodeView, elements: readonly Operand[], axis: number): Operand {
  const widened = elements.map((e) => {
    const { shape } = e.type;
    return node.reshape(e, [...shape.slice(0, axis), one, ...shape.slice(axis)]);
  });
  return node.concat(widened, axis);
}

function tensorsOf(node: NodeView, elements: readonly Bound[]): readonly Operand[] {
  return elements.map((e) =>
    isOperand(e) ? e : node.refuse(`${describeBound(e)} in the sequence`, "tensors"),
  );
}

/** The body at each position; operands that are no sequence are the same for all. */
function map(node: NodeView): readonly Bound[] {
  const body = node.attributes.graph("body");
  if (!body) node.refuse("a SequenceMap without a body", "one body");
  const { length } = node.sequence(0);
  if (length > largestUnroll) node.refuse(`${length} elements`, `at most ${largestUnroll}`);
  const operands = node.inputs.map((_, i) => node.bound(i));
  const uneven = operands.some((o) => o.kind === "sequence" && o.elements.length !== length);
  if (uneven) node.refuse("sequences of different length", "equal lengths");
  const results = Array.from({ length }, (_, i) =>
    node.subgraphs.inline(
      body,
      operands.map((o) => (o.kind === "sequence" ? o.elements[i]! : o)),
    ),
  );
  return body.output.map((_, o) => sequence(results.map((r) => r[o]!)));
}

/** Copies of a body, or parts of a tensor, that stand in a graph side by side. */
export const largestUnroll = 4096;

function optional(node: NodeView): Bound {
  node.attributes.ignore("type");
  return node.inputs[0] ?? { kind: "none" };
}

function getElement(node: NodeView): Bound {
  const bound = node.bound(0);
  return bound.kind === "none" ? node.refuse("an optional without a value", "a value") : bound;
}

function hasElement(node: NodeView): Operand {
  const bound = node.inputs[0];
  return node.splat("bool", bound === undefined || bound.kind === "none" ? 0 : 1);
}

export const sequenceRows = {
  SequenceEmpty: {
    since: [11],
    convert: (node) => {
      node.attributes.ignore("dtype");
      return sequence([]);
    },
  },
  SequenceConstruct: {
    since: [11],
    convert: (node) => sequence(node.inputs.map((_, i) => node.bound(i))),
  },
  SequenceInsert: { since: [11], convert: insert },
  SequenceErase: { since: [11], convert: erase },
  SequenceAt: { since: [11], convert: elementAt },
  SequenceLength: {
    since: [11],
    convert: (node) => node.indices([node.sequence(0).length], []),
  },
  SplitToSequence: { since: [11, 24], convert: split },
  ConcatFromSequence: { since: [11], convert: concatenate },
  SequenceMap: { since: [17], convert: map },
  Optional: { since: [15], convert: optional },
  OptionalGetElement: { since: [15, 18], convert: getElement },
  OptionalHasElement: { since: [15, 18], convert: hasElement },
} satisfies OperatorTable;
