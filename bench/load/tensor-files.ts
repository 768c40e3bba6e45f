/** Inputs and outputs of a process that a bench starts, as JSON with base64 data. */
import { readFileSync, writeFileSync } from "node:fs";
import { tensorFromBytes } from "../../src/semantics/tensor.ts";
import type { Tensors } from "../sessions/session.ts";
import { dtypeNamed, fromStored, toStored } from "../sessions/stored-tensors.ts";

interface SpelledTensor {
  readonly name: string;
  /** As the runtime names it. */
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: string;
}

export function writeTensors(path: string, tensors: Tensors): void {
  const spelled = Object.entries(tensors).map(([name, tensor]) => {
    const { type, dims, data } = tensor;
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    return { name, type, dtype: toStored(tensor).dtype, dims, data: bytes.toString("base64") };
  });
  writeFileSync(path, JSON.stringify(spelled));
}

/** Outputs that a process wrote. */
export function readTensors(path: string): Tensors {
  const spelled = JSON.parse(readFileSync(path, "utf8")) as SpelledTensor[];
  return Object.fromEntries(
    spelled.map(({ name, type, dims, data }) => {
      const bytes = Uint8Array.from(Buffer.from(data, "base64"));
      const dtype = dtypeNamed(type);
      return [name, fromStored(tensorFromBytes(dtype, dims, bytes))];
    }),
  );
}
