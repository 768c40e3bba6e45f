/**
 * Well-formedness: names are usable and bound once, every use has a declaration of the right kind,
 * arities, types and lanes fit, register indices are constant once loops are unrolled. The other
 * checks run only on programs that pass this one, so they may rely on it.
 */
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue, type IndexExpr, variablesOf } from "../../semantics/index-expr.ts";
import { reservedWords } from "../../semantics/index-text.ts";
import { LayeredMap } from "../../support/layered-map.ts";
import { printType, typeFault } from "../expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { TileOperand } from "../intrinsics.ts";
import {
  type Buffer,
  type Counter,
  type Kernel,
  type Program,
  type Role,
  type Task,
  threadCountName,
} from "../program.ts";
import { printExpr } from "../program-text.ts";
import type { Expr, IntrinsicOperand, Statement, ValueType } from "../statement.ts";
import { exprIndices, ownExprs, ownIndices, visitExpr } from "../walk.ts";
import { layoutsOf } from "./layouts.ts";
import type { Report } from "./report.ts";

const namePattern = /^[A-Za-z_][\w.$%]*$/;

/** What a body may refer to. */
interface Scope {
  readonly indices: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, ValueType>;
  /** Axes that an enclosing loop deals out already. */
  readonly dealt: ReadonlySet<string>;
  /** Copies of this place once the loops around are unrolled. */
  readonly copies: number;
  /** The way here may differ between grid instances or threads. */
  readonly diverges: boolean;
  /** Index variables that may differ between them. */
  readonly varying: ReadonlySet<string>;
}

export function checkStructure(program: Program, report: Report): void {
  new StructureCheck(program, report).run();
}

class StructureCheck {
  readonly #program: Program;
  readonly #report: Report;
  readonly #parameters: ReadonlySet<string>;
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #kernels: ReadonlyMap<string, Kernel>;

  constructor(program: Program, report: Report) {
    this.#program = program;
    this.#report = report;
    this.#buffers = new Map(program.buffers.map((b) => [b.name, b]));
    this.#kernels = new Map(program.kernels.map((k) => [k.name, k]));
    this.#parameters = new Set(program.parameters.map((p) => p.name));
  }

  run(): void {
    const { parameters, requires, buffers, counters, kernels, states } = this.#program;
    this.#names("parameter", [...parameters, { name: threadCountName }]);
    for (const p of parameters) {
      const fits = Number.isSafeInteger(p.min) && Number.isSafeInteger(p.max) && p.min <= p.max;
      if (!fits) this.#report.add("PRG005", `parameter ${p.name} from ${p.min} to ${p.max}`);
    }
    for (const c of requires) this.#bound("requires", [c.expr], this.#parameters);
    this.#names("buffer", [...buffers, ...counters]);
    for (const b of buffers) this.#buffer(b, "program", buffers);
    for (const c of counters) this.#counter(c, "program");
    for (const s of states) {
      for (const name of [s.input, s.output]) {
        if (!buffers.some((b) => b.name === name)) this.#unknown("buffer", name, "states");
      }
    }
    this.#names("kernel", kernels);
    this.#tasks(this.#program.tasks, { indices: this.#parameters, tables: new Map() });
  }

