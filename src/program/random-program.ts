/**
 * Random programs for tests of the text form and of rewrites: every kind of declaration, statement,
 * expression and task occurs; names are in scope and expressions well typed, but the program need not
 * be valid (bounds, order and coverage are arbitrary).
 */
import { type Condition, equal, less } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import * as ix from "../semantics/index-expr.ts";
import type { Rng } from "../support/rng.ts";
import * as make from "./expr.ts";
import type { Buffer, Counter, Kernel, Program, Role, Task, TaskCondition } from "./program.ts";
import type { Expr, Statement, ValueType } from "./statement.ts";

const dtypes: readonly DType[] = ["f32", "f64", "bf16", "i32", "u8", "i64", "bool"];
const lanes = [1, 1, 4, 16];

/** What is in scope while statements are drawn. */
interface Scope {
  readonly indices: readonly string[];
  readonly values: readonly (ValueType & { readonly name: string })[];
  readonly depth: number;
}

/** Draws a program; the same generator state gives the same program. */
export function randomProgram(rng: Rng): Program {
  return {
    name: "p",
    target: rng.pick(["x64.avx512", "sm_90a", 'a "quoted" one']),
    parameters: [
      { name: "M", min: 1, max: 4096 },
      { name: "N", min: 2, max: 7 },
    ],
    requires: some(rng, 2, () => randomCondition(rng, ["M", "N"])),
    buffers: ["x", "y", "w.packed"].map((name) => randomBuffer(rng, name)),
    counters: some(rng, 2, (i) => randomCounter(rng, `c${i}`)),
    kernels: [randomKernel(rng, "k0"), randomKernel(rng, "k1")],
    tasks: some(rng, 4, () => randomTask(rng, 2)),
    states: some(rng, 1, () => ({ input: "x", output: "y" })),
  };
}

function some<T>(rng: Rng, most: number, draw: (i: number) => T): T[] {
  return Array.from({ length: rng.integer(0, most) }, (_, i) => draw(i));
}

function randomIndex(rng: Rng, names: readonly string[], depth = 2): ix.IndexExpr {
  if (depth === 0 || names.length === 0) {
    const leaf = names.length > 0 && rng.uniform() < 0.7;
    return leaf ? ix.variable(rng.pick(names)) : ix.constant(rng.integer(-3, 70));
  }
  const a = randomIndex(rng, names, depth - 1);
  const b = randomIndex(rng, names, depth - 1);
  const divisor = rng.integer(1, 9);
  return rng.pick([
    () => ix.add(a, b),
    () => ix.sub(a, b),
    () => ix.mul(a, b),
    () => ix.mul(a, rng.integer(-4, 9)),
    () => ix.floorDiv(a, divisor),
    () => ix.mod(a, divisor),
    () => ix.min(a, b),
    () => ix.max(a, b, 3),
  ])();
}

function randomIndices(rng: Rng, names: readonly string[]): ix.IndexExpr[] {
  return some(rng, 3, () => randomIndex(rng, names));
}

function randomCondition(rng: Rng, names: readonly string[]): Condition {
  const [a, b] = [randomIndex(rng, names), randomIndex(rng, names)];
  return rng.uniform() < 0.5 ? less(a, b) : equal(a, b);
}

function randomBuffer(rng: Rng, name: string): Buffer {
  const names = ["M", "N"];
  const shape = randomIndices(rng, names);
  const p0 = ix.variable("p0");
  const layout = { shape, logical: [p0], stored: [ix.floorDiv(ix.variable("l0"), 4)] };
  return {
    name,
    kind: rng.pick(["input", "output", "weight", "scratch", "state"] as const),
    scope: rng.pick(["memory", "shared", "local", "register"] as const),
    dtype: rng.pick(dtypes),
    lanes: rng.pick(lanes),
    shape,
    ...(rng.uniform() < 0.3 ? { capacity: randomIndices(rng, names) } : {}),
    ...(rng.uniform() < 0.3 ? { layout } : {}),
    ...(rng.uniform() < 0.3 ? { viewOf: "x" } : {}),
    ...(rng.uniform() < 0.3 ? { swizzleBytes: rng.pick([32, 64, 128] as const) } : {}),
    ...(rng.uniform() < 0.5
      ? { placement: { arena: "scratch", byteOffset: randomIndex(rng, names) } as const }
      : {}),
    ...(rng.uniform() < 0.5 ? { source: 'node "a/b:0"\n' } : {}),
  };
}

function randomCounter(rng: Rng, name: string): Counter {
  return {
    name,
    scope: rng.pick(["memory", "shared"] as const),
    protocol: rng.pick(["monotone", "phase"] as const),
    shape: randomIndices(rng, ["M"]),
    ...(rng.uniform() < 0.5 ? { arrivals: rng.integer(1, 5) } : {}),
  };
}

