/**
 * Reads the text form of programs (program-text.ts): declarations and tasks. Kernel bodies are read
 * by statement-parse.ts. Text that is none is a TXT001 diagnostic with its line; whether the program
 * makes sense is the validator's question.
 */
import type { Condition } from "../semantics/condition.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import { attempt, type Result } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";
import type {
  Buffer,
  BufferTable,
  Counter,
  Grid,
  GridAxis,
  Kernel,
  Parameter,
  Placement,
  Program,
  Role,
  Task,
  TaskCondition,
  TaskSignal,
  TaskWait,
} from "./program.ts";
import {
  readBlock,
  readBrackets,
  readCondition,
  readConditions,
  readInteger,
  readType,
  readWord,
} from "./statement-parse.ts";

const bufferKinds = ["input", "output", "weight", "scratch", "state"] as const;
const scopes = ["memory", "shared", "local", "register"] as const;
const counterScopes = ["memory", "shared"] as const;
const protocols = ["monotone", "phase"] as const;
const units = ["threads", "blocks", "clusters"] as const;
const arenas = ["weights", "scratch", "state", "caller"] as const;

/** The program that `text` spells, or why it spells none. */
export function parseProgram(text: string): Result<Program> {
  return attempt(() => {
    const reader = new TextReader(text);
    const program = readProgram(reader);
    if (reader.peek().kind !== "end") reader.fail("end of text");
    return program;
  });
}

/** The buffer that `text` declares by itself (printBuffer). */
export function parseBuffer(text: string): Result<Buffer> {
  return attempt(() => {
    const reader = new TextReader(text);
    reader.expect("buffer");
    const buffer = readBuffer(reader);
    if (reader.peek().kind !== "end") reader.fail("end of text");
    return buffer;
  });
}

type Lists = {
  -readonly [K in "parameters" | "requires" | "buffers" | "counters" | "states" | "kernels"]: [
    ...Program[K],
  ];
};

function readProgram(reader: TextReader): Program {
  reader.expect("program");
  const name = reader.name();
  reader.expect("for");
  const target = reader.string();
  reader.expect("{");
  const lists: Lists = {
    parameters: [],
    requires: [],
    buffers: [],
    counters: [],
    states: [],
    kernels: [],
  };
  while (!reader.accept("tasks")) readDeclaration(reader, lists);
  const tasks = readTasks(reader);
  reader.expect("}");
  return { name, target, ...lists, tasks };
}

function readDeclaration(reader: TextReader, lists: Lists): void {
  if (reader.accept("parameter")) lists.parameters.push(readParameter(reader));
  else if (reader.accept("require")) lists.requires.push(readCondition(reader));
  else if (reader.accept("buffer")) lists.buffers.push(readBuffer(reader));
  else if (reader.accept("counter")) lists.counters.push(readCounter(reader));
  else if (reader.accept("kernel")) lists.kernels.push(readKernel(reader));
  else if (reader.accept("keep")) {
    const input = reader.name();
    reader.expect("->");
    lists.states.push({ input, output: reader.name() });
  } else reader.fail("a declaration or tasks");
}

function readParameter(reader: TextReader): Parameter {
  const name = reader.name();
  reader.expect("in");
  const min = readInteger(reader);
  reader.expect("to");
  return { name, min, max: readInteger(reader) };
}

function readBuffer(reader: TextReader): Buffer {
  const name = reader.name();
  reader.expect(":");
  const kind = readWord(reader, bufferKinds);
  const scope = readWord(reader, scopes);
  const { dtype, lanes } = readType(reader, reader.name("an element type"));
  const shape = readBrackets(reader);
  return {
    name,
    kind,
    scope,
    dtype,
    lanes,
    shape,
    ...(reader.accept("capacity") ? { capacity: readBrackets(reader) } : {}),
    ...(reader.accept("layout") ? { layout: readLayout(reader) } : {}),
    ...(reader.accept("view") ? { viewOf: reader.name() } : {}),
    ...(reader.accept("swizzle") ? { swizzleBytes: readSwizzle(reader) } : {}),
    ...(reader.accept("at") ? { placement: readPlacement(reader) } : {}),
    ...(reader.accept("source") ? { source: reader.string() } : {}),
  };
}

function readLayout(reader: TextReader): LayoutMap {
  const shape = readBrackets(reader);
  reader.expect("to");
  const logical = readBrackets(reader);
  reader.expect("from");
  return { shape, logical, stored: readBrackets(reader) };
}

function readSwizzle(reader: TextReader): 32 | 64 | 128 {
  const bytes = readInteger(reader);
  if (bytes === 32 || bytes === 64 || bytes === 128) return bytes;
  return reader.fail("32, 64 or 128 before this");
}