  #unknown(what: string, name: string, where: string): void {
    this.#report.add("PRG002", `${what} ${name} is not declared`, { at: where });
  }

  #names(what: string, items: readonly { readonly name: string }[]): void {
    const seen = new Set<string>();
    for (const { name } of items) {
      if (!namePattern.test(name) || reservedWords.has(name)) {
        this.#report.add("PRG001", `${what} name ${JSON.stringify(name)} cannot be spelled`);
      }
      if (seen.has(name)) this.#report.add("PRG001", `${what} name ${name} is declared twice`);
      seen.add(name);
    }
  }

  #bound(where: string, exprs: readonly IndexExpr[], names: ReadonlySet<string>): void {
    for (const name of variablesOf(...exprs)) {
      if (!names.has(name)) this.#unknown("index variable", name, where);
    }
  }

  #buffer(b: Buffer, where: string, siblings: readonly Buffer[]): void {
    const at = `buffer ${b.name} of ${where}`;
    const wrong = (text: string): void => this.#report.add("PRG005", text, { at });
    const inProgram = where === "program";
    if (inProgram !== (b.scope === "memory")) wrong(`scope ${b.scope} is not declared here`);
    if (!inProgram && b.kind !== "scratch") wrong(`a kernel's buffer is scratch, not ${b.kind}`);
    if (!(Number.isInteger(b.lanes) && b.lanes >= 1)) wrong(`${b.lanes} lanes`);
    if (b.lanes > 1 && b.scope !== "register") wrong(`${b.lanes} lanes in scope ${b.scope}`);
    if (b.capacity && b.capacity.length !== b.shape.length) wrong("capacity has another rank");
    if (b.placement && (b.scope !== "memory" || b.viewOf !== undefined)) {
      wrong("only a buffer of scope memory with storage of its own is placed");
    }
    const extents = [...b.shape, ...(b.capacity ?? [])];
    const offsets = b.placement ? [b.placement.byteOffset] : [];
    this.#bound(at, [...extents, ...offsets], this.#parameters);
    if (!inProgram && extents.some((e) => constantValue(e) === undefined)) {
      wrong(`extents in scope ${b.scope} are constants`);
    }
    if (b.viewOf !== undefined) this.#view(b, at, siblings);
  }

  #view(b: Buffer, at: string, siblings: readonly Buffer[]): void {
    const seen = new Set([b.name]);
    let base: Buffer | undefined = b;
    while (base?.viewOf !== undefined) {
      const name: string = base.viewOf;
      base = siblings.find((s) => s.name === name);
      if (!base) this.#unknown("buffer", name, at);
      if (seen.has(name)) {
        this.#report.add("PRG005", `view of itself through ${name}`, { at });
        return;
      }
      seen.add(name);
    }
    if (base && base.scope !== b.scope) {
      this.#report.add("PRG005", `view of ${base.name} in another scope`, { at });
    }
  }

  #counter(c: Counter, where: string): void {
    const at = `counter ${c.name} of ${where}`;
    this.#bound(at, c.shape, this.#parameters);
    const arrivals = c.arrivals ?? 0;
    const fits = c.protocol === "phase" ? Number.isInteger(arrivals) && arrivals >= 1 : true;
    if (!fits) this.#report.add("PRG005", `arrivals ${c.arrivals} of a phase`, { at });
    if ((where === "program") !== (c.scope === "memory")) {
      this.#report.add("PRG005", `scope ${c.scope} is not declared here`, { at });
    }
    if (c.scope === "shared" && c.shape.some((e) => constantValue(e) === undefined)) {
      this.#report.add("PRG005", "extents in scope shared are constants", { at });
    }
  }

  #tasks(tasks: readonly Task[], around: TaskScope): void {
    for (const task of tasks) this.#task(task, around);
  }

  #task(task: Task, around: TaskScope): void {
    switch (task.kind) {
      case "stop":
        return;
      case "launch":
        this.#launch(task, around);
        return;
      case "if":
        this.#taskCondition(task, around);
        this.#tasks(task.then, around);
        this.#tasks(task.else, around);
        return;
      case "while":
        this.#taskCondition(task, around);
        this.#bound("while", [task.maxTrips], around.indices);
        this.#tasks(task.body, around);
        return;
      case "repeat":
        this.#repeat(task, around);
    }
  }

  #taskCondition(task: Extract<Task, { kind: "if" | "while" }>, around: TaskScope): void {
    const { condition } = task;
    if (condition.kind === "index") {
      const exprs = condition.conditions.map((c) => c.expr);
      this.#bound(task.kind, exprs, around.indices);
      return;
    }
    const buffer = this.#program.buffers.find((b) => b.name === condition.buffer);
    if (!buffer) this.#unknown("buffer", condition.buffer, task.kind);
    else if (buffer.shape.length !== condition.index.length) {
      this.#report.add("PRG004", `${condition.index.length} indices of ${buffer.name}`);
    }
    this.#bound(task.kind, condition.index, around.indices);
  }

  #repeat(task: Extract<Task, { kind: "repeat" }>, around: TaskScope): void {
    this.#bound("repeat", [task.count], around.indices);
    this.#fresh(task.variable, around.indices, "repeat");
    const tables = new Map(around.tables);
    for (const { name, rows } of task.tables) {
      const found = rows.map((row) => this.#program.buffers.find((b) => b.name === row));
      const [first] = found;
      if (!first || found.some((b) => !b)) {
        this.#unknown("buffer", rows.join(", "), `table ${name}`);
        continue;
      }
      const same = found.every((b) => printType(b!) === printType(first) && sameShape(b!, first));
      if (!same) this.#report.add("PRG005", `rows of table ${name} differ in type or shape`);
      if (this.#program.buffers.some((b) => b.name === name)) {
        this.#report.add("PRG001", `table ${name} has the name of a buffer`);
      }
      tables.set(name, first);
    }
    const indices = new Set(around.indices).add(task.variable);
    this.#tasks(task.body, { indices, tables });
  }

  #launch(task: Extract<Task, { kind: "launch" }>, around: TaskScope): void {
    const at = `launch of ${task.kernel}`;
    for (const { counter, index } of [...task.waits, ...task.signals]) {
      const found = this.#program.counters.find((c) => c.name === counter);
      if (!found) this.#unknown("counter", counter, at);
      else if (found.protocol !== "monotone" || found.shape.length !== index.length) {
        this.#report.add("PRG004", `counter ${counter} in ${at} has another form`);
      }
    }
    const used = [
      ...task.bindings.map((b) => b[1]),
      ...task.waits.flatMap((w) => [...w.index, w.threshold]),
      ...task.signals.flatMap((s) => [...s.index, s.amount]),
    ];
    this.#bound(at, used, around.indices);
    const kernel = this.#kernels.get(task.kernel);
    if (!kernel) {
      this.#unknown("kernel", task.kernel, at);
      return;
    }
    const bound = new Set([...this.#parameters, ...task.bindings.map((b) => b[0])]);
    const own = new Map(kernel.buffers.map((b) => [b.name, b]));
    for (const [name, row] of around.tables) own.set(name, row);
    const visible = new LayeredMap(this.#buffers, own);
    new KernelCheck(this.#program, kernel, { report: this.#report, visible, bound }).run();
    this.#names(`buffer of ${kernel.name}`, [...kernel.buffers, ...kernel.counters]);
    for (const b of kernel.buffers) this.#buffer(b, kernel.name, kernel.buffers);
    for (const c of kernel.counters) this.#counter(c, kernel.name);
  }

  #fresh(name: string, scope: ReadonlySet<string>, where: string): void {
    if (!namePattern.test(name) || reservedWords.has(name) || scope.has(name)) {
      this.#report.add("PRG001", `index variable ${name} is taken or cannot be spelled`, {
        at: where,
      });
    }
  }
}

