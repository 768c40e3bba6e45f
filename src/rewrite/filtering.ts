/**
 * Winograd's minimal filtering of convolutions of 3 x 3, F(2 x 2) and F(4 x 4) (Lavin and Gray, 2016): tiles
 * of the data and the filter are transformed, multiplied element by element and summed over channels, and
 * transformed back. F(2 x 2) takes 16 products for 4 results in place of 36, F(4 x 4) 36 for 16 in place
 * of 144. Equal over the real numbers. In f32, beside sums in float64 and relative to the largest result,
 * 256 channels of normal numbers: summed one after another 1.8e-6, F(2 x 2) 4.7e-7, F(4 x 4) 9.6e-6.
 */
import type { OpAttrs, OpKind } from "../graph/graph.ts";
import type { DType } from "../semantics/dtype.ts";
import { constantValue, type IndexExpr, mul, toIndex } from "../semantics/index-expr.ts";
import { fromRef, refTensor, type Tensor } from "../semantics/tensor.ts";

type Matrix = readonly (readonly number[])[];

export interface Transform {
  /** Results along an axis of a tile; it reads two more. */
  readonly results: number;
  readonly data: Matrix;
  /** In whole numbers: the true filter transform divided by `divisor`. */
  readonly filter: Matrix;
  readonly divisor: number;
  readonly result: Matrix;
}

export const two: Transform = {
  results: 2,
  data: [
    [1, 0, -1, 0],
    [0, 1, 1, 0],
    [0, -1, 1, 0],
    [0, 1, 0, -1],
  ],
  filter: [
    [2, 0, 0],
    [1, 1, 1],
    [1, -1, 1],
    [0, 0, 2],
  ],
  divisor: 2,
  result: [
    [1, 1, 1, 0],
    [0, 1, -1, -1],
  ],
};

