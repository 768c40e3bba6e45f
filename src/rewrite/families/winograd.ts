/**
 * Convolutions of 3 x 3 by Winograd's minimal filtering, F(2 x 2) and F(4 x 4) (Lavin and Gray, 2016): tiles
 * of the data and the filter are transformed, multiplied element by element and summed over channels, and
 * transformed back. F(2 x 2) takes 16 products for 4 results in place of 36, F(4 x 4) 36 for 16 in place
 * of 144. Equal over the real numbers; F(4 x 4) loses two or three bits more to rounding than sums do.
 */
import type { NodeId } from "../../egraph/index.ts";
import { constantValue, type IndexExpr, mul, toIndex } from "../../semantics/index-expr.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import { type RuleRow, row, sampled } from "../rule-row.ts";
import type { Site } from "../site.ts";

type Matrix = readonly (readonly number[])[];

interface Transform {
  /** Results along an axis of a tile; it reads two more. */
  readonly results: number;
  readonly data: Matrix;
  /** In whole numbers: the true filter transform divided by `divisor`. */
  readonly filter: Matrix;
  readonly divisor: number;
  readonly result: Matrix;
}

const two: Transform = {
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

const four: Transform = {
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

/** The terms of one rewrite. */
class Filtering {
  readonly #site: Site;
  readonly #transform: Transform;

  constructor(site: Site, transform: Transform) {
    this.#site = site;
    this.#transform = transform;
  }

  /** `lhs, rhs -> output` with a letter for each label. */
  #contract(spelled: string, lhs: NodeId, rhs: NodeId): NodeId {
    const [operands, output] = spelled.split(" -> ") as [string, string];
    const [left, right] = operands.split(", ") as [string, string];
    const accumulator = this.#site.type("x").dtype;
    const labels = { lhs: [...left], rhs: [...right], output: [...output] };
    return this.#site.add("contract", [lhs, rhs], { ...labels, accumulator });
  }

  #matrix(rows: Matrix): NodeId {
    const shape = [rows.length, rows[0]!.length];
    return this.#site.constant(fromRef(refTensor(this.#site.type("x").dtype, shape, rows.flat())));
  }

  #number(value: number): NodeId {
    return this.#site.constant(fromRef(refTensor(this.#site.type("x").dtype, [], [value])));
  }

  /** The filter [o, c, 3, 3] as [v, u, o, c]. */
  filter(): NodeId {
    const { filter, divisor } = this.#transform;
    const matrix = this.#matrix(filter);
    const rows = this.#contract("uk, ockl -> uocl", matrix, this.#site.id("w"));
    const whole = this.#contract("vl, uocl -> vuoc", matrix, rows);
    return this.#site.add("div", [whole, this.#number(divisor ** 2)], {});
  }

  /** Rows (or columns) of all tiles along a new first axis: those at 0, at 1, … of each tile. */
  #tiles(value: NodeId, shape: readonly IndexExpr[], [axis, count]: readonly [number, number]) {
    const { results, data } = this.#transform;
    const sizes = shape.map((d, i) => (i === axis ? toIndex(count) : d));
    const parts = data.map((_, start) => {
      const part = this.#site.add("slice", [value], {
        starts: shape.map((_, i) => toIndex(i === axis ? start : 0)),
        steps: shape.map((_, i) => (i === axis ? results : 1)),
        sizes,
      });
      return this.#site.add("reshape", [part], { shape: [toIndex(1), ...sizes] });
    });
    return {
      value: this.#site.add("concat", parts, { axis: 0 }),
      shape: [toIndex(data.length), ...sizes],
    };
  }

  /** The data as [v, u, n, c, y, x] over tiles. */
  data([high, wide]: readonly [number, number]): NodeId {
    const { results, data } = this.#transform;
    const { padLow } = this.#site.attrs<"convolution">("a");
    const shape = this.#site.shape("x");
    const extents = [high * results + 2, wide * results + 2];
    const behind = extents.map((d, i) => d - constantValue(shape[i + 2]!)! - padLow[i]!);
    const padded = this.#site.add("pad", [this.#site.id("x"), this.#number(0)], {
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
  result(products: NodeId, [high, wide]: readonly [number, number]): NodeId {
    const { results, result } = this.#transform;
    const matrix = this.#matrix(result);
    const rows = this.#contract("pu, vuonyx -> pvonyx", matrix, products);
    const both = this.#contract("qv, pvonyx -> noypxq", matrix, rows);
    const { shape } = this.#site.rootType();
    const whole = [shape[0]!, shape[1]!, mul(high, results), mul(wide, results)];
    const joined = this.#site.add("reshape", [both], { shape: whole });
    return this.#site.add("slice", [joined], {
      starts: shape.map(() => toIndex(0)),
      steps: shape.map(() => 1),
      sizes: shape,
    });
  }

  run(): NodeId | undefined {
    const { shape } = this.#site.rootType();
    const [height, width] = [shape[2]!, shape[3]!].map((d) => constantValue(d));
    if (height === undefined || width === undefined) return undefined;
    const { results } = this.#transform;
    const tiles = [Math.ceil(height / results), Math.ceil(width / results)] as const;
    const products = this.#contract("vuoc, vuncyx -> vuonyx", this.filter(), this.data(tiles));
    return this.result(products, tiles);
  }
}

const filtering = (name: string, transform: Transform): RuleRow =>
  sampled(
    row(
      name,
      "reassociates",
      "(convolution[?a] ?x ?w)",
      (site) => new Filtering(site, transform).run(),
      "constant(w); computed(x); float(x); ungrouped(a); threeByThree(a, x, w)",
    ),
    "#three-by-three",
  );

export const winograd: readonly RuleRow[] = [
  filtering("winograd-two", two),
  filtering("winograd-four", four),
];
