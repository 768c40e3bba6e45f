/**
 * A runtime fed with what the exporter writes: the model is imported, rewritten for a target or not, and
 * written as ONNX again. Inputs that the hints fix are gone from it, and are not passed on.
 */
import { graphToExport } from "../../src/compile.ts";
import { exportOnnx } from "../../src/frontend/onnx/export/export-model.ts";
import { type ImportedModel, importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { Model } from "../../src/graph/graph.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { lowerToCore } from "../../src/rewrite/rewrite-model.ts";
import type { Target } from "../../src/target/target.ts";
import { workOfGraph } from "./graph-work.ts";
import { importOptions, unwrap } from "./import-hints.ts";
import type { ModelHints, Runtime, Session, Tensors } from "./session.ts";

/** @param target whose prices decide; absent: the graph as it was imported */
export function exportedRuntime(runtime: Runtime, target?: Target): Runtime {
  return {
    ...runtime,
    name: target ? `${runtime.name}, rewritten` : `${runtime.name}, exported`,
    open: async (bytes, hints = {}) => {
      const { file, work } = exportAgain(bytes, hints, target);
      const session = await runtime.open(file);
      const names = session.inputs.map((i) => i.name);
      const takes = (feeds: Tensors): Tensors =>
        Object.fromEntries(names.map((name) => [name, feeds[name]!]));
      // What passes all inputs on costs no more than the other side.
      const isWhole = hints.constants === undefined || Object.keys(hints.constants).length === 0;
      return { ...session, work, ...(!isWhole && { run: (feeds) => session.run(takes(feeds)) }) };
    },
  };
}

interface Exported {
  readonly file: Uint8Array;
  readonly work: NonNullable<Session["work"]>;
}

function exportAgain(bytes: Uint8Array, hints: ModelHints, target?: Target): Exported {
  const imported: ImportedModel = unwrap(importOnnx(bytes, importOptions(hints)));
  const { inputNames, outputNames } = imported;
  const model = target ? rewriteForExport(imported, target) : imported;
  const work = {
    imported: workOfGraph(prepareModel(imported, { keepsChoices: true }).graph),
    run: workOfGraph(lowerToCore(model).graph),
  };
  return { file: unwrap(exportOnnx(model, { inputNames, outputNames })).bytes, work };
}

export function rewriteForExport(model: Model, target: Target): Model {
  return unwrap(graphToExport(model, target)).model;
}