function randomKernel(rng: Rng, name: string): Kernel {
  const grid = {
    unit: rng.pick(["threads", "blocks", "clusters"] as const),
    axes: [{ name: "t", extent: randomIndex(rng, ["M"]) }],
    clusterSize: rng.integer(1, 2),
    resident: rng.uniform() < 0.5,
  };
  return {
    name,
    region: "fc1 + relu",
    grid,
    buffers: some(rng, 2, (i) => randomBuffer(rng, `b${i}`)),
    counters: some(rng, 2, (i) => randomCounter(rng, `${name}.c${i}`)),
    roles: some(rng, 2, (i) => randomRole(rng, `r${i}`)),
  };
}

function randomRole(rng: Rng, name: string): Role {
  const scope: Scope = { indices: ["M", "N", "t", "tid"], values: [], depth: 3 };
  return {
    name,
    copies: rng.integer(1, 2),
    threads: rng.integer(1, 128),
    ...(rng.uniform() < 0.5 ? { copyVariable: "copy" } : {}),
    ...(rng.uniform() < 0.5 ? { threadVariable: "tid" } : {}),
    body: randomBody(rng, scope),
  };
}

/** A list of statements; lets extend the scope of what follows. */
export function randomBody(rng: Rng, outer: Scope): Statement[] {
  const body: Statement[] = [];
  let scope = outer;
  for (let i = rng.integer(0, 4); i > 0; i--) {
    const statement = randomStatement(rng, scope);
    body.push(statement);
    if (statement.kind === "let") {
      const { dtype, lanes: count } = statement.value;
      const bound = { name: statement.name, dtype, lanes: count };
      scope = { ...scope, values: [...scope.values, bound] };
    }
    if (statement.kind === "letIndex") {
      scope = { ...scope, indices: [...scope.indices, statement.name] };
    }
  }
  return body;
}

function randomStatement(rng: Rng, scope: Scope): Statement {
  const nested = scope.depth > 0 ? rng.integer(0, 15) : rng.integer(4, 15);
  const index = (): ix.IndexExpr => randomIndex(rng, scope.indices);
  const at = (): ix.IndexExpr[] => randomIndices(rng, scope.indices);
  const inner = { ...scope, depth: scope.depth - 1 };
  const body = (s: Scope = inner): Statement[] => randomBody(rng, s);
  const name = `n${rng.integer(0, 99999)}`;
  switch (nested) {
    case 0:
    case 1: {
      const mode = rng.pick([make.serial, make.serial, make.overGrid("t")]);
      const within = { ...inner, indices: [...scope.indices, name] };
      return make.forLoop(name, index(), body(within), mode);
    }
    case 2:
      return make.ifThen(
        some(rng, 2, () => randomCondition(rng, scope.indices)),
        body(),
        body(),
      );
    case 3: {
      const condition = randomExpr(rng, scope, { dtype: "bool", lanes: 1 }, 2);
      const then = body();
      return { kind: "when", condition, then, else: body() };
    }
    case 4:
    case 5:
      return make.letValue(name, randomValue(rng, scope));
    case 6: {
      const range = rng.pick(["proved", "checked"] as const);
      const value = randomExpr(rng, scope, { dtype: "i32", lanes: 1 }, 2);
      return { kind: "letIndex", name, value, extent: index(), wraps: rng.uniform() < 0.5, range };
    }
    default:
      return randomSimple(rng, scope, { index, at });
  }
}

interface Draws {
  readonly index: () => ix.IndexExpr;
  readonly at: () => ix.IndexExpr[];
}

function randomSimple(rng: Rng, scope: Scope, { index, at }: Draws): Statement {
  const counter = "c0";
  const reach = rng.pick(["instance", "cluster"] as const);
  return rng.pick<() => Statement>([
    () => make.storeTo("y", at(), randomValue(rng, scope)),
    () => make.storeTo("w.packed", at(), randomValue(rng, scope)),
    () =>
      make.issue(
        "bulk.load.2d",
        [
          make.tileAt("x", at(), [4, 8]),
          { kind: "value", value: randomValue(rng, scope) },
          make.tileAt("y", at(), []),
        ],
        rng.pick([
          make.syncCompletion,
          { kind: "group", group: "g" },
          { kind: "signals", counter, index: at(), scope: reach },
          { kind: "signals", counter, index: at(), scope: "instance", peer: index() },
        ] as const),
      ),
    () => ({ kind: "commitGroup", group: "g" }),
    () => ({ kind: "waitGroup", group: "g", pending: rng.integer(0, 3) }),
    () => ({ kind: "wait", counter, index: at(), value: index() }),
    () => ({ kind: "signal", counter, index: at(), amount: index(), scope: reach }),
    () => ({ kind: "expect", counter, index: at(), bytes: index() }),
    () => ({ kind: "barrier", scope: rng.pick(["copy", "instance", "grid"] as const) }),
    () => ({ kind: "fence", scope: rng.pick(["shared", "memory"] as const) }),
    () => ({ kind: rng.pick(["launchDependents", "awaitPrerequisites"] as const) }),
  ])();
}

