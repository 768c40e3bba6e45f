/**
 * The name that an artifact's machine code has where no target was named: compiled for the best that runs
 * here, a program may use no instruction that is of this machine alone. Under the least general name whose
 * processors have all that it uses, it runs on these too.
 */
import type { SearchReport } from "../../artifact/artifact.ts";
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import { findValueIntrinsic } from "../../program/intrinsic-table.ts";
import type { Program } from "../../program/program.ts";
import { visitExprs } from "../../program/walk.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";

/** The wish for which this machine chooses the target. */
const chosenHere = "cpu";

/** Artifacts of one file with the target that they are for, under its name. */
export interface NamedArtifacts {
  readonly target: Target;
  readonly artifacts: readonly ArtifactContent[];
}

/**
 * @param artifacts of one file: stages share a target
 * @param wish as the user gave it; a target that was named keeps its name
 */
export function leastNamed(
  wish: string,
  target: Target,
  artifacts: readonly ArtifactContent[],
): NamedArtifacts {
  if (wish !== chosenHere) return { target, artifacts };
  const programs = artifacts.flatMap((a) => a.targets.get(target.name)?.program ?? []);
  const least = leastTarget(programs, target);
  if (least === target) return { target, artifacts };
  return { target: least, artifacts: artifacts.map((a) => renamed(a, target.name, least.name)) };
}

/** Of the general x86-64 targets with vectors as wide, which ask for no more than `target` does. */
export function leastTarget(programs: readonly Program[], target: Target): Target {
  if (target.emitter !== "x64") return target;
  const used = [...new Set(programs.flatMap((p) => [...capabilitiesOf(p)]))];
  const { capabilities: own } = target;
  const fitting = [...targets.values()].filter(
    ({ emitter, machine, vectorBytes, capabilities }) =>
      emitter === "x64" &&
      machine === undefined &&
      vectorBytes === target.vectorBytes &&
      [...capabilities].every((c) => own.has(c)) &&
      used.every((c) => capabilities.has(c)),
  );
  return fitting.reduce(
    (least, t) => (t.capabilities.size < least.capabilities.size ? t : least),
    target,
  );
}

/** What the instructions of a program need that are no operators. */
function capabilitiesOf(program: Program): ReadonlySet<string> {
  const needs = new Set<string>();
  for (const { body } of program.kernels.flatMap((k) => k.roles)) {
    visitExprs(body, (expr) => {
      if (expr.kind !== "call") return;
      const row = findValueIntrinsic(expr.intrinsic);
      invariant(row, () => `unknown intrinsic ${expr.intrinsic}`);
      needs.add(row.needs);
    });
  }
  return needs;
}

/** Wherever an artifact says the name of a target. Its other programs stay as they are. */
function renamed(artifact: ArtifactContent, from: string, to: string): ArtifactContent {
  const named = <T>(entries: ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
    new Map([...entries].map(([name, value]) => [name === from ? to : name, value]));
  const programs = new Map(artifact.targets);
  const own = programs.get(from);
  if (own) {
    const schedules = own.schedules.map((s) => ({ ...s, target: to }));
    programs.set(from, { program: { ...own.program, target: to }, schedules });
  }
  const search = (s: SearchReport): SearchReport => (s.target === from ? { ...s, target: to } : s);
  const searches = artifact.meta.searches?.map(search);
  return {
    ...artifact,
    meta: { ...artifact.meta, ...(searches && { searches }) },
    targets: named(programs),
    ...(artifact.arenas && { arenas: named(artifact.arenas) }),
  };
}
