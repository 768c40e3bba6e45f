/**
 * Runs one case: import, then the oracle or the compiled program, and every output compared with the
 * suite's. Inputs stay inputs; where the importer needs to know one (a shape that is an operand, a
 * condition), the fewest inputs that make it import are fixed at their values. What has no form in a
 * graph (strings, the length of a sequence, whether an optional holds something) is always told.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { compileModel } from "../../src/compile.ts";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import type { ModelProto } from "../../src/frontend/onnx/generated/onnx_pb.ts";
import {
  assembleOutput,
  type HostValue,
  type InputValue,
  isTensor,
} from "../../src/frontend/onnx/host-value.ts";
import { type ImportedModel, importModel } from "../../src/frontend/onnx/import/import-model.ts";
import type { ShapeOverrides } from "../../src/frontend/onnx/import/shape-override.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { runGraph } from "../../src/interp/graph.ts";
import type { Program } from "../../src/program/program.ts";
import { ModelSession, type SessionOptions } from "../../src/runtime/model-session.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { fromRef, type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { architectures } from "../../src/target/architectures/index.ts";
import { targets } from "../../src/target/index.ts";
import { interpretProgram } from "../interpreted-instance.ts";
import { differenceOf } from "./compare-values.ts";
import type { ConformanceCase, DataSet } from "./suite.ts";

export interface CaseOutcome {
  /** What is wrong, or undefined. */
  readonly problem?: string;
  /** Inputs that had to be fixed at import. */
  readonly fixed: number;
}

/** Computes the outputs of an imported model. */
export type Machine = (model: ImportedModel, inputs: readonly Tensor[]) => Promise<Tensor[]>;

export async function evaluateCase(
  { proto, inputNames, dataSets }: ConformanceCase,
  machine: Machine,
): Promise<CaseOutcome> {
  let fixed = 0;
  for (const set of dataSets) {
    const given = inputNames.flatMap((name, i): Given[] => {
      const value = set.inputs[i];
      return value === undefined ? [] : [{ name, value, told: mustBeTold(proto, name, value) }];
    });
    const leaves = leavesOf(given);
    const imported = importWithFewest(given, (values) =>
      importModel(proto, { values, shapes: boundedShapes(proto, values) }),
    );
    if (!imported.result.ok) {
      return { fixed, problem: imported.result.diagnostics.map(formatDiagnostic).join("; ") };
    }
    fixed = Math.max(fixed, imported.fixed);
    const model = imported.result.value;
    const outputs = await machine(
      model,
      model.inputNames.map((name) => leaves.get(name)!),
    );
    const problem = firstProblem(model, outputs, set);
    if (problem !== undefined) return { fixed, problem };
  }
  return { fixed };
}

/** Programs need a largest size: no case comes near this one. */
const largestExtent = 256;

/** A range for each symbolic dimension of the inputs that the importer is not told of. */
function boundedShapes({ graph }: ModelProto, values: Record<string, InputValue>): ShapeOverrides {
  const open = graph!.input.filter(({ name }) => !Object.hasOwn(values, name));
  const dims = open.flatMap(({ type }) =>
    type?.value.case === "tensorType" ? (type.value.value.shape?.dim ?? []) : [],
  );
  const names = dims.flatMap(({ value }) => (value.case === "dimParam" ? [value.value] : []));
  return Object.fromEntries(names.map((name) => [name, { min: 1, max: largestExtent }]));
}

interface Given {
  readonly name: string;
  readonly value: HostValue;
  /** Whether the importer is told of it although it stays an input. */
  readonly told: boolean;
}

/** Optionals have no declared shape, and symbolic extents are taken to be positive. */
function mustBeTold({ graph }: ModelProto, name: string, value: HostValue): boolean {
  const declared = graph!.input.find((v) => v.name === name)?.type?.value.case;
  return !isTensor(value) || declared !== "tensorType" || value.shape.includes(0);
}

