import { expect, it } from "vitest";
import { storageBytes } from "../../src/semantics/dtype.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { type AttentionCase, attentionGraph, uploadOperands } from "./attention-case.ts";

const shape = { batch: 2, heads: 4, groups: 2, rows: 1, columns: 24, depth: 16, causal: false };
const plain: AttentionCase = { name: "one token", ...shape };
const filled: AttentionCase = { ...plain, lengths: [24, 7] };

/** Bytes that each input is given, by name, of a program that takes `given`. */
function uploaded(c: AttentionCase, given: AttentionCase): ReadonlyMap<string, number> {
  const graph = attentionGraph(given, "bf16");
  const names = graph.inputs.map((id) => graph.values[id]!.name);
  const addressOf = (name: string): bigint => BigInt(names.indexOf(name));
  const bytes = new Map<string, number>();
  const count = (at: bigint, more: number): void => {
    const name = names[Number(at)]!;
    bytes.set(name, (bytes.get(name) ?? 0) + more);
  };
  const device = { upload: (at: bigint, from: Uint8Array) => count(at, from.length) };
  const pool = {
    upload: (_: unknown, at: bigint, _operand: number, elements: number) => count(at, 2 * elements),
  };
  uploadOperands(device, { names, addressOf }, c, pool);
  return bytes;
}

it.each([plain, filled])("every input of a case's graph is given as many bytes as it has", (c) => {
  const graph = attentionGraph(c, "bf16");
  const types = graph.inputs.map((id) => graph.values[id]!);
  const wanted = types.map(({ name, type: { dtype, shape } }): [string, number] => [
    name,
    storageBytes(
      dtype,
      shape.reduce((n, e) => n * evaluate(e, new Map()), 1),
    ),
  ]);
  expect(uploaded(c, c)).toEqual(new Map(wanted));
});

it("an input that a case does not know, or lacks, is an error", () => {
  expect(() => uploaded(plain, filled)).toThrow("nothing is known of the inputs lengths");
  expect(() => uploaded(filled, plain)).toThrow("the program takes no lengths");
});
