/**
 * Expressions of the program form as registers. What has no spelling on whole registers is done lane by
 * lane over a stack slot, so that every operator works at every lane count; what occurs twice in a
 * statement is computed once.
 */
import { indexValue } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { literalOfRest } from "../../program/walk.ts";
import type { DType } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import { ConditionMasks } from "./condition-masks.ts";
import { offsetBy } from "./function-code.ts";
import { patternsOf } from "./half-patterns.ts";
import type { KernelContext } from "./kernel-context.ts";
import {
  type Chunk,
  holdingOf,
  isFloat,
  isNarrowFloat,
  isPacked,
  isUnsigned,
  laneBytes,
  scalarBits,
} from "./lanes.ts";
import { loadChunk, loadScalar, storeScalar } from "./memory-access.ts";
import { type Conversion, findNarrowing } from "./narrow-casts.ts";
import { type Immediate, immediate, type Memory, type Register, sized } from "./operand.ts";
import { loadPacked } from "./packed-memory.ts";
import { castScalar } from "./scalar-casts.ts";
import { applyScalar } from "./scalar-ops.ts";
import { joinLanes, replaceFirst, takeLane } from "./single-lanes.ts";
import { patternOfF32, patternOfF64 } from "./vector-code.ts";
import { findVectorApply, findVectorCast, isDot } from "./vector-ops.ts";

type ExprOf<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

export class ValueEmitter {
  readonly #context: KernelContext;
  readonly #bound = new Map<string, readonly Register[]>();
  /** What the names that are bound stand for. */
  readonly #meant = new Map<string, Expr>();
  /** Names of bf16 that are kept as they are stored, for dot products. */
  readonly #patterns: ReadonlySet<string>;
  /** Values computed for the current statement. */
  readonly #done = new Map<Expr, Register[]>();
  readonly #masks: ConditionMasks;
  /** Vectors of the current statement that lie on the stack, lane by lane. */
  readonly #onStack = new Map<Expr, Memory>();

  constructor(context: KernelContext, patterns: ReadonlySet<string>) {
    this.#context = context;
    this.#patterns = patterns;
    this.#masks = new ConditionMasks(context, (e, chunk) => this.value(e, chunk));
  }

  /** Binds a value under a name; the caller forgets it at the end of its scope. */
  bind(name: string, given: Expr): void {
    const value = this.#patterns.has(name) ? this.#asStored(given) : given;
    const registers = this.#context.newRegisters(value.dtype, value.lanes);
    const masks = registers.flatMap((_, chunk) => this.#masks.of(value, chunk) ?? []);
    registers.forEach((r, chunk) => {
      const mask = masks[chunk];
      const made = mask && this.#context.vectorCode(r.bits, "f32").lanesOf(mask);
      this.copy(r, made ?? this.value(value, chunk));
    });
    if (masks.length > 0) this.#masks.bind(name, masks);
    this.#bound.set(name, registers);
    this.#meant.set(name, value);
  }

  /** An operand of a dot product; bf16 as the patterns that are stored. */
  #asStored(e: Expr): Expr {
    if (e.dtype !== "bf16") return e;
    return (
      patternsOf(e) ?? this.#context.refuse(`computed bf16 of ${e.lanes} lanes in a dot product`)
    );
  }

  forget(name: string): void {
    invariant(this.#bound.delete(name), () => `value ${name} is not bound`);
    this.#meant.delete(name);
    this.#masks.forget(name);
  }

  endStatement(): void {
    this.#done.clear();
    this.#onStack.clear();
    this.#context.f.releaseSlots();
  }

  copy(to: Register, from: Register): void {
    if (to.id !== from.id) this.#context.f.emit(to.class === "vec" ? "vmovaps" : "mov", to, from);
  }

  /** A scalar, or chunk `chunk` of a vector, in a register that must not be written. */
  value(e: Expr, chunk = 0): Register {
    const known = this.#done.get(e)?.[chunk];
    if (known) return known;
    const made = e.lanes === 1 ? this.#scalar(e) : this.#chunk(e, chunk);
    this.#remember(e, chunk, made);
    return made;
  }

  #remember(e: Expr, chunk: number, made: Register): void {
    const list = this.#done.get(e);
    if (list) list[chunk] = made;
    else {
      const fresh: Register[] = [];
      fresh[chunk] = made;
      this.#done.set(e, fresh);
    }
  }

