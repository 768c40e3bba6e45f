/**
 * All regions of a model as one program: buffers for the tensors that kernels touch, the kernels in
 * order, each after the one before. Of routines (what no nest expresses) scans and loops become tasks that are
 * repeated (lower-steps.ts), selections kernels (first-places.ts); the others have no builder for CPU targets yet and are refused by name.
 */

import type { Buffer, Kernel, Program, Task } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import type { NestProgram, Routine } from "../region/nest.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import { type Condition, less } from "../semantics/condition.ts";
import { zeroOf } from "../semantics/dtype.ts";
import { constantValue, variable } from "../semantics/index-expr.ts";
import { composeLayouts, type LayoutMap } from "../semantics/layout.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { dealtBuffers } from "./attention/dealt.ts";
import { attentionViews } from "./attention/lower-attention.ts";
import { withDependentLaunches } from "./dependent-launches.ts";
import { selectionKernel } from "./first-places.ts";
import { lowerRegion, packedName } from "./lower-region.ts";
import { type LoweredPart, launch, repeatSteps, type StepPlan } from "./lower-steps.ts";
import { type MemoryPlan, planMemory } from "./memory-plan.ts";
import { nameApart } from "./own-names.ts";
import { productViews } from "./product/lower-product.ts";
import { inPlaceOperands, planViews, type ViewPlan } from "./storage.ts";
import { buffersOf } from "./task-uses.ts";
import { threadGrid } from "./thread-grid.ts";

export interface LoweringInput {
  readonly nests: NestProgram;
  /** In execution order. */
  readonly scheduled: readonly ScheduledRegion[];
  readonly requires: readonly Condition[];
  readonly states: Program["states"];
  /** Scans and loops by the number of their node. */
  readonly scans?: ReadonlyMap<number, LoweredScan>;
  /** Whether launches in a row start while the one before still runs; absent: they do not. */
  readonly overlap?: boolean;
}

/** A scan with its step, whose nests name what they take from around it as it is called there. */
export interface LoweredScan {
  readonly plan: StepPlan;
  readonly step: LoweringInput;
}

export function lowerProgram(input: LoweringInput, target: Target): Result<MemoryPlan> {
  const { nests, scheduled } = input;
  const part = lowerPart(input, target);
  if (!part.ok) return part;
  const { buffers } = part.value;
  const names = new Set(buffers.map((b) => b.name));
  const program: Program = {
    name: nests.name,
    target: target.name,
    parameters: nests.symbols.map(({ name, range }) => ({ name, ...range })),
    requires: input.requires,
    ...{ buffers, counters: [] },
    // Regions know their own tensors: no kernel's buffers are called as any of another region are.
    ...{ kernels: part.value.kernels.map((k) => nameApart(k, names)), tasks: part.value.tasks },
    states: input.states,
  };
  const inOrder = input.overlap ? withDependentLaunches(program) : program;
  return planMemory(inOrder, inPlaceChoices(scheduled, planViews(nests)), target);
}

/** The nests with the tensors and views of the steps of scans. */
export function nestsWithSteps({ nests, scans = new Map() }: LoweringInput): NestProgram {
  const steps = [...scans.values()].map(({ step }) => nestsWithSteps(step));
  return {
    ...nests,
    tensors: new Map([...steps.flatMap((s) => [...s.tensors]), ...nests.tensors]),
    items: [...nests.items, ...steps.flatMap((s) => s.items.filter((i) => i.kind === "view"))],
  };
}

/** What holds of the symbols of its regions: what the program asks for, and that steps are in range. */
export function requiresOfRegions({
  requires,
  scans = new Map(),
}: LoweringInput): readonly Condition[] {
  const steps = [...scans.values()].flatMap(({ plan: { trips }, step }) => [
    ...(trips.kind === "count" ? [less(variable(trips.variable), trips.count)] : []),
    ...requiresOfRegions(step),
  ]);
  return [...requires, ...steps];
}

/** What runs by itself in its place: the kernels of a region, or a scan. */
interface Piece {
  readonly kernels: readonly Kernel[];
  readonly tasks: readonly Task[];
  /** Tensors that others may read, by the name of their storage. */
  readonly writes: ReadonlySet<string>;
}

