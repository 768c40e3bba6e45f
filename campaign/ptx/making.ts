/**
 * How programs of a suite are made: what those that are alike share, and whether they are proved. Schedules that
 * were priced and launches that were proved for one program are not for the next.
 */
import { type CompiledModel, type CompileOptions, compileModel } from "../../src/compile.ts";
import type { Model } from "../../src/graph/graph.ts";
import type { Program } from "../../src/program/program.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import { emptySchedulingMemory, type SchedulingMemory } from "../../src/scheduled-graph.ts";
import { formatDiagnostic, ok, type Result } from "../../src/support/diagnostic.ts";
import { tf32Products } from "../../src/target/allowing.ts";

export class Making {
  readonly #memories = new Map<string, SchedulingMemory>();
  readonly #isProved: boolean;

  /** @param isProved false: what is made may be assembled, and nothing else */
  constructor(isProved = true) {
    this.#isProved = isProved;
  }

  /** Throws what the compiler refuses. */
  compile(model: Model, options: Omit<CompileOptions, "memory" | "prove">): CompiledModel {
    const { name, capabilities } = options.target;
    const key = capabilities.has(tf32Products) ? `${name} with tf32` : name;
    const memory = this.#memories.get(key) ?? emptySchedulingMemory();
    this.#memories.set(key, memory);
    const made = compileModel(model, { ...options, memory, prove: (p, o) => this.prove(p, o) });
    if (!made.ok) throw new Error(made.diagnostics.map(formatDiagnostic).join(" "));
    return made.value;
  }

  prove(...[program, options]: Parameters<typeof validateProgram>): Result<Program> {
    return this.#isProved ? validateProgram(program, options) : ok(program);
  }
}
