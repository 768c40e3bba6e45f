/**
 * Prints one kernel as a WebAssembly function of an instance: loops with stepped pointers
 * (index-scope.ts), register buffers as locals, expressions through value-emitter.ts. Takes kernels whose unrolled
 * loops are expanded (program/unroll.ts). A kernel of one thread per instance needs no
 * synchronisation of its own; what asks for more is refused.
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
  visitStatements,
} from "../../program/walk.ts";
import { dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { loopRange } from "../../semantics/index-range.ts";
import { abortCodes, controlBlock } from "./control-block.ts";
import type { Local } from "./function-builder.ts";
import type { KernelContext } from "./kernel-context.ts";
import { findRepresentation } from "./lanes.ts";
import { writeMemory } from "./memory-access.ts";
import { isPacked } from "./packed-memory.ts";
import { ValueEmitter } from "./value-emitter.ts";

/** Bytes of a vector register. */
const chunkBytes = 16;
/** Names, which no program can spell, of the parameters that say which trips of a loop over the grid to run. */
export const firstTrip = "first trip";
export const endTrip = "end of trips";

type StatementOf<K extends Statement["kind"]> = Extract<Statement, { kind: K }>;

export class KernelEmitter {
  readonly #context: KernelContext;
  readonly #kernel: Kernel;
  readonly #takesTrips: boolean;
  readonly #values: ValueEmitter;
  /** Names of statements whose checks may fail; their place is the number that is reported. */
  readonly #checks: string[];
  /** Statements that compute functions of the library. */
  readonly #calls = new Set<Statement>();
  readonly #usesOfStatement = new WeakMap<Statement, readonly ix.IndexExpr[]>();

  /** @param given a kernel, and whether its function is told the trips of its loop over the grid */
  constructor(
    context: KernelContext,
    given: { readonly kernel: Kernel; readonly takesTrips: boolean },
    checks: string[],
  ) {
    this.#context = context;
    this.#kernel = given.kernel;
    this.#takesTrips = given.takesTrips;
    this.#values = new ValueEmitter(context);
    this.#checks = checks;
  }