function lowerPart(input: LoweringInput, target: Target): Result<LoweredPart> {
  const { nests, scheduled, scans = new Map() } = input;
  const routines = nests.items.flatMap((i) => (i.kind === "routine" ? [i.routine] : []));
  const refused = refuseRoutines(nests, (node) => scans.has(node), target);
  if (refused.length > 0) return fail(...refused);
  const views = planViews(nests);
  const ownerOf = (tensor: string): string => views.root.get(tensor) ?? tensor;
  const pieces: Piece[] = [];
  for (const region of scheduled.filter(computes)) {
    const lowered = lowerRegion(region, target);
    if (!lowered.ok) return lowered;
    const written = region.region.statements.flatMap((s) => s.writes.map((w) => w.tensor));
    pieces.push(pieceOf(lowered.value, written.map(ownerOf)));
  }
  const inside: Buffer[] = [];
  for (const routine of routines) {
    const lowered = lowerRoutine(routine, { nests, target, scan: scans.get(routine.node) });
    if (!lowered.ok) return lowered;
    const reads = new Set(routine.reads.map(ownerOf));
    // Where it stands among the nests: after all that it reads, and nothing that reads it comes before.
    const last = pieces.findLastIndex((p) => [...p.writes].some((t) => reads.has(t)));
    const { kernels, tasks, buffers } = lowered.value;
    pieces.splice(last + 1, 0, { kernels, tasks, writes: new Set(routine.writes.map(ownerOf)) });
    inside.push(...buffers);
  }
  for (const { from, to } of views.copies) pieces.push(pieceOf([copyKernel(nests, from, to)], []));
  const kernels = pieces.flatMap((p) => p.kernels);
  const roots = inside.flatMap((b) => (b.viewOf === undefined ? [] : [b.viewOf]));
  const buffers = makeBuffers(input, kernels, { views, roots });
  const made = new Map(buffers.map((b) => [b.name, b]));
  for (const b of inside) {
    const root = b.viewOf && (made.get(b.viewOf)?.viewOf ?? b.viewOf);
    if (!made.has(b.name)) made.set(b.name, root === undefined ? b : { ...b, viewOf: root });
  }
  return ok({ kernels, tasks: pieces.flatMap((p) => p.tasks), buffers: [...made.values()] });
}

/** Whether a region has any element to compute: no grid has zero blocks. */
function computes({ region }: ScheduledRegion): boolean {
  return region.statements.some((s) =>
    s.loops.every((l) => l.kind === "reduce" || constantValue(l.extent) !== 0),
  );
}

function pieceOf(kernels: readonly Kernel[], writes: readonly string[]): Piece {
  return { kernels, tasks: kernels.map((k) => launch(k.name)), writes: new Set(writes) };
}

interface RoutineSite {
  readonly nests: NestProgram;
  readonly target: Target;
  readonly scan: LoweredScan | undefined;
}

function lowerRoutine(routine: Routine, { nests, target, scan }: RoutineSite): Result<LoweredPart> {
  const { selects } = routine;
  if (!selects) return lowerScan(scan!, { routine, nests, target });
  const kernel = selectionKernel({ ...routine, selects }, nests);
  return ok({ kernels: [kernel], tasks: [launch(kernel.name)], buffers: [] });
}

/** A scan's tasks, with the buffers that only its step knows. */
function lowerScan(
  { plan, step }: LoweredScan,
  at: { readonly routine: Routine; readonly nests: NestProgram; readonly target: Target },
): Result<LoweredPart> {
  const { routine, nests, target } = at;
  const part = lowerPart(step, target);
  if (!part.ok) return part;
  const tensorOf = (name: string) => (nests.tensors.get(name) ?? step.nests.tensors.get(name))!;
  const { outputs } = step.nests;
  const where = { name: routine.name, outputs, tensorOf, target };
  const made = repeatSteps(plan, part.value, where);
  const own = made.buffers.filter((b) => !nests.tensors.has(b.name));
  return ok({ ...made, buffers: own.map(asScratch) });
}

/** What a step gives is no output of the program. */
function asScratch({ source, ...buffer }: Buffer): Buffer {
  if (buffer.kind === "output") return { ...buffer, kind: "scratch" };
  return source === undefined ? buffer : { ...buffer, source };
}

/** Why a program has no place for routines of its nests: those that are no scans with steps. */
export function refuseRoutines(
  { items }: NestProgram,
  hasSteps: (node: number) => boolean,
  target: Target,
): readonly Diagnostic[] {
  return items.flatMap((i) =>
    i.kind === "routine" && !i.routine.selects && !hasSteps(i.routine.node)
      ? [unsupported(i.routine.origin, target)]
      : [],
  );
}

function unsupported(origin: string, target: Target): Diagnostic {
  return diagnostic("SCH015", `target ${target.name} has no program for ${origin}`, {
    help: "write it in other operators; a loop that collects results is part of a program when the model, --value or --shape fixes its trips (on GPUs every loop has to), a RoiAlign has a program with a sampling_ratio from 1 on",
  });
}