/** Tensors by the names that the importer gives them: elements of sequences are numbered. */
function leavesOf(given: readonly Given[]): ReadonlyMap<string, Tensor> {
  const leaves = new Map<string, Tensor>();
  const visit = (name: string, value: HostValue): void => {
    if (isTensor(value)) leaves.set(name, value);
    else if (value.kind === "sequence") {
      for (const [i, element] of value.elements.entries()) visit(`${name}.${i}`, element);
    }
  };
  for (const { name, value } of given) visit(name, value);
  return leaves;
}

function importWithFewest(
  given: readonly Given[],
  attempt: (values: Record<string, InputValue>) => Result<ImportedModel>,
): { readonly result: Result<ImportedModel>; readonly fixed: number } {
  const told = Object.fromEntries(
    given.flatMap(({ name, value, told }) => (told ? [[name, asInput(value)] as const] : [])),
  );
  const first = attempt(told);
  if (first.ok || !first.diagnostics.some((d) => d.code === "ONX013")) {
    return { result: first, fixed: 0 };
  }
  const tensors = given.filter(({ value }) => !isOpen(value));
  for (const chosen of subsetsBySize(tensors)) {
    const fixed = Object.fromEntries(chosen.map(({ name, value }) => [name, value]));
    const result = attempt({ ...told, ...fixed });
    if (result.ok) return { result, fixed: chosen.length };
  }
  return { result: first, fixed: 0 };
}

/** Strings and empty optionals are told anyway, so that fixing them changes nothing. */
function isOpen(value: HostValue): boolean {
  return !isTensor(value) && value.kind !== "sequence";
}

function* subsetsBySize<T>(items: readonly T[]): Generator<readonly T[]> {
  const all = Array.from({ length: 2 ** items.length }, (_, mask) =>
    items.filter((_item, i) => (mask >> i) % 2 === 1),
  );
  yield* all.sort((a, b) => a.length - b.length).slice(1);
}

function asInput(value: HostValue): InputValue {
  if (isTensor(value)) return { kind: "runtime", dtype: value.dtype, shape: value.shape };
  if (value.kind !== "sequence") return value;
  return { kind: "sequence", elements: value.elements.map(asInput) };
}

function firstProblem(
  model: ImportedModel,
  outputs: readonly Tensor[],
  set: DataSet,
): string | undefined {
  for (const [i, expected] of set.outputs.entries()) {
    const form = model.outputs[i];
    if (!form) return `output ${i} is missing`;
    const problem = differenceOf(assembleOutput(form, outputs), expected);
    if (problem !== undefined) return `output ${i} ${problem}`;
  }
  return undefined;
}

export const onOracle: Machine = async ({ graph, weights }, inputs) =>
  unwrap(runGraph(graph, inputs.map(toRef), weights)).map(fromRef);

/** What runs a compiled program. */
type Start = (program: Program, options: SessionOptions) => ModelSession;

function onTarget(name: string, start: Start): Machine {
  const target = targets.get(name)!;
  return async (source, inputs) => {
    const { model, nests, plan } = unwrap(compileModel(source, { target }));
    const session = start(plan.program, { weight: weightReader(model) });
    session.poison();
    const { values, inputs: ids } = model.graph;
    const feeds = ids.map((id, i) => [values[id]!.name, inputs[i]!] as const);
    const outputs = unwrap(session.run(Object.fromEntries(feeds)));
    await session.dispose();
    return nests.outputs.map((output) => outputs[output]!);
  };
}

export const onWasm: Machine = onTarget("wasm", (program, options) => {
  const features = { ...probeWasmFeatures(), threads: false };
  const all = { ...options, threads: 1, features, host: nodeWorkerHost };
  return unwrap(createWasmSession(program, all));
});

/** For a GPU: every kernel is spelled as PTX, and run thread by thread in the program interpreter. */
export const onBlocks: Machine = onTarget("h200", (program, options) => {
  unwrap(emitPtx(program, architectures.get("sm_90a")!));
  return new ModelSession(program, interpretProgram(program, 1), options);
});
