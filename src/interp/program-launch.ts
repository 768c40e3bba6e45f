/**
 * Launches: builds the instances of a grid with their shared memory, counters, threads and meeting
 * places, and starts them: all at once when the grid is resident, else only some clusters at a time,
 * as a device without room for all would.
 */
import type { Buffer, Counter, Kernel, Role } from "../program/program.ts";
import { ownExprs, visitExpr, visitStatements } from "../program/walk.ts";
import { evaluate } from "../semantics/index-expr.ts";
import { type Bindings, type BufferMaker, planBuffers } from "./program-buffers.ts";
import { emptyKnowledge, join, type Knowledge } from "./program-clock.ts";
import { compileRole, NameSlots, type Steps } from "./program-compile.ts";
import type { Machine, Runnable } from "./program-machine.ts";
import type { View } from "./program-memory.ts";
import { Meeting, MonotoneCell, PhaseCell } from "./program-sync.ts";
import type { CounterArray, Instance, LaunchPlace, Thread } from "./program-thread.ts";

/** What a launch needs beyond its kernel. */
export interface LaunchContext {
  readonly machine: Machine;
  readonly kernel: Kernel;
  /** Parameters, thread count and the launch's bindings. */
  readonly bindings: Bindings;
  /** Program buffers, names of tables resolved. */
  readonly views: ReadonlyMap<string, View>;
  readonly counters: ReadonlyMap<string, CounterArray>;
  readonly knows: Knowledge;
  /** The launch before it, as far as its instances are concerned. */
  readonly prerequisites: LaunchPlace["prerequisites"];
  readonly learn: LaunchPlace["learn"];
  /** Called once every instance has launched its dependents or ended. */
  readonly onDependents: () => void;
  /** Called with what an instance knew when its last thread ended. */
  readonly onInstanceEnd: (knows: Knowledge) => void;
  readonly onEnd: () => void;
}

/** Counter arrays under the run's parameters. */
export function allocateCounters(
  counters: readonly Counter[],
  at: Bindings,
  place: { readonly machine: Machine; readonly owner: string },
): Map<string, CounterArray> {
  return new Map(
    counters.map((counter) => {
      const shape = counter.shape.map((e) => evaluate(e, at));
      const count = shape.reduce((a, b) => a * b, 1);
      const labels = Array.from(
        { length: count },
        (_, i) => `${counter.name}[${i}] of ${place.owner}`,
      );
      const isPhase = counter.protocol === "phase";
      const array: CounterArray = {
        name: counter.name,
        shape,
        monotone: isPhase ? [] : labels.map((label) => new MonotoneCell(label)),
        phase: isPhase
          ? labels.map((l) => new PhaseCell(l, counter.arrivals ?? 1, place.machine.newSlot()))
          : [],
      };
      return [counter.name, array];
    }),
  );
}

/** Names of all buffers that a kernel's bodies touch. */
function buffersUsed(kernel: Kernel): Set<string> {
  const names = new Set<string>();
  for (const role of kernel.roles) {
    visitStatements(role.body, (s) => {
      if (s.kind === "store") names.add(s.buffer);
      if (s.kind === "intrinsic") {
        for (const o of s.operands) if (o.kind === "tile") names.add(o.buffer);
      }
      for (const expr of ownExprs(s)) {
        visitExpr(expr, (e) => {
          if (e.kind === "load") names.add(e.buffer);
        });
      }
    });
  }
  return names;
}

interface CompiledRole {
  readonly role: Role;
  readonly code: (thread: Thread) => Steps;
  readonly slots: readonly { readonly name: string; readonly slot: number }[];
}

