/**
 * Prints one kernel as a function of one grid instance: loops with stepped pointers (index-scope.ts),
 * register buffers as registers, expressions through value-emitter.ts. Takes kernels whose unrolled
 * loops are expanded (program/unroll.ts). A kernel of one thread per instance needs no synchronisation
 * of its own; what asks for more is refused.
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
import { abortCodes, sharedBlock, threadBlock } from "./context-block.ts";
import { contextPointer, scratchA } from "./function-code.ts";
import { dotPatterns } from "./half-patterns.ts";
import { splitAddress } from "./index-scope.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import { isFloat, isPacked, scalarBits } from "./lanes.ts";
import { storeChunk, storeScalar } from "./memory-access.ts";
import { memory, type Register, sized } from "./operand.ts";
import { storePacked } from "./packed-memory.ts";
import { takeLane } from "./single-lanes.ts";
import { ValueEmitter } from "./value-emitter.ts";

type StatementOf<K extends Statement["kind"]> = Extract<Statement, { kind: K }>;

const loopAlignment = 32;
/** Names, which no program can spell, of the words of the thread's block that say which trips to run. */
export const firstTrip = "first trip";
export const endTrip = "end of trips";

export class KernelEmitter {
  readonly #context: KernelContext;
  readonly #kernel: Kernel;
  readonly #takesTrips: boolean;
  readonly #values: ValueEmitter;
  /** Names of statements whose checks may fail; their place is the number that is reported. */
  readonly #checks: string[];
  readonly #usesOfStatement = new Map<Statement, readonly ix.IndexExpr[]>();

  /** @param given a kernel, and whether the trips of its loop over the grid are claimed */
  constructor(
    context: KernelContext,
    given: { readonly kernel: Kernel; readonly takesTrips: boolean },
    checks: string[],
  ) {
    this.#context = context;
    this.#kernel = given.kernel;
    this.#takesTrips = given.takesTrips;
    const patterns = dotPatterns(given.kernel.roles.flatMap((role) => role.body));
    this.#values = new ValueEmitter(context, patterns);
    this.#checks = checks;
  }

  /** Prints the body; variables of the grid and the launch are made by the scope. */
  emit(): void {
    const { scope, f } = this.#context;
    const [role] = this.#kernel.roles;
    if (!role || this.#kernel.roles.length > 1 || role.copies * role.threads !== 1) {
      this.#context.statement = "its roles";
      this.#context.refuse("several threads per grid instance", "lower for a CPU target");
    }
    this.#declare(role.body);
    scope.open(this.#everyIndex(role.body));
    scope.settle(this.#uses(role.body));
    this.#body(role.body);
    f.emit("ret");
  }

  /** States the ranges of everything that the statements bind. */
  #declare(statements: readonly Statement[]): void {
    const { scope } = this.#context;
    for (const s of statements) {
      if (s.kind === "for") scope.declare(s.variable, loopRange(s.extent, scope.ranges));
      if (s.kind === "letIndex") scope.declare(s.name, loopRange(s.extent, scope.ranges));
      for (const child of childBodies(s)) this.#declare(child);
    }
  }

  #body(statements: readonly Statement[]): void {
    const bound: string[] = [];
    for (const [i, statement] of statements.entries()) {
      if (statement.kind === "letIndex") {
        this.#letIndex(statement, statements.slice(i + 1));
        break;
      }
      this.#at(statement);
      this.#statement(statement);
      if (statement.kind === "let") bound.push(statement.name);
      this.#values.endStatement();
    }
    for (const name of bound) this.#values.forget(name);
  }