interface TaskScope {
  readonly indices: ReadonlySet<string>;
  readonly tables: ReadonlyMap<string, Buffer>;
}

function sameShape(a: Buffer, b: Buffer): boolean {
  const text = (x: Buffer): string => x.shape.map((e) => e.key).join();
  return text(a) === text(b);
}

function varies(exprs: readonly IndexExpr[], scope: Scope): boolean {
  return [...variablesOf(...exprs)].some((name) => scope.varying.has(name));
}

const mostCopies = 65_536;

function insideLoop(s: Extract<Statement, { kind: "for" }>, outer: Scope): Scope {
  const trips = s.mode.kind === "unrolled" ? (constantValue(s.extent) ?? 1) : 1;
  const scope = { ...outer, copies: outer.copies * Math.max(1, trips) };
  const indices = new Set(scope.indices).add(s.variable);
  if (s.mode.kind === "grid") {
    const varying = new Set(scope.varying).add(s.variable);
    return { ...scope, indices, varying, dealt: new Set(scope.dealt).add(s.mode.axis) };
  }
  return { ...scope, indices, diverges: scope.diverges || varies([s.extent], scope) };
}

type StructureCode = "PRG001" | "PRG002" | "PRG003" | "PRG004" | "PRG005" | "PRG060";

interface KernelPlace {
  readonly report: Report;
  readonly visible: ReadonlyMap<string, Buffer>;
  readonly bound: ReadonlySet<string>;
}

class KernelCheck {
  readonly #kernel: Kernel;
  readonly #report: Report;
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #counters: ReadonlyMap<string, Counter>;
  readonly #bound: ReadonlySet<string>;

