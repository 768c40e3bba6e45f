/**
 * Expressions of the program form as instructions, in the register forms of values.ts. Vectors are done
 * lane by lane; what a statement evaluates twice is computed once.
 */

import { indexValue } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import * as ix from "../../semantics/index-expr.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { invariant } from "../../support/invariant.ts";
import { castScalar } from "./casts.ts";
import { floatApply, isPredicate } from "./float-ops.ts";
import { boolApply, integerApply } from "./integer-ops.ts";
import type { KernelContext, RegisterPlace } from "./kernel-context.ts";
import { narrowApply } from "./math-rows.ts";
import { loadMemory } from "./memory-access.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";
import {
  type Divisions,
  fewestDividends,
  type Inverse,
  inverseOf,
  roughInverseOf,
} from "./shared-division.ts";
import { isTinyFloat, narrowTiny, type TinyFloat, widenTiny } from "./tiny-floats.ts";
import {
  classOfRegisters,
  copyRegister,
  isFloat,
  isNarrowFloat,
  isPacked,
  joinLanes,
  lanesOf,
  literal,
  narrow,
  type Registers,
  registerCount,
  toRegister,
  widen,
} from "./values.ts";

type ExprOf<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

export class ValueEmitter {
  readonly #context: KernelContext;
  readonly #bound = new Map<string, Registers>();
  /** What quotients by named values have in common, made where the code that is emitted goes through. */
  inverses: ReadonlyMap<string, Inverse> = new Map();
  /** Values of the current statement. */
  readonly #known = new Map<Expr, Registers>();
  /** Their lanes, where several operands take some. */
  readonly #cut = new Map<Registers, Registers>();

  readonly #divisions: Divisions;

  constructor(context: KernelContext, divisions: Divisions) {
    this.#context = context;
    this.#divisions = divisions;
  }

  /** Binds a value under a name; the caller forgets it at the end of its scope. */
  bind(name: string, value: Expr): void {
    const registers = this.#divisions.rounded.has(name)
      ? this.#quotient(value)
      : this.evaluate(value);
    this.#bound.set(name, this.#isAlias(value) ? this.#copies(value, registers) : registers);
  }

  /** In f32, to be rounded: by a reciprocal where that is worth it. */
  #quotient(e: Expr): Registers {
    invariant(e.kind === "apply", () => "a quotient is applied");
    const operands = e.operands.map((o) => this.#lanes(o));
    return this.#divided(operands, e, true) ?? this.evaluate(e);
  }

  forget(name: string): void {
    this.#bound.delete(name);
  }

  endStatement(): void {
    this.#known.clear();
    this.#cut.clear();
  }

  /** Registers (or immediates) in the form of values.ts; not to be written to. */
  evaluate(e: Expr): Registers {
    const known = this.#known.get(e);
    if (known) return known;
    this.#context.classOf(e.dtype);
    const value = this.#compute(e);
    this.#known.set(e, value);
    return value;
  }

  /** The only register of a scalar. */
  scalar(e: Expr): Operand {
    const [register] = this.evaluate(e);
    invariant(register, () => "a value without registers");
    return register;
  }

  /** Whether the registers belong to something that may be written later. */
  #isAlias(e: Expr): boolean {
    if (e.kind === "load") return this.#context.place(e.buffer).kind === "register";
    return (
      e.kind === "index" ||
      ((e.kind === "cast" || e.kind === "splat" || e.kind === "extract") &&
        this.#isAlias(e.operand)) ||
      (e.kind === "pack" && e.operands.some((o) => this.#isAlias(o)))
    );
  }

  #copies(e: Expr, registers: Registers): Registers {
    const { code } = this.#context;
    const kind = classOfRegisters(e.dtype, e.lanes);
    return registers.map((from) => {
      const to = code.fresh(kind);
      copyRegister(code, kind, to, from);
      return to;
    });
  }

  #compute(e: Expr): Registers {
    const { code } = this.#context;
    switch (e.kind) {
      case "literal":
        return this.#splat(literal(code, e.dtype, e.value), e);
      case "index":
        return this.#joined(e, (lane) => this.#index(e, lane));
      case "load":
        return this.#load(e);
      case "local": {
        const bound = this.#bound.get(e.name);
        invariant(bound, () => `value ${e.name} is not bound`);
        return bound;
      }
      case "splat": {
        const { operand } = e;
        if (operand.lanes === 1) return this.#splat(this.scalar(operand), e);
        const lanes = this.#lanes(operand);
        return this.#joined(e, (lane) => lanes[lane % operand.lanes]!);
      }
      case "pack": {
        const parts = e.operands.map((o) => this.scalar(o));
        return joinLanes(code, e.dtype, this.#inRegisters(e, parts));
      }
      case "extract":
        return [this.#lanes(e.operand)[e.lane]!];
      case "apply":
        return this.#apply(e);
      case "cast":
        return this.#cast(e);
      case "call":
        return this.#call(e);
    }
  }

  /** Immediates cannot be packed. */
  #inRegisters(e: Expr, parts: Registers): Registers {
    if (!isNarrowFloat(e.dtype)) return parts;
    return parts.map((p) => toRegister(this.#context.code, "h", p));
  }

  #splat(scalar: Operand, e: Expr): Registers {
    const { code } = this.#context;
    if (!isPacked(e.dtype, e.lanes)) return new Array<Operand>(e.lanes).fill(scalar);
    const half = toRegister(code, "h", scalar);
    const [word] = joinLanes(code, e.dtype, [half, half]);
    return new Array<Operand>(registerCount(e.dtype, e.lanes)).fill(word!);
  }

  #joined(e: Expr, lane: (lane: number) => Operand): Registers {
    const { code } = this.#context;
    return joinLanes(
      code,
      e.dtype,
      Array.from({ length: e.lanes }, (_, i) => lane(i)),
    );
  }

  #lanes(e: Expr): Registers {
    const value = this.evaluate(e);
    const known = this.#cut.get(value);
    if (known) return known;
    const lanes = lanesOf(this.#context.code, e.dtype, e.lanes, value);
    this.#cut.set(value, lanes);
    return lanes;
  }

  #index(e: ExprOf<"index">, lane: number): Operand {
    const { code, scope } = this.#context;
    const expr = ix.add(e.expr, e.laneStep * lane);
    const bits = scope.widthOf(expr);
    const value = scope.register(expr, bits);
    return castScalar(code, [bits === 64 ? "i64" : "i32", e.dtype], false, value);
  }

