/**
 * Text form of programs. Printing is stable: equal programs print the same bytes, so that a hash of
 * the text is a program's identity. program-parse.ts reads it back to an equal value.
 *
 *   for i0 < 16 over t {
 *     let v = load.f32x16 w[j0, k, 0]
 *     store acc[0, 0] = fma.f32x16(splat.16(load.f32 x[i0, k]), v, load.f32x16 acc[0, 0])
 *   }
 *
 * Names of the graph are quoted (`source`); index expressions and conditions are spelled as in
 * semantics/index-expr.ts.
 */
import { type Condition, printCondition } from "../semantics/condition.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { printNumber } from "../semantics/scalar-text.ts";
import { TextWriter } from "../support/text-writer.ts";
import { printType } from "./expr.ts";
import type {
  Buffer,
  Counter,
  Grid,
  Kernel,
  Program,
  Role,
  Task,
  TaskCondition,
} from "./program.ts";
import type { Completion, Expr, IntrinsicOperand, LoopMode, Statement } from "./statement.ts";

type Launch = Extract<Task, { kind: "launch" }>;
type Load = Extract<Expr, { kind: "load" }>;

/** The whole program. */
export function printProgram(program: Program): string {
  const out = new TextWriter();
  out.line(`program ${program.name} for ${JSON.stringify(program.target)} {`);
  out.indented(() => {
    for (const p of program.parameters) out.line(`parameter ${p.name} in ${p.min} to ${p.max}`);
    for (const c of program.requires) out.line(`require ${printCondition(c)}`);
    for (const buffer of program.buffers) out.line(printBuffer(buffer));
    for (const counter of program.counters) out.line(printCounter(counter));
    for (const s of program.states) out.line(`keep ${s.input} -> ${s.output}`);
    for (const kernel of program.kernels) writeKernel(out, kernel);
    out.line("tasks {");
    out.indented(() => writeTasks(out, program.tasks));
    out.line("}");
  });
  out.line("}");
  return out.toString();
}

/** One kernel by itself, for goldens and inspection. */
export function printKernel(kernel: Kernel): string {
  const out = new TextWriter();
  writeKernel(out, kernel);
  return out.toString();
}

/** Statements by themselves, for messages and tests. */
export function printStatements(body: readonly Statement[]): string {
  const out = new TextWriter();
  writeStatements(out, body);
  return out.toString();
}

function brackets(parts: readonly IndexExpr[]): string {
  return `[${parts.map((p) => p.key).join(", ")}]`;
}

function printConditions(conditions: readonly Condition[]): string {
  return conditions.map(printCondition).join(", ");
}

/** `buffer x : input memory f32 [M, 768] source "x"` */
export function printBuffer(b: Buffer): string {
  const parts = [`buffer ${b.name} : ${b.kind} ${b.scope} ${printType(b)} ${brackets(b.shape)}`];
  if (b.capacity) parts.push(`capacity ${brackets(b.capacity)}`);
  if (b.layout) {
    const { shape, logical, stored } = b.layout;
    parts.push(`layout ${brackets(shape)} to ${brackets(logical)} from ${brackets(stored)}`);
  }
  if (b.viewOf !== undefined) parts.push(`view ${b.viewOf}`);
  if (b.swizzleBytes !== undefined) parts.push(`swizzle ${b.swizzleBytes}`);
  if (b.placement) parts.push(`at ${b.placement.arena} + (${b.placement.byteOffset.key})`);
  if (b.source !== undefined) parts.push(`source ${JSON.stringify(b.source)}`);
  return parts.join(" ");
}

function printCounter(c: Counter): string {
  const arrivals = c.arrivals === undefined ? "" : ` arrivals ${c.arrivals}`;
  return `counter ${c.name} : ${c.scope} ${c.protocol} ${brackets(c.shape)}${arrivals}`;
}

