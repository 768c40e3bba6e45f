/**
 * One attention of the suites on a device: its graph, operands of random values that the host knows without
 * keeping them, and the largest difference of results from float64 at sampled rows.
 */
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import type { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";

export interface AttentionCase {
  readonly name: string;
  readonly batch: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly causal: boolean;
  /** Columns before the last one that a row of a causal case meets as well; absent: all. */
  readonly behind?: number;
  /** Columns that count in each problem of the batch: data of the graph; absent: all. */
  readonly lengths?: readonly number[];
}

/** Queries, keys, values. */
export type OperandNumber = 0 | 1 | 2;
const operandNames = ["q", "k", "v"] as const;

export function attentionGraph(c: AttentionCase, dtype: "bf16" | "f16"): Graph {
  const g = new GraphBuilder("attention");
  const input = (name: string, shape: readonly number[]) =>
    g.input(name, { dtype, shape: shape.map((d) => constant(d)) });
  const q = input("q", [c.batch, c.heads, c.rows, c.depth]);
  const k = input("k", [c.batch, c.groups, c.columns, c.depth]);
  const v = input("v", [c.batch, c.groups, c.columns, c.depth]);
  const band = c.behind === undefined ? {} : { behind: c.behind };
  const mask = c.lengths && lengthMask(g, c);
  const causal = c.causal && !mask ? "end" : "none";
  const attrs = { scale: 1 / Math.sqrt(c.depth), causal, ...band, softcap: 0 };
  const operands = [q, k, v, ...(mask === undefined ? [] : [mask])];
  return g.finish([g.node("attention", operands, { ...attrs, mask: mask !== undefined } as never)]);
}

/** The whole of the columns, or half of them for one problem, and then any numbers of them. */
export function drawLengths(seed: number, batch: number, columns: number): readonly number[] {
  const rng = new Rng(seed);
  const others = Array.from({ length: batch - 1 }, () => rng.integer(1, columns));
  return batch === 1 ? [Math.ceil(columns / 2)] : [columns, ...others];
}

/** Columns before the length of their problem, up to the row where causal: an operand behind the others. */
function lengthMask(g: GraphBuilder, { batch, rows, columns, causal }: AttentionCase): ValueId {
  const one = constant(1);
  const given = g.input("lengths", { dtype: "i64", shape: [constant(batch)] });
  const length = g.node("reshape", [given], { shape: [constant(batch), one, one, one] });
  const place = (shape: readonly number[], axis: number): ValueId =>
    g.node("iota", [], { shape: shape.map((n) => constant(n)), axis, dtype: "i64" });
  const column = place([1, columns], 1);
  const before = g.node("less", [column, length], {});
  if (!causal) return before;
  const upTo = g.node("lessEqual", [column, place([rows, 1], 0)], {});
  return g.node("and", [before, upTo], {});
}

export function elementsOf(c: AttentionCase, operand: OperandNumber): number {
  const lines = operand === 0 ? c.rows * c.heads : c.columns * c.groups;
  return c.batch * lines * c.depth;
}

/** Where a case's inputs lie, the names of its graph. */
interface Inputs {
  readonly names: readonly string[];
  readonly addressOf: (name: string) => bigint;
}

/**
 * Gives a program the operands of a case, each to the input of its name.
 * Throws where the program has an input that the case does not know, or lacks one of a case's operands.
 * @returns the address of each
 */
export function uploadOperands(
  device: Pick<CudaDevice, "upload">,
  { names, addressOf }: Inputs,
  c: AttentionCase,
  pool: Pick<OperandPool, "upload">,
): ReadonlyMap<string, bigint> {
  const at = new Map(names.map((name) => [name, addressOf(name)]));
  const expected = [...operandNames, ...(c.lengths ? ["lengths"] : [])];
  const unknown = names.filter((name) => !expected.includes(name));
  const lacking = expected.filter((name) => !at.has(name));
  if (unknown.length > 0) throw new Error(`nothing is known of the inputs ${unknown.join(", ")}`);
  if (lacking.length > 0) throw new Error(`the program takes no ${lacking.join(", ")}`);
  operandNames.forEach((name, operand) => {
    pool.upload(device, at.get(name)!, operand, elementsOf(c, operand as OperandNumber));
  });
  if (c.lengths) {
    const lengths = BigInt64Array.from(c.lengths, BigInt);
    device.upload(at.get("lengths")!, new Uint8Array(lengths.buffer));
  }
  return at;
}

const period = 4_194_301;

/** Normal values that come again after a prime number of them; operands begin at different places. */
export class OperandPool {
  readonly dtype: "bf16" | "f16";
  readonly #stored: Uint16Array;

  constructor(dtype: "bf16" | "f16") {
    this.dtype = dtype;
    const rng = new Rng(1);
    this.#stored = Uint16Array.from({ length: period }, () => encodeFloat(dtype, rng.normal()));
  }

  valueAt(operand: number, index: number): number {
    return decodeFloat(this.dtype, this.#stored[(index + 1009 * operand) % period]!);
  }

  upload(device: Pick<CudaDevice, "upload">, at: bigint, operand: number, count: number): void {
    for (let from = 0; from < count; ) {
      const start = (from + 1009 * operand) % period;
      const length = Math.min(period - start, count - from);
      const { buffer, byteOffset, byteLength } = this.#stored.subarray(start, start + length);
      device.upload(at + BigInt(2 * from), new Uint8Array(buffer, byteOffset, byteLength));
      from += length;
    }
  }
}

/** The largest difference from float64 at sampled rows, in units of what rounding allows. */
export function worstError(
  c: AttentionCase,
  pool: OperandPool,
  read: (at: number, bytes: Uint8Array) => void,
): number {
  const { dtype } = pool;
  const valueAt = (operand: number, index: number): number => pool.valueAt(operand, index);
  const draw = new Rng(3);
  let worst = 0;
  for (let sample = 0; sample < 6; sample++) {
    const problem = sample === 0 ? 0 : draw.integer(0, c.batch * c.heads - 1);
    const row = [0, c.rows - 1][sample] ?? draw.integer(0, c.rows - 1);
    const group =
      Math.floor(problem / c.heads) * c.groups +
      Math.floor(((problem % c.heads) * c.groups) / c.heads);
    const first = problem * c.rows + row;
    const before = c.causal ? row + 1 + c.columns - c.rows : c.columns;
    const met = Math.min(before, c.lengths?.[Math.floor(problem / c.heads)] ?? before);
    const from = Math.max(0, met - 1 - (c.behind ?? Infinity));
    const scores = Float64Array.from({ length: met - from }, (_, place) => {
      const t = from + place;
      let s = 0;
      for (let d = 0; d < c.depth; d++)
        s += valueAt(0, first * c.depth + d) * valueAt(1, (group * c.columns + t) * c.depth + d);
      return s / Math.sqrt(c.depth);
    });
    const most = scores.reduce((a, b) => Math.max(a, b));
    const weights = scores.map((s) => Math.exp(s - most));
    const total = weights.reduce((a, b) => a + b);
    const want = Float64Array.from({ length: c.depth }, (_, e) => {
      let s = 0;
      for (let t = from; t < met; t++)
        s += weights[t - from]! * valueAt(2, (group * c.columns + t) * c.depth + e);
      return s / total;
    });
    const bytes = new Uint8Array(2 * c.depth);
    read(first * c.depth, bytes);
    const raw = new Uint16Array(bytes.buffer);
    const usual = Math.sqrt(want.reduce((s, v) => s + v * v, 0) / c.depth);
    const unit = dtype === "f16" ? 2 ** -10 : 2 ** -7;
    for (let e = 0; e < c.depth; e++) {
      const off = Math.abs(decodeFloat(dtype, raw[e]!) - want[e]!);
      const error = off / (unit * (Math.abs(want[e]!) + usual));
      worst = Number.isNaN(error) ? Infinity : Math.max(worst, error);
    }
  }
  return worst;
}