  /** Prints the body; variables of the grid and the launch are made by the scope. */
  emit(): void {
    const { scope } = this.#context;
    const [role] = this.#kernel.roles;
    if (!role || this.#kernel.roles.length > 1 || role.copies * role.threads !== 1) {
      this.#context.statement = "its roles";
      this.#context.refuse("several threads per grid instance", "lower for a CPU target");
    }
    this.#declare(role.body);
    for (const s of role.body) this.#findCalls(s);
    scope.open(this.#everyIndex(role.body));
    scope.settle(this.#uses(role.body));
    this.#body(role.body);
  }

  #findCalls(s: Statement): boolean {
    const below = childBodies(s)
      .flat()
      .map((child) => this.#findCalls(child));
    const calls = below.includes(true) || ownExprs(s).some((e) => this.#isCalled(e));
    if (calls) this.#calls.add(s);
    return calls;
  }

  /** Whether vectors are computed by a function of the library. */
  #isCalled(e: Expr): boolean {
    const { library } = this.#context;
    if (e.kind === "apply" && e.lanes > 1 && library.has(`${e.op}.f32x4`)) return true;
    return exprOperands(e).some((operand) => this.#isCalled(operand));
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
      this.#context.at(statement, headOf(statement));
      this.#statement(statement);
      if (this.#parks(statement, statements.slice(i + 1))) this.#park(statement);
      if (statement.kind === "let") bound.push(statement.name);
      this.#values.endStatement();
    }
    for (const name of bound) this.#values.forget(name);
  }

  #statement(s: Statement): void {
    switch (s.kind) {
      case "for":
        this.#loop(s);
        return;
      case "if":
        this.#pushConditions(s);
        this.#branch(s);
        return;
      case "when":
        this.#values.push(s.condition);
        this.#values.endStatement();
        this.#branch(s);
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

  /** Whether the registers that a loop leaves behind wait for functions to be computed. */
  #parks(s: Statement, rest: readonly Statement[]): s is StatementOf<"for"> {
    return s.kind === "for" && rest.some((r) => this.#calls.has(r));
  }

  /**
   * Sends the vectors that a loop has accumulated through memory. A value that has to leave its register
   * later on, for a function in between, is else kept out of registers inside the loop as well (V8
   * stores it in every trip), which takes as long as the arithmetic.
   */
  #park(loop: StatementOf<"for">): void {
    const { f, scope, parking } = this.#context;
    const vectors = [...storedBuffers(loop.body)].flatMap((name) => {
      const place = this.#context.place(name);
      const elements = place.kind === "register" ? [...place.elements.values()] : [];
      return elements.flat().filter((local) => local.type === "v128");
    });
    for (const [i, vector] of vectors.entries()) {
      const start = scope.pushAddress(parking) + chunkBytes * i;
      f.get(vector).memory("v128.store", start);
    }
    for (const [i, vector] of vectors.entries()) {
      const start = scope.pushAddress(parking) + chunkBytes * i;
      f.memory("v128.load", start).set(vector);
    }
  }

  #branch(s: StatementOf<"if" | "when">): void {
    const otherwise = s.else.length > 0 ? () => this.#body(s.else) : undefined;
    this.#context.f.if(() => this.#body(s.then), otherwise);
  }

  #pushConditions(s: StatementOf<"if">): void {
    const { f, scope } = this.#context;
    if (s.conditions.length === 0) f.i32Const(1);
    for (const [i, { kind, expr }] of s.conditions.entries()) {
      scope.pushCondition(kind, expr);
      if (i > 0) f.op("i32.and");
    }
  }

  #store(s: StatementOf<"store">): void {
    const { f } = this.#context;
    const place = this.#context.place(s.buffer);
    const { dtype, lanes } = s.value;
    if (place.kind === "memory") {
      const push = (chunk: number) => this.#values.push(s.value, chunk);
      writeMemory(this.#context, place, s.index, { dtype, lanes, push });
      return;
    }
    if (place.buffer.lanes !== lanes) {
      this.#context.refuse(`${lanes} lanes of register buffer ${s.buffer}`);
    }
    const element = this.#context.element(place, s.index);
    // All chunks are read before the first is written: the value may load the element itself.
    if (element.length > 1) {
      for (let chunk = 0; chunk < element.length; chunk++) this.#values.push(s.value, chunk);
      for (const local of element.toReversed()) f.set(local);
      return;
    }
    this.#values.push(s.value);
    f.set(element[0]!);
  }

  #loop(s: StatementOf<"for">): void {
    const { f, scope } = this.#context;
    if (s.mode.kind === "unrolled") this.#context.refuse("a loop that is still to be unrolled");
    const counter = f.local("i32");
    const constant = ix.constantValue(s.extent);
    const end = this.#loopEnd(s, counter);
    const uses = this.#uses(s.body);
    const run = () => {
      const trips = scope.enterLoop(s.variable, counter, uses);
      f.loop((again) => {
        trips.begin();
        this.#body(s.body);
        trips.step();
        f.get(counter).i32Const(1).op("i32.add").tee(counter);
        if (end) f.get(end);
        else f.i32Const(constant!);
        f.op("i32.lt_s").brIf(again);
      });
      scope.leave();
    };
    if (!end) {
      if (constant! > 0) run();
    } else {
      f.get(counter).get(end).op("i32.lt_s");
      f.if(run);
      f.release(end);
    }
    f.release(counter);
  }

