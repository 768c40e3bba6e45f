/** A program's instance in the program interpreter: for targets whose device is not at hand. */
import { runProgram } from "../src/interp/program.ts";
import type { Program } from "../src/program/program.ts";
import { capacityBytes } from "../src/program/storage-sizes.ts";
import { memoryOfViews } from "../src/runtime/buffer-memory.ts";
import type { ProgramInstance } from "../src/runtime/model-session.ts";
import { storageBytes } from "../src/semantics/dtype.ts";
import { evaluate } from "../src/semantics/index-expr.ts";
import { diagnostic, fail, ok, type Result } from "../src/support/diagnostic.ts";

/** Each run starts with what the caller left in the buffers, as on a device. */
export function interpretProgram(program: Program, seed: number): ProgramInstance {
  const owners = program.buffers.filter((b) => b.viewOf === undefined);
  const memory = new Map(
    owners.map((b) => [b.name, new Uint8Array(capacityBytes(program, b))] as const),
  );
  const runSync: ProgramInstance["runSync"] = (parameters): Result<void> => {
    const given = owners.filter((b) => ["input", "weight", "state"].includes(b.kind));
    const at = new Map(Object.entries(parameters));
    const contents = new Map(
      given.map((b) => {
        const elements = b.shape.reduce((n, e) => n * evaluate(e, at), b.lanes);
        return [b.name, memory.get(b.name)!.subarray(0, storageBytes(b.dtype, elements))] as const;
      }),
    );
    const outcome = runProgram(program, { parameters, contents, threads: 1, seed });
    if (outcome.kind === "fault") {
      return fail(diagnostic("RUN010", JSON.stringify(outcome.fault)));
    }
    for (const [name, bytes] of outcome.contents) memory.get(name)?.set(bytes);
    return ok(undefined);
  };
  return {
    memory: memoryOfViews((name) => memory.get(name)!),
    bind: () => ok(undefined),
    runSync,
    run: async (parameters) => runSync(parameters),
    createStep: () => fail(diagnostic("RUN010", "the interpreter has no steps")),
    dispose: () => memory.clear(),
  };
}