/** Starts the launch; it ends by itself as the machine runs. */
export function startLaunch(context: LaunchContext): void {
  const { kernel, bindings } = context;
  const buffers = new Map([...buffersUsed(kernel)].map((name, slot) => [name, slot] as const));
  const roles = kernel.roles.map((role) => compileFor(context, role, buffers));
  const extents = kernel.grid.axes.map((a) => evaluate(a.extent, bindings));
  const count = extents.reduce((a, b) => a * b, 1);
  const instances = makeInstances(context, count);
  const isPrivate = ({ scope }: Buffer): boolean => scope === "local" || scope === "register";
  const makePrivate = planBuffers(kernel.buffers.filter(isPrivate), bindings);
  const grid = { context, roles, extents, buffers: [...buffers.keys()], makePrivate };
  runClusters(grid, instances);
}

function compileFor(
  context: LaunchContext,
  role: Role,
  buffers: ReadonlyMap<string, number>,
): CompiledRole {
  const { kernel, bindings } = context;
  const names = new NameSlots(kernel, buffers);
  const bound = [...bindings.keys(), ...kernel.grid.axes.map((a) => a.name)];
  if (role.copyVariable !== undefined) bound.push(role.copyVariable);
  if (role.threadVariable !== undefined) bound.push(role.threadVariable);
  const slots = bound.map((name) => ({ name, slot: names.bindInt(name) }));
  return { role, code: compileRole(role, names), slots };
}

function makeInstances(context: LaunchContext, count: number): Instance[] {
  const { kernel, bindings, machine, counters } = context;
  const makeShared = planBuffers(
    kernel.buffers.filter((b) => b.scope === "shared"),
    bindings,
  );
  const clusters: Instance[][] = [];
  const launch = placeOf(context, count);
  return Array.from({ length: count }, (_, index) => {
    const label = `${kernel.name}#${index}`;
    const number = Math.floor(index / kernel.grid.clusterSize);
    clusters[number] ??= [];
    const cluster = clusters[number];
    const place = { machine, owner: label };
    const shared = makeShared();
    const all = new Map([...counters, ...allocateCounters(kernel.counters, bindings, place)]);
    const instance: Instance = { label, index, launch, cluster, shared, counters: all };
    cluster.push(instance);
    return instance;
  });
}

/** Counts the instances that let the next launch begin. */
function placeOf(
  { prerequisites, learn, onDependents }: LaunchContext,
  count: number,
): LaunchPlace {
  const said = new Set<Instance>();
  const launchDependents = (instance: Instance): void => {
    if (said.has(instance)) return;
    said.add(instance);
    if (said.size === count) onDependents();
  };
  return { launchDependents, prerequisites, learn };
}

interface GridRun {
  readonly context: LaunchContext;
  readonly roles: readonly CompiledRole[];
  readonly extents: readonly number[];
  readonly buffers: readonly string[];
  /** The buffers of a thread. */
  readonly makePrivate: BufferMaker;
}

/** Starts clusters; a grid that is not resident gets the next one only when one has ended. */
function runClusters(grid: GridRun, instances: readonly Instance[]): void {
  const { context } = grid;
  const clusters = [...new Set(instances.map((i) => i.cluster))];
  let left = clusters.length;
  if (left === 0) {
    context.onEnd();
    return;
  }
  const threads = instances.length * threadsOf(context.kernel);
  const meeting = new Meeting<Thread>(threads);
  const waiting = clusters.slice();
  const startNext = (): void => {
    const cluster = waiting.shift();
    if (!cluster) return;
    startCluster(grid, cluster, {
      meeting,
      onEnd: () => {
        left--;
        startNext();
        if (left === 0) context.onEnd();
      },
    });
  };
  const { resident } = context.kernel.grid;
  const atOnce = resident ? clusters.length : context.machine.rng.integer(1, clusters.length);
  for (let i = 0; i < atOnce; i++) startNext();
}

function threadsOf(kernel: Kernel): number {
  return kernel.roles.reduce((sum, role) => sum + role.copies * role.threads, 0);
}

interface ClusterRun {
  readonly meeting: Meeting<Thread>;
  readonly onEnd: () => void;
}