export const four: Transform = {
  results: 4,
  data: [
    [4, 0, -5, 0, 1, 0],
    [0, -4, -4, 1, 1, 0],
    [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0],
    [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
  ],
  filter: [
    [6, 0, 0],
    [-4, -4, -4],
    [-4, 4, -4],
    [1, 2, 4],
    [1, -2, 4],
    [0, 0, 24],
  ],
  divisor: 24,
  result: [
    [1, 1, 1, 1, 1, 0],
    [0, 1, -1, 2, -2, 0],
    [0, 1, 1, 4, 4, 0],
    [0, 1, -1, 8, -8, 1],
  ],
};

/** Where nodes are written: into an e-graph, or into a graph. */
export interface NodeWriter<Id> {
  add<K extends OpKind>(op: K, inputs: readonly Id[], attrs: OpAttrs[K]): Id;
  constant(tensor: Tensor): Id;
}

/** A convolution that moves by one, without dilation or groups. */
export interface Filtered<Id> {
  readonly x: Id;
  readonly w: Id;
  readonly dtype: DType;
  readonly padLow: readonly number[];
  /** [n, channels, height, width]; height and width are known. */
  readonly data: readonly IndexExpr[];
  readonly result: readonly IndexExpr[];
}

/** The nodes that compute the convolution by a transform; undefined where the result's extents are open. */
export function filter<Id>(
  writer: NodeWriter<Id>,
  convolution: Filtered<Id>,
  transform: Transform,
): Id | undefined {
  return new Filtering(writer, convolution, transform).run();
}

class Filtering<Id> {
  readonly #writer: NodeWriter<Id>;
  readonly #convolution: Filtered<Id>;
  readonly #transform: Transform;

  constructor(writer: NodeWriter<Id>, convolution: Filtered<Id>, transform: Transform) {
    this.#writer = writer;
    this.#convolution = convolution;
    this.#transform = transform;
  }

  /** `lhs, rhs -> output` with a letter for each label. */
  #contract(spelled: string, lhs: Id, rhs: Id): Id {
    const [operands, output] = spelled.split(" -> ") as [string, string];
    const [left, right] = operands.split(", ") as [string, string];
    const accumulator = this.#convolution.dtype;
    const labels = { lhs: [...left], rhs: [...right], output: [...output] };
    return this.#writer.add("contract", [lhs, rhs], { ...labels, accumulator });
  }

  #matrix(rows: Matrix): Id {
    const shape = [rows.length, rows[0]!.length];
    return this.#writer.constant(fromRef(refTensor(this.#convolution.dtype, shape, rows.flat())));
  }

  #number(value: number): Id {
    return this.#writer.constant(fromRef(refTensor(this.#convolution.dtype, [], [value])));
  }

  /** The filter [o, c, 3, 3] as [v, u, o, c]. */
  filter(): Id {
    const { filter, divisor } = this.#transform;
    const matrix = this.#matrix(filter);
    const rows = this.#contract("uk, ockl -> uocl", matrix, this.#convolution.w);
    const whole = this.#contract("vl, uocl -> vuoc", matrix, rows);
    return this.#writer.add("div", [whole, this.#number(divisor ** 2)], {});
  }

  /** Rows (or columns) of all tiles along a new first axis: those at 0, at 1, … of each tile. */
  #tiles(value: Id, shape: readonly IndexExpr[], [axis, count]: readonly [number, number]) {
    const { results, data } = this.#transform;
    const sizes = shape.map((d, i) => (i === axis ? toIndex(count) : d));
    const parts = data.map((_, start) => {
      const part = this.#writer.add("slice", [value], {
        starts: shape.map((_, i) => toIndex(i === axis ? start : 0)),
        steps: shape.map((_, i) => (i === axis ? results : 1)),
        sizes,
      });
      return this.#writer.add("reshape", [part], { shape: [toIndex(1), ...sizes] });
    });
    return {
      value: this.#writer.add("concat", parts, { axis: 0 }),
      shape: [toIndex(data.length), ...sizes],
    };
  }

  /** The data as [v, u, n, c, y, x] over tiles. */
  data([high, wide]: readonly [number, number]): Id {
    const { results, data } = this.#transform;
    const { padLow, data: shape } = this.#convolution;
    const extents = [high * results + 2, wide * results + 2];
    const behind = extents.map((d, i) => d - constantValue(shape[i + 2]!)! - padLow[i]!);
    const padded = this.#writer.add("pad", [this.#convolution.x, this.#number(0)], {
      low: [0, 0, ...padLow].map(toIndex),
      high: [0, 0, ...behind].map(toIndex),
      mode: "constant",
    });
    const matrix = this.#matrix(data);
    const whole = [shape[0]!, shape[1]!, ...extents.map(toIndex)];
    const rows = this.#tiles(padded, whole, [2, high]);
    const half = this.#contract("ui, incyw -> uncyw", matrix, rows.value);
    const columns = this.#tiles(half, rows.shape, [4, wide]);
    return this.#contract("vj, juncyx -> vuncyx", matrix, columns.value);
  }

  /** Products [v, u, o, n, y, x] as [n, o, rows, columns]. */
  result(products: Id, [high, wide]: readonly [number, number]): Id {
    const { results, result } = this.#transform;
    const matrix = this.#matrix(result);
    const rows = this.#contract("pu, vuonyx -> pvonyx", matrix, products);
    const both = this.#contract("qv, pvonyx -> noypxq", matrix, rows);
    const shape = this.#convolution.result;
    const whole = [shape[0]!, shape[1]!, mul(high, results), mul(wide, results)];
    const joined = this.#writer.add("reshape", [both], { shape: whole });
    return this.#writer.add("slice", [joined], {
      starts: shape.map(() => toIndex(0)),
      steps: shape.map(() => 1),
      sizes: shape,
    });
  }

  run(): Id | undefined {
    const [height, width] = this.#convolution.result.slice(2).map((d) => constantValue(d));
    if (height === undefined || width === undefined) return undefined;
    const { results } = this.#transform;
    const tiles = [Math.ceil(height / results), Math.ceil(width / results)] as const;
    const products = this.#contract("vuoc, vuncyx -> vuonyx", this.filter(), this.data(tiles));
    return this.result(products, tiles);
  }
}
