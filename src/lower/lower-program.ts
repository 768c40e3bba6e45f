/**
 * All regions of a model as one program: buffers for the tensors that kernels touch, the kernels in
 * order, each after the one before. Routines (what no nest expresses) have no builder for CPU targets
 * yet and are refused by name.
 */

import type { Buffer, Kernel, Program, Task } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import type { NestProgram } from "../region/nest.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import type { Condition } from "../semantics/condition.ts";
import { zeroOf } from "../semantics/dtype.ts";
import { constant, variable } from "../semantics/index-expr.ts";
import { composeLayouts, type LayoutMap } from "../semantics/layout.ts";
import { type Diagnostic, diagnostic, fail, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { lowerRegion, packedName, threadAxis } from "./lower-region.ts";
import { type MemoryPlan, planMemory } from "./memory-plan.ts";
import { productViews } from "./product/lower-product.ts";
import { inPlaceOperands, planViews, type ViewPlan } from "./storage.ts";
import { buffersOf } from "./task-uses.ts";

export interface LoweringInput {
  readonly nests: NestProgram;
  /** In execution order. */
  readonly scheduled: readonly ScheduledRegion[];
  readonly requires: readonly Condition[];
  readonly states: Program["states"];
}

export function lowerProgram(input: LoweringInput, target: Target): Result<MemoryPlan> {
  const { nests, scheduled } = input;
  const routines = nests.items.filter((i) => i.kind === "routine");
  if (routines.length > 0)
    return fail(...routines.map((r) => unsupported(r.routine.origin, target)));
  const kernels: Kernel[] = [];
  for (const region of scheduled) {
    const lowered = lowerRegion(region, target);
    if (!lowered.ok) return lowered;
    kernels.push(...lowered.value);
  }
  const views = planViews(nests);
  for (const { from, to } of views.copies) kernels.push(copyKernel(nests, from, to));
  const buffers = makeBuffers(input, kernels, views);
  const tasks = kernels.map(
    (k): Task => ({
      kind: "launch",
      kernel: k.name,
      after: "previous",
      bindings: [],
      waits: [],
      signals: [],
    }),
  );
  const program: Program = {
    name: nests.name,
    target: target.name,
    parameters: nests.symbols.map(({ name, range }) => ({ name, ...range })),
    requires: input.requires,
    buffers,
    counters: [],
    kernels,
    tasks,
    states: input.states,
  };
  return planMemory(program, inPlaceChoices(scheduled, views), target);
}

function unsupported(origin: string, target: Target): Diagnostic {
  return diagnostic("SCH015", `target ${target.name} has no program for ${origin}`, {
    help: "write it in other operators; loops and recurrent layers are copied out when --shape bounds them by 64 steps",
  });
}

function makeBuffers(
  input: LoweringInput,
  kernels: readonly Kernel[],
  views: ViewPlan,
): readonly Buffer[] {
  const { nests, scheduled } = input;
  const touched = new Set(kernels.flatMap((k) => [...buffersOf(k.roles.flatMap((r) => r.body))]));
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
    for (const { name, of, shape } of productViews(region)) {
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
    grid: {
      unit: "threads",
      axes: [{ name: threadAxis, extent: constant(1) }],
      clusterSize: 1,
      resident: false,
    },
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: `copy.${to}`,
  };
}
