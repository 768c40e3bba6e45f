/**
 * Prints the body of one role: loops with stepped sums (index-scope.ts), register buffers as registers,
 * expressions through value-emitter.ts, what synchronises through sync-emitter.ts and tile-emitter.ts.
 * Takes kernels whose unrolled loops are expanded (program/unroll.ts).
 */
import type { Kernel } from "../../program/program.ts";
import { printStatements } from "../../program/program-text.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import {
  childBodies,
  exprIndices,
  exprOperands,
  ownExprs,
  ownIndices,
} from "../../program/walk.ts";
import { dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { loopRange } from "../../semantics/index-range.ts";
import { type Bits, conditionWidth, type IndexUse, withoutConstant } from "./index-scope.ts";
import type { KernelContext } from "./kernel-context.ts";
import { storeMemory } from "./memory-access.ts";
import { isBelowByte, packedIndex } from "./packed-access.ts";
import type { Operand } from "./ptx-code.ts";
import { hasQuotient, settledInFront } from "./settled-in-front.ts";
import type { SyncEmitter } from "./sync-emitter.ts";
import { unrollingOf } from "./unrolling.ts";
import type { ValueEmitter } from "./value-emitter.ts";
import { isUnsigned } from "./values.ts";

type StatementOf<K extends Statement["kind"]> = Extract<Statement, { kind: K }>;

export interface KernelParts {
  readonly context: KernelContext;
  readonly kernel: Kernel;
  readonly values: ValueEmitter;
  readonly sync: SyncEmitter;
  /** Names of checks that may fail; their place is the number that is reported. */
  readonly checks: string[];
  /** The register with the address of the fault record. */
  readonly faults: () => Operand;
}

export class KernelEmitter {
  readonly #context: KernelContext;
  readonly #parts: KernelParts;
  readonly #usesOfStatement = new WeakMap<Statement, readonly IndexUse[]>();

  constructor(parts: KernelParts) {
    this.#context = parts.context;
    this.#parts = parts;
  }

  /** Prints the role; variables of the grid, the launch and the thread are bound already. */
  emit(body: readonly Statement[]): void {
    const { whole, cheap } = settledInFront(body);
    const sums = this.usesOf(cheap).filter(({ expr }) => !hasQuotient(expr));
    this.#context.scope.settle([...this.usesOf(whole), ...sums]);
    this.#body(body);
  }

  /** States the ranges of everything that the statements bind. */
  declare(statements: readonly Statement[]): void {
    const { scope } = this.#context;
    for (const s of statements) {
      if (s.kind === "for") scope.declare(s.variable, loopRange(s.extent, scope.ranges));
      if (s.kind === "letIndex") scope.declare(s.name, loopRange(s.extent, scope.ranges));
      for (const child of childBodies(s)) this.declare(child);
    }
  }

  #body(statements: readonly Statement[]): void {
    const bound: string[] = [];
    const { inverses } = this.#parts.values;
    for (const [i, statement] of statements.entries()) {
      this.#context.statement = headOf(statement);
      if (statement.kind === "letIndex") {
        this.#letIndex(statement, statements.slice(i + 1));
        break;
      }
      this.#statement(statement);
      if (statement.kind === "let") bound.push(statement.name);
      this.#parts.values.endStatement();
    }
    for (const name of bound) this.#parts.values.forget(name);
    // What a branch or a trip made is not there behind it.
    this.#parts.values.inverses = inverses;
  }

  #statement(s: Statement): void {
    const { scope } = this.#context;
    const { values, sync } = this.#parts;
    switch (s.kind) {
      case "for":
        this.#loop(s);
        return;
      case "if":
        if (sync.tiles.foldedBranch(s) || sync.tiles.foldedCopy(s)) return;
        this.#branch(scope.conditions(s.conditions), s);
        return;
      case "when": {
        const condition = values.scalar(s.condition);
        values.endStatement();
        this.#branch(condition, s);
        return;
      }
      case "let":
        values.bind(s.name, s.value);
        return;
      case "store":
        this.#store(s);
        return;
      case "letIndex":
        return;
      default:
        sync.emit(s);
    }
  }

  #branch(predicate: Operand | undefined, s: StatementOf<"if" | "when">): void {
    const otherwise = s.else.length > 0 ? () => this.#body(s.else) : undefined;
    this.#context.scope.branch(predicate, () => this.#body(s.then), otherwise);
  }

  #store(s: StatementOf<"store">): void {
    const { values } = this.#parts;
    const place = this.#context.place(s.buffer);
    if (place.kind === "register") {
      values.writeRegisters(place, s.index, s.value);
      this.#parts.sync.tiles.registersChanged();
      return;
    }
    const { dtype, lanes } = s.value;
    const access = { place, index: s.index, dtype, lanes };
    storeMemory(this.#context, access, values.evaluate(s.value));
  }

  #loop(s: StatementOf<"for">): void {
    const { code, scope } = this.#context;
    const bits: Bits = scope.widthOf(ix.variable(s.variable));
    const { first, end } = this.#loopRange(s);
    const start = scope.value(first, bits);
    const last = scope.value(end, bits);
    const [from, to] = [ix.constantValue(first), ix.constantValue(end)];
    const known = from !== undefined && to !== undefined;
    if (known && to <= from) return;
    const kind = bits === 32 ? "r" : "d";
    const run = (): void => {
      const counter = code.op(`mov.b${bits}`, kind, start);
      scope.loop(s.variable, { register: counter, bits }, this.usesOf(s.body), (begin, step) => {
        const inRegisters = (buffer: string) => this.#context.place(buffer).kind === "register";
        const { copies, isRolled } = unrollingOf(s, inRegisters);
        const trips = (count: number): void => {
          for (let i = 0; i < count; i++) {
            begin();
            this.#body(s.body);
            step();
            code.emit(`add.s${bits} ${counter}, ${counter}, 1`);
          }
        };
        const again = code.newLabel();
        code.place(again);
        if (isRolled) code.emit('.pragma "nounroll"');
        trips(copies);
        const rest = known ? (to - from) % copies : 0;
        const end = rest > 0 ? String(to! - rest) : last;
        code.emit(`@${code.op(`setp.lt.s${bits}`, "p", counter, end)} bra ${again}`);
        trips(rest);
      });
    };
    if (known) scope.within(run);
    else
      scope.branch(code.op(`setp.gt.s${bits}`, "p", toLast(this.#context, last, bits), start), run);
  }

  /** First trip and the one after the last; contiguous shares of a loop over a grid axis. */
  #loopRange(s: StatementOf<"for">): { first: ix.IndexExpr; end: ix.IndexExpr } {
    const { mode, extent } = s;
    if (mode.kind !== "grid") return { first: ix.constant(0), end: extent };
    const { axis } = mode;
    const instances = this.#parts.kernel.grid.axes.find((a) => a.name === axis)?.extent;
    if (!instances) this.#context.refuse(`a loop over grid axis ${axis}`);
    const share = ix.ceilDiv(extent, instances);
    const first = ix.mul(ix.variable(axis), share);
    return { first, end: ix.min(ix.add(first, share), extent) };
  }

  /** Binds an index for the statements after it, which are a stretch of code of their own. */
  #letIndex(s: StatementOf<"letIndex">, rest: readonly Statement[]): void {
    const { code, scope } = this.#context;
    const { values } = this.#parts;
    const wide = dtypes[s.value.dtype].bits === 64;
    const bits: Bits = wide ? 64 : 32;
    const kind = wide ? "d" : "r";
    let value = values.scalar(s.value);
    if (!value.startsWith("%")) value = code.op(`mov.b${bits}`, kind, value);
    values.endStatement();
    const extent = scope.value(s.extent, bits);
    const given = value;
    if (s.wraps && !isUnsigned(s.value.dtype)) {
      const below = code.op(`setp.lt.s${bits}`, "p", value, "0");
      const raised = code.op(`add.s${bits}`, kind, value, extent);
      value = code.op(`selp.b${bits}`, kind, raised, value, below);
    }
    if (s.range === "checked") value = this.#checked(s, { value, given, extent }, bits);
    const width = scope.widthOf(ix.variable(s.name));
    const register = resize(this.#context, value, bits, width);
    scope.within(() => {
      scope.bind(s.name, register, width);
      scope.settle(this.usesOf(rest));
      this.#body(rest);
    });
  }

  /** Records a value outside 0 <= value < extent, and goes on with 0 in its place. */
  #checked(
    s: StatementOf<"letIndex">,
    { value, given, extent }: Readonly<Record<"value" | "given" | "extent", Operand>>,
    bits: Bits,
  ): Operand {
    const { code } = this.#context;
    const number =
      this.#parts.checks.push(`kernel ${this.#parts.kernel.name}: index ${s.name}`) - 1;
    const outside = code.op(`setp.ge.u${bits}`, "p", value, extent);
    const record = this.#parts.faults();
    this.#context.scope.branch(outside, () => {
      const old = code.op("atom.global.cas.b32", "r", `[${record}]`, "0", "1");
      const first = code.op("setp.eq.s32", "p", old, "0");
      const widened = isUnsigned(s.value.dtype) ? "cvt.u64.u32" : "cvt.s64.s32";
      const shown = bits === 64 ? given : code.op(widened, "d", given);
      code.emit(`@${first} st.global.b32 [${record}+4], ${number}`);
      code.emit(`@${first} st.global.b64 [${record}+8], ${shown}`);
    });
    return code.op(`selp.b${bits}`, bits === 64 ? "d" : "r", "0", value, outside);
  }

  /** Every index expression below the statements, each once, as the scope will be asked for it. */
  usesOf(statements: readonly Statement[]): IndexUse[] {
    const uses = new Map<string, IndexUse>();
    for (const s of statements) {
      for (const use of this.#usesOf(s)) uses.set(`${use.bits} ${use.expr.key}`, use);
    }
    return [...uses.values()];
  }

  /** The same of one statement: loops ask for those of all that is inside them, level by level. */
  #usesOf(s: Statement): readonly IndexUse[] {
    const known = this.#usesOfStatement.get(s);
    if (known) return known;
    const uses: IndexUse[] = [];
    const use = (expr: ix.IndexExpr, bits?: Bits): unknown =>
      uses.push({ expr, bits: bits ?? this.#context.scope.widthOf(expr) });
    for (const e of ownExprs(s)) this.#useExpr(e, use);
    if (s.kind === "store") this.#useAccess(s.buffer, s.index, use);
    else if (s.kind === "if") this.#useConditions(s.conditions, use);
    else if (s.kind === "intrinsic") {
      for (const { expr, bits } of this.#parts.sync.tiles.usesOf(s)) use(expr, bits);
    } else for (const e of ownIndices(s)) use(withoutConstant(e));
    for (const child of childBodies(s)) uses.push(...this.usesOf(child));
    this.#usesOfStatement.set(s, uses);
    return uses;
  }

  #useConditions(
    conditions: StatementOf<"if">["conditions"],
    use: (e: ix.IndexExpr, bits?: Bits) => unknown,
  ): void {
    for (const { expr } of conditions) {
      use(withoutConstant(expr), conditionWidth(this.#context.scope, expr));
    }
  }

  #useExpr(e: Expr, use: (e: ix.IndexExpr, bits?: Bits) => unknown): void {
    for (const operand of exprOperands(e)) this.#useExpr(operand, use);
    if (e.kind === "load") {
      this.#useAccess(e.buffer, e.index, use);
      this.#useConditions(e.guard, use);
    } else for (const i of exprIndices(e)) use(withoutConstant(i));
  }

  #useAccess(
    buffer: string,
    index: readonly ix.IndexExpr[],
    use: (e: ix.IndexExpr, bits?: Bits) => unknown,
  ): void {
    const place = this.#context.place(buffer);
    if (place.kind !== "memory") return;
    const bits = place.space === "shared" ? 32 : 64;
    if (isBelowByte(place.buffer.dtype)) {
      use(packedIndex(place, index), bits);
      use(place.base, bits);
    } else use(withoutConstant(this.#context.address(place, index)), bits);
  }
}

/** A comparison's first operand has to be a register. */
function toLast({ code }: KernelContext, last: Operand, bits: Bits): Operand {
  return last.startsWith("%") ? last : code.op(`mov.b${bits}`, bits === 32 ? "r" : "d", last);
}

function resize({ code }: KernelContext, value: Operand, from: Bits, to: Bits): Operand {
  if (from === to) return value;
  if (to === 64) return code.op("cvt.s64.s32", "d", value);
  return code.op("cvt.u32.u64", "r", value);
}

/** The first line of a statement's text. */
function headOf(statement: Statement): string {
  switch (statement.kind) {
    case "for":
    case "if":
    case "when":
      return `${statement.kind} …`;
    case "store":
      return `store ${statement.buffer}`;
    case "let":
    case "letIndex":
      return `${statement.kind} ${statement.name}`;
    default:
      return printStatements([statement]).trimEnd();
  }
}