  #load(e: ExprOf<"load">): Registers {
    const { scope } = this.#context;
    const place = this.#context.place(e.buffer);
    const predicate = scope.conditions(e.guard);
    if (place.kind === "memory") {
      const access = { place, index: e.index, dtype: e.dtype, lanes: e.lanes };
      const guard = predicate === undefined ? undefined : { predicate, fill: e.fill };
      return loadMemory(this.#context, access, guard);
    }
    const registers = this.readRegisters(place, e);
    if (predicate === undefined) return registers;
    const fill = this.#splat(literal(this.#context.code, e.dtype, e.fill), e);
    const kind = classOfRegisters(e.dtype, e.lanes);
    return registers.map((r, i) => this.#select(kind, predicate, r, fill[i]!));
  }

  #select(kind: "p" | "h" | "r" | "d", predicate: Operand, yes: Operand, no: Operand): Operand {
    const { code } = this.#context;
    if (kind === "p") {
      const first = code.op("and.pred", "p", predicate, yes);
      const second = code.op("and.pred", "p", code.op("not.pred", "p", predicate), no);
      return code.op("or.pred", "p", first, second);
    }
    const bits = kind === "d" ? 64 : kind === "r" ? 32 : 16;
    return code.op(`selp.b${bits}`, kind, yes, no, predicate);
  }

  /** The registers of an element (and of `lanes` lanes from it) of a register buffer. */
  readRegisters(
    place: RegisterPlace,
    e: {
      readonly index: readonly ix.IndexExpr[];
      readonly dtype: Expr["dtype"];
      readonly lanes: number;
    },
  ): Registers {
    const { code } = this.#context;
    const first = this.#context.flatRegister(place, e.index);
    const at = (lane: number): Operand => this.#context.registerOf(place, lane);
    this.#checkWords(place);
    if (place.perWord === 1) {
      return joinLanes(
        code,
        e.dtype,
        Array.from({ length: e.lanes }, (_, i) => at(first + i)),
      );
    }
    if (first % 2 === 0 && e.lanes > 1) {
      return Array.from({ length: Math.ceil(e.lanes / 2) }, (_, i) => at(first + 2 * i));
    }
    const parts = Array.from({ length: e.lanes }, (_, i) => {
      const pair = lanesOf(code, e.dtype, 2, [at(first + i)]);
      return pair[(first + i) % 2]!;
    });
    return joinLanes(code, e.dtype, parts);
  }

