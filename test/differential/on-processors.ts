/**
 * For differential tests: what programs of a graph for processors give: in the program's interpreter, which looks for
 * races and unwritten elements, and as code where that runs here.
 */
import { expect } from "vitest";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { runNests } from "../../src/interp/nest.ts";
import { runProgram } from "../../src/interp/program.ts";
import { parseNests } from "../../src/region/nest-reader.ts";
import { printNests } from "../../src/region/nest-text.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { fromRef, type RefTensor, type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import type { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

export const processors = ["wasm", "x64-avx2", "x64-avx512-vnni"];

/** The tensors of one way to run a graph, and what the oracle has. */
export type Compare = (
  how: string,
  found: readonly RefTensor[],
  want: readonly RefTensor[],
) => void;

export interface GraphCase {
  readonly graph: Graph;
  readonly input: RefTensor;
  readonly symbols?: Readonly<Record<string, number>>;
}

export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

/** Compares what a graph of one input becomes on a processor, and gives what it was compiled to. */
export async function checkOnProcessor(
  { graph, input, symbols = {} }: GraphCase,
  { name, rng, compare }: { readonly name: string; readonly rng: Rng; readonly compare: Compare },
): Promise<CompiledModel> {
  const want = unwrap(runGraph(graph, [input]));
  const target = targets.get(name)!;
  const compiled = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const { nests, plan } = compiled;
  const text = printNests(nests);
  expect(printNests(unwrap(parseNests(text)))).toBe(text);
  const from = nests.inputs[0]!;
  const bound = { given: new Map([[from, input]]), symbols: new Map(Object.entries(symbols)) };
  compare("as nests", unwrap(runNests(nests, bound)), want);
  const seed = rng.integer(0, 99);
  const { data } = fromRef(input);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const run = { parameters: symbols, contents: new Map([[from, bytes]]), threads: 1 + (seed % 3) };
  const outcome = runProgram(plan.program, { ...run, seed });
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  const interpreted = nests.outputs.map((output, i) => {
    const like = fromRef(want[i]!);
    const stored = outcome.contents.get(output)!.slice();
    return toRef({ ...like, data: sameArray(like.data, stored) } as Tensor);
  });
  compare(`interpreted for ${name}`, interpreted, want);
  if (!runnableTargets().names.includes(name)) return compiled;
  const weight = weightReader(compiled.model);
  const session = unwrap(
    createSession(plan.program, target, { threads: rng.integer(1, 2), weight }),
  );
  const outputs = unwrap(session.run({ [from]: fromRef(input) }));
  compare(
    `run on ${name}`,
    nests.outputs.map((o) => toRef(outputs[o]!)),
    want,
  );
  await session.dispose();
  return compiled;
}

/** The bytes as an array of another's kind. */
function sameArray<T extends { readonly constructor: unknown }>(like: T, bytes: Uint8Array): T {
  return new (like.constructor as new (b: ArrayBufferLike) => T)(bytes.buffer);
}
