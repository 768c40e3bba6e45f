/**
 * Registers for a function: linear scan over the intervals of liveness.ts. Where registers run out, the
 * interval whose uses cost least goes to the stack; an instruction that uses it then loads it into a
 * short-lived register of its own, or repeats the load of a constant, and the scan starts again; operands that
 * straight code has too many of are loaded again before (reload-operands.ts); sums live apart from what is done to them behind their loops (split-sums.ts) before one goes there. What lives
 * across a call goes to the stack too, because calls keep nothing.
 */
import { invariant } from "../../support/invariant.ts";
import { readInstructions } from "./dead-code.ts";
import type { FunctionCode, PlacedInstruction } from "./function-code.ts";
import { type Access, accessesOf, type Interval, intervalsOf } from "./liveness.ts";
import {
  firstVirtual,
  gpr,
  type Memory,
  type Operand,
  type Register,
  type RegisterBits,
  sized,
} from "./operand.ts";
import { type Recipe, reloadsOf } from "./reload-operands.ts";
import { splitsOf } from "./split-sums.ts";

export interface RegisterFile {
  /** Vector registers: 32 under EVEX, else 16. */
  readonly vectors: 16 | 32;
  readonly vectorBits: RegisterBits;
}

export interface AllocatedFunction {
  readonly instructions: readonly PlacedInstruction[];
  /** For each instruction of the function's body, where it begins among `instructions`. */
  readonly placeOf: readonly number[];
  readonly frameBytes: number;
  /** Registers that had to go to the stack. */
  readonly spills: number;
  /** Those of them for vectors and floats. */
  readonly vectorSpills: number;
  /** Constants whose load was moved to their uses, and operands that are loaded once more. */
  readonly reloads: number;
}

