/**
 * For differential tests: a scheduled region against its statements. The statement interpreter says what
 * the region computes; the program that lowering makes of the schedule has to compute the same in the
 * program interpreter, which looks for races and unwritten elements, and as WebAssembly.
 */
import { expect } from "vitest";
import { type ProgramRun, runProgram } from "../../src/interp/program.ts";
import { type Cell, runStatement } from "../../src/interp/statement.ts";
import { lowerRegion, packedName } from "../../src/lower/lower-region.ts";
import type { Buffer, Program } from "../../src/program/program.ts";
import type { Region } from "../../src/region/nest.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { printSchedule } from "../../src/schedule/directive-text.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { packTensor } from "../../src/semantics/layout.ts";
import type { Rng } from "../../src/support/rng.ts";
import type { Target } from "../../src/target/index.ts";
import { runInWasm } from "./run-in-wasm.ts";

/** Lowers, runs and compares the tensor y for an N; returns why it could not be lowered, if so. */
export function checkLowering(
  region: Region,
  schedule: Schedule,
  rng: Rng,
  target: Target,
  extent = rng.integer(region.symbols[0]!.range.min, region.symbols[0]!.range.max),
): string | undefined {
  const applied = applySchedule(region, schedule);
  if (!applied.ok) return applied.diagnostics[0]!.code;
  const kernels = lowerRegion(applied.value, target);
  if (!kernels.ok) return kernels.diagnostics[0]!.code;
  const symbols = new Map([["N", extent]]);
  const cells = new Map<string, Cell>();
  const contents = new Map<string, Uint8Array>();
  const buffers: Buffer[] = [];
  for (const { name, shape, role, dtype } of region.tensors.values()) {
    const concrete = shape.map((e) => evaluate(e, symbols));
    const count = concrete.reduce((a, b) => a * b, 1);
    const isBool = dtype === "bool";
    const draw = () => (isBool ? rng.integer(0, 1) : Math.fround(rng.integer(-8, 8) / 4));
    const data = Float64Array.from({ length: count }, draw);
    const given = role === "input" || role === "weight";
    const written = new Uint8Array(count).fill(given ? 1 : 0);
    cells.set(name, { name, dtype, shape: concrete, data, written });
    const common = { scope: "memory", dtype, lanes: 1 } as const;
    const kind = role === "local" || role === "intermediate" ? "scratch" : role;
    const layout = applied.value.layouts.get(name);
    const buffer = layout ? packedName(name, layout) : name;
    buffers.push({ ...common, name: buffer, kind, shape: layout ? layout.shape : shape });
    const elements = isBool ? Uint8Array.from(data) : Float32Array.from(data);
    const stored = { dtype, shape: concrete, data: elements };
    const packed = layout ? packTensor(stored, layout) : stored;
    if (given) contents.set(buffer, new Uint8Array(packed.data.buffer));
  }
  for (const statement of region.statements) {
    runStatement(statement, (name) => cells.get(name)!, symbols);
  }
  const program: Program = {
    name: "p",
    target: target.name,
    parameters: region.symbols.map((s) => ({ name: s.name, ...s.range })),
    requires: [],
    buffers,
    counters: [],
    kernels: kernels.value,
    tasks: kernels.value.map((k) => ({
      kind: "launch",
      kernel: k.name,
      after: "previous",
      bindings: [],
      waits: [],
      signals: [],
    })),
    states: [],
  };
  const parameters = Object.fromEntries(symbols);
  const run: ProgramRun = { parameters, contents, threads: rng.integer(1, 3), seed: rng.bits() };
  const outcome = runProgram(program, run);
  if (outcome.kind === "fault")
    throw new Error(`${JSON.stringify(outcome.fault)}\n${printSchedule(schedule)}`);
  const want = cells.get("y")!.data as Float64Array;
  for (const execute of [() => outcome.contents, () => runInWasm(program, run)]) {
    const bytes = execute().get("y")!;
    const got = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    expect(got.length, printSchedule(schedule)).toBe(want.length);
    got.forEach((value, i) => {
      if (!(Math.abs(value - want[i]!) <= 1e-5 * (1 + Math.abs(want[i]!)))) {
        throw new Error(`y[${i}] = ${value}, expected ${want[i]}\n${printSchedule(schedule)}`);
      }
    });
  }
  return undefined;
}
