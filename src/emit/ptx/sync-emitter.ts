/**
 * Statements that synchronise: counters, barriers, fences, groups of asynchronous work. Forms: PTX ISA,
 * "mbarrier", "barrier", "Memory Consistency Model". A counter of protocol phase is an mbarrier; one of
 * protocol monotone a word that is added to with release and waited for with acquire, polled with
 * relaxed loads because every acquiring poll would flush the L1 cache.
 */

import { rowMajorStrides } from "../../program/addresses.ts";
import type { Counter } from "../../program/program.ts";
import type { Statement, SyncStatement } from "../../program/statement.ts";
import * as ix from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { KernelContext } from "./kernel-context.ts";
import { branch, type Operand } from "./ptx-code.ts";
import {
  instanceBarrier,
  type RoleLayout,
  roundUp,
  type ThreadLayout,
  warpThreads,
} from "./thread-layout.ts";
import type { TileEmitter } from "./tile-emitter.ts";

type StatementOf<K extends Statement["kind"]> = Extract<Statement, { kind: K }>;

/** A counter's cells: `base` is the address of the first. */
export interface CounterPlace {
  readonly counter: Counter;
  readonly base: ix.IndexExpr;
}

export const phaseBytes = 8;
export const monotoneBytes = 4;

export interface SyncParts {
  readonly context: KernelContext;
  readonly tiles: TileEmitter;
  readonly counters: ReadonlyMap<string, CounterPlace>;
  readonly layout: RoleLayout;
  readonly threads: ThreadLayout;
  readonly clusterSize: number;
  /** Number of the copy of the role, where there are several. */
  readonly copy: Operand | undefined;
  /** The register with the number of the thread in its block. */
  readonly thread: Operand;
  /** Whether so many barriers follow each other that an assembler has to be kept from moving sums across them. */
  readonly meetsOften: boolean;
  /** The register with the address of the grid's barrier. */
  readonly gridBarrier: () => Operand;
}

export class SyncEmitter {
  readonly tiles: TileEmitter;
  readonly #parts: SyncParts;
  readonly #context: KernelContext;

  constructor(parts: SyncParts) {
    this.#parts = parts;
    this.tiles = parts.tiles;
    this.#context = parts.context;
  }

  emit(s: SyncStatement): void {
    switch (s.kind) {
      case "intrinsic":
        this.tiles.emit(s, (counter, index) => this.cellAddress(counter, index));
        return;
      case "commitGroup":
        this.tiles.commit(s.group);
        return;
      case "waitGroup":
        this.tiles.awaitGroup(s.group, s.pending);
        return;
      case "wait":
        this.#wait(s);
        return;
      case "signal":
        this.#signal(s);
        return;
      case "expect":
        this.#expect(s);
        return;
      case "barrier":
        this.#barrier(s.scope);
        this.#parts.context.isBehindFold ||= this.#parts.context.hasExchanged;
        return;
      case "fence":
        this.#fence(s.scope);
        return;
      case "launchDependents":
      case "awaitPrerequisites":
        this.#launches(s.kind);
    }
  }

