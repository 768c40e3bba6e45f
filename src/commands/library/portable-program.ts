/**
 * The program for WebAssembly that an artifact carries beside its machine code, for processors and hosts that
 * do not let that run. Both programs are made of the same graph, each with its own target's prices, and
 * neither needs the other: they may be compiled at the same time.
 */
import type { ArtifactMeta, SearchReport, TargetCode } from "../../artifact/artifact.ts";
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import { type CompiledModel, compileModel } from "../../compile.ts";
import type { Model } from "../../graph/graph.ts";
import type { SchedulingMemory } from "../../scheduled-graph.ts";
import { isHalfDType } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { type Diagnostic, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { type CalibrationWish, findCalibration } from "./machine-calibration.ts";
import { searchReport } from "./search-report.ts";

/** What every engine with SIMD runs. */
export const portableTarget = "wasm";

export interface PortableProgram {
  readonly code: TargetCode;
  readonly views: ArtifactMeta["views"];
  readonly search: SearchReport;
}

/**
 * @param memory as CompileOptions has it
 * @param wish a calibration file that was named is one target's: other than `auto`, none is used here
 * @returns undefined, with warnings, where the model is too large for WebAssembly's memory
 */
export function compilePortable(
  model: Model,
  wish: CalibrationWish,
  memory?: SchedulingMemory,
): Result<PortableProgram | undefined> {
  const target = targets.get(portableTarget)!;
  const calibration = findCalibration(target, wish === "auto" ? wish : "off");
  if (!calibration.ok) return calibration;
  const { warnings, value: used } = calibration;
  const compiled = compileModel(model, {
    target,
    ...(used && { model: used.model }),
    ...(memory && { memory }),
  });
  if (!compiled.ok) {
    const isTooLarge = compiled.diagnostics.every((d) => d.code === "MEM002");
    if (!isTooLarge) return compiled;
    return ok(undefined, [...warnings, ...compiled.diagnostics.map(withoutPortable)]);
  }
  const search = searchReport(target.name, compiled.value, used?.origin);
  const program = { code: codeOf(compiled.value), views: viewsOf(compiled.value), search };
  return ok(program, warnings);
}

/** Too large for WebAssembly's memory: the artifact then runs where its machine code does. */
function withoutPortable(d: Diagnostic): Diagnostic {
  const notes = [...d.notes, `the artifact has no program for ${portableTarget}`];
  return { ...d, severity: "warning", notes };
}

/**
 * Whether the artifact's graph has all weights that the program reads: a target may keep values wide that
 * another keeps narrow, with constants of its own. Where it lacks one, the program is to be made of that graph.
 */
export function isOfGraph({ graph }: ArtifactContent, { code, views }: PortableProgram): boolean {
  const known = new Set(graph.weights.map((w) => graph.values[w.value]!.name));
  const bases = new Map(views.map((v) => [v.name, v.of]));
  return code.program.buffers.every(
    ({ kind, source }) => kind !== "weight" || known.has(bases.get(source!) ?? source!),
  );
}

/** The artifact with the program, where there is one, behind its own. */
export function addPortable(
  artifact: ArtifactContent,
  portable: PortableProgram | undefined,
): ArtifactContent {
  if (!portable) return artifact;
  const { meta } = artifact;
  const { code, views: added } = widened(artifact, portable);
  const views = new Map([...meta.views, ...added].map((view) => [view.name, view]));
  return {
    ...artifact,
    meta: {
      ...meta,
      views: [...views.values()],
      searches: [...(meta.searches ?? []), portable.search],
    },
    targets: new Map([...artifact.targets, [portableTarget, code]]),
  };
}

/**
 * Weights that the program reads as f32 and the artifact's graph keeps as halves, for machine code that widens
 * them as it loads them: views of these, under names of their own.
 */
function widened(
  { graph, meta }: ArtifactContent,
  { code, views }: PortableProgram,
): Pick<PortableProgram, "code" | "views"> {
  const types = new Map(
    graph.weights.map(({ value }) => {
      const { name, type } = graph.values[value]!;
      return [name, type] as const;
    }),
  );
  const own = new Map(views.map((v) => [v.name, v]));
  const taken = new Set([...graph.values, ...meta.views, ...views].map((v) => v.name));
  const wide = new Map<string, ArtifactMeta["views"][number]>();
  const buffers = code.program.buffers.map((buffer) => {
    const { kind, source, dtype } = buffer;
    if (kind !== "weight" || source === undefined) return buffer;
    const of = own.get(source)?.of ?? source;
    const type = types.get(of);
    if (!type || dtype !== "f32" || !isHalfDType(type.dtype)) return buffer;
    const shape = own.get(source)?.shape ?? type.shape.map((e) => constantValue(e)!);
    let name = `${source}.f32`;
    while (taken.has(name)) name += "'";
    wide.set(source, wide.get(source) ?? { name, of, shape, dtype: "f32" });
    return { ...buffer, source: wide.get(source)!.name };
  });
  const left = views.filter((v) => !wide.has(v.name));
  return {
    code: { ...code, program: { ...code.program, buffers } },
    views: [...left, ...wide.values()],
  };
}

export function codeOf({ regions, plan }: CompiledModel): TargetCode {
  return { program: plan.program, schedules: regions.map((r) => r.scheduled.schedule) };
}

/** Weights that the program reads under another shape than the graph gives them. */
export function viewsOf({ model: { graph }, nests, plan }: CompiledModel): ArtifactMeta["views"] {
  const known = new Set(graph.weights.map((w) => graph.values[w.value]!.name));
  const bases = new Map(
    nests.items.flatMap((i) => (i.kind === "view" ? [[i.view.tensor, i.view.of] as const] : [])),
  );
  const found = new Map<string, ArtifactMeta["views"][number]>();
  for (const { kind, source } of plan.program.buffers) {
    if (kind !== "weight" || source === undefined || known.has(source)) continue;
    let of = source;
    while (!known.has(of) && bases.has(of)) of = bases.get(of)!;
    const shape = nests.tensors.get(source)!.shape.map((e) => constantValue(e)!);
    found.set(source, { name: source, of, shape });
  }
  return [...found.values()];
}
