/** Machine code of an artifact's programs: made before the artifact is written, kept for its first load. */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import { type Container, openContainer } from "../../artifact/container.ts";
import type { ArtifactFile } from "../../artifact/write-artifact.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { emitHere } from "../../runtime/emit-here.ts";
import { writePartsAtomically } from "../../runtime/files/files.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import { openModelFile } from "../../runtime/files/model-source.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { keepModel, openKeptModels } from "../library/kept-model.ts";
import type { WithPortable } from "./portable-child.ts";

/**
 * The code of each program that runs here: a program that cannot be emitted is found now, and loading
 * the artifact on this machine has nothing left to do.
 */
export function emitRunnable({ artifact, emitted }: WithPortable): Result<WithPortable> {
  const runnable = runnableTargets().names;
  const all = new Map(emitted);
  for (const [name, { program }] of artifact.targets) {
    if (all.has(name) || !runnable.includes(name)) continue;
    const code = emitHere(program, targets.get(name)!);
    if (!code.ok) return code;
    all.set(name, code.value);
  }
  return ok({ artifact, emitted: all });
}

/** Writes an artifact, part by part, and opens what was written. */
export function writeArtifactFile(path: string, file: ArtifactFile): Result<Container> {
  const written = writePartsAtomically(path, file.parts, file.byteLength);
  if (!written.ok) return written;
  const source = openModelFile(path, looksLikeArtifact);
  // Weights are what was summed a moment ago: to read them again would cost as much as writing them.
  return source.ok ? openContainer(source.value.bytes, checksums, { later: true }) : source;
}

/** @param container of the artifact as it was written, or of a stage of it */
export function keepCode({ artifact, emitted }: WithPortable, container: Container): void {
  const store = openKeptModels();
  for (const [name, code] of store ? emitted : []) {
    const { program } = artifact.targets.get(name)!;
    keepModel(store!, container, { artifact, program, target: targets.get(name)!, code });
  }
}
