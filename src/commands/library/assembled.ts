/**
 * What a driver's assembler takes for the kernels of a program: asked where the device that it is for is here,
 * else as the artifact says it, else not known. No toolkit is looked for.
 */
import type { ArtifactMeta, SearchReport } from "../../artifact/artifact.ts";
import type { Program } from "../../program/program.ts";
import { runsHere } from "../../runtime/create-session.ts";
import { type AssembledKernel, assembleHere } from "../../runtime/cuda/emitted-module.ts";
import { probeCuda } from "../../runtime/cuda/features.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { OpenModel } from "./open-model.ts";

/** Undefined where the target's device is not here. */
export function assembledHere(
  program: Program,
  target: Target,
): Result<readonly AssembledKernel[] | undefined> {
  if (target.emitter !== "ptx" || !runsHere(target)) return ok(undefined);
  const features = probeCuda();
  return features.ok ? assembleHere(program, target, features.value) : features;
}

export function assembledFor(
  { code, target }: OpenModel,
  { assembled }: SearchReport,
): Result<readonly AssembledKernel[] | undefined> {
  const here = assembledHere(code.program, target);
  return here.ok && !here.value ? ok(assembled) : here;
}

/** What is known of an artifact with what the assembler takes, in what it says of the search for the target. */
export function withAssembled<M extends Pick<ArtifactMeta, "searches">>(
  meta: M,
  target: Target,
  assembled: readonly AssembledKernel[] | undefined,
): M {
  if (!assembled) return meta;
  const kept = assembled.map((k) => ({ ...k }));
  const searches = meta.searches?.map((s) =>
    s.target === target.name ? { ...s, assembled: kept } : s,
  );
  return { ...meta, ...(searches && { searches }) };
}
