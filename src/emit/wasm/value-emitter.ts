/**
 * Expressions of the program form as stack code. `push` leaves a scalar or one chunk of a vector
 * (lanes.ts). What has no SIMD spelling is done lane by lane, so that every operator works at every
 * lane count; what several chunks share is computed once per statement into locals.
 */
import { indexValue } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { literalOfRest } from "../../program/walk.ts";
import { dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { Local } from "./function-builder.ts";
import type { KernelContext } from "./kernel-context.ts";
import {
  chunkLanes,
  findRepresentation,
  isNarrowFloat,
  isUnsigned,
  pushExtractedLane,
  pushReplacedLane,
  pushScalarLiteral,
  pushSplatLiteral,
  splatOp,
  storageBytes,
} from "./lanes.ts";
import { pushMemoryLoad } from "./memory-access.ts";
import { pushScalarApply, pushScalarCast } from "./scalar-ops.ts";
import { findVectorApply, findVectorCast } from "./vector-ops.ts";

type ExprOf<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

export class ValueEmitter {
  readonly #context: KernelContext;
  readonly #bound = new Map<string, readonly Local[]>();
  /** Values computed into locals for the current statement. */
  readonly #kept = new Map<Expr, readonly Local[]>();

  constructor(context: KernelContext) {
    this.#context = context;
  }

  /** Binds a value under a name; the caller forgets it at the end of its scope. */
  bind(name: string, value: Expr): void {
    const locals = this.#context.newLocals(value.dtype, value.lanes);
    locals.forEach((local, chunk) => {
      this.push(value, chunk);
      this.#context.f.set(local);
    });
    this.#bound.set(name, locals);
  }

  forget(name: string): void {
    const locals = this.#bound.get(name);
    invariant(locals, () => `value ${name} is not bound`);
    this.#bound.delete(name);
    this.#context.f.release(...locals);
  }

  /** Gives back the locals that a statement used. */
  endStatement(): void {
    for (const locals of this.#kept.values()) this.#context.f.release(...new Set(locals));
    this.#kept.clear();
  }

  push(e: Expr, chunk = 0): void {
    const kept = this.#kept.get(e);
    if (kept) this.#context.f.get(kept[chunk]!);
    else if (e.lanes === 1) this.#pushScalar(e);
    else this.#pushChunk(e, chunk);
  }

  /** Evaluates once; later pushes of the same node read the locals. */
  keep(e: Expr): readonly Local[] {
    const known = this.#kept.get(e);
    if (known) return known;
    if (e.kind === "local") return this.#local(e);
    const locals = this.#context.newLocals(e.dtype, e.lanes);
    locals.forEach((local, chunk) => {
      this.push(e, chunk);
      this.#context.f.set(local);
    });
    this.#kept.set(e, locals);
    return locals;
  }

  #local(e: ExprOf<"local">): readonly Local[] {
    const locals = this.#bound.get(e.name);
    invariant(locals, () => `value ${e.name} is not bound`);
    return locals;
  }

  #pushScalar(e: Expr): void {
    const { f, scope } = this.#context;
    this.#context.chunks(e.dtype, 1);
    switch (e.kind) {
      case "literal":
        pushScalarLiteral(f, e.dtype, e.value);
        return;
      case "index":
        scope.push(e.expr);
        pushScalarCast(this.#context, "i32", e.dtype, false);
        return;
      case "load":
        this.#pushLoad(e, 0);
        return;
      case "local":
        f.get(this.#local(e)[0]!);
        return;
      case "apply": {
        const operands = e.operands.map((o) => () => this.push(o));
        pushScalarApply(this.#context, e, operands);
        return;
      }
      case "cast":
        this.push(e.operand);
        pushScalarCast(this.#context, e.operand.dtype, e.dtype, e.saturate);
        return;
      case "splat":
      case "pack":
        this.push(e.kind === "splat" ? e.operand : e.operands[0]!);
        return;
      case "extract":
        this.#pushExtract(e.operand, e.lane);
        return;
      case "call":
        this.#pushCall(e, 0);
    }
  }

  #pushChunk(e: Expr, chunk: number): void {
    const { f } = this.#context;
    const { shape } = findRepresentation(e.dtype) ?? this.#context.refuse(`${e.dtype} lanes`);
    switch (e.kind) {
      case "literal":
        pushSplatLiteral(f, e.dtype, e.value);
        return;
      case "load":
        this.#pushLoad(e, chunk);
        return;
      case "local":
        f.get(this.#local(e)[chunk]!);
        return;
      case "splat":
        if (e.operand.lanes === 1) {
          this.#pushSplat(e);
          return;
        }
        if (this.#pushSplatOfFew(e)) return;
        this.keep(e.operand);
        this.#fillLanes(e, (lane) => this.#pushExtract(e.operand, lane % e.operand.lanes));
        break;
      case "apply":
        this.#pushVectorApply(e, chunk);
        return;
      case "cast":
        this.#pushVectorCast(e, chunk);
        return;
      case "call":
        this.#pushCall(e, chunk);
        return;
      case "index":
        this.#fillLanes(e, (lane) =>
          this.push(indexValue(ix.add(e.expr, e.laneStep * lane), e.dtype)),
        );
        break;
      case "pack":
        this.#pack(e);
        break;
      case "extract":
        invariant(false, () => `extract of ${e.lanes} ${shape} lanes`);
    }
    f.get(this.#kept.get(e)![chunk]!);
  }

  /** Makes a vector in kept locals from what `pushLane` pushes for each lane. */
  #fillLanes(e: Expr, pushLane: (lane: number) => void): void {
    const { f } = this.#context;
    const { shape } = findRepresentation(e.dtype)!;
    const each = chunkLanes(shape);
    const locals = this.#context.newLocals(e.dtype, e.lanes);
    for (let lane = 0; lane < e.lanes; lane++) {
      const local = locals[Math.floor(lane / each)]!;
      if (lane % each === 0) pushSplatLiteral(f, e.dtype, dtypes[e.dtype].bits === 64 ? 0n : 0);
      else f.get(local);
      pushLane(lane);
      pushReplacedLane(f, e.dtype, lane % each);
      f.set(local);
    }
    this.#kept.set(e, locals);
  }

  /** One element among lanes of a constant is put into a vector of that. */
  #pack(e: ExprOf<"pack">): void {
    const rest = literalOfRest(e);
    if (!rest) {
      this.#fillLanes(e, (lane) => this.push(e.operands[lane]!));
      return;
    }
    const { f } = this.#context;
    const locals = this.#context.newLocals(e.dtype, e.lanes);
    for (const [chunk, local] of locals.entries()) {
      pushSplatLiteral(f, e.dtype, rest.value);
      if (chunk === 0) {
        this.push(e.operands[0]!);
        pushReplacedLane(f, e.dtype, 0);
      }
      f.set(local);
    }
    this.#kept.set(e, locals);
  }

  #pushSplat(e: ExprOf<"splat">): void {
    const { f } = this.#context;
    const operand = e.operand;
    if (operand.kind === "literal") {
      pushSplatLiteral(f, e.dtype, operand.value);
      return;
    }
    if (this.#context.chunks(e.dtype, e.lanes) > 1) {
      // All chunks are the same: computed once.
      const local = f.local("v128");
      this.#pushSplatOnce(operand);
      f.set(local).get(local);
      const chunks = this.#context.chunks(e.dtype, e.lanes);
      this.#kept.set(e, [local, ...new Array<Local>(chunks - 1).fill(local)]);
      return;
    }
    this.#pushSplatOnce(operand);
  }

  #pushSplatOnce(operand: Expr): void {
    const { f, scope } = this.#context;
    const { shape } = findRepresentation(operand.dtype)!;
    const plain = operand.kind === "load" && operand.guard.length === 0 ? operand : undefined;
    const place = plain && this.#context.place(plain.buffer);
    const wide = operand.dtype === "f32" || operand.dtype === "i32" || operand.dtype === "u32";
    if (plain && place?.kind === "memory" && wide && !this.#kept.has(operand)) {
      f.memory("v128.load32_splat", scope.pushAddress(this.#context.address(place, plain.index)));
      return;
    }
    this.push(operand);
    if (operand.dtype === "bool") f.i32Const(-1).op("i32.mul");
    f.op(splatOp(shape));
  }

  /** Neighbours for all lanes are one load where they have two bytes or four. */
  #pushSplatOfFew({ operand, lanes }: ExprOf<"splat">): boolean {
    const { f, scope } = this.#context;
    const { dtype } = operand;
    const bytes = operand.lanes * storageBytes(dtype);
    if (operand.kind !== "load" || this.#kept.has(operand)) return false;
    const place = this.#context.place(operand.buffer);
    const keepsBits = isIntegerDType(dtype) && dtypes[dtype].bits >= 8;
    const isOne = keepsBits && this.#context.chunks(dtype, lanes) === 1;
    if (place.kind !== "memory" || !isOne || (bytes !== 2 && bytes !== 4)) return false;
    this.#underGuard(operand, lanes, () => {
      const address = this.#context.address(place, operand.index);
      f.memory(`v128.load${bytes === 2 ? 16 : 32}_splat`, scope.pushAddress(address));
    });
    return true;
  }

  #pushLoad(e: ExprOf<"load">, chunk: number): void {
    this.#underGuard(e, e.lanes, () => this.#pushUnguarded(e, chunk));
  }

  /** What `pushRead` pushes where the load's guard holds, else so many lanes of its fill. */
  #underGuard({ guard, dtype, fill }: ExprOf<"load">, lanes: number, pushRead: () => void): void {
    if (guard.length === 0) {
      pushRead();
      return;
    }
    const { f, scope } = this.#context;
    for (const [i, { kind, expr }] of guard.entries()) {
      scope.pushCondition(kind, expr);
      if (i > 0) f.op("i32.and");
    }
    const result = lanes > 1 ? "v128" : findRepresentation(dtype)!.scalar;
    const pushFill = lanes > 1 ? pushSplatLiteral : pushScalarLiteral;
    f.if(pushRead, () => pushFill(f, dtype, fill), result);
  }

  #pushUnguarded(e: ExprOf<"load">, chunk: number): void {
    const place = this.#context.place(e.buffer);
    if (place.kind === "memory") {
      pushMemoryLoad(this.#context, place, e, chunk);
      return;
    }
    if (place.buffer.lanes !== e.lanes) {
      this.#context.refuse(`${e.lanes} lanes of register buffer ${e.buffer}`);
    }
    this.#context.f.get(this.#context.element(place, e.index)[chunk]!);
  }

  #pushExtract(operand: Expr, lane: number): void {
    const each = chunkLanes(findRepresentation(operand.dtype)!.shape);
    if (operand.lanes === 1) {
      this.push(operand);
      return;
    }
    this.push(operand, Math.floor(lane / each));
    pushExtractedLane(this.#context.f, operand.dtype, lane % each);
  }

  #pushVectorApply(e: ExprOf<"apply">, chunk: number): void {
    const spell = findVectorApply(this.#context, e);
    if (!spell) {
      this.#applyByLane(e);
      this.#context.f.get(this.#kept.get(e)![chunk]!);
      return;
    }
    spell(e.operands.map((o) => () => this.push(o, chunk)));
    if (isNarrowFloat(e.dtype)) this.#context.library.call(this.#context.f, `round.${e.dtype}x4`);
  }

  #applyByLane(e: ExprOf<"apply">): void {
    for (const operand of e.operands) this.keep(operand);
    this.#fillLanes(e, (lane) => {
      const operands = e.operands.map((o) => () => this.#pushExtract(o, lane));
      pushScalarApply(this.#context, e, operands);
    });
  }

  #pushVectorCast(e: ExprOf<"cast">, chunk: number): void {
    if (this.#pushWidenedLoad(e)) return;
    const spell = findVectorCast(this.#context, e);
    if (spell) {
      spell((operandChunk) => this.push(e.operand, operandChunk), chunk);
      return;
    }
    this.keep(e.operand);
    this.#fillLanes(e, (lane) => {
      this.#pushExtract(e.operand, lane);
      pushScalarCast(this.#context, e.operand.dtype, e.dtype, e.saturate);
    });
    this.#context.f.get(this.#kept.get(e)![chunk]!);
  }

  /** Eight bytes as numbers of 16 bits are one load. */
  #pushWidenedLoad({ operand, dtype, lanes }: ExprOf<"cast">): boolean {
    const { f, scope } = this.#context;
    const isByte = operand.dtype === "i8" || operand.dtype === "u8";
    if (!isByte || dtype !== "i16" || lanes !== 8 || operand.kind !== "load") return false;
    if (operand.guard.length > 0 || this.#kept.has(operand)) return false;
    const place = this.#context.place(operand.buffer);
    if (place.kind !== "memory") return false;
    const address = this.#context.address(place, operand.index);
    f.memory(`v128.load8x8_${isUnsigned(operand.dtype) ? "u" : "s"}`, scope.pushAddress(address));
    return true;
  }

  #pushCall(e: ExprOf<"call">, chunk: number): void {
    if (e.intrinsic.startsWith("fma.")) this.#pushMultiplyAdd(e, chunk);
    else if (e.intrinsic === "vpdpwssd.i32x4") this.#pushDot(e);
    else this.#context.refuse(`intrinsic ${e.intrinsic}`);
  }

  /** Pairs of products, added to what there is. */
  #pushDot({ operands: [sum, a, b] }: ExprOf<"call">): void {
    for (const operand of [sum!, a!, b!]) this.push(operand);
    this.#context.f.op("i32x4.dot_i16x8_s").op("i32x4.add");
  }

  /** Relaxed where allowed and there, else multiplied and added. */
  #pushMultiplyAdd(e: ExprOf<"call">, chunk: number): void {
    const { f, relaxedFma } = this.#context;
    const [a, b, c] = e.operands;
    invariant(a && b && c, () => `${e.intrinsic} without its operands`);
    const { shape, scalar } = findRepresentation(e.dtype)!;
    if (e.lanes > 1 && relaxedFma && (shape === "f32x4" || shape === "f64x2")) {
      this.push(a, chunk);
      this.push(b, chunk);
      this.push(c, chunk);
      f.op(`${shape}.relaxed_madd`);
      return;
    }
    const type = e.lanes > 1 ? (shape as "f32x4" | "f64x2") : (scalar as "f32" | "f64");
    this.push(a, chunk);
    this.push(b, chunk);
    f.op(`${type}.mul`);
    this.push(c, chunk);
    f.op(`${type}.add`);
  }
}