  #local(e: ExprOf<"local">): readonly Register[] {
    const registers = this.#bound.get(e.name);
    invariant(registers, () => `value ${e.name} is not bound`);
    return registers;
  }

  #chunks(e: Expr): readonly Chunk[] {
    return this.#context.chunks(e.dtype, e.lanes);
  }

  #scalar(e: Expr): Register {
    const context = this.#context;
    switch (e.kind) {
      case "literal":
        return this.#literal(e);
      case "index": {
        const index = context.scope.value(e.expr);
        const narrow = castScalar(context, ["i64", "i32"], false, index);
        return castScalar(context, ["i32", e.dtype], false, narrow);
      }
      case "load":
        return this.#load(e, undefined);
      case "local":
        return this.#local(e)[0]!;
      case "apply":
        return applyScalar(
          context,
          e,
          e.operands.map((o) => this.value(o)),
        );
      case "cast":
        return castScalar(context, [e.operand.dtype, e.dtype], e.saturate, this.value(e.operand));
      case "splat":
        return this.value(e.operand);
      case "pack":
        return this.value(e.operands[0]!);
      case "extract":
        return this.#lane(e.operand, e.lane);
      case "call":
        return this.#call(e, 0);
    }
  }

  #literal(e: ExprOf<"literal">): Register {
    const { f } = this.#context;
    const holding = holdingOf(e.dtype);
    if (holding === "f32") return f.splat32(patternOfF32(Number(e.value)), 128);
    if (holding === "f64") return f.splat64(patternOfF64(Number(e.value)), 128);
    const r = f.gpr(scalarBits(e.dtype));
    if (holding === "i64") f.emit("movabs", r, immediate(BigInt.asIntN(64, BigInt(e.value))));
    else f.emit("mov", r, signed32(e.value));
    return r;
  }

  #chunk(e: Expr, chunk: number): Register {
    const place = this.#chunks(e)[chunk]!;
    switch (e.kind) {
      case "literal":
        return this.#splatLiteral(e, place);
      case "load":
        return this.#load(e, place);
      case "local":
        return this.#local(e)[chunk]!;
      case "splat":
        return e.operand.lanes === 1 ? this.#splat(e, place) : this.#repeated(e, chunk);
      case "apply":
        return this.#apply(e, chunk);
      case "cast":
        return this.#cast(e, chunk);
      case "call":
        return this.#call(e, chunk);
      case "index":
        return this.#indices(e, chunk);
      case "pack":
        return this.#packed(e, chunk);
      case "extract":
        return this.#context.refuse(`an extract of ${e.lanes} lanes`);
    }
  }

  #splatLiteral(e: ExprOf<"literal">, { bits }: Chunk): Register {
    const { f } = this.#context;
    const holding = holdingOf(e.dtype);
    if (e.dtype === "bool") return f.splat32(e.value ? -1 : 0, bits);
    if (holding === "f32") return f.splat32(patternOfF32(Number(e.value)), bits);
    if (holding === "f64") return f.splat64(patternOfF64(Number(e.value)), bits);
    if (holding === "i64") return f.splat64(BigInt.asUintN(64, BigInt(e.value)), bits);
    const value = Number(e.value);
    if (holding === "i32") return f.splat32(value, bits);
    const pattern = holding === "i16" ? (value & 0xffff) * 0x10001 : (value & 0xff) * 0x1010101;
    return f.splat32(pattern | 0, bits);
  }

  #splat(e: ExprOf<"splat">, place: Chunk): Register {
    const { operand } = e;
    const { f } = this.#context;
    if (operand.kind === "literal")
      return this.#splatLiteral({ ...operand, lanes: e.lanes }, place);
    const [first] = this.#done.get(e) ?? [];
    if (first && place.bits === first.bits) return first;
    const r = f.vec(place.bits);
    const plain = this.#plainWord(operand);
    if (plain) {
      f.emit("vbroadcastss", r, plain);
      return r;
    }
    const x = this.value(operand);
    const bytes = laneBytes(holdingOf(e.dtype));
    if (isFloat(e.dtype)) {
      if (bytes === 4) f.emit("vbroadcastss", r, x);
      else if (place.bits === 128) f.emit("vmovaps", r, x).emit("vpbroadcastq", r, r);
      else f.emit("vbroadcastsd", r, x);
      return r;
    }
    const low = f.vec(128);
    if (bytes === 8) f.emit("vmovq", low, x).emit("vpbroadcastq", r, low);
    else f.emit("vmovd", low, sized(this.#asLane(e.dtype, x), 32)).emit(broadcasts[bytes]!, r, low);
    return r;
  }

  /** A short vector again and again: as one word where it has two bytes or four. */
  #repeated(e: ExprOf<"splat">, chunk: number): Register {
    const { operand } = e;
    const { bits } = this.#chunks(e)[chunk]!;
    const [first] = this.#done.get(e) ?? [];
    if (first && bits === first.bits) return first;
    const bytes = laneBytes(holdingOf(e.dtype)) * operand.lanes;
    const spread = bytes === 4 ? "vbroadcastss" : bytes === 2 ? "vpbroadcastw" : undefined;
    if (isFloat(e.dtype) || e.dtype === "bool" || !spread) {
      return this.#filled(e, chunk, (lane) => this.#lane(operand, lane % operand.lanes));
    }
    const { f } = this.#context;
    const r = f.vec(bits);
    f.emit(spread, r, this.#memoryOf(operand) ?? this.value(operand));
    return r;
  }

  /** A scalar integer as it stands in a lane: bool as all ones or zeros. */
  #asLane(dtype: DType, x: Register): Register {
    if (dtype !== "bool") return x;
    const r = this.#context.f.gpr(32);
    this.#context.f.emit("mov", r, x).emit("neg", r);
    return r;
  }

  /** Memory of an unguarded 32-bit element. */
  #plainWord(e: Expr): Memory | undefined {
    const wide = e.dtype === "f32" || e.dtype === "i32" || e.dtype === "u32";
    return wide ? this.#memoryOf(e) : undefined;
  }

  /** Memory of an unguarded vector that fills a register. */
  #wholeMemoryOf(e: Expr): Memory | undefined {
    const [{ bits, lanes }] = this.#chunks(e) as [Chunk];
    const fills = 8 * lanes * laneBytes(holdingOf(e.dtype)) === bits;
    const isStored = !isNarrowFloat(e.dtype) && !isPacked(e.dtype) && e.dtype !== "bool";
    return fills && isStored ? this.#memoryOf(e) : undefined;
  }

  /** Where an unguarded load that is not done yet finds its first byte. */
  #memoryOf(e: Expr): Memory | undefined {
    if (e.kind !== "load" || e.guard.length > 0 || this.#done.has(e)) return undefined;
    const place = this.#context.place(e.buffer);
    if (place.kind !== "memory" || isPacked(e.dtype)) return undefined;
    return this.#context.scope.address(this.#context.address(place, e.index));
  }

  #load(e: ExprOf<"load">, chunk: Chunk | undefined): Register {
    if (e.guard.length === 0) return this.#unguarded(e, chunk);
    const { f, scope } = this.#context;
    const r = chunk ? f.vec(chunk.bits) : this.#context.newScalar(e.dtype);
    const fill: ExprOf<"literal"> = { ...e, kind: "literal", value: e.fill };
    const end = f.label();
    this.copy(r, chunk ? this.#splatLiteral(fill, chunk) : this.#literal(fill));
    for (const { kind, expr } of e.guard) scope.branchUnless(kind, expr, end);
    this.copy(r, this.#unguarded(e, chunk));
    f.place(end);
    return r;
  }

  #unguarded(e: ExprOf<"load">, chunk: Chunk | undefined): Register {
    const context = this.#context;
    const place = context.place(e.buffer);
    if (place.kind === "register") {
      if (place.buffer.lanes !== e.lanes) {
        context.refuse(`${e.lanes} lanes of register buffer ${e.buffer}`);
      }
      const element = context.element(place, e.index);
      return chunk
        ? element[this.#chunks(e).findIndex((c) => c.first === chunk.first)]!
        : element[0]!;
    }
    if (isPacked(e.dtype)) {
      if (!chunk) return loadPacked(context, place, e.index, 0);
      const lanes = Array.from({ length: chunk.lanes }, (_, lane) =>
        loadPacked(context, place, e.index, chunk.first + lane),
      );
      return joinLanes(context.f, lanes, { bits: chunk.bits, evex: context.features.evex });
    }
    const from = context.scope.address(context.address(place, e.index));
    return chunk ? loadChunk(context, e.dtype, chunk, from) : loadScalar(context, e.dtype, from);
  }

  #apply(e: ExprOf<"apply">, chunk: number): Register {
    const row = findVectorApply(e);
    const { bits } = this.#chunks(e)[chunk]!;
    if (!row) {
      return this.#filled(e, chunk, (lane) =>
        applyScalar(
          this.#context,
          e,
          e.operands.map((o) => this.#lane(o, lane)),
        ),
      );
    }
    const mask = e.op === "select" ? this.#masks.of(e.operands[0]!, chunk) : undefined;
    if (mask) {
      const [yes, no] = e.operands.slice(1).map((o) => this.value(o, chunk));
      return this.#context.vectorCode(bits, e.dtype).select(mask, yes!, no!);
    }
    const operands = e.operands.map((o) => this.value(o, chunk));
    const lane = e.op === "select" ? e.dtype : e.operands[0]!.dtype;
    return row(this.#context.vectorCode(bits, lane), operands);
  }

  #cast(e: ExprOf<"cast">, chunk: number): Register {
    const { operand, dtype, saturate } = e;
    const { bits, first } = this.#chunks(e)[chunk]!;
    const row = findVectorCast(operand.dtype, dtype, saturate, this.#context.features);
    if (row) return row(this.#context.vectorCode(bits, "f32"), this.value(operand, chunk));
    const again = this.#widenedAgain(e, chunk);
    if (again) return again;
    const widen = this.#widening(e);
    if (widen) return this.#widened(e, widen, first, bits);
    const single = this.#chunks(operand).length === 1 && this.#chunks(e).length === 1;
    const { of, conversion } = saturate ? this.#unrounded(operand) : asItIs(operand);
    const { features } = this.#context;
    const narrow = findNarrowing([operand.dtype, dtype], saturate, features, conversion);
    if (narrow && single) {
      const code = this.#context.vectorCode(this.#chunks(operand)[0]!.bits, "f32");
      return narrow(code, this.value(of));
    }
    return this.#filled(e, chunk, (lane) =>
      castScalar(this.#context, [operand.dtype, dtype], saturate, this.#lane(operand, lane)),
    );
  }

  /** What a name stands for, where its operand is a name too and stays what it is. */
  #meaning(e: Expr): Expr {
    const meant = e.kind === "local" ? this.#meant.get(e.name) : undefined;
    const isName = ({ kind }: Expr): boolean => kind === "local" || kind === "literal";
    const isSettled =
      (meant?.kind === "cast" && meant.operand.kind === "local") ||
      (meant?.kind === "apply" && meant.operands.every(isName));
    return isSettled ? meant! : e;
  }

  /** What is converted in place of a float, and how: the conversion rounds what was only rounded for it. */
  #unrounded(float: Expr): { readonly of: Expr; readonly conversion: Conversion } {
    const meant = this.#meaning(float);
    const isRounded = float.dtype === "f32" && meant.kind === "apply" && meant.op === "round";
    // The control word rounds to nearest, as arithmetic does.
    return isRounded ? { of: meant.operands[0]!, conversion: "vcvtps2dq" } : asItIs(float);
  }

  /** Whether a float is known to have no fraction: a rounded one, also moved by a whole number. */
  #isWhole(float: Expr): boolean {
    const e = this.#meaning(float);
    if (e.kind === "literal") return Number.isInteger(e.value);
    if (e.kind !== "apply") return false;
    return e.op === "round" || (e.op === "add" && e.operands.every((o) => this.#isWhole(o)));
  }

  /** A float that saturated to a byte and is wide again: it is capped, and never packed. */
  #widenedAgain({ operand, dtype, lanes }: ExprOf<"cast">, chunk: number): Register | undefined {
    const byte = this.#meaning(operand);
    if (byte.kind !== "cast" || byte.dtype !== "u8" || !byte.saturate) return undefined;
    const { operand: float } = byte;
    if (float.dtype !== "f32" || (dtype !== "f32" && dtype !== "i32" && dtype !== "i16")) {
      return undefined;
    }
    const chunks = this.#context.chunks("f32", lanes);
    if (dtype === "i16" && chunks.length > 1) return undefined;
    const c = this.#context.vectorCode(chunks[chunk]!.bits, "f32");
    const isWhole = dtype === "f32" && this.#isWhole(float);
    const { of, conversion } = isWhole ? asItIs(float) : this.#unrounded(float);
    const x = this.value(of, chunk);
    const capped = c.minOrSecond(c.maxOrSecond(x, c.constant(0)), c.constant(255));
    if (isWhole) return capped;
    if (dtype === "f32") return c.rounded(capped, conversion === "vcvtps2dq" ? "round" : "trunc");
    const integer = c.op(conversion, capped);
    return dtype === "i32"
      ? integer
      : findNarrowing(["i32", dtype], true, this.#context.features)!(c, integer);
  }

  /** The instruction that widens an 8 or 16-bit operand, where that is the cast. */
  #widening({ operand, dtype, saturate }: ExprOf<"cast">): string | undefined {
    const source = holdingOf(operand.dtype);
    const target = holdingOf(dtype);
    if (source === "i8" && dtype === "i16") {
      return `vpmov${isUnsigned(operand.dtype) ? "z" : "s"}xbw`;
    }
    if ((source !== "i8" && source !== "i16") || (target !== "f32" && target !== "i32")) {
      return undefined;
    }
    const unsigned = isUnsigned(operand.dtype);
    if (dtype === "bool" || isNarrowFloat(dtype) || isPacked(dtype)) return undefined;
    if (saturate && dtype === "u32" && !unsigned) return undefined;
    return `vpmov${unsigned ? "z" : "s"}x${source === "i8" ? "bd" : "wd"}`;
  }

  #widened(e: ExprOf<"cast">, op: string, first: number, bits: Register["bits"]): Register {
    const { f } = this.#context;
    const r = f.vec(bits);
    const single = this.#chunks(e.operand).length === 1 && this.#chunks(e).length === 1;
    if (single) f.emit(op, r, this.#wholeMemoryOf(e.operand) ?? this.value(e.operand));
    else {
      const bytes = laneBytes(holdingOf(e.operand.dtype));
      f.emit(op, r, offsetBy(this.#spread(e.operand), first * bytes));
    }
    if (!isFloat(e.dtype)) return r;
    const converted = f.vec(bits);
    f.emit("vcvtdq2ps", converted, r);
    return converted;
  }

  /** Consecutive integers from the first lane's value on, `laneStep` apart. */
  #indices(e: ExprOf<"index">, chunk: number): Register {
    const { first, bits, lanes } = this.#chunks(e)[chunk]!;
    if (e.dtype !== "i32" && e.dtype !== "u32" && e.dtype !== "f32") {
      return this.#filled(e, chunk, (lane) =>
        this.value(indexValue(ix.add(e.expr, e.laneStep * lane), e.dtype)),
      );
    }
    const { f } = this.#context;
    const c = this.#context.vectorCode(bits, "f32");
    const steps = new Int32Array(bits / 32);
    for (let lane = 0; lane < lanes; lane++) steps[lane] = e.laneStep * (first + lane);
    const ramp = f.constantVector(new Uint8Array(steps.buffer), bits);
    const low = f.vec(128);
    f.emit("vmovd", low, sized(this.#context.scope.value(e.expr), 32));
    const sum = c.op("vpaddd", c.op("vpbroadcastd", low), ramp);
    return isFloat(e.dtype) ? c.op("vcvtdq2ps", sum) : sum;
  }

  /** A chunk of a vector from what `lane` gives for each lane; of small and of wide lanes on the stack. */
  #filled(e: Expr, chunk: number, lane: (lane: number) => Register): Register {
    const { f } = this.#context;
    const holding = holdingOf(e.dtype);
    if (holding === "f32" || (holding === "i32" && e.dtype !== "bool")) {
      const { first, lanes, bits } = this.#chunks(e)[chunk]!;
      const held = Array.from({ length: lanes }, (_, l) => lane(first + l));
      return joinLanes(f, held, { bits, evex: this.#context.features.evex });
    }
    const bytes = laneBytes(holding);
    let slot = this.#onStack.get(e);
    if (!slot) {
      slot = f.slot(e.lanes * bytes + 64);
      for (let l = 0; l < e.lanes; l++) {
        const x = lane(l);
        const stored = isFloat(e.dtype) ? holding : (`i${8 * bytes}` as DType);
        const lanewise = isFloat(e.dtype) ? x : this.#asLane(e.dtype, x);
        storeScalar(this.#context, stored as DType, offsetBy(slot, bytes * l), lanewise);
      }
      this.#onStack.set(e, slot);
    }
    const { bits, first } = this.#chunks(e)[chunk]!;
    const r = f.vec(bits);
    f.emit("vmovups", r, offsetBy(slot, bytes * first));
    return r;
  }

  /** One element among lanes of a constant is put into a register of that. */
  #packed(e: ExprOf<"pack">, chunk: number): Register {
    const { f, features } = this.#context;
    const rest = literalOfRest(e);
    if (!rest || holdingOf(e.dtype) !== "f32") {
      return this.#filled(e, chunk, (lane) => this.value(e.operands[lane]!));
    }
    const place = this.#chunks(e)[chunk]!;
    const whole = this.#splatLiteral({ ...rest, lanes: e.lanes }, place);
    if (place.first > 0) return whole;
    const { bits } = place;
    return replaceFirst(f, whole, this.value(e.operands[0]!), { bits, evex: features.evex });
  }

  /** The lanes of a vector on the stack. */
  #spread(e: Expr): Memory {
    const known = this.#onStack.get(e);
    if (known) return known;
    const { f } = this.#context;
    const bytes = laneBytes(holdingOf(e.dtype));
    const slot = f.slot(e.lanes * bytes + 64);
    this.#chunks(e).forEach(({ first }, chunk) => {
      f.emit("vmovups", offsetBy(slot, bytes * first), this.value(e, chunk));
    });
    this.#onStack.set(e, slot);
    return slot;
  }

  /** One lane of a vector as a scalar. */
  #lane(e: Expr, lane: number): Register {
    if (e.lanes === 1) return this.value(e);
    if (e.kind === "splat") return this.#lane(e.operand, lane % e.operand.lanes);
    const { f } = this.#context;
    const holding = holdingOf(e.dtype);
    if (holding === "f32" && !this.#onStack.has(e)) {
      const chunk = this.#chunks(e).findIndex((c) => lane < c.first + c.lanes);
      const { first } = this.#chunks(e)[chunk]!;
      return takeLane(f, this.value(e, chunk), lane - first, this.#context.features.evex);
    }
    const from = offsetBy(this.#spread(e), lane * laneBytes(holding));
    if (isFloat(e.dtype)) return loadScalar(this.#context, holding as DType, from);
    if (isPacked(e.dtype)) return loadScalar(this.#context, "i32", from);
    if (e.dtype !== "bool") return loadScalar(this.#context, e.dtype, from);
    const r = f.gpr(32);
    f.emit("mov", r, from).emit("and", r, 1);
    return r;
  }

  /** A fused multiply-add, or a dot product of small elements on whole registers. */
  #call(e: ExprOf<"call">, chunk: number): Register {
    const [a, b, c] = e.operands;
    if (isDot(e)) {
      const { bits } = this.#chunks(e)[chunk]!;
      const code = this.#context.vectorCode(bits, "f32");
      const r = code.copy(this.value(a!, chunk));
      this.#dotInto(e, chunk, r);
      return r;
    }
    if (!e.intrinsic.startsWith("fma.") || !a || !b || !c) {
      return this.#context.refuse(`intrinsic ${e.intrinsic}`);
    }
    const bits = e.lanes === 1 ? 128 : this.#chunks(e)[chunk]!.bits;
    const code = this.#context.vectorCode(bits, e.dtype);
    return code.fma(this.value(a, chunk), this.value(b, chunk), this.value(c, chunk));
  }

  /** Adds a dot product to a register: of pairs of integers by two instructions, which every AVX2 has. */
  #dotInto(e: ExprOf<"call">, chunk: number, into: Register): void {
    const { f } = this.#context;
    const [, a, b] = e.operands.map((o, i) => this.value(i === 0 ? o : this.#asStored(o), chunk));
    const [name] = e.intrinsic.split(".");
    if (name !== "vpdpwssd") {
      f.emit(name!, into, a!, b!);
      return;
    }
    const products = f.vec(into.bits);
    f.emit("vpmaddwd", products, a!, b!).emit("vpaddd", into, into, products);
  }

  /** A sum of products into the register of its own addend; false where `e` is no such thing. */
  accumulate(e: Expr, chunk: number, into: Register): boolean {
    if (e.kind !== "call") return false;
    const [a, b, c] = e.operands;
    if (isDot(e)) {
      if (a!.kind !== "load" || this.value(a!, chunk).id !== into.id) return false;
      this.#dotInto(e, chunk, into);
      return true;
    }
    if (!e.intrinsic.startsWith("fma.")) return false;
    if (!a || !b || !c || c.kind !== "load" || this.value(c, chunk).id !== into.id) return false;
    const suffix = e.dtype === "f64" ? "pd" : "ps";
    this.#context.f.emit(`vfmadd231${suffix}`, into, this.value(a, chunk), this.value(b, chunk));
    return true;
  }
}

function asItIs(of: Expr): { readonly of: Expr; readonly conversion: Conversion } {
  return { of, conversion: "vcvttps2dq" };
}

const broadcasts: Readonly<Record<number, string>> = {
  4: "vpbroadcastd",
  2: "vpbroadcastw",
  1: "vpbroadcastb",
};

function signed32(value: number | bigint): Immediate {
  return immediate(Number(BigInt.asIntN(32, BigInt(value))));
}
