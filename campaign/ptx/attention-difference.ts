/** Attention as it is lowered and proved, run by the interpreter, against the oracle of the same graph in f32. */

import { runGraph } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  type RefTensor,
  randomRef,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import {
  type AttentionCase,
  attentionGraph,
  attentionOf,
  attentionProgram,
} from "./attention-programs.ts";

/** How far results are off at most, in units in the last place of the narrow type around the usual value. */
export function offBy(
  c: AttentionCase,
  sizes: readonly Readonly<Record<string, number>>[],
  given: (name: string, drawn: RefTensor) => RefTensor = (_, drawn) => drawn,
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
      return given(graph.values[id]!.name, drawn);
    });
    const wide = inputs.map((x) => (x.dtype === c.dtype ? { ...x, dtype: "f32" as const } : x));
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