function randomValue(rng: Rng, scope: Scope): Expr {
  return randomExpr(rng, scope, { dtype: rng.pick(dtypes), lanes: rng.pick(lanes) }, 3);
}

/** An expression of the wanted type. */
export function randomExpr(rng: Rng, scope: Scope, type: ValueType, depth: number): Expr {
  const leaf = (): Expr => randomLeaf(rng, scope, type);
  if (depth === 0) return leaf();
  const again = (t: ValueType): Expr => randomExpr(rng, scope, t, depth - 1);
  const scalar = { dtype: type.dtype, lanes: 1 };
  const choices: (() => Expr)[] = [
    leaf,
    () => make.applyExpr("add", again(type), again(type)),
    () => make.applyExpr("select", again({ ...type, dtype: "bool" }), again(type), again(type)),
    () => ({
      kind: "cast",
      ...type,
      saturate: rng.uniform() < 0.5,
      operand: again({ ...type, dtype: rng.pick(dtypes) }),
    }),
  ];
  if (type.lanes > 1) {
    choices.push(() => make.splatExpr(again(scalar), type.lanes));
    choices.push(() => make.packExpr(Array.from({ length: type.lanes }, () => leafOf(scalar))));
    const pair = (): Expr => make.packExpr([leafOf(scalar), again(scalar)]);
    choices.push(() => make.splatExpr(pair(), type.lanes));
  } else choices.push(() => make.extractExpr(again({ ...type, lanes: 4 }), rng.integer(0, 3)));
  if (type.dtype === "f32" && type.lanes !== 1) {
    const name = `fma.f32x${type.lanes}`;
    choices.push(() => make.callExpr(name, again(type), again(type), again(type)));
  }
  if (type.dtype === "bool") {
    choices.push(() => make.applyExpr("less", again({ ...type, dtype: "f32" }), leafOf32()));
  }
  const leafOf = (t: ValueType): Expr => randomLeaf(rng, scope, t);
  const leafOf32 = (): Expr => leafOf({ ...type, dtype: "f32" });
  return rng.pick(choices)();
}

function randomLeaf(rng: Rng, scope: Scope, type: ValueType): Expr {
  const big = type.dtype === "i64";
  const locals = scope.values.filter((v) => v.dtype === type.dtype && v.lanes === type.lanes);
  const number = rng.pick([0, -0, 1.5, -7, 1e-30, 3e38, Number.NaN, Infinity, -Infinity]);
  const value = big ? BigInt(rng.integer(-5, 5)) * 2n ** 60n : number;
  const at = (): ix.IndexExpr[] => randomIndices(rng, scope.indices);
  const guard = some(rng, 2, () => randomCondition(rng, scope.indices));
  const choices: (() => Expr)[] = [
    () => make.literalExpr(value, type.dtype, type.lanes),
    () => make.loadExpr(rng.pick(["x", "w.packed"]), at(), type),
    () => make.loadExpr("x", at(), type, { guard, fill: value }),
    () =>
      make.indexValue(
        randomIndex(rng, scope.indices),
        type.dtype,
        type.lanes,
        type.lanes === 1 ? 0 : rng.integer(-1, 2),
      ),
  ];
  const bound = locals.length > 0 ? rng.pick(locals) : undefined;
  if (bound) choices.push(() => make.localExpr(bound.name, type));
  return rng.pick(choices)();
}

function randomTask(rng: Rng, depth: number): Task {
  const index = (): ix.IndexExpr => randomIndex(rng, ["M", "N"]);
  const at = (): ix.IndexExpr[] => randomIndices(rng, ["M"]);
  const body = (): Task[] => some(rng, 3, () => randomTask(rng, depth - 1));
  const tables = some(rng, 2, (i) => ({ name: `w${i}`, rows: ["x", "y"] }));
  switch (depth > 0 ? rng.integer(0, 5) : 5) {
    case 0: {
      const then = body();
      return { kind: "if", condition: randomTaskCondition(rng), then, else: body() };
    }
    case 1: {
      const condition = randomTaskCondition(rng);
      return { kind: "while", condition, maxTrips: index(), body: body() };
    }
    case 2:
      return { kind: "repeat", variable: "layer", count: index(), tables, body: body() };
    case 3:
      return { kind: "stop" };
    default:
      return {
        kind: "launch",
        kernel: rng.pick(["k0", "k1"]),
        after: rng.pick(["previous", "started", "counters"] as const),
        bindings: some(rng, 2, (i) => [`l${i}`, index()] as const),
        waits: some(rng, 2, () => ({ counter: "c0", index: at(), threshold: index() })),
        signals: some(rng, 2, () => ({ counter: "c0", index: at(), amount: index() })),
      };
  }
}

function randomTaskCondition(rng: Rng): TaskCondition {
  if (rng.uniform() < 0.5) {
    return { kind: "index", conditions: some(rng, 2, () => randomCondition(rng, ["M", "N"])) };
  }
  const index = randomIndices(rng, ["M"]);
  return { kind: "element", buffer: "x", index, negated: rng.uniform() < 0.5 };
}
