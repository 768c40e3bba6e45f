/**
 * Wavetile's session of a model that runs in stages, because data decide sizes in it: the programs between
 * those places are compiled, rewritten or not, each by itself; the places are the reference's in both.
 */

import { startStages } from "../../src/commands/library/staged-session.ts";
import { openStages } from "../../src/commands/library/stages.ts";
import type { ImportedModel } from "../../src/frontend/onnx/import/import-model.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { type Diagnostic, DiagnosticError } from "../../src/support/diagnostic.ts";
import type { Target } from "../../src/target/target.ts";
import { workOfGraph } from "./graph-work.ts";
import { unwrap } from "./import-hints.ts";
import type { GraphWork, Session } from "./session.ts";
import { describeValue, fromStored, toStored } from "./stored-tensors.ts";

interface Opening {
  readonly target: Target;
  readonly threads: number;
  readonly rewrite: "on" | "off";
}

/** @param diagnostics why the model has no one program: thrown where stages do not help */
export function openStaged(
  imported: ImportedModel,
  diagnostics: readonly Diagnostic[],
  { target, threads, rewrite }: Opening,
): { readonly session: Session; readonly work: GraphWork } {
  const helps = diagnostics.every((d) => d.code === "SCH015");
  const options = { target: target.name, shapes: {}, seed: 0, threads, rewrite };
  const opened = helps ? openStages(imported, target, options) : undefined;
  if (!opened) throw new DiagnosticError(diagnostics);
  const staged = unwrap(opened);
  const started = unwrap(startStages(staged, threads));
  const { graph, stages } = staged;
  const run = stages.map((s) => workOfGraph(s.opened?.artifact.graph ?? s.graph));
  const nameOf = (id: number): string => graph.values[id]!.name;
  const describe = (names: readonly string[], ids: readonly number[]) =>
    names.map((name, i) => describeValue(name, graph.values[ids[i]!]!.type));
  const { inputNames, outputNames } = imported;
  const work = {
    flops: run.reduce((sum, w) => sum + w.flops, 0),
    bytes: run.reduce((sum, w) => sum + w.bytes, 0),
  };
  const session: Session = {
    inputs: describe(inputNames, graph.inputs),
    outputs: describe(outputNames, graph.outputs),
    program: stages
      .flatMap((s) => (s.opened ? [printProgram(s.opened.code.program)] : []))
      .join(""),
    run: async (feeds) => {
      const stored = inputNames.map((name, i) => [
        nameOf(graph.inputs[i]!),
        toStored(feeds[name]!),
      ]);
      const outputs = unwrap(started.run(Object.fromEntries(stored)));
      const found = outputNames.map((name, i) => [
        name,
        fromStored(outputs[nameOf(graph.outputs[i]!)]!),
      ]);
      return Object.fromEntries(found);
    },
    release: () => started.dispose(),
  };
  return { session, work };
}
