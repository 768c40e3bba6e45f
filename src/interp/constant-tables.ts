/**
 * Tables that statements of a program make of nothing but their loops (positions and weights of a resize): the same
 * in every run, so a machine that launches a kernel for each is given them as weights. In: nests, and names of what
 * is made in memory and is constant. Out: the tables' elements, by running these statements once; the program with
 * them as weights; the model that has them.
 */
import type { Model, Value, Weight } from "../graph/graph.ts";
import type { NestItem, NestProgram, Statement } from "../region/nest.ts";
import { tensorsRead } from "../region/uses.ts";
import { constantValue, variablesOf } from "../semantics/index-expr.ts";
import { type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import { fromRef, type Tensor } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import { runNests } from "./nest.ts";

export type Tables = ReadonlyMap<string, Tensor>;

export const noTables: Tables = new Map();

/** Points of a statement up to which its results are stored. */
const mostPoints = 2 ** 20;

/** Tables among the wanted tensors: all statements that write one are small and read other tables at most. */
export function constantTables(nests: NestProgram, wanted: ReadonlySet<string>): Tables {
  const statements = nests.items.flatMap((i) => (i.kind === "statement" ? [i.statement] : []));
  let names = new Set(wanted);
  let made = statements;
  for (let before = -1; before !== names.size; ) {
    before = names.size;
    made = statements.filter((s) => isMadeOf(s, names));
    const others = statements.filter((s) => !made.includes(s));
    const lost = new Set(others.flatMap((s) => s.writes.map((w) => w.tensor)));
    const written = made.flatMap((s) => s.writes.map((w) => w.tensor));
    names = new Set(written.filter((name) => !lost.has(name)));
  }
  if (names.size === 0) return noTables;
  const items = made.map((statement): NestItem => ({ kind: "statement", statement }));
  const outputs = [...names];
  const none = { symbols: new Map<string, number>(), given: new Map() };
  const run = runNests({ ...nests, items, inputs: [], outputs }, none);
  invariant(run.ok, () => "tables of nothing but numbers were refused");
  return new Map(run.value.map((tensor, i) => [outputs[i]!, fromRef(tensor)]));
}

/** Whether a statement of few points writes nothing but such tensors, and reads nothing else. */
function isMadeOf(statement: Statement, names: ReadonlySet<string>): boolean {
  const points = statement.loops.reduce((n, l) => n * (constantValue(l.extent) ?? Infinity), 1);
  return (
    points <= mostPoints &&
    isOfLoops(statement) &&
    statement.writes.every((w) => names.has(w.tensor)) &&
    [...tensorsRead(statement)].every((name) => names.has(name))
  );
}

/** Whether the values are of nothing but the loops: symbols have none here. */
function isOfLoops({ loops, body, finish = [] }: Statement): boolean {
  const names = new Set(loops.map((l) => l.name));
  const isOf = (expr: ScalarExpr): boolean =>
    expr.kind === "index"
      ? [...variablesOf(expr.expr)].every((name) => names.has(name))
      : scalarOperands(expr).every(isOf);
  return [...body, ...finish].every(isOf);
}

/** The program with tables as weights, without the statements that made them. */
export function withTables(nests: NestProgram, tables: Tables): NestProgram {
  if (tables.size === 0) return nests;
  const tensors = new Map(nests.tensors);
  for (const name of tables.keys()) tensors.set(name, { ...tensors.get(name)!, role: "weight" });
  const items = nests.items.filter(
    (i) => i.kind !== "statement" || !i.statement.writes.every((w) => tables.has(w.tensor)),
  );
  return { ...nests, tensors, items };
}

/** The model with tables among its weights, which only nests read. */
export function withTableWeights(model: Model, nests: NestProgram, tables: Tables): Model {
  if (tables.size === 0) return model;
  const { graph } = model;
  const first = graph.values.length;
  const values = [...tables.keys()].map((name, i): Value => {
    const { dtype, shape } = nests.tensors.get(name)!;
    return { id: first + i, name, type: { dtype, shape } };
  });
  const weights = [...tables.values()].map((tensor, i): Weight => {
    return { value: first + i, source: { kind: "inline", tensor } };
  });
  return {
    ...model,
    graph: {
      ...graph,
      values: [...graph.values, ...values],
      weights: [...graph.weights, ...weights],
    },
  };
}