/** General registers that are given out: not rax, rdx (scratch), rsp, r15 (context). */
const generalRegisters = [1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
/** k0 means "no mask" where a mask is named. */
const maskRegisters = [1, 2, 3, 4, 5, 6, 7];
const vectorRegisters = {
  16: Array.from({ length: 16 }, (_, i) => i),
  32: Array.from({ length: 32 }, (_, i) => i),
} as const;
const mostRounds = 12;

/** One class of registers while its intervals are gone through. */
interface ScanState {
  readonly active: Interval[];
  /** 1 for each register that an active interval has. */
  readonly taken: Uint8Array;
  /** Physical register by virtual one; -1: none. */
  readonly homes: Int32Array;
  readonly spilled: Interval[];
}

/** What stands for the registers that are given none. */
interface Replacement {
  readonly slots: ReadonlyMap<number, Memory>;
  readonly constants: ReadonlyMap<number, PlacedInstruction>;
  readonly moved: (r: Register) => boolean;
}

export function allocateRegisters(code: FunctionCode, file: RegisterFile): AllocatedFunction {
  return new Allocator(code, file).run();
}

class Allocator {
  readonly #file: RegisterFile;
  #body: PlacedInstruction[];
  /** Of each instruction of the body. */
  #accesses: Access[];
  /** Which instruction of the function's body each stands for. */
  #sources: number[];
  readonly #short = new Set<number>();
  #nextRegister: number;
  #frameBytes: number;
  #spills = 0;
  #vectorSpills = 0;
  #reloads = 0;
  #isSplit = false;
  #isReloaded = false;
  readonly #bodyLength: number;

  constructor(code: FunctionCode, file: RegisterFile) {
    this.#file = file;
    this.#body = [...code.prologue, ...code.body];
    this.#accesses = this.#body.map(accessesOf);
    this.#sources = this.#body.map((_, i) => Math.max(0, i - code.prologue.length));
    this.#dropUnread();
    this.#nextRegister = code.registerCount;
    this.#frameBytes = code.slotBytes;
    this.#bodyLength = code.body.length;
  }

  run(): AllocatedFunction {
    for (let round = 0; round < mostRounds; round++) {
      const intervals = intervalsOf(this.#body, this.#accesses, this.#nextRegister);
      const { homes, spilled } = this.#scan(intervals);
      if (spilled.length === 0) return this.#finish(homes);
      if (!this.#isReloaded && spilled.some((s) => s.register.class === "vec")) {
        if (this.#reloadOperands()) continue;
      }
      if (this.#isSplit || !spilled.some((s) => s.isSum)) this.#rewrite(spilled);
      else this.#splitSums();
    }
    invariant(false, () => "register allocation does not come to an end");
  }

  #dropUnread(): void {
    const stays = readInstructions(this.#body, this.#accesses);
    const isKept = (_: unknown, i: number): boolean => stays[i]!;
    this.#body = this.#body.filter(isKept);
    this.#accesses = this.#accesses.filter(isKept);
    this.#sources = this.#sources.filter(isKept);
  }

  #pool(register: Register): readonly number[] {
    if (register.class === "gpr") return generalRegisters;
    if (register.class === "mask") return maskRegisters;
    return vectorRegisters[this.#file.vectors];
  }

  #scan(intervals: readonly Interval[]): {
    homes: Int32Array;
    spilled: Interval[];
  } {
    const spilled: Interval[] = [];
    const homes = new Int32Array(this.#nextRegister).fill(-1);
    const crossing = this.#crossCalls(intervals);
    for (const kind of ["gpr", "vec", "mask"] as const) {
      const active: Interval[] = [];
      const taken = new Uint8Array(32);
      for (const interval of intervals) {
        if (interval.register.class !== kind) continue;
        if (crossing.has(interval.id)) {
          spilled.push(interval);
          continue;
        }
        for (let i = active.length - 1; i >= 0; i--) {
          const other = active[i]!;
          if (other.end >= interval.start) continue;
          taken[homes[other.id]!] = 0;
          active[i] = active.at(-1)!;
          active.pop();
        }
        this.#assign(interval, { active, taken, homes, spilled });
      }
    }
    return { homes, spilled };
  }

  #assign(interval: Interval, { active, taken, homes, spilled }: ScanState): void {
    const wish = interval.hints.find((h) => homes[h]! >= 0 && !taken[homes[h]!]);
    const wished = wish === undefined ? undefined : homes[wish]!;
    const free = wished ?? this.#pool(interval.register).find((r) => !taken[r]);
    if (free !== undefined) {
      taken[free] = 1;
      homes[interval.id] = free;
      active.push(interval);
      return;
    }
    let victim = interval;
    for (const other of active) if (this.#price(other) < this.#price(victim)) victim = other;
    invariant(
      !this.#short.has(victim.id),
      () => "one instruction needs more registers than there are",
    );
    spilled.push(victim);
    if (victim === interval) return;
    homes[interval.id] = homes[victim.id]!;
    homes[victim.id] = -1;
    active.splice(active.indexOf(victim), 1, interval);
  }

  /** What it costs to keep the interval on the stack; long ones free a register for longer. */
  #price(interval: Interval): number {
    if (this.#short.has(interval.id)) return Number.POSITIVE_INFINITY;
    return interval.weight / (interval.end - interval.start + 1);
  }

  #crossCalls(intervals: readonly Interval[]): Set<number> {
    const calls = this.#body.flatMap((i, at) => (i.calls ? [2 * at] : []));
    const crossing = new Set<number>();
    if (calls.length === 0) return crossing;
    for (const { id, start, end } of intervals) {
      let [low, high] = [0, calls.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (calls[middle]! >= start) high = middle;
        else low = middle + 1;
      }
      // Live after the first call that does not precede it.
      if (low < calls.length && end > calls[low]! + 1) crossing.add(id);
    }
    return crossing;
  }

  /** Gives each spilled register a stack slot, or its constant's load, and its uses short registers. */
  #rewrite(spilled: readonly Interval[]): void {
    const constants = this.#constantLoads(spilled);
    const slots = new Map<number, Memory>();
    for (const { id, register } of spilled) {
      if (constants.has(id)) {
        this.#reloads++;
        continue;
      }
      const bytes = register.class === "vec" ? this.#file.vectorBits / 8 : 8;
      this.#frameBytes = Math.ceil(this.#frameBytes / bytes) * bytes;
      slots.set(id, { kind: "memory", base: gpr(4), scale: 1, disp: this.#frameBytes });
      this.#frameBytes += bytes;
      this.#spills++;
      if (register.class === "vec") this.#vectorSpills++;
    }
    const body: PlacedInstruction[] = [];
    const accesses: Access[] = [];
    const sources: number[] = [];
    const moved = (r: Register): boolean => slots.has(r.id) || constants.has(r.id);
    this.#body.forEach((instruction, i) => {
      const own = this.#accesses[i]!;
      const before = body.length;
      if (!own.reads.some(moved) && !own.writes.some(moved)) {
        body.push(instruction);
        accesses.push(own);
      } else {
        this.#rewriteOne(instruction, own, { slots, constants, moved }, body);
        for (let n = before; n < body.length; n++) accesses.push(accessesOf(body[n]!));
      }
      for (let n = before; n < body.length; n++) sources.push(this.#sources[i]!);
    });
    this.#body = body;
    this.#accesses = accesses;
    this.#sources = sources;
  }

  /** Operands of straight code that has too many are loaded again; false: there are none. */
  #reloadOperands(): boolean {
    this.#isReloaded = true;
    const reloads = reloadsOf(this.#body, this.#accesses, {
      registerCount: this.#nextRegister,
      registers: this.#file.vectors,
    });
    if (reloads.length === 0) return false;
    const names = new Map<number, Register>();
    const body: PlacedInstruction[] = [];
    const sources: number[] = [];
    let next = 0;
    this.#body.forEach((instruction, i) => {
      for (; reloads[next]?.at === i; next++) {
        const { register, recipe } = reloads[next]!;
        names.set(register.id, this.#repeat(recipe, body));
        this.#reloads++;
      }
      const { reads, writes } = this.#accesses[i]!;
      const isLater = reads.some((r) => names.has(r.id));
      body.push(isLater ? renamed(instruction, names) : instruction);
      while (sources.length < body.length) sources.push(this.#sources[i]!);
      // A value that is written anew is no longer the one that was loaded again.
      for (const { id } of writes) if (!reads.some((r) => r.id === id)) names.delete(id);
    });
    this.#body = body;
    this.#accesses = body.map(accessesOf);
    this.#sources = sources;
    // What is loaded again before its first use was loaded for nothing before.
    this.#dropUnread();
    return true;
  }

  /** The same instructions on registers of their own; gives what the last one makes. */
  #repeat(recipe: Recipe, out: PlacedInstruction[]): Register {
    const own = new Map<number, Register>();
    let made: Register | undefined;
    for (const step of recipe) {
      const [to] = step.operands;
      invariant(to?.kind === "register", () => `${step.op} makes no register`);
      made = { ...to, id: this.#nextRegister++, bits: wholeBits(to, this.#file) };
      own.set(to.id, made);
      out.push(renamed(step, own));
    }
    invariant(made, () => "nothing to repeat");
    return made;
  }

  /** Sums that leave their loops have another register from there on. */
  #splitSums(): void {
    this.#isSplit = true;
    const splits = splitsOf(this.#body, this.#accesses, this.#nextRegister);
    const names = new Map<number, Register>();
    const body: PlacedInstruction[] = [];
    const sources: number[] = [];
    let next = 0;
    this.#body.forEach((instruction, i) => {
      for (; splits[next]?.at === i; next++) {
        const sum = splits[next]!.register;
        const whole = { ...sum, bits: wholeBits(sum, this.#file) };
        const result = { ...whole, id: this.#nextRegister++ };
        body.push({ op: "vmovaps", operands: [result, whole], depth: instruction.depth });
        sources.push(this.#sources[i]!);
        names.set(sum.id, result);
      }
      const isLater = this.#accesses[i]!.reads.some((r) => names.has(r.id));
      body.push(isLater ? renamed(instruction, names) : instruction);
      sources.push(this.#sources[i]!);
    });
    this.#body = body;
    this.#accesses = body.map(accessesOf);
    this.#sources = sources;
  }

  /** Of the spilled ones, those written once, by a load that can be repeated anywhere. */
  #constantLoads(spilled: readonly Interval[]): Map<number, PlacedInstruction> {
    const wanted = new Set(spilled.map((s) => s.id));
    const found = new Map<number, PlacedInstruction>();
    const several = new Set<number>();
    for (let i = 0; i < this.#body.length; i++) {
      const instruction = this.#body[i]!;
      for (const { id } of this.#accesses[i]!.writes) {
        if (!wanted.has(id)) continue;
        if (found.has(id) || !isConstantLoad(instruction)) several.add(id);
        found.set(id, instruction);
      }
    }
    for (const id of several) found.delete(id);
    return found;
  }

  #rewriteOne(
    instruction: PlacedInstruction,
    { reads, writes }: Access,
    { slots, constants, moved }: Replacement,
    out: PlacedInstruction[],
  ): void {
    const [target] = writes;
    if (target && constants.get(target.id) === instruction) return;
    const { depth } = instruction;
    const made = new Map<number, Register>();
    for (const r of [...reads, ...writes]) {
      if (!moved(r) || made.has(r.id)) continue;
      const short = { ...r, id: this.#nextRegister++, bits: wholeBits(r, this.#file) };
      this.#short.add(short.id);
      made.set(r.id, short);
    }
    for (const id of new Set(reads.filter(moved).map((r) => r.id))) {
      const short = made.get(id)!;
      const load = constants.get(id);
      if (!load) out.push({ ...move(short, slots.get(id)!), depth });
      else out.push({ ...renamed(load, new Map([[id, short]])), depth });
    }
    out.push(made.size > 0 ? renamed(instruction, made) : instruction);
    for (const id of new Set(writes.filter(moved).map((r) => r.id))) {
      out.push({ ...move(slots.get(id)!, made.get(id)!), depth });
    }
  }

  #finish(homes: Int32Array): AllocatedFunction {
    const instructions: PlacedInstruction[] = [];
    const placeOf = new Array<number>(this.#bodyLength + 1).fill(-1);
    this.#body.forEach((instruction, i) => {
      const source = this.#sources[i]!;
      if (placeOf[source] === -1) placeOf[source] = instructions.length;
      const given = withHomes(instruction, homes);
      if (!isNoMove(given)) instructions.push(given);
    });
    let last = instructions.length;
    for (let i = placeOf.length - 1; i >= 0; i--) {
      if (placeOf[i] === -1) placeOf[i] = last;
      else last = placeOf[i]!;
    }
    return {
      instructions,
      placeOf,
      frameBytes: this.#frameBytes,
      spills: this.#spills,
      vectorSpills: this.#vectorSpills,
      reloads: this.#reloads,
    };
  }
}

function wholeBits(r: Register, file: RegisterFile): RegisterBits {
  if (r.class === "vec") return file.vectorBits;
  return r.class === "gpr" ? 64 : r.bits;
}

function isConstantLoad({ op, operands, mask }: PlacedInstruction): boolean {
  if (mask) return false;
  if (op === "vxorps") return true;
  const [, source] = operands;
  if (operands.length !== 2) return false;
  if (source?.kind === "immediate") return op === "mov" || op === "movabs";
  if (source?.kind !== "memory") return false;
  // The context's words do not change while a program runs.
  return source.label !== undefined || (op === "mov" && source.base?.id === 15 && !source.index);
}

function move(to: Operand, from: Operand): Omit<PlacedInstruction, "depth"> {
  const register = to.kind === "register" ? to : (from as Register);
  const op = register.class === "vec" ? "vmovups" : register.class === "gpr" ? "mov" : "kmovq";
  return { op, operands: [to, from] };
}

/** The instruction with other registers, each use keeping its width. */
function renamed(
  instruction: PlacedInstruction,
  names: ReadonlyMap<number, Register>,
): PlacedInstruction {
  const register = (r: Register): Register => {
    const other = names.get(r.id);
    return other ? sized(other, r.bits) : r;
  };
  return mapRegisters(instruction, register);
}

function withHomes(instruction: PlacedInstruction, homes: Int32Array): PlacedInstruction {
  return mapRegisters(instruction, (r) => {
    if (r.id < firstVirtual) return r;
    const id = homes[r.id]!;
    invariant(id >= 0, () => `register ${r.id} of ${instruction.op} has no home`);
    return physical(r, id);
  });
}

const physicalRegisters = new Map<number, Register>();

/** Physical registers are few: one value for each of them under each width. */
function physical({ class: kind, bits }: Register, id: number): Register {
  const key = (bits * 4 + (kind === "gpr" ? 0 : kind === "vec" ? 1 : 2)) * firstVirtual + id;
  const known = physicalRegisters.get(key);
  if (known) return known;
  const made: Register = { kind: "register", class: kind, id, bits };
  physicalRegisters.set(key, made);
  return made;
}

function mapRegisters(
  instruction: PlacedInstruction,
  change: (r: Register) => Register,
): PlacedInstruction {
  const operands = instruction.operands.map((o): Operand => {
    if (o.kind === "register") return change(o);
    if (o.kind !== "memory" || (!o.base && !o.index)) return o;
    const { scale, disp, label } = o;
    const [base, index] = [o.base && change(o.base), o.index && change(o.index)];
    return { kind: "memory", base, index, scale, disp, ...(label && { label }) };
  });
  const { op, mask, zeroing, broadcast, calls, depth } = instruction;
  const changed = mask && change(mask);
  return { op, operands, mask: changed, zeroing, broadcast, depth, ...(calls && { calls }) };
}

/** A copy of a register to itself; a 32-bit one clears the upper half and stays. */
function isNoMove({ op, operands, mask }: PlacedInstruction): boolean {
  const [to, from] = operands;
  if (mask || (op !== "mov" && op !== "vmovaps")) return false;
  if (to?.kind !== "register" || from?.kind !== "register" || to.id !== from.id) return false;
  return op !== "mov" || to.bits === 64;
}

/** Where the frame of a function that calls others must end so that theirs begins aligned. */
export function alignedFrame(bytes: number): number {
  // The return address takes 8 bytes of 64.
  return Math.ceil((bytes + 8) / 64) * 64 - 8;
}
