/** The artifact of a model that runs in stages, for WebAssembly; throws where it is refused. */
import { writeStagedArtifact } from "../../artifact/write-artifact.ts";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import { targets } from "../../target/index.ts";
import { portNames } from "./model-bytes.ts";
import { openStages } from "./stages.ts";
import { unwrap } from "./wavetile-error.ts";

export function stagedArtifact(model: Uint8Array): Uint8Array {
  const imported = unwrap(importOnnx(model));
  const options = { target: "wasm", shapes: {}, seed: 0 };
  const { graph, weights, stages } = unwrap(openStages(imported, targets.get("wasm")!, options)!);
  return writeStagedArtifact({
    meta: { producer: "test", seed: 0, ...portNames(imported, graph) },
    graph,
    weights,
    stages: stages.map(({ graph: part, opened }) => ({
      part,
      ...(opened && { program: opened.artifact }),
    })),
  });
}