  constructor(program: Program, kernel: Kernel, place: KernelPlace) {
    this.#kernel = kernel;
    this.#report = place.report;
    this.#buffers = place.visible;
    this.#bound = place.bound;
    const counters = [...program.counters, ...kernel.counters];
    this.#counters = new Map(counters.map((c) => [c.name, c] as const));
  }

  #at(role = ""): string {
    return `kernel ${this.#kernel.name}${role === "" ? "" : ` role ${role}`}`;
  }

  #add(code: StructureCode, text: string, role = ""): void {
    this.#report.add(code, text, { at: this.#at(role) });
  }

  run(): void {
    const { grid, roles } = this.#kernel;
    const indices = new Set(this.#bound);
    for (const axis of grid.axes) {
      const allowed = grid.unit === "threads" ? [...this.#bound, threadCountName] : this.#bound;
      for (const name of variablesOf(axis.extent)) {
        if (!new Set(allowed).has(name)) this.#add("PRG002", `grid extent uses ${name}`);
      }
      if (indices.has(axis.name)) this.#add("PRG001", `grid axis ${axis.name} is taken`);
      indices.add(axis.name);
    }
    const clusters = Number.isInteger(grid.clusterSize) && grid.clusterSize >= 1;
    if (!clusters || (grid.unit !== "clusters" && grid.clusterSize !== 1)) {
      this.#add("PRG005", `clusters of ${grid.clusterSize} in a grid of ${grid.unit}`);
    }
    if (roles.length === 0) this.#add("PRG005", "no role");
    for (const role of roles) this.#role(role, indices);
  }

  #role(role: Role, outer: ReadonlySet<string>): void {
    const whole = [role.copies, role.threads].every((n) => Number.isInteger(n) && n >= 1);
    if (!whole) this.#add("PRG005", `${role.copies} copies of ${role.threads} threads`, role.name);
    const indices = new Set(outer);
    for (const name of [role.copyVariable, role.threadVariable]) {
      if (name === undefined) continue;
      if (indices.has(name)) this.#add("PRG001", `index variable ${name} is taken`, role.name);
      indices.add(name);
    }
    const varying = new Set([...indices].filter((name) => !this.#bound.has(name)));
    const start = { values: new Map(), dealt: new Set<string>(), diverges: false, copies: 1 };
    this.#body(role.body, { indices, varying, ...start }, role.name);
  }

  #body(body: readonly Statement[], outer: Scope, role: string): void {
    // The body's own copy: what is bound in it is not seen outside.
    const values = new Map(outer.values);
    let scope: Scope = { ...outer, values };
    for (const s of body) {
      this.#statement(s, scope, role);
      if (s.kind === "let") {
        if (values.has(s.name)) this.#add("PRG001", `value name ${s.name} is taken`, role);
        values.set(s.name, s.value);
        if (s.name.includes(".")) this.#add("PRG001", `value name ${s.name} has a dot`, role);
      }
      if (s.kind === "letIndex") {
        this.#bindIndex(s.name, scope, role);
        const varying = new Set(scope.varying).add(s.name);
        scope = { ...scope, indices: new Set(scope.indices).add(s.name), varying };
      }
    }
  }

  #bindIndex(name: string, scope: Scope, role: string): void {
    if (scope.indices.has(name) || !namePattern.test(name) || reservedWords.has(name)) {
      this.#add("PRG001", `index variable ${name} is taken or cannot be spelled`, role);
    }
  }

  #indices(exprs: readonly IndexExpr[], scope: Scope, role: string): void {
    for (const name of variablesOf(...exprs)) {
      if (!scope.indices.has(name)) {
        this.#add("PRG002", `index variable ${name} is not bound`, role);
      }
    }
  }

  #statement(s: Statement, scope: Scope, role: string): void {
    this.#indices(ownIndices(s), scope, role);
    for (const expr of ownExprs(s)) this.#expr(expr, scope, role);
    switch (s.kind) {
      case "for": {
        this.#bindIndex(s.variable, scope, role);
        this.#loop(s, scope, role);
        this.#body(s.body, insideLoop(s, scope), role);
        return;
      }
      case "if":
      case "when":
        if (s.kind === "when" && printType(s.condition) !== "bool") {
          this.#add("PRG003", `when ${printType(s.condition)}`, role);
        }
        this.#branches(s, scope, role);
        return;
      case "letIndex": {
        const { kind } = dtypes[s.value.dtype];
        const isInteger = (kind === "int" || kind === "uint") && s.value.lanes === 1;
        if (!isInteger) this.#add("PRG003", `index ${s.name} = ${printType(s.value)}`, role);
        return;
      }
      case "store":
        this.#place(s.buffer, s.index, s.value, role);
        return;
      case "intrinsic":
        this.#intrinsic(s, role);
        return;
      case "wait":
      case "signal":
      case "expect":
        this.#sync(s, role);
        return;
      case "waitGroup":
        if (!(Number.isInteger(s.pending) && s.pending >= 0)) {
          this.#add("PRG005", `await ${s.group} pending ${s.pending}`, role);
        }
        return;
      case "barrier":
        if (s.scope === "cluster" && this.#kernel.grid.unit !== "clusters") {
          this.#add("PRG005", "barrier cluster in a grid without clusters", role);
        }
        return;
      default:
        return;
    }
  }

  #branches(s: Extract<Statement, { kind: "if" | "when" }>, scope: Scope, role: string): void {
    const exprs = s.kind === "if" ? s.conditions.map((c) => c.expr) : [];
    const diverges = scope.diverges || s.kind === "when" || varies(exprs, scope);
    this.#body(s.then, { ...scope, diverges }, role);
    this.#body(s.else, { ...scope, diverges }, role);
  }

  #loop(s: Extract<Statement, { kind: "for" }>, scope: Scope, role: string): void {
    const { mode } = s;
    const dealtTwice = mode.kind === "grid" && scope.dealt.has(mode.axis);
    const uneven = mode.kind === "grid" && (scope.diverges || varies([s.extent], scope));
    if (dealtTwice || uneven) {
      const why = dealtTwice ? "is dealt out already" : "is not reached alike by all instances";
      this.#add("PRG005", `loop ${s.variable} over an axis that ${why}`, role);
    }
    if (mode.kind === "unrolled" && constantValue(s.extent) === undefined) {
      this.#add("PRG005", `unrolled loop ${s.variable} of extent ${s.extent.key}`, role);
    }
    if (insideLoop(s, scope).copies > mostCopies) {
      this.#add("PRG060", `unrolled loop ${s.variable} gives more than ${mostCopies} copies`, role);
    }
    if (mode.kind === "grid" && !this.#kernel.grid.axes.some((a) => a.name === mode.axis)) {
      this.#add("PRG002", `grid axis ${mode.axis} is not declared`, role);
    }
  }

  #expr(expr: Expr, scope: Scope, role: string): void {
    visitExpr(expr, (e) => {
      const fault = typeFault(e);
      if (fault !== undefined) this.#add("PRG003", fault, role);
      this.#indices(exprIndices(e), scope, role);
      if (e.kind === "load") this.#place(e.buffer, e.index, e, role);
      if (e.kind !== "local") return;
      const bound = scope.values.get(e.name);
      if (!bound) this.#add("PRG002", `value ${e.name} is not bound`, role);
      else if (printType(bound) !== printType(e)) {
        this.#add("PRG003", `${printExpr(e)} is ${printType(bound)}, not ${printType(e)}`, role);
      }
    });
  }

  #place(name: string, index: readonly IndexExpr[], type: ValueType, role: string): void {
    const buffer = this.#buffers.get(name);
    if (!buffer) {
      this.#add("PRG002", `buffer ${name} is not declared`, role);
      return;
    }
    if (buffer.shape.length !== index.length) {
      this.#add(
        "PRG004",
        `${index.length} indices of ${name}, which has ${buffer.shape.length}`,
        role,
      );
    }
    const lanesFit =
      buffer.lanes === 1 ? index.length > 0 || type.lanes === 1 : type.lanes === buffer.lanes;
    if (type.dtype !== buffer.dtype || !lanesFit) {
      this.#add("PRG003", `${printType(type)} at ${name} of ${printType(buffer)}`, role);
    }
  }

  #sync(s: Extract<Statement, { kind: "wait" | "signal" | "expect" }>, role: string): void {
    const counter = this.#counters.get(s.counter);
    if (!counter) {
      this.#add("PRG002", `counter ${s.counter} is not declared`, role);
      return;
    }
    if (counter.shape.length !== s.index.length) {
      this.#add("PRG004", `${s.index.length} indices of counter ${s.counter}`, role);
    }
    if (s.kind === "expect" && counter.protocol !== "phase") {
      this.#add("PRG005", `expect on the monotone counter ${s.counter}`, role);
    }
  }

  #intrinsic(s: Extract<Statement, { kind: "intrinsic" }>, role: string): void {
    const row = findTileIntrinsic(s.intrinsic);
    if (!row) {
      this.#add("PRG002", `tile intrinsic ${s.intrinsic} is unknown`, role);
      return;
    }
    if (row.completion !== s.completion.kind) {
      this.#add(
        "PRG004",
        `${row.name} completes by ${row.completion}, not ${s.completion.kind}`,
        role,
      );
    }
    if (row.operands.length !== s.operands.length) {
      this.#add("PRG004", `${row.name} takes ${row.operands.length} operands`, role);
      return;
    }
    if (s.completion.kind === "signals") {
      const counter = this.#counters.get(s.completion.counter);
      const fits =
        counter?.protocol === "phase" && counter.shape.length === s.completion.index.length;
      if (!fits) this.#add("PRG004", `${row.name} signals ${s.completion.counter}`, role);
      const isToPeer = s.completion.peer !== undefined;
      if (isToPeer !== (row.toPeer === true))
        this.#add("PRG004", `${row.name} ${isToPeer ? "goes to a peer" : "names no peer"}`, role);
      if (isToPeer && this.#kernel.grid.unit !== "clusters")
        this.#add("PRG005", "a peer in a grid without clusters", role);
    }
    const found = row.operands.map((o, i) =>
      this.#operand(row.name, o, { given: s.operands[i]!, role }),
    );
    const free = found.filter((_, i) => row.operands[i]!.dtype === "any");
    if (free.some((b) => b?.dtype !== free[0]?.dtype)) {
      this.#add("PRG003", `operands of ${row.name} differ in type`, role);
    }
    const anyBox = row.operands.findIndex((o) => o.extents === "any");
    if (anyBox >= 0) this.#sameBoxes(s, row.name, role);
  }

  #sameBoxes(s: Extract<Statement, { kind: "intrinsic" }>, name: string, role: string): void {
    const boxes = s.operands.map((o) => (o.kind === "tile" ? o.extents.join() : ""));
    const rank = /\.(\d)d$/.exec(name);
    const [first] = s.operands;
    const ranked =
      rank === null || (first?.kind === "tile" && first.extents.length === Number(rank[1]));
    if (boxes.some((b) => b !== boxes[0]) || !ranked) {
      this.#add("PRG004", `boxes [${boxes.join("] and [")}] of ${name}`, role);
    }
  }

  #operand(
    row: string,
    wanted: TileOperand,
    { given, role }: { readonly given: IntrinsicOperand; readonly role: string },
  ): Buffer | undefined {
    const what = `operand ${wanted.name} of ${row}`;
    if (given.kind !== "tile") {
      this.#add("PRG004", `${what} is a tile`, role);
      return undefined;
    }
    const buffer = this.#buffers.get(given.buffer);
    if (!buffer) {
      this.#add("PRG002", `buffer ${given.buffer} is not declared`, role);
      return undefined;
    }
    const sized =
      wanted.extents === "any"
        ? given.extents.every((e) => Number.isInteger(e) && e >= 1)
        : given.extents.join() === wanted.extents.join();
    const rankFits =
      given.index.length === buffer.shape.length && given.extents.length <= given.index.length;
    if (!sized || !rankFits || buffer.lanes !== 1) {
      this.#add("PRG004", `${what}: box [${given.extents}] of ${given.buffer}`, role);
    }
    if (!wanted.scopes.includes(buffer.scope)) {
      this.#add("PRG003", `${what} stands in ${buffer.scope}, not ${wanted.scopes}`, role);
    }
    if (wanted.dtype !== "any" && wanted.dtype !== buffer.dtype) {
      this.#add("PRG003", `${what} is ${wanted.dtype}, not ${buffer.dtype}`, role);
    }
    const layouts = layoutsOf(buffer);
    if (!layouts.includes(wanted.layout))
      this.#add("PRG003", `${what} wants ${wanted.layout}, not ${layouts[0]}`, role);
    return buffer;
  }
}
