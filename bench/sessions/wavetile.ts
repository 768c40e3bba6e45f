/**
 * Wavetile itself behind the Session interface: import, compile for a target of this
 * machine, run on threads. Nothing is cached: what is opened is compiled.
 */
import { type CompiledModel, compileModel, prepareFor } from "../../src/compile.ts";
import { type ImportedModel, importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import { bindParameters } from "../../src/runtime/bind-parameters.ts";
import { ChildRunner } from "../../src/runtime/child/child-runner.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import { type Peaks, roofBoundNs } from "../../src/runtime/measure/roofline.ts";
import { median } from "../../src/runtime/measure/statistics.ts";
import type { KernelTime, ModelSession } from "../../src/runtime/model-session.ts";
import type { Tensor as StoredTensor } from "../../src/semantics/tensor.ts";
import { invariant } from "../../src/support/invariant.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { measurePeaks } from "../../src/verdict/peaks.ts";
import { workOf } from "../../src/verdict/work.ts";
import { ownVersion } from "../installed.ts";
import { workOfGraph } from "./graph-work.ts";
import { importOptions, unwrap } from "./import-hints.ts";
import type { ModelHints, RegionRow, Runtime, Session, Tensor, Tensors } from "./session.ts";
import { openStaged } from "./staged.ts";
import { describeValue, fromStored, toStored } from "./stored-tensors.ts";

/** Profiled runs a region's median is taken from. */
const profiledRuns = 3;

/** `targetName`: a target, or `cpu` or `wasm` for the best of its kind that runs here. */
export function wavetileRuntime(
  targetName: string,
  threads: number,
  rewrite: "on" | "off" = "off",
): Runtime {
  return {
    name: rewrite === "on" ? "wavetile, rewritten" : "wavetile",
    version: ownVersion(),
    threads,
    open: async (model, hints = {}) => openSession(model, hints, { targetName, threads, rewrite }),
  };
}

export function chooseTarget(name: string): Target {
  const { names } = runnableTargets();
  const wanted = name === "cpu" ? names[0] : name === "wasm" ? names.find(isWasm) : name;
  const target = targets.get(wanted ?? name);
  invariant(target !== undefined, () => `no target ${name} among ${names.join(", ")}`);
  return target;
}

const isWasm = (name: string): boolean => targets.get(name)?.emitter === "wasm";

interface Opening {
  readonly targetName: string;
  readonly threads: number;
  readonly rewrite: "on" | "off";
}

function openSession(
  model: Uint8Array,
  hints: ModelHints,
  { targetName, threads, rewrite }: Opening,
): Session {
  const imported = unwrap(importOnnx(model, importOptions(hints)));
  const target = chooseTarget(targetName);
  const before = workOfGraph(prepareFor(imported, target).graph);
  const compiled = compileModel(imported, { target, rewrite, threads });
  if (!compiled.ok) {
    const opening = { target, threads, rewrite };
    const { session, work } = openStaged(imported, compiled.diagnostics, opening);
    return { ...session, work: { imported: before, run: work } };
  }
  const work = { imported: before, run: workOfGraph(compiled.value.model.graph) };
  return { ...openCompiled(imported, compiled.value, { target, threads }), work };
}

/** A session of a program that was compiled for this machine. */
export function openCompiled(
  imported: ImportedModel,
  compiled: CompiledModel,
  { target, threads }: { readonly target: Target; readonly threads: number },
): Session {
  const session = unwrap(
    createSession(compiled.plan.program, target, {
      threads,
      weight: weightReader(compiled.model),
    }),
  );
  const opened = wrap(session, imported, compiled);
  return {
    ...opened,
    program: printProgram(compiled.plan.program),
    floorNs: async (feeds) => {
      const peaks = await peaksOf(target, threads);
      const shapes = imported.inputNames.map((name, i) => ({
        port: session.inputs[i]!,
        shape: feeds[name]!.dims,
      }));
      const symbols = unwrap(bindParameters(compiled.plan.program, shapes));
      const bounds = compiled.regions.map((r) =>
        roofBoundNs(workOf(r.scheduled.region, symbols), peaks),
      );
      return bounds.reduce((sum, ns) => sum + ns, 0);
    },
  };
}

const measuredPeaks = new Map<string, Peaks>();

/** Peaks of this machine, measured once a process, target and thread count. */
async function peaksOf(target: Target, threads: number): Promise<Peaks> {
  const key = `${target.name} ${threads}`;
  const known = measuredPeaks.get(key);
  if (known) return known;
  const runner = new ChildRunner();
  const bench = { runner, validate: validateProgram, threads, seed: 1, deadlineMs: 120_000 };
  const peaks = await measurePeaks(target, bench);
  await runner.dispose();
  invariant(peaks.kind === "done", () => `no peaks: ${JSON.stringify(peaks)}`);
  measuredPeaks.set(key, peaks.value);
  return peaks.value;
}

function wrap(session: ModelSession, imported: ImportedModel, compiled: CompiledModel): Session {
  const { graph } = compiled.model;
  const describe = (names: readonly string[], ids: readonly number[]) =>
    names.map((name, i) => describeValue(name, graph.values[ids[i]!]!.type));
  const inputNames = graph.inputs.map((id) => graph.values[id]!.name);
  // Not the graph's names: an output that is an input, or is given twice, has a buffer of its own.
  const outputNames = compiled.nests.outputs;
  let last: Record<string, StoredTensor> | undefined;
  return {
    inputs: describe(imported.inputNames, graph.inputs),
    outputs: describe(imported.outputNames, graph.outputs),
    run: async (feeds, into) => {
      last = storedBy(feeds, imported.inputNames, inputNames);
      const taking = into && storedBy(into, imported.outputNames, outputNames);
      const outputs = unwrap(session.run(last, taking));
      const named: Record<string, Tensor> = {};
      for (let i = 0; i < outputNames.length; i++) {
        named[imported.outputNames[i]!] = fromStored(outputs[outputNames[i]!]!);
      }
      return named;
    },
    profile: () => (last === undefined ? [] : profileRegions(session, compiled, last)),
    release: () => session.dispose(),
  };
}

/** Under the graph's names. A loop: what this takes is part of our time, a microsecond in small products. */
function storedBy(
  tensors: Tensors,
  names: readonly string[],
  stored: readonly string[],
): Record<string, StoredTensor> {
  const found: Record<string, StoredTensor> = {};
  for (let i = 0; i < names.length; i++) found[stored[i]!] = toStored(tensors[names[i]!]!);
  return found;
}

/** Medians over a few runs on the last inputs. */
function profileRegions(
  session: ModelSession,
  compiled: CompiledModel,
  feeds: Record<string, StoredTensor>,
): RegionRow[] {
  const times = new Map<string, number[]>();
  for (let i = 0; i < profiledRuns; i++) {
    const { kernels } = unwrap(session.profile(feeds, () => performance.now()));
    for (const kernel of kernels) {
      const known = times.get(kernel.region) ?? [];
      times.set(kernel.region, [...known, elapsedNs(kernel)]);
    }
  }
  const origins = new Map(compiled.regions.map((r) => [r.name, r.origins.join(" ")]));
  return [...times].map(([region, ns]) => ({
    region,
    ops: origins.get(region) ?? "",
    medianNs: median(ns),
  }));
}

function elapsedNs({ startMs, endMs }: KernelTime): number {
  return (endMs - startMs) * 1e6;
}
