/**
 * One kernel as an entry: parameters as they turn out to be needed, shared memory laid out, barriers
 * set up, then the roles one after the other, each behind a branch of whole warps.
 */
import type { Buffer, Kernel, Program } from "../../program/program.ts";
import { threadCountName } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { childBodies, visitStatements } from "../../program/walk.ts";
import * as ix from "../../semantics/index-expr.ts";
import {
  type IndexRange,
  type IndexRanges,
  loopRange,
  rangeOf,
} from "../../semantics/index-range.ts";
import { reject } from "../../support/diagnostic.ts";
import { TextWriter } from "../../support/text-writer.ts";
import type { GpuArchitecture } from "../../target/machine.ts";
import { type Bits, IndexScope } from "./index-scope.ts";
import { type BufferPlace, KernelContext } from "./kernel-context.ts";
import { KernelEmitter } from "./kernel-emitter.ts";
import { ParameterList } from "./parameter-list.ts";
import { type Operand, PtxCode } from "./ptx-code.ts";
import type { PtxKernel } from "./ptx-module.ts";
import { checkRegisterShares } from "./register-shares.ts";
import { divisionsIn } from "./shared-division.ts";
import {
  baseOf,
  layOutMemory,
  type MemoryLayout,
  packedBuffers,
  registerPlace,
  storageBytes,
} from "./shared-layout.ts";
import { type CounterPlace, SyncEmitter } from "./sync-emitter.ts";
import { layOutThreads, type RoleLayout, type ThreadLayout, warpThreads } from "./thread-layout.ts";
import {
  descriptorTemplate,
  descriptorVariable,
  laneVariable,
  type MutableCounts,
  sharedVariable,
  TileEmitter,
} from "./tile-emitter.ts";
import { ValueEmitter } from "./value-emitter.ts";

/** Launches of one kernel: what is bound how, and which names stand for rows of tables. */
export interface KernelUse {
  /** Index variables that launches bind, with a range that holds all their values. */
  readonly bindings: ReadonlyMap<string, IndexRange>;
  /** Names of tables with a row of each, for type and shape. */
  readonly tables: ReadonlyMap<string, string>;
}

/** Everything that one entry is made from. */
export interface EntryRequest {
  readonly program: Program;
  /** With its unrolled loops expanded. */
  readonly kernel: Kernel;
  readonly use: KernelUse;
  readonly architecture: GpuArchitecture;
  readonly entry: string;
  readonly checks: string[];
}

/** Blocks along x, y, z: the last axis runs fastest. */
function gridOf(
  kernel: Kernel,
  ranges: IndexRanges,
): {
  readonly extents: readonly [ix.IndexExpr, ix.IndexExpr, ix.IndexExpr];
  readonly isFlat: boolean;
} {
  const axes = kernel.grid.axes.toReversed().map((a) => a.extent);
  const one = ix.constant(1);
  const tall = axes.slice(1).some((e) => rangeOf(e, ranges).max > 65535);
  // Blocks of a cluster are neighbours along x.
  const { clusterSize } = kernel.grid;
  const divides = (ix.constantValue(axes[0] ?? one) ?? 0) % clusterSize === 0;
  if (axes.length <= 3 && !tall && (clusterSize === 1 || divides)) {
    return { extents: [axes[0] ?? one, axes[1] ?? one, axes[2] ?? one], isFlat: false };
  }
  return { extents: [ix.mul(...axes), one, one], isFlat: true };
}

export function emitEntry(request: EntryRequest): PtxKernel {
  return new EntryEmitter(request).emit();
}

/** Whether sums of wgmma are in registers on their way. */
function multipliesInGroups({ roles }: Kernel): boolean {
  let found = false;
  for (const { body } of roles) {
    visitStatements(body, (s) => {
      found ||= s.kind === "intrinsic" && s.intrinsic.startsWith("wgmma");
    });
  }
  return found;
}

