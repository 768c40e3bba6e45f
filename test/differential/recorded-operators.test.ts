/**
 * Operators that onnxruntime-node does not have yet: the oracle, and for one case of each WebAssembly, against
 * what a newer onnxruntime gave for the same cases (its version stands in the file), to eight digits.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Tensors } from "../../bench/sessions/session.ts";
import { decoderMakers } from "../../campaign/operators/decoder-makers.ts";
import { disagreement } from "../../campaign/operators/operator-case.ts";
import { Rng } from "../../src/support/rng.ts";

interface Recorded {
  readonly op: string;
  readonly seed: number;
  readonly outputs: Readonly<Record<string, { readonly dims: number[]; readonly data: number[] }>>;
}

const file = new URL("./recorded-decoders.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Recorded[] };

test.each(cases)("$op ($seed)", async ({ op, seed, outputs }) => {
  const { node, ...rest } = decoderMakers[op]!(new Rng(seed));
  const recorded: Tensors = Object.fromEntries(
    Object.entries(outputs).map(([name, { dims, data }]) => [
      name,
      { type: "float32", dims, data: Float32Array.from(data) },
    ]),
  );
  const drawn = { ...rest, node: { ...node, domain: "com.microsoft" } };
  const isCompiled = seed === (op === "GatedDeltaNet" ? 8 : 3);
  const how = isCompiled ? {} : ({ compiled: false } as const);
  const reason = await disagreement(drawn, seed, async () => recorded, how);
  expect(reason).toBeUndefined();
});
