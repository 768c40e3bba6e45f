/** Determinants by elimination, and the filter bank of mel frequencies. */
import { constant, constantValue } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import type { NodeView } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

const largestDeterminant = 64;

/**
 * Gaussian elimination with the largest pivot of each column, a step a row: the pivot row is blended to
 * the top by a permutation that its position selects, and the sign turns where it was not there.
 */
function determinant(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype, shape } = x.type;
  const rank = shape.length;
  const size = rank < 2 ? undefined : constantValue(shape[rank - 1]!);
  if (size === undefined || size > largestDeterminant || constantValue(shape[rank - 2]!) !== size) {
    node.refuse(
      `matrices of shape ${shape.slice(-2).map((d) => d.key)}`,
      `up to ${largestDeterminant} square`,
    );
  }
  const batch = shape.slice(0, -2);
  let product = node.emit("broadcast", [node.splat(dtype, 1)], { shape: batch });
  let rest = x;
  for (let n = size; n > 0; n--) {
    const { top, others, sign } = pivot(node, rest, n, batch.length);
    const head = node.reshape(cut(node, top, rank - 1, 0, 1), batch);
    product = node.emit("mul", [product, node.emit("mul", [head, sign], {})], {});
    if (n > 1) rest = eliminate(node, top, others, rank);
  }
  return product;
}

/**
 * Gauss and Jordan: [x, 1] is turned into [1, inverse], a column a step. The other rows keep no order, only
 * those that were pivots go to the bottom, so that after all steps they stand as they were picked.
 */
export function inverse(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype, shape } = x.type;
  const rank = shape.length;
  const size = rank < 2 ? undefined : constantValue(shape[rank - 1]!);
  if (!size || size > largestDeterminant || constantValue(shape[rank - 2]!) !== size) {
    const found = `matrices of shape ${shape.slice(-2).map((d) => d.key)}`;
    node.refuse(found, `up to ${largestDeterminant} square`);
  }
  const batch = shape.slice(0, -2);
  const ones = Array.from({ length: size * size }, (_, i) => Number(i % (size + 1) === 0));
  const identity = node.cast(constantFromRef(refTensor("f64", [size, size], ones)), dtype);
  const beside = node.emit("broadcast", [identity], { shape });
  let open = node.emit("concat", [x, beside], { axis: rank - 1 });
  let done: Operand | undefined;
  for (let n = size; n > 0; n--) {
    const { top, others } = pivot(node, open, n, batch.length);
    const head = cut(node, top, rank - 1, 0, 1);
    const width = constantValue(top.type.shape[rank - 1]!)! - 1;
    const row = node.emit("div", [cut(node, top, rank - 1, 1, width), head], {});
    const without = (rows: Operand): Operand => {
      const factors = cut(node, rows, rank - 1, 0, 1);
      const rest = cut(node, rows, rank - 1, 1, width);
      return node.emit("sub", [rest, node.emit("mul", [factors, row], {})], {});
    };
    const above = done && without(done);
    done = above ? node.emit("concat", [above, row], { axis: rank - 2 }) : row;
    if (n > 1) open = without(others);
  }
  return done!;
}

/** The row with the largest first entry, and the others with the first row in its place. */
function pivot(node: NodeView, x: Operand, n: number, batch: number) {
  const { dtype, shape } = x.type;
  const rank = batch + 2;
  const column = node.reshape(cut(node, x, rank - 1, 0, 1), [
    ...shape.slice(0, batch),
    constant(n),
  ]);
  const sizes = node.emit("abs", [column], {});
  const extreme = { kind: "max", axis: batch, keepDims: true, selectLast: false } as const;
  const place = node.emit("argReduce", [sizes], extreme);
  const at = node.reshape(place, [...shape.slice(0, batch), constant(1), constant(1)]);
  const rows = node.emit("iota", [], { shape: [constant(n), constant(1)], axis: 0, dtype: "i64" });
  const chosen = node.emit("equal", [rows, at], {});
  const picked = node.emit("select", [chosen, x, node.splat(dtype, 0)], {});
  const sum = { kind: "sum", axes: [rank - 2], keepDims: true } as const;
  const top = node.emit("reduce", [picked], sum);
  const first = cut(node, x, rank - 2, 0, 1);
  const swapped = node.emit("select", [chosen, first, x], {});
  const moved = node.emit(
    "equal",
    [node.reshape(place, shape.slice(0, batch)), node.splat("i64", 0)],
    {},
  );
  const sign = node.emit("select", [moved, node.splat(dtype, 1), node.splat(dtype, -1)], {});
  return { top, others: n > 1 ? cut(node, swapped, rank - 2, 1, n - 1) : swapped, sign };
}