function readPlacement(reader: TextReader): Placement {
  const arena = readWord(reader, arenas);
  reader.expect("+");
  reader.expect("(");
  const byteOffset = readIndexExpr(reader);
  reader.expect(")");
  return { arena, byteOffset };
}

function readCounter(reader: TextReader): Counter {
  const name = reader.name();
  reader.expect(":");
  const scope = readWord(reader, counterScopes);
  const protocol = readWord(reader, protocols);
  const shape = readBrackets(reader);
  const arrivals = reader.accept("arrivals") ? { arrivals: readInteger(reader) } : {};
  return { name, scope, protocol, shape, ...arrivals };
}

function readKernel(reader: TextReader): Kernel {
  const name = reader.name();
  reader.expect("region");
  const region = reader.string();
  reader.expect("{");
  const grid = readGrid(reader);
  const buffers: Buffer[] = [];
  const counters: Counter[] = [];
  const roles: Role[] = [];
  while (!reader.accept("}")) {
    if (reader.accept("buffer")) buffers.push(readBuffer(reader));
    else if (reader.accept("counter")) counters.push(readCounter(reader));
    else if (reader.accept("role")) roles.push(readRole(reader));
    else reader.fail("buffer, counter or role");
  }
  return { name, grid, buffers, counters, roles, region };
}

function readGrid(reader: TextReader): Grid {
  reader.expect("grid");
  const unit = readWord(reader, units);
  reader.expect("(");
  const axes = reader.list(")", (): GridAxis => {
    const name = reader.name();
    reader.expect("<");
    return { name, extent: readIndexExpr(reader) };
  });
  const clusterSize = reader.accept("cluster") ? readInteger(reader) : 1;
  return { unit, axes, clusterSize, resident: reader.accept("resident") };
}

function readRole(reader: TextReader): Role {
  const name = reader.name();
  reader.expect("copies");
  const copies = readInteger(reader);
  const copyVariable = reader.accept("as") ? { copyVariable: reader.name() } : {};
  reader.expect("threads");
  const threads = readInteger(reader);
  const threadVariable = reader.accept("as") ? { threadVariable: reader.name() } : {};
  return { name, copies, threads, ...copyVariable, ...threadVariable, body: readBlock(reader) };
}

function readTasks(reader: TextReader): Task[] {
  reader.expect("{");
  const tasks: Task[] = [];
  while (!reader.accept("}")) tasks.push(readTask(reader));
  return tasks;
}

function readTask(reader: TextReader): Task {
  if (reader.accept("stop")) return { kind: "stop" };
  if (reader.accept("launch")) return readLaunch(reader);
  if (reader.accept("if")) {
    const condition = readTaskCondition(reader);
    const then = readTasks(reader);
    return { kind: "if", condition, then, else: reader.accept("else") ? readTasks(reader) : [] };
  }
  if (reader.accept("while")) {
    const condition = readTaskCondition(reader);
    reader.expect("at");
    reader.expect("most");
    const maxTrips = readIndexExpr(reader);
    return { kind: "while", condition, maxTrips, body: readTasks(reader) };
  }
  reader.expect("repeat");
  const variable = reader.name();
  reader.expect("<");
  const count = readIndexExpr(reader);
  const tables: BufferTable[] = [];
  while (reader.accept("table")) tables.push(readTable(reader));
  return { kind: "repeat", variable, count, tables, body: readTasks(reader) };
}

function readTable(reader: TextReader): BufferTable {
  const name = reader.name();
  reader.expect("=");
  reader.expect("[");
  return { name, rows: reader.list("]", () => reader.name()) };
}

function readLaunch(reader: TextReader): Task {
  const kernel = reader.name();
  reader.expect("after");
  const after = readWord(reader, ["previous", "started", "counters"] as const);
  const bindings: (readonly [string, ReturnType<typeof readIndexExpr>])[] = [];
  const waits: TaskWait[] = [];
  const signals: TaskSignal[] = [];
  for (;;) {
    if (reader.accept("bind")) {
      const name = reader.name();
      reader.expect("=");
      bindings.push([name, readIndexExpr(reader)]);
    } else if (reader.accept("wait")) {
      const counter = reader.name();
      const index = readBrackets(reader);
      reader.expect("for");
      waits.push({ counter, index, threshold: readIndexExpr(reader) });
    } else if (reader.accept("signal")) {
      const counter = reader.name();
      const index = readBrackets(reader);
      reader.expect("by");
      signals.push({ counter, index, amount: readIndexExpr(reader) });
    } else return { kind: "launch", kernel, after, bindings, waits, signals };
  }
}

function readTaskCondition(reader: TextReader): TaskCondition {
  if (reader.accept("(")) {
    const conditions: readonly Condition[] = readConditions(reader, ")");
    return { kind: "index", conditions };
  }
  const negated = reader.accept("not");
  reader.expect("element");
  const buffer = reader.name();
  return { kind: "element", buffer, index: readBrackets(reader), negated };
}