function startCluster(grid: GridRun, cluster: readonly Instance[], run: ClusterRun): void {
  const perInstance = threadsOf(grid.context.kernel);
  const meeting = new Meeting<Thread>(perInstance * cluster.length);
  let left = cluster.length;
  for (const instance of cluster) {
    const ended = emptyKnowledge();
    let threadsLeft = perInstance;
    const onThreadEnd = (thread: Thread): void => {
      join(ended, thread.agent.knows);
      if (--threadsLeft > 0) return;
      instance.launch.launchDependents(instance);
      grid.context.onInstanceEnd(ended);
      if (--left === 0) run.onEnd();
    };
    startInstance(grid, instance, { cluster: meeting, grid: run.meeting, onThreadEnd });
  }
}

interface InstanceRun {
  readonly cluster: Meeting<Thread>;
  readonly grid: Meeting<Thread>;
  readonly onThreadEnd: (thread: Thread) => void;
}

function startInstance(grid: GridRun, instance: Instance, run: InstanceRun): void {
  const all = new Meeting<Thread>(threadsOf(grid.context.kernel));
  for (const compiled of grid.roles) {
    const { copies, threads } = compiled.role;
    const role = new Meeting<Thread>(copies * threads);
    for (let copy = 0; copy < copies; copy++) {
      const own = new Meeting<Thread>(threads);
      let warp = new Meeting<Thread>(Math.min(32, threads));
      for (let number = 0; number < threads; number++) {
        if (number % 32 === 0) warp = new Meeting<Thread>(Math.min(32, threads - number));
        const meetings = {
          warp,
          copy: own,
          role,
          instance: all,
          cluster: run.cluster,
          grid: run.grid,
        };
        const place = { copy, number, meetings };
        startThread(grid, { compiled, instance, onEnd: run.onThreadEnd, ...place });
      }
    }
  }
}

interface ThreadPlace {
  readonly compiled: CompiledRole;
  readonly instance: Instance;
  readonly copy: number;
  readonly number: number;
  readonly meetings: Thread["meetings"];
  readonly onEnd: (thread: Thread) => void;
}

function startThread(grid: GridRun, place: ThreadPlace): void {
  const { context } = grid;
  const { machine } = context;
  const { compiled, instance, copy, number } = place;
  const label = `${instance.label}.${compiled.role.name}[${copy}].${number}`;
  const privateViews = grid.makePrivate();
  const thread: Thread = {
    ints: [],
    values: [],
    machine,
    agent: machine.newAgent(label, context.knows),
    instance,
    views: grid.buffers.map(
      (name) => privateViews.get(name) ?? instance.shared.get(name) ?? context.views.get(name)!,
    ),
    groups: new Map(),
    meetings: place.meetings,
    groupSlots: new Map(),
    number,
  };
  const bound = variablesOf(grid, place);
  for (const { name, slot } of compiled.slots) thread.ints[slot] = bound.get(name)!;
  const runnable: Runnable = {
    label,
    steps: compiled.code(thread),
    blockedOn: undefined,
    onEnd: () => place.onEnd(thread),
  };
  machine.start(runnable);
}

/** Values of the index variables that a thread starts with. */
function variablesOf(grid: GridRun, place: ThreadPlace): ReadonlyMap<string, number> {
  const bound = new Map(grid.context.bindings);
  const { axes } = grid.context.kernel.grid;
  let rest = place.instance.index;
  for (let axis = axes.length - 1; axis >= 0; axis--) {
    bound.set(axes[axis]!.name, rest % grid.extents[axis]!);
    rest = Math.floor(rest / grid.extents[axis]!);
  }
  const { copyVariable, threadVariable } = place.compiled.role;
  if (copyVariable !== undefined) bound.set(copyVariable, place.copy);
  if (threadVariable !== undefined) bound.set(threadVariable, place.number);
  return bound;
}
