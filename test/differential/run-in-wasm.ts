/** For differential tests: a program's outputs as WebAssembly computes them on this thread. */
import type { ProgramRun } from "../../src/interp/program.ts";
import type { Program } from "../../src/program/program.ts";
import { createWasmInstance } from "../../src/runtime/wasm/wasm-instance.ts";
import { storageBytes } from "../../src/semantics/dtype.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";

/** Contents of the output buffers by name; throws with the diagnostics where there are none. */
export function runInWasm(program: Program, run: ProgramRun): Map<string, Uint8Array> {
  const made = createWasmInstance(program, { relaxedFma: false });
  if (!made.ok) throw new Error(JSON.stringify(made.diagnostics));
  const instance = made.value;
  for (const [name, bytes] of run.contents) instance.bytes(name).set(bytes);
  const outputs = program.buffers.filter((b) => b.kind === "output");
  for (const b of outputs) instance.bytes(b.name).fill(0xa5);
  const outcome = instance.runSync(run.parameters);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.diagnostics));
  const bindings = new Map(Object.entries(run.parameters));
  return new Map(
    outputs.map((b) => {
      const elements = b.shape.reduce((n, e) => n * evaluate(e, bindings), b.lanes);
      return [b.name, instance.bytes(b.name).slice(0, storageBytes(b.dtype, elements))];
    }),
  );
}
