import { expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { noWeights } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { encodeFloat } from "../../semantics/float-codec.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { GraphBuilder } from "../builder.ts";
import { tensorType } from "../tensor-type.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

// Ones: from 256 on bf16 has no next integer, so that a sum that is rounded at every step stays there.
it.each([
  { shape: [300, 3], axis: 0 },
  { shape: [2, 300, 2], axis: 1 },
  { shape: [2, 300], axis: 1 },
])("sums of $shape along $axis are rounded once", ({ shape, axis }) => {
  const g = new GraphBuilder("scan");
  const x = g.input("x", tensorType("bf16", ...shape));
  const attrs = { kind: "sum", axis, exclusive: false, reverse: false } as const;
  const graph = g.finish([g.node("cumulative", [x], attrs)]);
  const target = targets.get("h200")!;
  const { plan } = take(compileModel({ graph, weights: noWeights }, { target }));
  const input = plan.program.buffers.find((b) => b.kind === "input")!;
  const output = plan.program.buffers.find((b) => b.kind === "output")!;
  const count = shape.reduce((a, b) => a * b, 1);
  const ones = new Uint16Array(count).fill(Number(encodeFloat("bf16", 1)));
  const contents = new Map([[input.name, new Uint8Array(ones.buffer)]]);
  const outcome = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  const bytes = outcome.contents.get(output.name)!;
  const sums = new Uint16Array(bytes.buffer, bytes.byteOffset, count);
  const last = Number(encodeFloat("bf16", 300));
  expect(sums.at(-1)).toBe(last);
});