  /** Fragments of bytes are for matrix instructions alone. */
  #checkWords({ perWord, buffer }: RegisterPlace): void {
    if (perWord > 2) this.#context.refuse(`single elements of ${buffer.name}, four in a register`);
  }

  /** Writes a value to an element (and the lanes after it) of a register buffer. */
  writeRegisters(place: RegisterPlace, index: readonly ix.IndexExpr[], e: Expr): void {
    const { code } = this.#context;
    const first = this.#context.flatRegister(place, index);
    const value = this.evaluate(e);
    const at = (lane: number): Operand => this.#context.registerOf(place, lane);
    this.#checkWords(place);
    if (place.perWord === 1) {
      const kind = classOfRegisters(e.dtype, 1);
      lanesOf(code, e.dtype, e.lanes, value).forEach((from, i) => {
        copyRegister(code, kind, at(first + i), from);
      });
      return;
    }
    if (first % 2 === 0 && e.lanes % 2 === 0) {
      for (const [i, from] of value.entries()) copyRegister(code, "r", at(first + 2 * i), from);
      return;
    }
    lanesOf(code, e.dtype, e.lanes, value).forEach((from, i) => {
      const word = at(first + i);
      const keep = code.fresh("h");
      const isHigh = (first + i) % 2 === 1;
      code.emit(`mov.b32 ${isHigh ? `{${keep}, _}` : `{_, ${keep}}`}, ${word}`);
      const pair = isHigh ? [keep, from] : [from, keep];
      code.emit(`mov.b32 ${word}, {${pair.join(", ")}}`);
    });
  }

  #apply(e: ExprOf<"apply">): Registers {
    const { code } = this.#context;
    if (e.op === "select") return this.#selectValue(e);
    const packed = this.#applyPacked(e);
    if (packed) return packed;
    const from = e.operands[0]!.dtype;
    const widened = isNarrowFloat(from);
    const operands = e.operands.map((o) =>
      widened ? widen(code, from, o.lanes, this.evaluate(o)) : this.#lanes(o),
    );
    const divided = e.op === "div" ? this.#divided(operands, e) : undefined;
    if (divided) return widened ? narrow(code, from, divided) : divided;
    const parts = Array.from({ length: e.lanes }, (_, lane) =>
      this.#applyScalar(
        e,
        operands.map((o) => o[lane]!),
      ),
    );
    return widened && !isPredicate(e.op) ? narrow(code, from, parts) : parts;
  }

  /** Quotients of several floats, in f32, by one divisor or by values that a thread has for all its vectors. */
  #divided(
    operands: readonly Registers[],
    e: ExprOf<"apply">,
    isRounded = e.dtype === "bf16",
  ): Registers | undefined {
    const { code } = this.#context;
    const [dividends, divisors] = operands as [Registers, Registers];
    const by = e.operands[1]!;
    if (by.dtype !== "f32" && !isNarrowFloat(by.dtype)) return undefined;
    const name = by.kind === "local" ? `${by.name}${isRounded ? ", rounded" : ""}` : undefined;
    // One that rounds to fewer bits has short instructions of its own, for divisors that are its alone.
    const isShort = isRounded || by.dtype !== "f32";
    const isNamed = by.kind === "local" && (!isShort || this.#divisions.divisors.has(by.name));
    const isShared = isNamed || divisors.every((d) => d === divisors[0]);
    if (divisors.length < fewestDividends || code.isCallFree || !isShared) return undefined;
    const known = name === undefined ? undefined : this.inverses.get(name);
    const make = isRounded ? roughInverseOf : inverseOf;
    const inverse = known ?? make(code, divisors);
    if (name !== undefined) this.inverses = new Map(this.inverses).set(name, inverse);
    return inverse.divide(dividends);
  }

  /** Pairs of narrow floats by instructions that round once, as the operator in f32 and its rounding would. */
  #applyPacked(e: ExprOf<"apply">): Registers | undefined {
    const { dtype, lanes } = e.operands[0]!;
    if (!isPacked(dtype, lanes) || e.dtype !== dtype || lanes % 2 !== 0) return undefined;
    const spell = packedRows[e.op];
    if (!spell) return undefined;
    const { code } = this.#context;
    const operands = e.operands.map((o) => this.evaluate(o));
    const type = `${dtype}x2`;
    return Array.from({ length: lanes / 2 }, (_, i) =>
      spell(code, type, ...operands.map((words) => words[i]!)),
    );
  }

  #applyScalar(e: ExprOf<"apply">, operands: readonly Operand[]): Operand {
    const { code } = this.#context;
    const from = e.operands[0]!.dtype;
    let result: Operand | undefined;
    if (isTinyFloat(from)) result = tinyApply(code, e.op, from, operands);
    else if (from === "bool") result = boolApply(code, e.op, operands);
    else if (isFloat(from)) {
      const own = isNarrowFloat(from) ? narrowApply(code, e.op, from, operands) : undefined;
      result = own ?? floatApply(code, e.op, from === "f64" ? 64 : 32, operands);
    } else result = integerApply(code, e.op, from, operands);
    return (
      result ?? this.#context.refuse(`${e.op} of ${from}`, "cast the operand to f32 in the model")
    );
  }

  #selectValue(e: ExprOf<"apply">): Registers {
    const { code } = this.#context;
    const [condition, yes, no] = e.operands as [Expr, Expr, Expr];
    const tests = this.evaluate(condition);
    const kind = classOfRegisters(e.dtype, 1);
    const [then, otherwise] = [this.#lanes(yes), this.#lanes(no)];
    const parts = tests.map((p, lane) =>
      this.#select(
        kind,
        p,
        then[lane]!,
        toRegisterUnlessPredicate(this.#context, kind, otherwise[lane]!),
      ),
    );
    return joinLanes(code, e.dtype, parts);
  }

  #cast(e: ExprOf<"cast">): Registers {
    const { code } = this.#context;
    const { operand, dtype } = e;
    const value = this.evaluate(operand);
    if (operand.dtype === dtype) return value;
    if (isNarrowFloat(operand.dtype) && isNarrowFloat(dtype)) {
      return narrow(code, dtype, widen(code, operand.dtype, operand.lanes, value));
    }
    if (dtype === "f32" && isNarrowFloat(operand.dtype)) {
      return widen(code, operand.dtype, operand.lanes, value);
    }
    if (operand.dtype === "f32" && isNarrowFloat(dtype)) {
      return narrow(
        code,
        dtype,
        value.map((v) => toRegister(code, "r", v)),
      );
    }
    const kind = classOfRegisters(operand.dtype, 1);
    const parts = this.#lanes(operand).map((x) => {
      const source = kind === "p" ? x : toRegister(code, kind, x);
      return castScalar(code, [operand.dtype, dtype], e.saturate, source);
    });
    return joinLanes(code, dtype, parts);
  }

  /** Fused multiply-add, the quick power of two; the dot products of other machines have no spelling. */
  #call(e: ExprOf<"call">): Registers {
    const { code } = this.#context;
    if (e.intrinsic === "exp2.f32")
      return [code.op("ex2.approx.ftz.f32", "r", this.scalar(e.operands[0]!))];
    if (!e.intrinsic.startsWith("fma.")) this.#context.refuse(`intrinsic ${e.intrinsic}`);
    const operands = e.operands.map((o) => this.evaluate(o));
    const bits = e.dtype === "f64" ? 64 : 32;
    return Array.from({ length: e.lanes }, (_, lane) =>
      code.op(`fma.rn.f${bits}`, bits === 64 ? "d" : "r", ...operands.map((o) => o[lane]!)),
    );
  }

  /** An index value as the scope computes it, for coordinates of copies. */
  coordinate(expr: ix.IndexExpr): Operand {
    return this.scalar(indexValue(expr, "i32"));
  }
}

