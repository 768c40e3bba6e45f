/** Attention of batches and lengths that a run decides: one program, right at every size up to the bound. */
import { describe, expect, it } from "vitest";
import {
  type AttentionCase,
  attentionGraph,
  attentionOf,
  attentionProgram,
} from "../../../campaign/ptx/attention-programs.ts";
import { runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import {
  fromRef,
  type RefTensor,
  randomRef,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";

interface Sizes {
  readonly B: number;
  readonly S: number;
  /** Of the columns, where they are not as many as rows. */
  readonly T?: number;
}

/** How far results are off at most, in units in the last place of the narrow type around the usual value. */
function offBy(
  c: AttentionCase,
  sizes: readonly Sizes[],
  padded: (mask: RefTensor) => RefTensor = (mask) => mask,
): readonly number[] {
  const scheduled = attentionOf(attentionGraph(c), c.how);
  const program = attentionProgram(scheduled);
  const [write] = scheduled.statements.at(-1)!.statement.writes;
  return sizes.map((at) => {
    const graph = attentionGraph(c);
    const values = new Map(Object.entries(at));
    const rng = new Rng(7);
    const inputs = graph.inputs.map((id) => {
      const { dtype, shape } = graph.values[id]!.type;
      const drawn = randomRef(
        dtype,
        shape.map((e) => evaluate(e, values)),
        rng,
      );
      return graph.values[id]!.name === "m" ? padded(drawn) : drawn;
    });
    const wide = inputs.map((x) => ({ ...x, dtype: "f32" as const }));
    const want = runGraph(attentionGraph({ ...c, dtype: "f32" }), wide);
    if (!want.ok) throw new Error(want.diagnostics[0]!.message);
    // Operands go by the names of views in a region by itself.
    const named = (name: string): readonly string[] =>
      program.buffers.map((b) => b.name).filter((n) => n === name || n.startsWith(`${name}.j`));
    const contents = new Map(
      graph.inputs.flatMap((id, i) => {
        const bytes = tensorBytes(fromRef(inputs[i]!));
        return named(graph.values[id]!.name).map((name) => [name, bytes] as const);
      }),
    );
    const outcome = runProgram(program, { parameters: { ...at }, contents, threads: 1, seed: 2 });
    if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
    const { shape } = want.value[0]!;
    const data = Array.from(want.value[0]!.data, Number);
    const bytes = outcome.contents.get(write!.tensor)!.slice();
    const found = Array.from(toRef(tensorFromBytes(c.dtype, shape, bytes)).data, Number);
    const unit = c.dtype === "bf16" ? 2 ** -8 : 2 ** -11;
    const usual = Math.sqrt(data.reduce((n, v) => n + v ** 2, 0) / data.length);
    const off = found.map((v, i) => Math.abs(v - data[i]!) / unit / (Math.abs(v) + 2 * usual));
    return Math.max(...off);
  });
}

const small = { heads: 2, groups: 2, depth: 16, causal: false, mask: false, open: true } as const;
const square = { ...small, rows: 70, columns: 70, dtype: "f16" } as const;
const mma = "by mma tile (32, 32) warps 2 stages 2";
const wgmma = "by wgmma tile (64, 32) warps 4 stages 2";
const heads = { ...square, depth: 64, rows: 130, columns: 130 } as const;

describe("attention of open extents", () => {
  it.each<readonly [string, AttentionCase, readonly Sizes[]]>([
    ["as many rows as columns", { ...square, how: mma }, sizesOf(1, 32, 33, 70)],
    ["a mask of padding", { ...square, mask: true, how: mma }, sizesOf(1, 20, 64)],
    ["a triangle", { ...square, causal: true, how: mma }, sizesOf(1, 31, 32, 70)],
    ["heads that share keys", { ...square, heads: 4, causal: true, how: mma }, sizesOf(3, 40)],
    ["a band", { ...square, causal: true, behind: 20, how: mma }, sizesOf(5, 64, 70)],
    [
      "rows and columns apart",
      { ...square, columns: 90, how: mma.replace("(32, 32) warps 2", "(16, 32) warps 1") },
      [
        { B: 1, S: 3, T: 90 },
        { B: 2, S: 17, T: 1 },
      ],
    ],
    ["three stages", { ...square, dtype: "bf16", how: `${mma.slice(0, -1)}3` }, sizesOf(2, 50)],
    ["streams", { ...heads, how: wgmma }, sizesOf(1, 64, 65)],
    ["streams that gather", { ...heads, how: `${wgmma} gathered` }, sizesOf(7, 100)],
    ["streams of a triangle", { ...heads, causal: true, how: wgmma }, sizesOf(33, 70)],
  ])("%s", (_, c, sizes) => {
    for (const off of offBy(c, sizes)) expect(off).toBeLessThanOrEqual(1);
  });
});

/** A mask as models of padded sequences make it: the least float of its type, of the second sequence everywhere. */
function leastBehind(kept: number): (mask: RefTensor) => RefTensor {
  const least = -(2 ** 127) * (2 - 2 ** -7);
  return (mask) => {
    const columns = mask.shape.at(-1)!;
    const data = Float64Array.from(mask.data as Float64Array, (_, i) =>
      i % columns < kept && i < columns ? 0 : least,
    );
    return { ...mask, data };
  };
}

it("rows whose first steps are padding have the weights of the others, and all padding has equal weights", () => {
  const bf16 = { ...square, dtype: "bf16", mask: true, how: mma } as const;
  const sizes = [
    { B: 1, S: 70 },
    { B: 2, S: 64 },
  ];
  for (const off of offBy(bf16, sizes, leastBehind(20))) expect(off).toBeLessThanOrEqual(1);
});

/** Two sequences of each length, of the first one alone. */
function sizesOf(...lengths: readonly number[]): readonly Sizes[] {
  return lengths.map((S, i) => ({ B: i === 0 ? 1 : 2, S }));
}
