/**
 * Writes one function body: instructions straight into bytes, locals allocated on the way, structured
 * control through callbacks with typed labels, and marks that map byte offsets back to whatever the
 * emitter prints (a kernel, a statement). Types are not checked here; the engine's validator does, and
 * the encoder's tests check every row of opcodes.ts against it.
 */
import { invariant } from "../../support/invariant.ts";
import { ByteWriter } from "./byte-writer.ts";
import {
  type LaneOp,
  laneOps,
  type MemoryLaneOp,
  type MemoryOp,
  memoryLaneOps,
  memoryOps,
  type PlainOp,
  plainOps,
  specialOps,
  type ValueType,
  valueTypes,
} from "./opcodes.ts";

/** A local variable or parameter, by its index in the function. */
export interface Local {
  readonly index: number;
  readonly type: ValueType;
}

/** A branch target. Branching to a loop continues it; branching to a block or an if leaves it. */
export interface Label {
  readonly kind: "block" | "loop" | "if";
  /** Control depth at which the label was opened; 0 is the function itself. */
  readonly depth: number;
}

/** Where in the body (bytes from the first instruction) the code for `subject` begins. */
export interface Mark {
  readonly offset: number;
  readonly subject: string;
}

/** Index of a function, imported ones first. */
export type FunctionIndex = number & { readonly __functionIndex?: never };

const emptyBlockType = 0x40;

export class FunctionBuilder {
  readonly name: string;
  readonly params: readonly Local[];
  readonly results: readonly ValueType[];
  readonly #code = new ByteWriter(1024);
  readonly #locals: ValueType[] = [];
  readonly #free = new Map<ValueType, Local[]>();
  readonly #marks: Mark[] = [];
  #depth = 0;

  constructor(name: string, params: readonly ValueType[], results: readonly ValueType[]) {
    this.name = name;
    this.params = params.map((type, index) => ({ index, type }));
    this.results = results;
  }

  get marks(): readonly Mark[] {
    return this.#marks;
  }

  /** The n-th parameter. */
  param(n: number): Local {
    const local = this.params[n];
    invariant(local, () => `${this.name} has ${this.params.length} parameters, asked for ${n}`);
    return local;
  }

  /** A local of this type: a released one if there is any (its old value remains), else a new one. */
  local(type: ValueType): Local {
    const reused = this.#free.get(type)?.pop();
    if (reused) return reused;
    const index = this.params.length + this.#locals.length;
    this.#locals.push(type);
    return { index, type };
  }

  /** Gives a local back for reuse. */
  release(...locals: readonly Local[]): this {
    for (const local of locals) {
      const free = this.#free.get(local.type);
      if (free) free.push(local);
      else this.#free.set(local.type, [local]);
    }
    return this;
  }

  /** Notes that the instructions from here on belong to `subject`. */
  mark(subject: string): this {
    this.#marks.push({ offset: this.#code.length, subject });
    return this;
  }

  op(name: PlainOp): this {
    return this.#opcode(plainOps[name][0]);
  }

  /** A load, store or atomic access at (address operand + offset bytes). */
  memory(name: MemoryOp, offset = 0, alignLog2: number = memoryOps[name][2]): this {
    this.#opcode(memoryOps[name][0]);
    this.#code.u32(alignLog2);
    this.#code.u32(offset);
    return this;
  }

  lane(name: LaneOp, lane: number): this {
    invariant(lane >= 0 && lane < laneOps[name][2], () => `${name} lane ${lane}`);
    this.#opcode(laneOps[name][0]);
    this.#code.byte(lane);
    return this;
  }

  /** A load or store of one lane. */
  memoryLane(name: MemoryLaneOp, lane: number, offset = 0): this {
    const [opcode, , alignLog2, lanes] = memoryLaneOps[name];
    invariant(lane >= 0 && lane < lanes, () => `${name} lane ${lane}`);
    this.#opcode(opcode);
    this.#code.u32(alignLog2);
    this.#code.u32(offset);
    this.#code.byte(lane);
    return this;
  }

  i32Const(value: number): this {
    this.#opcode(specialOps["i32.const"]);
    this.#code.s32(value);
    return this;
  }

  i64Const(value: bigint): this {
    this.#opcode(specialOps["i64.const"]);
    this.#code.s64(value);
    return this;
  }

  f32Const(value: number): this {
    this.#opcode(specialOps["f32.const"]);
    this.#code.f32(value);
    return this;
  }

  f64Const(value: number): this {
    this.#opcode(specialOps["f64.const"]);
    this.#code.f64(value);
    return this;
  }

  /** @param bytes the 16 bytes of the vector, lane 0 first. */
  v128Const(bytes: ArrayLike<number>): this {
    return this.#sixteen("v128.const", bytes);
  }

  /** @param lanes 16 byte positions in the pair (first operand 0..15, second 16..31). */
  shuffle(lanes: ArrayLike<number>): this {
    return this.#sixteen("i8x16.shuffle", lanes);
  }