function printGrid(grid: Grid): string {
  const axes = grid.axes.map((a) => `${a.name} < ${a.extent.key}`).join(", ");
  const cluster = grid.clusterSize === 1 ? "" : ` cluster ${grid.clusterSize}`;
  return `grid ${grid.unit} (${axes})${cluster}${grid.resident ? " resident" : ""}`;
}

function writeKernel(out: TextWriter, kernel: Kernel): void {
  out.line(`kernel ${kernel.name} region ${JSON.stringify(kernel.region)} {`);
  out.indented(() => {
    out.line(printGrid(kernel.grid));
    for (const buffer of kernel.buffers) out.line(printBuffer(buffer));
    for (const counter of kernel.counters) out.line(printCounter(counter));
    for (const role of kernel.roles) writeRole(out, role);
  });
  out.line("}");
}

function writeRole(out: TextWriter, role: Role): void {
  const copy = role.copyVariable === undefined ? "" : ` as ${role.copyVariable}`;
  const thread = role.threadVariable === undefined ? "" : ` as ${role.threadVariable}`;
  out.line(`role ${role.name} copies ${role.copies}${copy} threads ${role.threads}${thread} {`);
  out.indented(() => writeStatements(out, role.body));
  out.line("}");
}

function writeStatements(out: TextWriter, body: readonly Statement[]): void {
  for (const statement of body) writeStatement(out, statement);
}

function writeBlock(out: TextWriter, head: string, body: readonly Statement[]): void {
  out.line(`${head} {`);
  out.indented(() => writeStatements(out, body));
}

function writeBranches(
  out: TextWriter,
  head: string,
  s: Extract<Statement, { kind: "if" | "when" }>,
): void {
  writeBlock(out, head, s.then);
  if (s.else.length > 0) writeBlock(out, "} else", s.else);
  out.line("}");
}

function writeStatement(out: TextWriter, s: Statement): void {
  switch (s.kind) {
    case "for":
      writeBlock(out, `for ${s.variable} < ${s.extent.key}${printMode(s.mode)}`, s.body);
      out.line("}");
      return;
    case "if":
      writeBranches(out, `if ${printConditions(s.conditions)}`.trimEnd(), s);
      return;
    case "when":
      writeBranches(out, `when ${printExpr(s.condition)}`, s);
      return;
    default:
      out.line(printSimple(s));
  }
}

function printMode(mode: LoopMode): string {
  if (mode.kind === "serial") return "";
  return mode.kind === "unrolled" ? " unrolled" : ` over ${mode.axis}`;
}

function printSimple(s: Exclude<Statement, { kind: "for" | "if" | "when" }>): string {
  switch (s.kind) {
    case "let":
      return `let ${s.name} = ${printExpr(s.value)}`;
    case "letIndex": {
      const wraps = s.wraps ? " wraps" : "";
      return `index ${s.name} < ${s.extent.key} ${s.range}${wraps} = ${printExpr(s.value)}`;
    }
    case "store":
      return `store ${s.buffer}${brackets(s.index)} = ${printExpr(s.value)}`;
    case "intrinsic": {
      const operands = s.operands.map(printOperand).join(", ");
      return `issue ${s.intrinsic}(${operands}) ${printCompletion(s.completion)}`;
    }
    case "commitGroup":
      return `commit ${s.group}`;
    case "waitGroup":
      return `await ${s.group} pending ${s.pending}`;
    case "wait":
      return `wait ${s.counter}${brackets(s.index)} for ${s.value.key}`;
    case "signal":
      return `signal ${s.counter}${brackets(s.index)} by ${s.amount.key} in ${s.scope}`;
    case "expect":
      return `expect ${s.counter}${brackets(s.index)} bytes ${s.bytes.key}`;
    case "barrier":
      return `barrier ${s.scope}`;
    case "fence":
      return `fence ${s.scope}`;
    case "launchDependents":
      return "dependents begin";
    case "awaitPrerequisites":
      return "prerequisites end";
  }
}

function printOperand(operand: IntrinsicOperand): string {
  if (operand.kind === "value") return `value ${printExpr(operand.value)}`;
  const box = operand.extents.join(", ");
  return `${operand.buffer}${brackets(operand.index)} box [${box}]`;
}

