/**
 * DynamicQuantizeLSTM in the oracle and in WebAssembly against what onnxruntime gave for the same cases with one
 * thread (its version stands in the file), to eight digits. With more threads it shares out the rows of a batch and
 * quantises each share by itself, so that its results are those of the threads.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Tensors } from "../../bench/sessions/session.ts";
import { disagreement } from "../../campaign/operators/operator-case.ts";
import { quantisedLstmCases } from "./quantised-lstm-cases.ts";

type Outputs = Readonly<Record<string, { readonly dims: number[]; readonly data: number[] }>>;

const file = new URL("./recorded-quantised-lstm.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Outputs[] };

test.each(cases.map((_, i) => i))("case %i", async (i) => {
  const { node, ...rest } = quantisedLstmCases[i]!;
  const recorded: Tensors = Object.fromEntries(
    Object.entries(cases[i]!).map(([name, { dims, data }]) => [
      name,
      { type: "float32", dims, data: Float32Array.from(data) },
    ]),
  );
  const drawn = { ...rest, node: { ...node, domain: "com.microsoft" } };
  expect(await disagreement(drawn, i, async () => recorded)).toBeUndefined();
});