/**
 * Barriers one behind the other from which on an assembler overlaps what stands between them, such as the turns of
 * a scan, until the registers that it may have are full, and spills, however many these are (ptxas 13.0): it keeps what
 * a turn has read of shared memory for the sums of later ones. What is read between so many is near. Fewer do it where
 * a thread may have less than what all warps leave each other in all of them.
 */
const [mostMeetings, fewMeetings] = [16, 8] as const;

/** Barriers of a role that are not in a loop, at most. */
function meetingsInLine({ roles }: Kernel): number {
  const countOf = (body: readonly Statement[]): number =>
    body.reduce((sum, s) => {
      if (s.kind === "for") return sum;
      const inside = childBodies(s).map(countOf);
      return sum + (s.kind === "barrier" ? 1 : Math.max(0, ...inside));
    }, 0);
  return Math.max(0, ...roles.map((r) => countOf(r.body)));
}

/** Prefixes of variables that hold addresses. */
const bufferVariable = (name: string): string => `@buffer:${name}`;
const counterVariable = (name: string): string => `@counter:${name}`;
const localVariable = (name: string): string => `@local:${name}`;

class EntryEmitter {
  readonly #request: EntryRequest;
  readonly #kernel: Kernel;
  readonly #code: PtxCode;
  readonly #threads: ThreadLayout;
  readonly #memory: MemoryLayout;
  readonly #parameters: ParameterList;
  readonly #counts: MutableCounts = {
    wgmma: 0,
    wgmmaWaits: 0,
    mma: 0,
    tensorCopies: 0,
    peerStores: 0,
    asyncCopies: 0,
    matrixLoads: 0,
  };
  readonly #grid: ReturnType<typeof gridOf>;
  #thread: Operand = "";
  #warp: Operand = "";
  #shared: Operand = "";

  constructor(request: EntryRequest) {
    this.#request = request;
    this.#kernel = request.kernel;
    this.#code = new PtxCode({ isCallFree: multipliesInGroups(request.kernel) });
    this.#threads = layOutThreads(request.kernel);
    this.#memory = layOutMemory(request.kernel, request.architecture);
    this.#parameters = new ParameterList(request.entry, this.#code);
    this.#grid = gridOf(request.kernel, this.#outerRanges());
    this.#checkLimits();
  }

  emit(): PtxKernel {
    const { kernel, entry } = this.#request;
    this.#setUp();
    this.#roles();
    const registers = this.#maxRegisters();
    checkRegisterShares(kernel, this.#threads, registers);
    const cooperative = kernel.grid.resident;
    return {
      name: kernel.name,
      entry,
      text: this.#text(),
      parameters: this.#parameters.list,
      grid: this.#grid.extents,
      threads: this.#threads.threads,
      cluster: kernel.grid.unit === "clusters" ? kernel.grid.clusterSize : 1,
      staticSharedBytes: this.#memory.isDynamic ? 0 : this.#memory.bytes,
      dynamicSharedBytes: this.#memory.isDynamic ? this.#memory.bytes : 0,
      maxRegisters: registers,
      cooperative,
      usesLocalMemory: kernel.buffers.some((b) => b.scope === "local"),
      counts: this.#counts,
    };
  }

  /** What a thread may have when one block is resident: the text promises the assembler no more. */
  #maxRegisters(): number {
    const { registersPerBlock, registersPerThread } = this.#request.architecture;
    const share = Math.floor(registersPerBlock.value / this.#threads.threads / 8) * 8;
    return Math.min(registersPerThread.value, share);
  }

  #meetsOften(): boolean {
    const meetings = meetingsInLine(this.#kernel);
    const warps = Math.ceil(this.#threads.threads / warpThreads);
    const isMuch = meetings * warps > this.#maxRegisters();
    return meetings > mostMeetings || (meetings > fewMeetings && isMuch);
  }

  #checkLimits(): void {
    const { architecture, kernel } = this.#request;
    const refuse = (what: string, help: string): never =>
      reject("EMT001", `${architecture.name} has no room for ${what}`, {
        at: `kernel ${kernel.name}`,
        help,
      });
    const { threads, barriers } = this.#threads;
    const most = architecture.threadsPerBlock.value;
    if (threads > most) {
      refuse(`blocks of ${threads} threads (at most ${most})`, "use fewer threads or copies");
    }
    if (barriers > 16) refuse(`${barriers} barriers`, "use fewer roles that meet on their own");
    const { clusterSize, unit } = kernel.grid;
    const largest = architecture.blocksPerCluster?.value ?? 1;
    if (unit === "clusters" && clusterSize > largest) {
      refuse(`clusters of ${clusterSize} blocks (at most ${largest})`, "use smaller clusters");
    }
  }

  #text(): string {
    const out = new TextWriter();
    out.line(`// ${this.#kernel.name}: ${this.#kernel.region}`.replaceAll("\n", " "));
    if (this.#memory.isDynamic) {
      out.line(`.extern .shared .align 16 .b8 ${this.#sharedName()}[];`);
    }
    const parameters = this.#parameters.declarations();
    out.line(`.visible .entry ${this.#request.entry}(${parameters.join(", ")})`);
    out.line(`.maxntid ${this.#threads.threads}, 1, 1`);
    // Without it ptxas keeps to few registers by moving independent loads behind each other; and who passes registers
    // on has to say how many there are.
    out.line(".minnctapersm 1");
    out.line("{");
    out.indented(() => {
      if (!this.#memory.isDynamic && this.#memory.bytes > 0) {
        const { alignment, bytes } = this.#memory;
        out.line(`.shared .align ${alignment} .b8 ${this.#sharedName()}[${bytes}];`);
      }
      for (const b of this.#kernel.buffers) {
        if (b.scope === "local" && b.viewOf === undefined) {
          out.line(`.local .align 16 .b8 ${localName(this.#kernel, b)}[${storageBytes(b)}];`);
        }
      }
    });
    return `${out.toString()}${this.#code.toString()}}\n`;
  }

  #sharedName(): string {
    return `${this.#request.entry}_shared`;
  }

  #outerRanges(): Map<string, IndexRange> {
    const { program, use } = this.#request;
    const ranges = new Map<string, IndexRange>();
    for (const { name, min, max } of program.parameters) ranges.set(name, { min, max });
    for (const [name, range] of use.bindings) ranges.set(name, range);
    ranges.set(threadCountName, { min: 1, max: 2 ** 20 });
    return ranges;
  }

  /** Thread numbers, the base of shared memory, barriers of the block. */
  #setUp(): void {
    const code = this.#code;
    const { kernel } = this.#request;
    this.#thread = code.op("mov.u32", "r", "%tid.x");
    if (this.#threads.roles.length > 1 || this.#threads.roles[0]!.role.copies > 1) {
      const warp = code.op("shr.u32", "r", this.#thread, "5");
      // The same in all lanes, which the assembler has to be told.
      this.#warp = code.op("shfl.sync.idx.b32", "r", warp, "0", "31", "0xffffffff");
    }
    if (this.#memory.bytes > 0) this.#shared = this.#sharedBase();
    const phases = kernel.counters;
    if (phases.length === 0) return;
    this.#initialise();
  }

  /** The first byte of the layout: what a launch gives is aligned to 16 only. */
  #sharedBase(): Operand {
    const code = this.#code;
    const start = code.op("mov.u32", "r", this.#sharedName());
    if (!this.#memory.isDynamic || this.#memory.alignment <= 16) return start;
    const raised = code.op("add.s32", "r", start, String(this.#memory.alignment - 1));
    return code.op("and.b32", "r", raised, String(-this.#memory.alignment));
  }

  /** Counters of the block begin before any thread goes on. */
  #initialise(): void {
    const code = this.#code;
    const { kernel, architecture } = this.#request;
    const skip = code.newLabel();
    code.emit(`@${code.op("setp.ne.s32", "p", this.#thread, "0")} bra ${skip}`);
    for (const counter of kernel.counters) {
      const { offset, cells } = this.#memory.counters.get(counter.name)!;
      for (let i = 0; i < cells; i++) {
        if (counter.protocol === "phase") {
          const at = `[${this.#shared}+${offset + 8 * i}]`;
          code.emit(`mbarrier.init.shared.b64 ${at}, ${counter.arrivals}`);
        } else code.emit(`st.shared.b32 [${this.#shared}+${offset + 4 * i}], 0`);
      }
    }
    const clusters = architecture.features.includes("cluster");
    if (clusters) code.emit("fence.mbarrier_init.release.cluster");
    code.place(skip);
    if (kernel.grid.unit === "clusters" && kernel.grid.clusterSize > 1) {
      // The fence above releases; a plain arrive would do it again for all of memory.
      code.emit("barrier.cluster.arrive.relaxed").emit("barrier.cluster.wait");
    } else code.emit("bar.sync 0");
  }

  #roles(): void {
    const code = this.#code;
    const end = code.newLabel();
    for (const [i, layout] of this.#threads.roles.entries()) {
      const last = i === this.#threads.roles.length - 1;
      const next = code.newLabel();
      const { firstThread, copyThreads, role } = layout;
      const lastWarp = (firstThread + copyThreads * role.copies) / warpThreads;
      const fillsBlock = firstThread + copyThreads * role.copies === this.#threads.threads;
      if (!last || !fillsBlock) {
        const after = code.op("setp.ge.u32", "p", this.#warpNumber(), String(lastWarp));
        code.emit(`@${after} bra ${next}`);
      }
      const firstWarp = firstThread / warpThreads;
      const previous = this.#threads.roles[i - 1];
      const gap =
        previous &&
        previous.firstThread + previous.copyThreads * previous.role.copies < firstThread;
      if (gap) {
        code.emit(`@${code.op("setp.lt.u32", "p", this.#warpNumber(), String(firstWarp))} ret`);
      }
      this.#role(layout);
      code.emit(`bra ${end}`).place(next);
    }
    code.place(end);
    const { kernel } = this.#request;
    if (kernel.grid.unit === "clusters" && kernel.grid.clusterSize > 1) {
      // Others may still reach into this block's shared memory.
      code.emit("barrier.cluster.arrive.relaxed").emit("barrier.cluster.wait");
    }
    code.emit("ret");
  }

  #warpNumber(): Operand {
    if (this.#warp === "") this.#warp = this.#code.op("shr.u32", "r", this.#thread, "5");
    return this.#warp;
  }

  #role(layout: RoleLayout): void {
    const code = this.#code;
    const { program, kernel, use, architecture, checks } = this.#request;
    const { role } = layout;
    code.comment(`role ${role.name}`);
    const scope = new IndexScope(code);
    for (const [name, range] of this.#outerRanges()) scope.declare(name, range);
    const { copy, thread } = this.#placeOfThread(layout);
    const context = new KernelContext({
      code,
      scope,
      places: this.#places(role.body),
      architecture,
      kernel: kernel.name,
    });
    const values = new ValueEmitter(context, divisionsIn(role.body));
    const clusterSize = kernel.grid.unit === "clusters" ? kernel.grid.clusterSize : 1;
    const tiles = new TileEmitter({
      context,
      body: role.body,
      threads: role.threads,
      clusterSize,
      counts: this.#counts,
      tensorMap: (map) => this.#parameters.tensorMap(map),
    });
    const sync = new SyncEmitter({
      context,
      tiles,
      counters: this.#counters(),
      layout,
      threads: this.#threads,
      clusterSize,
      copy: role.copies > 1 ? copy : undefined,
      thread: this.#thread,
      meetsOften: this.#meetsOften(),
      gridBarrier: () => this.#parameters.address({ kind: "gridBarrier" }),
    });
    const faults = (): Operand => this.#parameters.address({ kind: "faults" });
    const emitter = new KernelEmitter({ context, kernel, values, sync, checks, faults });
    const ranges = scope.ranges;
    for (const axis of kernel.grid.axes) scope.declare(axis.name, loopRange(axis.extent, ranges));
    const [copyName, threadName] = [role.copyVariable, role.threadVariable];
    if (copyName !== undefined) scope.declare(copyName, { min: 0, max: role.copies - 1 });
    if (threadName !== undefined) scope.declare(threadName, { min: 0, max: role.threads - 1 });
    scope.declare(laneVariable, { min: 0, max: warpThreads - 1 });
    scope.declare(sharedVariable, { min: 0, max: 2 ** 18 });
    scope.declare(descriptorVariable, { min: 0, max: 2 ** 18 });
    emitter.declare(role.body);
    const names = ix.variablesOf(
      ...emitter.usesOf(role.body).map((u) => u.expr),
      ...this.#cells(role.body),
      ...kernel.grid.axes.map((a) => a.extent),
    );
    if (copyName !== undefined) scope.bind(copyName, copy, 32);
    if (threadName !== undefined) scope.bind(threadName, thread, 32);
    this.#bindAxes(scope);
    for (const name of names) {
      if (!scope.isBound(name)) this.#bindOuter(scope, name, { program, use });
    }
    emitter.emit(role.body);
  }

  /** Which copy, and which thread of it; what only fills a warp ends here. */
  #placeOfThread({ role, firstThread, copyThreads }: RoleLayout): {
    copy: Operand;
    thread: Operand;
  } {
    const code = this.#code;
    let thread = this.#thread;
    if (firstThread > 0) thread = code.op("add.s32", "r", thread, String(-firstThread));
    let copy: Operand = "0";
    if (role.copies > 1) {
      const warp = code.op("add.s32", "r", this.#warpNumber(), String(-firstThread / warpThreads));
      copy = code.op("div.u32", "r", warp, String(copyThreads / warpThreads));
      const before = code.op("mul.lo.s32", "r", copy, String(copyThreads));
      thread = code.op("sub.s32", "r", thread, before);
    } else copy = code.op("mov.b32", "r", "0");
    if (role.threads < copyThreads) {
      code.emit(`@${code.op("setp.ge.u32", "p", thread, String(role.threads))} ret`);
    }
    return { copy, thread };
  }

  /** Coordinates of the instance from those of the block. */
  #bindAxes(scope: IndexScope): void {
    const code = this.#code;
    const axes = this.#kernel.grid.axes;
    if (!this.#grid.isFlat) {
      axes.toReversed().forEach((axis, i) => {
        scope.bind(axis.name, code.op("mov.u32", "r", `%ctaid.${"xyz"[i]}`), 32);
      });
      return;
    }
    let rest = code.op("mov.u32", "r", "%ctaid.x");
    for (const [i, axis] of axes.toReversed().entries()) {
      for (const name of ix.variablesOf(axis.extent)) {
        if (!scope.isBound(name)) this.#bindOuter(scope, name, this.#request);
      }
      if (i === axes.length - 1) scope.bind(axis.name, rest, 32);
      else {
        const extent = scope.value(axis.extent, 32);
        scope.bind(axis.name, code.op("rem.u32", "r", rest, extent), 32);
        rest = code.op("div.u32", "r", rest, extent);
      }
    }
  }

  /** Addresses, parameters, bindings: what the role uses of them. */
  #bindOuter(
    scope: IndexScope,
    name: string,
    { program, use }: Pick<EntryRequest, "program" | "use">,
  ): void {
    const code = this.#code;
    if (name === sharedVariable) scope.bind(name, this.#shared, 32);
    else if (name === laneVariable) scope.bind(name, code.op("mov.u32", "r", "%laneid"), 32);
    else if (name === descriptorVariable) {
      // In a cluster an address has the block's rank above its 18 bits, where a descriptor has the leading offset.
      const within = code.op("and.b32", "r", this.#shared, String(2 ** 18 - 1));
      const units = code.op("shr.u32", "r", within, "4");
      scope.bind(name, code.op("or.b32", "r", units, String(descriptorTemplate)), 32);
    } else if (name.startsWith("@buffer:")) {
      const buffer = name.slice("@buffer:".length);
      scope.bind(name, this.#parameters.address({ kind: "buffer", name: buffer }), 64);
    } else if (name.startsWith("@counter:")) {
      const counter = name.slice("@counter:".length);
      scope.bind(name, this.#parameters.address({ kind: "counter", name: counter }), 64);
    } else if (name.startsWith("@local:")) {
      const symbol = name.slice("@local:".length);
      scope.bind(name, code.op("mov.u64", "d", symbol), 64);
    } else {
      const outer =
        program.parameters.some((p) => p.name === name) ||
        use.bindings.has(name) ||
        name === threadCountName;
      if (!outer) return;
      const bits: Bits = scope.widthOf(ix.variable(name));
      scope.bind(name, this.#parameters.index(name, bits), bits);
    }
  }

  /** Addresses of counters that the body waits for or signals. */
  #cells(body: readonly Statement[]): ix.IndexExpr[] {
    const counters = this.#counters();
    const found: ix.IndexExpr[] = [];
    visitStatements(body, (s) => {
      const name =
        s.kind === "wait" || s.kind === "signal" || s.kind === "expect"
          ? s.counter
          : s.kind === "intrinsic" && s.completion.kind === "signals"
            ? s.completion.counter
            : undefined;
      if (name !== undefined) found.push(counters.get(name)!.base);
      if (s.kind === "wait") found.push(s.value);
    });
    return found;
  }

  #counters(): ReadonlyMap<string, CounterPlace> {
    const places = new Map<string, CounterPlace>();
    for (const counter of this.#request.program.counters) {
      places.set(counter.name, { counter, base: ix.variable(counterVariable(counter.name)) });
    }
    for (const counter of this.#kernel.counters) {
      const { offset } = this.#memory.counters.get(counter.name)!;
      places.set(counter.name, { counter, base: ix.add(ix.variable(sharedVariable), offset) });
    }
    return places;
  }

  #places(body: readonly Statement[]): Map<string, BufferPlace> {
    const { program, kernel, use } = this.#request;
    const places = new Map<string, BufferPlace>();
    const global = (name: string, buffer: Buffer): void => {
      const base = ix.variable(bufferVariable(name));
      const isConstant = buffer.kind === "input" || buffer.kind === "weight";
      places.set(name, {
        kind: "memory",
        space: "global",
        buffer,
        base,
        isConstant,
        swizzleBytes: 0,
      });
    };
    for (const buffer of program.buffers) global(buffer.name, buffer);
    for (const [name, row] of use.tables) {
      global(name, program.buffers.find((b) => b.name === row)!);
    }
    const packed = packedBuffers(body);
    for (const buffer of kernel.buffers) {
      if (buffer.scope === "register") {
        places.set(buffer.name, registerPlace(kernel, buffer, packed, places));
        continue;
      }
      const isShared = buffer.scope === "shared";
      const base = isShared
        ? ix.add(ix.variable(sharedVariable), this.#memory.buffers.get(buffer.name)!)
        : ix.variable(localVariable(localName(kernel, buffer)));
      places.set(buffer.name, {
        kind: "memory",
        space: isShared ? "shared" : "local",
        buffer,
        base,
        isConstant: false,
        swizzleBytes: isShared ? (buffer.swizzleBytes ?? 0) : 0,
      });
    }
    return places;
  }
}

/** The symbol of a buffer of scope local; a view has that of what it views. */
function localName(kernel: Kernel, buffer: Buffer): string {
  const base = baseOf(kernel, buffer);
  return `local_${base.name.replace(/[^A-Za-z0-9_]/g, "_")}_${kernel.buffers.indexOf(base)}`;
}
