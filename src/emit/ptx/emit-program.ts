/**
 * Program to PTX: one entry a kernel that some task launches. The tasks themselves (order, loops,
 * conditions) are the runner's: it launches what is described here. The emitter prints what the program
 * says for an architecture given as data and refuses (EMT001) what that has no spelling for, and for a machine
 * grids that have to be resident and are not (PRG042).
 */
import { type Program, type Task, threadCountName } from "../../program/program.ts";
import { unrollLoops } from "../../program/unroll.ts";
import {
  type IndexRange,
  type IndexRanges,
  loopRange,
  rangeOf,
} from "../../semantics/index-range.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import type { GpuArchitecture } from "../../target/machine.ts";
import type { BlockLimits } from "../../target/target.ts";
import { emitEntry, type KernelUse } from "./emit-entry.ts";
import type { PtxModule } from "./ptx-module.ts";
import { ptxVersionOf } from "./ptx-version.ts";
import { checkResidency } from "./residency.ts";

/** Conversions, asynchronous copies and bf16 as they are written here begin with it (PTX ISA, "cvt", "cp.async"). */
const leastCapability = 8;

/** @param limits of the machine that is to run it; absent: any of the architecture */
export function emitPtx(
  program: Program,
  architecture: GpuArchitecture,
  limits?: BlockLimits,
): Result<PtxModule> {
  return attempt(() => emitProgram(program, architecture, limits));
}

function emitProgram(
  program: Program,
  architecture: GpuArchitecture,
  limits: BlockLimits | undefined,
): PtxModule {
  const { ptxTarget } = architecture;
  if (ptxTarget === undefined) {
    return reject("EMT001", `${architecture.name} takes no PTX`, {
      help: "compile for an NVIDIA GPU",
    });
  }
  if (Number(architecture.computeCapability) < leastCapability) {
    return reject("EMT001", `${architecture.name} is older than what kernels are written for`, {
      help: `choose a GPU of compute capability ${leastCapability.toFixed(1)} or later`,
    });
  }
  const uses = usesOf(program);
  const checks: string[] = [];
  const head = [
    `.version ${ptxVersionOf(program, architecture)}`,
    `.target ${ptxTarget}`,
    ".address_size 64",
    "",
  ].join("\n");
  const kernels = program.kernels.flatMap((kernel, i) => {
    const use = uses.get(kernel.name);
    if (!use) return [];
    const entry = `k${i}_${kernel.name.replace(/[^A-Za-z0-9_]/g, "_")}`;
    const unrolled = unrollLoops(kernel);
    const emitted = emitEntry({ program, kernel: unrolled, use, architecture, entry, checks });
    if (limits) checkResidency(emitted, rangesAround(program, use), limits);
    return [emitted];
  });
  return { head, text: [head, ...kernels.map((k) => k.text)].join("\n"), kernels, checks };
}

/** What a grid's extents are made of. */
function rangesAround({ parameters }: Program, { bindings }: KernelUse): IndexRanges {
  const given = parameters.map(({ name, min, max }) => [name, { min, max }] as const);
  return new Map<string, IndexRange>([
    ...given,
    ...bindings,
    [threadCountName, { min: 1, max: 1 }],
  ]);
}

/** How each kernel is launched, by its name. */
function usesOf(program: Program): ReadonlyMap<string, KernelUse> {
  const uses = new Map<
    string,
    { bindings: Map<string, IndexRange>; tables: Map<string, string> }
  >();
  const ranges = new Map<string, IndexRange>(
    program.parameters.map((p) => [p.name, { min: p.min, max: p.max }]),
  );
  const visit = (
    tasks: readonly Task[],
    around: { readonly ranges: IndexRanges; readonly tables: ReadonlyMap<string, string> },
  ): void => {
    for (const task of tasks) {
      if (task.kind === "if") visit([...task.then, ...task.else], around);
      if (task.kind === "while") visit(task.body, around);
      if (task.kind === "repeat") {
        const inside = new Map(around.ranges);
        inside.set(task.variable, loopRange(task.count, around.ranges));
        const tables = new Map(around.tables);
        for (const t of task.tables) tables.set(t.name, t.rows[0]!);
        visit(task.body, { ranges: inside, tables });
      }
      if (task.kind !== "launch") continue;
      const use = uses.get(task.kernel) ?? { bindings: new Map(), tables: new Map() };
      uses.set(task.kernel, use);
      for (const [name, value] of task.bindings) {
        use.bindings.set(name, union(use.bindings.get(name), rangeOf(value, around.ranges)));
      }
      for (const [name, row] of around.tables) use.tables.set(name, row);
    }
  };
  visit(program.tasks, { ranges, tables: new Map() });
  return uses;
}

function union(a: IndexRange | undefined, b: IndexRange): IndexRange {
  return { min: Math.min(a?.min ?? b.min, b.min), max: Math.max(a?.max ?? b.max, b.max) };
}