  /** PTX ISA, "griddepcontrol". Launched without dependence, neither does anything. */
  #launches(kind: "launchDependents" | "awaitPrerequisites"): void {
    const { code } = this.#context;
    if (!this.#context.has("griddepcontrol")) {
      this.#context.refuse("launches that overlap", "launch it after the previous one");
    }
    code.emit(`griddepcontrol.${kind === "launchDependents" ? "launch_dependents" : "wait"}`);
  }

  #place(counter: string): CounterPlace {
    const place = this.#parts.counters.get(counter);
    invariant(place, () => `unknown counter ${counter}`);
    return place;
  }

  /** `[%r1+8]` of a cell. */
  cellAddress(name: string, index: readonly ix.IndexExpr[]): string {
    const { counter, base } = this.#place(name);
    const strides = rowMajorStrides(counter.shape);
    const flat = ix.add(...strides.map((stride, axis) => ix.mul(stride, index[axis]!)));
    const bytes = counter.protocol === "phase" ? phaseBytes : monotoneBytes;
    const address = ix.add(base, ix.mul(bytes, flat));
    const bits = counter.scope === "shared" ? 32 : 64;
    const varying = ix.add(address, -address.constant);
    const register = this.#context.scope.register(varying, bits);
    return address.constant === 0 ? `[${register}]` : `[${register}+${address.constant}]`;
  }

  #wait(s: StatementOf<"wait">): void {
    const { code, scope } = this.#context;
    const { counter } = this.#place(s.counter);
    const at = this.cellAddress(s.counter, s.index);
    if (counter.protocol === "phase") {
      const parity = scope.value(ix.mod(s.value, 2), 32);
      const again = code.newLabel();
      const over = code.fresh("p");
      code.place(again);
      const name = this.#context.has("cluster")
        ? "mbarrier.try_wait.parity.shared::cta.b64"
        : "mbarrier.test_wait.parity.shared.b64";
      code.emit(`${name} ${over}, ${at}, ${parity}`).emit(`@!${over} bra ${again}`);
      return;
    }
    const [space, reach] = counter.scope === "shared" ? ["shared", "cta"] : ["global", "gpu"];
    const threshold = scope.register(s.value, 32);
    const again = code.newLabel();
    code.place(again);
    const seen = code.op(`ld.relaxed.${reach}.${space}.b32`, "r", at);
    code.emit(`@${code.op("setp.lt.s32", "p", seen, threshold)} bra ${again}`);
    code.op(`ld.acquire.${reach}.${space}.b32`, "r", at);
  }

  #signal(s: StatementOf<"signal">): void {
    const { code, scope } = this.#context;
    const { counter } = this.#place(s.counter);
    const at = this.cellAddress(s.counter, s.index);
    const amount = scope.value(s.amount, 32);
    if (counter.protocol === "monotone") {
      const [space, reach] = counter.scope === "shared" ? ["shared", "cta"] : ["global", "gpu"];
      code.emit(`red.release.${reach}.${space}.add.u32 ${at}, ${amount}`);
      return;
    }
    if (!this.#context.has("cluster")) {
      if (amount !== "1") this.#context.refuse(`a signal by ${s.amount.key}`, "signal by 1");
      code.emit(`mbarrier.arrive.shared.b64 ${code.fresh("d")}, ${at}`);
      return;
    }
    const count = amount === "1" ? "" : `, ${amount}`;
    if (s.scope === "instance" || this.#parts.clusterSize === 1) {
      code.emit(`mbarrier.arrive.shared::cta.b64 _, ${at}${count}`);
      return;
    }
    const own = this.#pointer(at);
    for (let rank = 0; rank < this.#parts.clusterSize; rank++) {
      const remote = code.op("mapa.shared::cluster.u32", "r", own, String(rank));
      code.emit(`mbarrier.arrive.shared::cluster.b64 _, [${remote}]${count}`);
    }
  }

  /** The address in brackets as a register. */
  #pointer(at: string): Operand {
    const [register, offset] = at.slice(1, -1).split("+");
    if (offset === undefined) return register!;
    return this.#context.code.op("add.s32", "r", register!, offset);
  }

  #expect(s: StatementOf<"expect">): void {
    const { code, scope } = this.#context;
    if (!this.#context.has("tma")) this.#context.refuse("announced bytes of copies");
    const at = this.cellAddress(s.counter, s.index);
    const bytes = scope.value(s.bytes, 32);
    code.emit(`mbarrier.arrive.expect_tx.shared::cta.b64 _, ${at}, ${bytes}`);
  }

  #fence(scope: "shared" | "memory"): void {
    // Without an asynchronous proxy there is nothing between it and ordinary accesses.
    if (!this.#context.has("tma")) return;
    const space = scope === "shared" ? "shared::cta" : "global";
    this.#context.code.emit(`fence.proxy.async.${space}`);
  }

  #barrier(scope: StatementOf<"barrier">["scope"]): void {
    const { code } = this.#context;
    const { layout, threads, clusterSize } = this.#parts;
    const { role } = layout;
    switch (scope) {
      case "copy":
        this.#meet(role.threads, layout.copyBarrier, this.#parts.copy);
        return;
      case "role":
        if (role.copies === 1) this.#meet(role.threads, layout.roleBarrier, undefined);
        else this.#meetMany(roundUp(role.threads, warpThreads) * role.copies, layout.roleBarrier);
        return;
      case "instance":
        this.#meetInstance();
        return;
      case "cluster":
        if (clusterSize === 1) this.#meetInstance();
        else code.emit("barrier.cluster.arrive").emit("barrier.cluster.wait");
        return;
      case "grid":
        this.#meetGrid(threads);
    }
  }

  #meetInstance(): void {
    const { threads, layout } = this.#parts;
    const alone = threads.roles.length === 1 && layout.role.copies === 1;
    if (alone) this.#meet(layout.role.threads, instanceBarrier, undefined);
    else this.#meetMany(threads.meeting, instanceBarrier);
  }

  /** `count` threads from the first of a warp on. */
  #meet(count: number, barrier: number, copy: Operand | undefined): void {
    const { code } = this.#context;
    if (count > warpThreads) {
      this.#meetMany(roundUp(count, warpThreads), barrier, copy);
      return;
    }
    const mask = count === warpThreads ? 0xffffffff : 2 ** count - 1;
    code.emit(`bar.warp.sync 0x${mask.toString(16)}`);
  }

  #meetMany(count: number, barrier: number, copy?: Operand): void {
    const { code } = this.#context;
    const number = copy ? code.op("add.s32", "r", copy, String(barrier)) : String(barrier);
    // Nothing at all is scheduled across the trigger of a performance counter, which takes one slot; across barriers
    // and fences of memory all that is not memory is (ptxas 13.0).
    if (this.#parts.meetsOften) code.emit("pmevent 0");
    code.emit(`bar.sync ${number}, ${count}`);
  }

  /**
   * All blocks of a resident grid: the first thread of each adds to a word whose highest bit flips when
   * all have come, because one of them adds 2^31 less than the others make up; so it needs no reset.
   */
  #meetGrid(threads: ThreadLayout): void {
    const { code } = this.#context;
    this.#meetInstance();
    const first = String(threads.roles[0]!.firstThread);
    const leads = code.op("setp.eq.s32", "p", this.#parts.thread, first);
    const word = this.#parts.gridBarrier();
    branch(code, leads, () => {
      const special = (name: string): Operand => code.op("mov.u32", "r", name);
      const [x, y, z] = ["%nctaid.x", "%nctaid.y", "%nctaid.z"].map(special);
      const blocks = code.op("mul.lo.s32", "r", code.op("mul.lo.s32", "r", x!, y!), z!);
      const own = ["%ctaid.x", "%ctaid.y", "%ctaid.z"].map(special);
      const any = code.op("or.b32", "r", code.op("or.b32", "r", own[0]!, own[1]!), own[2]!);
      const isFirst = code.op("setp.eq.s32", "p", any, "0");
      const rest = code.op("sub.s32", "r", "0x80000001", blocks);
      const amount = code.op("selp.b32", "r", rest, "1", isFirst);
      const old = code.op("atom.release.gpu.global.add.u32", "r", `[${word}]`, amount);
      const again = code.newLabel();
      code.place(again);
      const now = code.op("ld.relaxed.gpu.global.b32", "r", `[${word}]`);
      const flipped = code.op("xor.b32", "r", old, now);
      code.emit(`@${code.op("setp.ge.s32", "p", flipped, "0")} bra ${again}`);
      code.op("ld.acquire.gpu.global.b32", "r", `[${word}]`);
    });
    this.#meetInstance();
  }
}