/** In f32, rounded once. */
function tinyApply(
  code: PtxCode,
  op: ScalarOp,
  dtype: TinyFloat,
  operands: readonly Operand[],
): Operand | undefined {
  const wide = operands.map((o) => widenTiny(code, dtype, toRegister(code, "r", o)));
  const result = floatApply(code, op, 32, wide);
  if (result === undefined || isPredicate(op)) return result;
  return narrowTiny(code, dtype, false, toRegister(code, "r", result));
}

function toRegisterUnlessPredicate(
  { code }: KernelContext,
  kind: "p" | "h" | "r" | "d",
  operand: Operand,
): Operand {
  return kind === "p" ? operand : toRegister(code, kind, operand);
}

type PackedRow = (code: PtxCode, type: string, ...words: readonly Operand[]) => Operand;

/** 1, -1 and -0 twice in a word, by type. */
const words = {
  bf16x2: { one: "0x3f803f80", minusOne: "0xbf80bf80", minusZero: "0x80008000" },
  f16x2: { one: "0x3c003c00", minusOne: "0xbc00bc00", minusZero: "0x80008000" },
} as const;

const wordOf = (type: string, name: keyof (typeof words)["bf16x2"]): Operand =>
  words[type as keyof typeof words][name];

/**
 * On pairs. Sums and products are multiply-adds with a one or a minus zero, which every architecture has for
 * both types: exact but for the one rounding (PTX ISA, "Half Precision Floating Point Instructions: fma").
 */
const packedRows: Partial<Record<ScalarOp, PackedRow>> = {
  add: (code, type, a, b) => packedFma(code, type, a!, wordOf(type, "one"), b!),
  sub: (code, type, a, b) => packedFma(code, type, b!, wordOf(type, "minusOne"), a!),
  mul: (code, type, a, b) => packedFma(code, type, a!, b!, wordOf(type, "minusZero")),
  max: (code, type, a, b) => code.op(`max.NaN.${type}`, "r", a!, b!),
  min: (code, type, a, b) => code.op(`min.NaN.${type}`, "r", a!, b!),
  neg: (code, type, a) => code.op(`neg.${type}`, "r", a!),
};

function packedFma(code: PtxCode, type: string, a: Operand, b: Operand, c: Operand): Operand {
  const [x, y, z] = [a, b, c].map((o) => (o.startsWith("%") ? o : code.op("mov.b32", "r", o)));
  return code.op(`fma.rn.${type}`, "r", x!, y!, z!);
}