function printCompletion(completion: Completion): string {
  if (completion.kind === "sync") return "sync";
  if (completion.kind === "group") return `group ${completion.group}`;
  const { counter, index, scope, peer } = completion;
  const where = peer === undefined ? scope : `peer ${peer.key}`;
  return `signals ${counter}${brackets(index)} in ${where}`;
}

/** `load.f32x16 w[j, 0]`, `f32(0)`, `add(a, b)`, `cast.f16.saturate(x)`, `fma.f32(a, b, c)`. */
export function printExpr(e: Expr): string {
  switch (e.kind) {
    case "literal":
      return `${printType(e)}(${printNumber(e.value)})`;
    case "index": {
      const step = e.laneStep === 0 ? "" : ` step ${e.laneStep}`;
      return `index.${printType(e)}(${e.expr.key}${step})`;
    }
    case "load":
      return printLoad(e);
    case "local":
      return e.name;
    case "apply":
      return `${e.op}(${e.operands.map(printExpr).join(", ")})`;
    case "cast":
      return `cast.${e.dtype}${e.saturate ? ".saturate" : ""}(${printExpr(e.operand)})`;
    case "splat":
      return `splat.${e.lanes}(${printExpr(e.operand)})`;
    case "pack":
      return `pack(${e.operands.map(printExpr).join(", ")})`;
    case "extract":
      return `extract.${e.lane}(${printExpr(e.operand)})`;
    case "call":
      return `${e.intrinsic}(${e.operands.map(printExpr).join(", ")})`;
  }
}

/** The guard stands in braces after the place, with the fill value where it is not zero. */
function printLoad(e: Load): string {
  const place = `load.${printType(e)} ${e.buffer}${brackets(e.index)}`;
  const zero = typeof e.fill === "bigint" ? e.fill === 0n : Object.is(e.fill, 0);
  if (e.guard.length === 0 && zero) return place;
  return `${place} where {${printConditions(e.guard)}} else ${printNumber(e.fill)}`;
}

function writeTasks(out: TextWriter, tasks: readonly Task[]): void {
  for (const task of tasks) writeTask(out, task);
}

function writeTaskBlock(out: TextWriter, head: string, tasks: readonly Task[]): void {
  out.line(`${head} {`);
  out.indented(() => writeTasks(out, tasks));
}

function writeTask(out: TextWriter, task: Task): void {
  switch (task.kind) {
    case "launch":
      out.line(printLaunch(task));
      return;
    case "if":
      writeTaskBlock(out, `if ${printTaskCondition(task.condition)}`, task.then);
      if (task.else.length > 0) writeTaskBlock(out, "} else", task.else);
      break;
    case "while": {
      const head = `while ${printTaskCondition(task.condition)} at most ${task.maxTrips.key}`;
      writeTaskBlock(out, head, task.body);
      break;
    }
    case "repeat": {
      const tables = task.tables.map((t) => ` table ${t.name} = [${t.rows.join(", ")}]`).join("");
      writeTaskBlock(out, `repeat ${task.variable} < ${task.count.key}${tables}`, task.body);
      break;
    }
    case "stop":
      out.line("stop");
      return;
  }
  out.line("}");
}

function printLaunch(task: Launch): string {
  const parts = [`launch ${task.kernel} after ${task.after}`];
  for (const [name, value] of task.bindings) parts.push(`bind ${name} = ${value.key}`);
  for (const w of task.waits) {
    parts.push(`wait ${w.counter}${brackets(w.index)} for ${w.threshold.key}`);
  }
  for (const s of task.signals) {
    parts.push(`signal ${s.counter}${brackets(s.index)} by ${s.amount.key}`);
  }
  return parts.join(" ");
}

function printTaskCondition(condition: TaskCondition): string {
  if (condition.kind === "index") return `(${printConditions(condition.conditions)})`;
  const negated = condition.negated ? "not " : "";
  return `${negated}element ${condition.buffer}${brackets(condition.index)}`;
}