  get(local: Local): this {
    return this.#indexed("local.get", local.index);
  }

  set(local: Local): this {
    return this.#indexed("local.set", local.index);
  }

  tee(local: Local): this {
    return this.#indexed("local.tee", local.index);
  }

  globalGet(index: number): this {
    return this.#indexed("global.get", index);
  }

  globalSet(index: number): this {
    return this.#indexed("global.set", index);
  }

  call(index: FunctionIndex): this {
    return this.#indexed("call", index);
  }

  /** select with a stated type, needed for reference types and allowed for all. */
  selectTyped(type: ValueType): this {
    this.#opcode(specialOps["select t"]);
    this.#code.u32(1);
    this.#code.byte(valueTypes[type]);
    return this;
  }

  memorySize(): this {
    this.#opcode(specialOps["memory.size"]);
    this.#code.byte(0);
    return this;
  }

  memoryGrow(): this {
    this.#opcode(specialOps["memory.grow"]);
    this.#code.byte(0);
    return this;
  }

  /** Copies from passive data segment `segment`: operands destination, source, count. */
  memoryInit(segment: number): this {
    this.#indexed("memory.init", segment);
    this.#code.byte(0);
    return this;
  }

  dataDrop(segment: number): this {
    return this.#indexed("data.drop", segment);
  }

  /** Operands destination, source, count in bytes; the ranges may overlap. */
  memoryCopy(): this {
    this.#opcode(specialOps["memory.copy"]);
    this.#code.byte(0);
    this.#code.byte(0);
    return this;
  }

  /** Operands destination, byte value, count. */
  memoryFill(): this {
    this.#opcode(specialOps["memory.fill"]);
    this.#code.byte(0);
    return this;
  }

  atomicFence(): this {
    this.#opcode(specialOps["atomic.fence"]);
    this.#code.byte(0);
    return this;
  }

  block(body: (leave: Label) => void, result?: ValueType): this {
    return this.#control("block", result, body);
  }

  loop(body: (again: Label) => void, result?: ValueType): this {
    return this.#control("loop", result, body);
  }

  /** Takes an i32 condition from the stack. */
  if(then: (leave: Label) => void, otherwise?: (leave: Label) => void, result?: ValueType): this {
    return this.#control("if", result, (label) => {
      then(label);
      if (!otherwise) return;
      this.#opcode(specialOps.else);
      otherwise(label);
    });
  }

  br(label: Label): this {
    return this.#indexed("br", this.#relative(label));
  }

  brIf(label: Label): this {
    return this.#indexed("br_if", this.#relative(label));
  }

  brTable(labels: readonly Label[], otherwise: Label): this {
    this.#opcode(specialOps.br_table);
    this.#code.u32(labels.length);
    for (const label of labels) this.#code.u32(this.#relative(label));
    this.#code.u32(this.#relative(otherwise));
    return this;
  }

  /** The function as an entry of the code section, without its size; `start` is where instructions begin. */
  finish(): { readonly entry: ByteWriter; readonly start: number } {
    invariant(this.#depth === 0, () => `${this.name}: control is still open`);
    const entry = new ByteWriter(this.#code.length + 64);
    const runs: [count: number, type: ValueType][] = [];
    for (const type of this.#locals) {
      const last = runs.at(-1);
      if (last && last[1] === type) last[0]++;
      else runs.push([1, type]);
    }
    entry.u32(runs.length);
    for (const [count, type] of runs) {
      entry.u32(count);
      entry.byte(valueTypes[type]);
    }
    const start = entry.length;
    entry.append(this.#code);
    entry.byte(specialOps.end);
    return { entry, start };
  }

  #control(kind: Label["kind"], result: ValueType | undefined, body: (label: Label) => void): this {
    this.#opcode(specialOps[kind]);
    this.#code.byte(result ? valueTypes[result] : emptyBlockType);
    this.#depth++;
    body({ kind, depth: this.#depth });
    this.#depth--;
    return this.#opcode(specialOps.end);
  }

  #relative(label: Label): number {
    const depth = this.#depth - label.depth;
    invariant(depth >= 0, () => `${this.name}: branch to a closed ${label.kind}`);
    return depth;
  }

  #opcode(opcode: number): this {
    if (opcode < 0x100) this.#code.byte(opcode);
    else {
      this.#code.byte(opcode >> 12);
      this.#code.u32(opcode & 0xfff);
    }
    return this;
  }

  #indexed(name: keyof typeof specialOps, index: number): this {
    this.#opcode(specialOps[name]);
    this.#code.u32(index);
    return this;
  }

  #sixteen(name: "v128.const" | "i8x16.shuffle", bytes: ArrayLike<number>): this {
    invariant(bytes.length === 16, () => `${name} takes 16 bytes, got ${bytes.length}`);
    this.#opcode(specialOps[name]);
    this.#code.bytes(bytes);
    return this;
  }
}
