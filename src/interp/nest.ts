/**
 * Interpreter of nest programs in float64: makes a poisoned cell for every tensor, runs the items in
 * order, and gives the outputs. Routines (what no nest expresses) are run by the caller's function.
 */
import type { NestItem, NestProgram, Routine, Selection, Statement, View } from "../region/nest.ts";
import { evaluate } from "../semantics/index-expr.ts";
import { firstAlong } from "../semantics/references/ordering.ts";
import { elementCount } from "../semantics/shape.ts";
import { makeRefData, type RefTensor, refTensor } from "../semantics/tensor.ts";
import { attempt, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { type Cell, type Cells, runStatement } from "./statement.ts";

export interface NestRunOptions {
  /** Inputs and weights by name. */
  readonly given: ReadonlyMap<string, RefTensor>;
  readonly symbols: ReadonlyMap<string, number>;
  /** Results of a routine for the tensors that it reads; it may bind symbols that data decide. */
  readonly runRoutine?: (
    routine: Routine,
    reads: readonly RefTensor[],
    symbols: Map<string, number>,
  ) => readonly RefTensor[];
  /** Called after each statement with the cells it saw and wrote. */
  readonly afterStatement?: (
    statement: Statement,
    cells: Cells,
    symbols: ReadonlyMap<string, number>,
  ) => void;
}

/** The outputs of a program, in its order of outputs. */
export function runNests(
  program: NestProgram,
  options: NestRunOptions,
): Result<readonly RefTensor[]> {
  return attempt(() => {
    const run = new NestRun(program, options);
    for (const item of program.items) run.runItem(item);
    return program.outputs.map((name) => run.result(name));
  });
}

class NestRun {
  readonly #program: NestProgram;
  readonly #options: NestRunOptions;
  readonly #symbols: Map<string, number>;
  readonly #cells = new Map<string, Cell>();

  constructor(program: NestProgram, options: NestRunOptions) {
    this.#program = program;
    this.#options = options;
    this.#symbols = new Map(options.symbols);
    for (const [name, tensor] of options.given) {
      if (program.tensors.has(name)) this.#fill(name, tensor);
    }
  }

  runItem(item: NestItem): void {
    if (item.kind === "statement") {
      const cells: Cells = (name) => this.#cell(name);
      runStatement(item.statement, cells, this.#symbols);
      this.#options.afterStatement?.(item.statement, cells, this.#symbols);
    } else if (item.kind === "view") {
      this.#addView(item.view);
    } else this.#runRoutine(item.routine);
  }

  #addView({ tensor, of }: View): void {
    const base = this.#cell(of);
    const shape = this.#shapeOf(tensor);
    invariant(elementCount(shape) === base.data.length, () => `${tensor} is no view of ${of}`);
    this.#cells.set(tensor, { ...base, name: tensor, shape });
  }

  #runRoutine(routine: Routine): void {
    const results = routine.selects
      ? [this.#select(routine.selects, routine.reads[0]!, routine.writes[0]!)]
      : this.#runWhole(routine);
    for (const [i, name] of routine.writes.entries()) this.#fill(name, results[i]!);
  }

  #runWhole(routine: Routine): readonly RefTensor[] {
    const { runRoutine } = this.#options;
    invariant(runRoutine, () => `${routine.name}: nobody runs routines here`);
    const reads = routine.reads.map((name) => this.result(name));
    return runRoutine(routine, reads, this.#symbols);
  }

  #select({ largest }: Selection, name: string, into: string): RefTensor {
    const elements = this.result(name);
    const [lines, rows, groups] = elements.shape;
    const shape = this.#shapeOf(into);
    const whole = { ...elements, shape: [lines!, rows! * groups!] };
    const [, places] = firstAlong(whole, { axis: 1, k: shape[1]!, largest });
    return refTensor("i32", shape, Array.from(places.data, Number));
  }

  /** A tensor all of whose elements have been written. */
  result(name: string): RefTensor {
    const { dtype, shape, data, written } = this.#cell(name);
    const hole = written.indexOf(0);
    invariant(hole < 0, () => `element ${hole} of ${name} was never written`);
    return { dtype, shape, data };
  }

  #fill(name: string, { dtype, shape, data }: RefTensor): void {
    const written = new Uint8Array(data.length).fill(1);
    this.#cells.set(name, { name, dtype, shape, data, written });
  }

  #cell(name: string): Cell {
    const known = this.#cells.get(name);
    if (known) return known;
    const tensor = this.#program.tensors.get(name);
    invariant(tensor, () => `no tensor ${name}`);
    invariant(tensor.role !== "input" && tensor.role !== "weight", () => `${name} is not given`);
    const shape = this.#shapeOf(name);
    const count = elementCount(shape);
    const data = makeRefData(tensor.dtype, count);
    const cell = { name, dtype: tensor.dtype, shape, data, written: new Uint8Array(count) };
    this.#cells.set(name, cell);
    return cell;
  }

  #shapeOf(name: string): readonly number[] {
    return this.#program.tensors.get(name)!.shape.map((d) => evaluate(d, this.#symbols));
  }
}