  /** Sets the counter to the first trip; returns the local of the end unless it is the constant extent. */
  #loopEnd(s: StatementOf<"for">, counter: Local): Local | undefined {
    const { f, scope } = this.#context;
    if (s.mode.kind !== "grid") {
      f.i32Const(0).set(counter);
      if (ix.constantValue(s.extent) !== undefined) return undefined;
      const end = f.local("i32");
      scope.push(s.extent);
      f.set(end);
      return end;
    }
    const { first, last } = this.#gridShare(s.extent, s.mode.axis);
    const end = f.local("i32");
    scope.push(first);
    f.set(counter);
    scope.push(last);
    f.set(end);
    return end;
  }

  /** Contiguous trips: those that the function is given, or of one instance, ceil(extent / instances) each. */
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
    this.#context.at(s, headOf(s));
    const wide = findRepresentation(s.value.dtype)?.scalar === "i64";
    const value = f.local(wide ? "i64" : "i32");
    this.#values.push(s.value);
    f.set(value);
    this.#values.endStatement();
    const extent = f.local(wide ? "i64" : "i32");
    scope.push(s.extent);
    if (wide) f.op("i64.extend_i32_s");
    f.set(extent);
    const wraps = s.wraps && dtypes[s.value.dtype].kind !== "uint";
    const isChecked = s.range === "checked";
    const given = wraps && isChecked ? f.local(value.type) : value;
    if (given !== value) f.get(value).set(given);
    if (wraps) this.#wrapIndex(value, extent, wide);
    if (isChecked) this.#checkIndex(s, { value, given, extent });
    if (given !== value) f.release(given);
    const index = f.local("i32");
    f.get(value);
    if (wide) f.op("i32.wrap_i64");
    f.set(index).release(value, extent);
    scope.enter(s.name, index, this.#uses(rest));
    this.#body(rest);
    scope.leave();
    f.release(index);
  }

  #wrapIndex(value: Local, extent: Local, wide: boolean): void {
    const { f } = this.#context;
    const type = wide ? "i64" : "i32";
    f.get(value).get(extent);
    if (wide) f.i64Const(0n);
    else f.i32Const(0);
    f.get(value);
    if (wide) f.i64Const(0n);
    else f.i32Const(0);
    f.op(`${type}.lt_s`).op("select").op(`${type}.add`).set(value);
  }

  /** Ends the run with abort code outOfRange unless 0 <= value < extent. */
  #checkIndex(
    s: StatementOf<"letIndex">,
    { value, given, extent }: { value: Local; given: Local; extent: Local },
  ): void {
    const { f } = this.#context;
    const number = this.#checks.push(`kernel ${this.#kernel.name}: index ${s.name}`) - 1;
    const isUnsigned = dtypes[s.value.dtype].kind === "uint";
    f.get(value)
      .get(extent)
      .op(`${value.type as "i32" | "i64"}.ge_u`);
    f.if(() => {
      f.i32Const(0).i32Const(number).memory("i32.store", controlBlock.faultStatement);
      f.i32Const(0).get(given);
      if (given.type !== "i64") f.op(isUnsigned ? "i64.extend_i32_u" : "i64.extend_i32_s");
      f.memory("i64.store", controlBlock.faultValue);
      f.i32Const(0).i32Const(abortCodes.none).i32Const(abortCodes.outOfRange);
      f.memory("i32.atomic.rmw.cmpxchg", controlBlock.abort).op("drop").op("return");
    });
  }

  /** Every index expression below the statements, each once, as the scope will be asked for it. */
  #uses(statements: readonly Statement[]): ix.IndexExpr[] {
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
    const { scope, parking } = this.#context;
    const all = this.#uses(statements);
    if (this.#calls.size > 0) all.push(scope.splitAddress(parking).sum);
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
    use(this.#context.scope.splitAddress(this.#context.address(place, index)).sum);
  }
}

/** Buffers that statements write, those of nested bodies included. */
function storedBuffers(statements: readonly Statement[]): ReadonlySet<string> {
  const found = new Set<string>();
  visitStatements(statements, (s) => {
    if (s.kind === "store") found.add(s.buffer);
  });
  return found;
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