  #at(statement: Statement): void {
    const text = headOf(statement);
    this.#context.statement = text;
    const shown = statement.kind === "for" ? `for ${statement.variable}` : text;
    this.#context.f.mark(`${this.#context.kernel}: ${shown}`);
  }

  #statement(s: Statement): void {
    switch (s.kind) {
      case "for":
        this.#loop(s);
        return;
      case "if":
        this.#branch(s, (otherwise) => {
          for (const { kind, expr } of s.conditions) {
            this.#context.scope.branchUnless(kind, expr, otherwise);
          }
        });
        return;
      case "when":
        this.#branch(s, (otherwise) => {
          const condition = this.#values.value(s.condition);
          this.#context.f.emit("test", condition, condition).emit("je", otherwise);
          this.#values.endStatement();
        });
        return;
      case "let":
        this.#values.bind(s.name, s.value);
        return;
      case "store":
        this.#store(s);
        return;
      case "barrier":
        // One thread is all of its copy, role and instance.
        if (s.scope === "grid" || s.scope === "cluster") {
          this.#context.refuse(`a barrier of the ${s.scope}`, "split the kernel at the barrier");
        }
        return;
      case "fence":
        return;
      case "intrinsic":
        this.#context.refuse(`intrinsic ${s.intrinsic}`);
        break;
      default:
        this.#context.refuse(`${s.kind} inside a kernel`);
    }
  }

  #branch(
    s: StatementOf<"if" | "when">,
    test: (otherwise: ReturnType<KernelContext["f"]["label"]>) => void,
  ): void {
    const { f } = this.#context;
    const otherwise = f.label();
    test(otherwise);
    this.#body(s.then);
    if (s.else.length === 0) {
      f.place(otherwise);
      return;
    }
    const end = f.label();
    f.emit("jmp", end).place(otherwise);
    this.#body(s.else);
    f.place(end);
  }

  #store(s: StatementOf<"store">): void {
    const context = this.#context;
    const place = context.place(s.buffer);
    const { dtype, lanes } = s.value;
    if (place.kind === "memory") {
      if (isPacked(dtype)) {
        this.#storePacked(place, s);
        return;
      }
      if (lanes === 1) {
        const value = this.#values.value(s.value);
        storeScalar(context, dtype, context.scope.address(context.address(place, s.index)), value);
        return;
      }
      // All chunks are read before the first is written: the value may overlap the target.
      const chunks = context.chunks(dtype, lanes);
      const values = chunks.map((_, chunk) => this.#values.value(s.value, chunk));
      const to = context.scope.address(context.address(place, s.index));
      chunks.forEach((chunk, i) => {
        storeChunk(context, dtype, chunk, to, values[i]!);
      });
      return;
    }
    if (place.buffer.lanes !== lanes)
      context.refuse(`${lanes} lanes of register buffer ${s.buffer}`);
    this.#storeElement(s, context.element(place, s.index));
  }

  /** Elements below a byte one after another, all of them computed before the first is written. */
  #storePacked(place: MemoryPlace, { value, index }: StatementOf<"store">): void {
    const context = this.#context;
    const { dtype, lanes } = value;
    if (lanes === 1) {
      storePacked(context, place, index, { lane: 0, value: this.#values.value(value) });
      return;
    }
    const { f, features } = context;
    const chunks = context.chunks(dtype, lanes);
    const values = chunks.map((_, chunk) => this.#values.value(value, chunk));
    for (const [i, { first, lanes: held }] of chunks.entries()) {
      for (let lane = 0; lane < held; lane++) {
        const alone = takeLane(f, values[i]!, lane, features.evex);
        const scalar = isFloat(dtype) ? alone : f.gpr(32);
        if (scalar !== alone) f.emit("vmovd", scalar, alone);
        storePacked(context, place, index, { lane: first + lane, value: scalar });
      }
    }
  }

  #storeElement(s: StatementOf<"store">, element: readonly Register[]): void {
    const [only] = element;
    if (element.length === 1 && this.#values.accumulate(s.value, 0, only!)) return;
    const values = element.map((_, chunk) => this.#values.value(s.value, chunk));
    element.forEach((to, chunk) => {
      this.#values.copy(to, values[chunk]!);
    });
  }

  #loop(s: StatementOf<"for">): void {
    const { f, scope } = this.#context;
    if (s.mode.kind === "unrolled") this.#context.refuse("a loop that is still to be unrolled");
    const constant = ix.constantValue(s.extent);
    if (s.mode.kind === "serial" && constant !== undefined && constant <= 0) return;
    const counter = f.gpr();
    const end = this.#loopEnd(s, counter);
    const [again, done] = [f.label(), f.label()];
    const uses = this.#uses(s.body);
    if (end.kind === "register") f.emit("cmp", counter, end).emit("jge", done);
    const trips = scope.enterLoop(s.variable, counter, uses);
    f.inLoop(() => {
      f.emit("align", loopAlignment).place(again);
      trips.begin();
      this.#body(s.body);
      trips.step();
      f.emit("add", counter, 1).emit("cmp", counter, end).emit("jl", again);
    });
    scope.leave();
    f.place(done);
  }

  /** Sets the counter to the first trip and gives the end. */
  #loopEnd(
    s: StatementOf<"for">,
    counter: Register,
  ): ReturnType<KernelContext["scope"]["operand"]> {
    const { f, scope } = this.#context;
    if (s.mode.kind !== "grid") {
      const end = scope.operand(s.extent);
      f.emit("xor", sized(counter, 32), sized(counter, 32));
      return end;
    }
    const { first, last } = this.#gridShare(s.extent, s.mode.axis);
    f.emit("mov", counter, scope.value(first));
    const end = f.gpr();
    f.emit("mov", end, scope.value(last));
    return end;
  }

  /** Contiguous trips: those that were claimed, or of one instance, ceil(extent / instances) each. */
  #gridShare(extent: ix.IndexExpr, axis: string): { first: ix.IndexExpr; last: ix.IndexExpr } {
    if (this.#takesTrips) return { first: ix.variable(firstTrip), last: ix.variable(endTrip) };
    const instances = this.#kernel.grid.axes.find((a) => a.name === axis)?.extent;
    if (!instances) this.#context.refuse(`a loop over grid axis ${axis}`);
    const share = ix.ceilDiv(extent, instances);
    const first = ix.mul(ix.variable(axis), share);
    return { first, last: ix.min(ix.add(first, share), extent) };
  }

  /** Binds an index for the statements after it, which are a level of their own. */
  #letIndex(s: StatementOf<"letIndex">, rest: readonly Statement[]): void {
    const { f, scope } = this.#context;
    this.#at(s);
    const value = this.#values.value(s.value);
    const index = f.gpr();
    // Unsigned values beyond 2^63 stay beyond every extent.
    if (scalarBits(s.value.dtype) === 64) f.emit("mov", index, value);
    else if (s.value.dtype === "u32") f.emit("mov", sized(index, 32), value);
    else f.emit("movsxd", index, value);
    this.#values.endStatement();
    const extent = scope.value(s.extent);
    const wraps = s.wraps && dtypes[s.value.dtype].kind !== "uint";
    const isChecked = s.range === "checked";
    const given = wraps && isChecked ? f.gpr() : index;
    if (given !== index) f.emit("mov", given, index);
    if (wraps) {
      const wrapped = f.gpr();
      f.emit("lea", wrapped, { kind: "memory", base: index, index: extent, scale: 1, disp: 0 });
      f.emit("test", index, index).emit("cmovs", index, wrapped);
    }
    if (isChecked) this.#checkIndex(s, { value: index, given, extent });
    scope.enter(s.name, index, this.#uses(rest));
    this.#body(rest);
    scope.leave();
  }

  /** Ends the run with abort code outOfRange unless 0 <= value < extent. */
  #checkIndex(
    s: StatementOf<"letIndex">,
    { value, given, extent }: Readonly<Record<"value" | "given" | "extent", Register>>,
  ): void {
    const { f } = this.#context;
    const number = this.#checks.push(`kernel ${this.#kernel.name}: index ${s.name}`) - 1;
    const inside = f.label();
    f.emit("cmp", value, extent).emit("jb", inside);
    emitAbort(f, abortCodes.outOfRange, number, given);
    f.place(inside);
  }

  /** The distinct index expressions below the statements, as the scope will be asked for them. */
  #uses(statements: readonly Statement[]): readonly ix.IndexExpr[] {
    const uses = new Map<string, ix.IndexExpr>();
    for (const s of statements) for (const e of this.#usesOf(s)) uses.set(e.key, e);
    return [...uses.values()];
  }

  /** The same of one statement: loops ask for those of all that is inside them, level by level. */
  #usesOf(s: Statement): readonly ix.IndexExpr[] {
    const known = this.#usesOfStatement.get(s);
    if (known) return known;
    const uses = new Map<string, ix.IndexExpr>();
    const use = (e: ix.IndexExpr): unknown => uses.set(e.key, e);
    for (const e of ownExprs(s)) this.#collectExpr(e, use);
    if (s.kind === "store") this.#useAccess(s.buffer, s.index, use);
    else for (const e of ownIndices(s)) use(ix.withoutConstant(e));
    for (const child of childBodies(s)) for (const e of this.#uses(child)) use(e);
    const found = [...uses.values()];
    this.#usesOfStatement.set(s, found);
    return found;
  }

  #everyIndex(statements: readonly Statement[]): ix.IndexExpr[] {
    const all = [...this.#uses(statements)];
    if (this.#takesTrips) return [...all, ix.variable(firstTrip), ix.variable(endTrip)];
    for (const axis of this.#kernel.grid.axes) all.push(axis.extent, ix.variable(axis.name));
    return all;
  }

  #collectExpr(e: Expr, use: (e: ix.IndexExpr) => unknown): void {
    for (const operand of exprOperands(e)) this.#collectExpr(operand, use);
    if (e.kind === "load") {
      this.#useAccess(e.buffer, e.index, use);
      for (const c of e.guard) use(ix.withoutConstant(c.expr));
    } else for (const i of exprIndices(e)) use(ix.withoutConstant(i));
  }

  #useAccess(
    buffer: string,
    index: readonly ix.IndexExpr[],
    use: (e: ix.IndexExpr) => unknown,
  ): void {
    const place = this.#context.place(buffer);
    if (place.kind !== "memory") return;
    if (isPacked(place.buffer.dtype)) {
      for (const e of [place.base, ...index]) use(ix.withoutConstant(e));
      return;
    }
    use(splitAddress(this.#context.address(place, index)).sum);
  }
}

/** Notes why the run has to end, the first reason staying, and returns from the function. */
export function emitAbort(
  f: KernelContext["f"],
  code: number,
  check: number,
  value: Register | undefined,
): void {
  const shared = f.gpr();
  const [word, reason] = [f.gpr(32), f.gpr(32)];
  f.emit("mov", shared, memory(contextPointer, threadBlock.shared));
  f.emit("mov", word, check).emit("mov", memory(shared, sharedBlock.faultStatement), word);
  if (value) f.emit("mov", memory(shared, sharedBlock.faultValue), value);
  f.emit("mov", reason, code).emit("xor", sized(scratchA, 32), sized(scratchA, 32));
  f.emit("lockcmpxchg", memory(shared, sharedBlock.abort), reason).emit("ret");
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
