/** The artifact of a model that runs in stages, to its programs. */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import { openContainer } from "../../artifact/container.ts";
import { readStages } from "../../artifact/read-stages.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import { type Diagnostic, ok, type Result } from "../../support/diagnostic.ts";
import { chooseTargetHere } from "./choose-target.ts";
import type { ModelBytes } from "./model-bytes.ts";
import { type OpenOptions, openContained, storeOf } from "./open-model.ts";
import type { OpenStage, OpenStages } from "./stages.ts";

export interface StagedArtifact {
  readonly meta: Pick<ArtifactMeta, "inputs" | "outputs">;
  readonly stages: OpenStages;
}

export function openStagedArtifact(
  { bytes, forget }: Pick<ModelBytes, "bytes" | "forget">,
  options: Pick<OpenOptions, "target" | "kept" | "gpu">,
): Result<StagedArtifact> {
  const container = openContainer(bytes, checksums);
  if (!container.ok) return container;
  const read = readStages(container.value);
  if (!read.ok) return read;
  const { graph, weights, stages: parts } = read.value;
  const warnings: Diagnostic[] = [];
  const stages: OpenStage[] = [];
  const hasPrograms = parts.some((p) => p.program);
  const target = hasPrograms
    ? chooseTargetHere(container.value, options.target, options.gpu?.ordinal)
    : undefined;
  if (target && !target.ok) return target;
  warnings.push(...(target?.warnings ?? []));
  for (const { part, program } of parts) {
    if (!program || !target) {
      stages.push({ graph: part });
      continue;
    }
    const opened = openContained(program, target.value, { store: storeOf(options), forget });
    if (!opened.ok) return opened;
    stages.push({ graph: part, opened: opened.value });
  }
  const { meta } = container.value;
  return ok({ meta, stages: { graph, weights, stages } }, warnings);
}