function makeBuffers(
  input: LoweringInput,
  kernels: readonly Kernel[],
  { views, roots }: { readonly views: ViewPlan; readonly roots: readonly string[] },
): readonly Buffer[] {
  const { nests, scheduled } = input;
  const stored = kernels.flatMap((k) => {
    const own = new Set(k.buffers.map((b) => b.name));
    return [...buffersOf(k.roles.flatMap((r) => r.body))].filter((name) => !own.has(name));
  });
  const touched = new Set([...stored, ...roots]);
  const made = new Map<string, Buffer>();
  const add = (name: string): void => {
    const root = views.root.get(name);
    if (root !== undefined && !made.has(root)) add(root);
    if (made.has(name)) return;
    made.set(name, tensorBuffer(input, name, root));
  };
  for (const [name, tensor] of nests.tensors) {
    const kept = tensor.role === "input" || tensor.role === "output" || touched.has(name);
    if (kept) add(name);
  }
  for (const { from, to } of views.copies) {
    const name = copyName(from, to);
    const buffer = tensorBuffer(input, from, to);
    made.set(name, { ...buffer, name, kind: buffer.kind === "state" ? "state" : "output" });
  }
  for (const region of scheduled) {
    for (const [name, layout] of region.layouts) {
      const buffer = tensorBuffer(input, name, undefined, layout);
      if (touched.has(buffer.name)) made.set(buffer.name, buffer);
    }
    for (const { name, of, shape } of [...productViews(region), ...attentionViews(region)]) {
      if (made.has(name) || !touched.has(name)) continue;
      add(of);
      const viewOf = views.root.get(of) ?? of;
      const { dtype } = nests.tensors.get(of)!;
      made.set(name, {
        ...{ name, dtype, shape, viewOf },
        kind: "scratch",
        scope: "memory",
        lanes: 1,
      });
    }
  }
  for (const buffer of scheduled.flatMap(dealtBuffers)) made.set(buffer.name, buffer);
  return [...made.values()];
}

function tensorBuffer(
  input: LoweringInput,
  name: string,
  root: string | undefined,
  layout?: LayoutMap,
): Buffer {
  const tensor = input.nests.tensors.get(name)!;
  const stored = input.states.some((s) => s.input === name || s.output === name);
  const kind = tensor.role === "intermediate" ? "scratch" : tensor.role;
  const first = tensor.stored?.layout;
  const how = first && layout ? composeLayouts(first, layout) : (layout ?? first);
  return {
    name: layout ? packedName(name, layout) : name,
    kind: stored && kind !== "weight" ? "state" : kind,
    scope: "memory",
    dtype: tensor.dtype,
    lanes: 1,
    shape: layout ? layout.shape : tensor.shape,
    ...(how && { layout: how }),
    ...(root !== undefined && { viewOf: root }),
    ...(kind !== "scratch" && { source: tensor.stored?.of ?? name }),
  };
}

function inPlaceChoices(
  scheduled: readonly ScheduledRegion[],
  views: ViewPlan,
): ReadonlyMap<string, readonly string[]> {
  const owner = (name: string): string => views.root.get(name) ?? name;
  const choices = new Map<string, readonly string[]>();
  for (const region of scheduled) {
    for (const statement of region.region.statements) {
      for (const { tensor } of statement.writes) {
        const operands = inPlaceOperands(region, tensor, owner).map(owner);
        if (operands.length > 0) choices.set(owner(tensor), operands);
      }
    }
  }
  return choices;
}

/** `to` seen in the shape of `from`. */
function copyName(from: string, to: string): string {
  return `${to}.as.${from}`;
}

/** Copies a tensor to the storage of another with as many elements, in row-major order. */
function copyKernel(nests: NestProgram, from: string, to: string): Kernel {
  const source = nests.tensors.get(from)!;
  const axes = source.shape.map((_, i) => `c${i}`);
  const index = axes.map((a) => variable(a));
  const value: Expr = {
    kind: "load",
    dtype: source.dtype,
    lanes: 1,
    buffer: from,
    index,
    guard: [],
    fill: zeroOf(source.dtype),
  };
  const body = axes.reduceRight<Kernel["roles"][number]["body"]>(
    (inner, name, i) => [
      {
        kind: "for",
        variable: name,
        extent: source.shape[i]!,
        mode: { kind: "serial" },
        body: inner,
      },
    ],
    [{ kind: "store", buffer: copyName(from, to), index, value }],
  );
  return {
    name: `copy.${to}`,
    grid: threadGrid(false),
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: `copy.${to}`,
  };
}