/** others - others[:, 0] / top[0] * top, without the first column; a zero pivot leaves zeros. */
function eliminate(node: NodeView, top: Operand, others: Operand, rank: number): Operand {
  const { dtype, shape } = others.type;
  const width = constantValue(shape[rank - 1]!)! - 1;
  const head = cut(node, top, rank - 1, 0, 1);
  const zero = node.emit("equal", [head, node.splat(dtype, 0)], {});
  const divisor = node.emit("select", [zero, node.splat(dtype, 1), head], {});
  const factors = node.emit("div", [cut(node, others, rank - 1, 0, 1), divisor], {});
  const taken = node.emit("mul", [factors, cut(node, top, rank - 1, 1, width)], {});
  return node.emit("sub", [cut(node, others, rank - 1, 1, width), taken], {});
}

function cut(node: NodeView, x: Operand, axis: number, start: number, size: number): Operand {
  const { shape } = x.type;
  return node.emit("slice", [x], {
    starts: shape.map((_, i) => constant(i === axis ? start : 0)),
    steps: shape.map(() => 1),
    sizes: shape.map((d, i) => (i === axis ? constant(size) : d)),
  });
}

/** Triangles over the bins of a transform, equally wide on the mel scale: 2595 log10(1 + f / 700). */
function melWeights(node: NodeView): Operand {
  const [bins, length, rate, low, high] = [0, 1, 2, 3, 4].map(
    (i) => node.numbers(i, "a parameter")[0]!,
  );
  const columns = bins!;
  const rows = Math.floor(length! / 2) + 1;
  if (!(columns >= 1 && rows >= 1)) node.refuse(`${rows} by ${columns} weights`, "one or more");
  node.checkTable(columns * rows, "weights");
  const mel = (f: number) => 2595 * Math.log10(1 + f / 700);
  const [start, end] = [mel(low!), mel(high!)];
  const edge = (i: number) => {
    const m = start + (i * (end - start)) / (columns + 2);
    return Math.floor(((length! + 1) * (700 * (10 ** (m / 2595) - 1))) / rate!);
  };
  const values = new Array<number>(rows * columns).fill(0);
  for (let c = 0; c < columns; c++) {
    const [left, center, right] = [edge(c), edge(c + 1), edge(c + 2)];
    if (!(left >= 0 && left <= center && center <= right && right < Infinity)) {
      node.refuse(
        `a triangle over the bins ${left}, ${center}, ${right}`,
        "bins from 0 on, rising",
      );
    }
    if (center === left && center < rows) values[center * columns + c] = 1;
    for (let r = left; r < Math.min(center, rows); r++) {
      values[r * columns + c] = (r - left) / (center - left);
    }
    for (let r = center; r < Math.min(right, rows); r++) {
      values[r * columns + c] = (right - r) / (right - center);
    }
    if (center !== left && center < rows) values[center * columns + c] = 1;
  }
  const dtype = node.dtype(node.attributes.int("output_datatype") ?? 1);
  return node.cast(constantFromRef(refTensor("f64", [rows, columns], values)), dtype);
}

export const linearAlgebraRows = {
  Det: { since: [11, 22], convert: determinant },
  MelWeightMatrix: { since: [17], convert: melWeights },
} satisfies OperatorTable;
