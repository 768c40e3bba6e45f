/** Control flow. A branch that is decided at import is inlined, everything else becomes a subgraph. */

import type { TensorType } from "../../../../graph/graph.ts";
import { tensorType } from "../../../../graph/tensor-type.ts";
import { constant, constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { toRef } from "../../../../semantics/tensor.ts";
import { type Diagnostic, DiagnosticError, reject } from "../../../../support/diagnostic.ts";
import type { GraphProto } from "../../generated/onnx_pb.ts";
import type { NodeView } from "../node-view.ts";
import {
  type Bound,
  describeBound,
  isOperand,
  type Operand,
  symbolicElements,
} from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { closeSubgraphs, type OpenSubgraph } from "../subgraph.ts";
import { integerOf } from "../symbolic-number.ts";
import { largestUnroll, stack } from "./sequences.ts";
import { sliceAxis } from "./slicing.ts";

function branch(node: NodeView): readonly Bound[] {
  const thenBody = node.attributes.graph("then_branch");
  const elseBody = node.attributes.graph("else_branch");
  if (!thenBody || !elseBody) node.refuse("an If without both branches", "two branches");
  const condition = node.input(0);
  if (condition.kind === "constant") {
    const taken = node.numbers(0, "the condition")[0] !== 0;
    return node.subgraphs.inline(taken ? thenBody : elseBody);
  }
  const opened = node.subgraphs.attempt(() =>
    [thenBody, elseBody].map((body) => node.subgraphs.open(body, [])),
  );
  if (!opened.ok) return askFor(node, opened.diagnostics);
  const bodies = opened.value;
  checkRanks(node, bodies);
  const { graphs, captures } = closeSubgraphs(bodies, node.origin);
  const attrs = { then: graphs[0]!, else: graphs[1]! };
  return node.emitAll("if", [node.reshape(condition, []), ...captures], attrs);
}

/** What a body is refused without knowing can be asked for where it joins the graph: with operand 0 known. */
function askFor(node: NodeView, diagnostics: readonly Diagnostic[]): never {
  if (diagnostics.some((d) => d.code === "ONX013")) node.asks(0);
  throw new DiagnosticError(diagnostics);
}

/** Exporters squeeze an axis only if its extent is 1: such an If has to be decided at import. */
function checkRanks(node: NodeView, bodies: readonly OpenSubgraph[]): void {
  const ranks = bodies.map(({ emitter, outputs }) =>
    outputs.map((id) => emitter.assembly.typeOf(id).shape.length).join(", "),
  );
  if (ranks[0] === ranks[1]) return;
  node.asks(0);
  reject("ONX013", `the branches give tensors of rank ${ranks[0]} and ${ranks[1]}`, {
    at: node.origin.at,
    help: "fix what decides the condition: dimensions with --shape NAME=NUMBER (shapes of load), inputs with --value NAME=NUMBER or NAME=FILE.npy (values of load)",
  });
}

const waysToFix =
  "--value NAME=NUMBER or NAME=FILE.npy (values: { NAME } of load), of dimensions --shape NAME=NUMBER (shapes of load)";

/** What changes its shape from trip to trip has copies of the body, as many as there are trips. */
function askForTrips(node: NodeView, diagnostics: readonly Diagnostic[]): never {
  if (!diagnostics.some((d) => d.code === "SHP002")) return askFor(node, diagnostics);
  node.asks(0);
  return reject(
    "ONX013",
    "the number of trips of a loop that carries a growing tensor depends on data",
    {
      at: node.origin.at,
      help: `fix the inputs that decide it: ${waysToFix}`,
      notes: diagnostics.map((d) => d.message),
    },
  );
}

/** Without a trip count a loop runs until its condition is false. */
const endless = constant(2 ** 31 - 1);

function tripCount(node: NodeView): readonly [Operand, IndexExpr] {
  const given = node.optional(0);
  if (!given) return [node.splat("i64", endless.constant), endless];
  const [known] = symbolicElements(given) ?? [];
  const most = known && integerOf(known);
  return [node.reshape(given, []), most ?? endless];
}

/** As a body that repeats, or as its copies where no body can say it (sequences, growing tensors). */
function loop(node: NodeView): readonly Bound[] {
  const body = node.attributes.graph("body");
  if (!body) node.refuse("a Loop without a body", "one body");
  const plain = node.inputs.every((bound) => bound === undefined || isOperand(bound));
  const trips = knownTrips(node);
  if (!plain && trips === undefined) {
    node.asks(0);
    reject("ONX013", "the number of trips of a loop that carries a sequence depends on data", {
      at: node.origin.at,
      help: `fix the inputs that decide it: ${waysToFix}`,
    });
  }
  if (!plain) return unroll(node, body, trips!);
  const repeated = node.subgraphs.attempt(() => repeat(node, body));
  if (repeated.ok) return repeated.value;
  return trips === undefined
    ? askForTrips(node, repeated.diagnostics)
    : unroll(node, body, trips, repeated.diagnostics);
}

/** Trips at most, if that is known; the condition may end the loop before. */
function knownTrips(node: NodeView): number | undefined {
  const given = node.optional(0);
  if (!given) return Infinity;
  const [known] = symbolicElements(given) ?? [];
  return known && constantValue(integerOf(known) ?? known.numerator);
}

/** `problems`: why it cannot be a body that repeats, the answer where it has too many copies. */
function unroll(
  node: NodeView,
  body: GraphProto,
  trips: number,
  problems: readonly Diagnostic[] = [],
): readonly Bound[] {
  let condition: Bound = node.inputs[1] ?? node.splat("bool", 1);
  let carried: readonly Bound[] = node.inputs.slice(2).map((_, i) => node.bound(i + 2));
  const { length } = carried;
  const collected: Bound[][] = body.output.slice(1 + length).map(() => []);
  for (let i = 0; i < trips && isTrue(node, condition); i++) {
    if (i >= largestUnroll || (trips > largestUnroll && !endsItself(body))) {
      if (problems.length > 0) throw new DiagnosticError(problems);
      node.refuse(`more than ${largestUnroll} trips`, `at most ${largestUnroll}`);
    }
    const [next, ...results] = node.subgraphs.inline(body, [
      node.splat("i64", i),
      condition,
      ...carried,
    ]);
    condition = next!;
    carried = results.slice(0, length);
    for (const [o, list] of collected.entries()) list.push(results[length + o]!);
  }
  return [
    ...carried,
    ...collected.map((list, o) => stackResults(node, list, body, length + 1 + o)),
  ];
}

/** Whether a body computes a condition of its own, and does not pass on the one it got. */
function endsItself({ input, node, output }: GraphProto): boolean {
  let name = output[0]?.name;
  for (const { opType, input: from, output: to } of node.toReversed()) {
    if (opType === "Identity" && to[0] === name) name = from[0];
  }
  return name !== input[1]?.name;
}

function isTrue(node: NodeView, condition: Bound): boolean {
  if (condition.kind === "constant") return Number(toRef(condition.source.read()).data[0]) !== 0;
  node.onUnknown(condition);
  return reject("ONX013", "the condition of the loop depends on data", {
    at: node.origin.at,
    help: `fix the inputs that decide it: ${waysToFix}`,
  });
}

function stackResults(
  node: NodeView,
  list: readonly Bound[],
  body: GraphProto,
  output: number,
): Bound {
  const tensors = list.map((b) => (isOperand(b) ? b : node.refuse(describeBound(b), "a tensor")));
  if (tensors.length > 0) return stack(node, tensors, 0);
  const type = body.output[output]!.type?.value;
  const dims = type?.case === "tensorType" ? type.value.shape?.dim : undefined;
  const shape = dims?.map((d) => (d.value.case === "dimValue" ? Number(d.value.value) : undefined));
  if (type?.case !== "tensorType" || !shape || shape.includes(undefined)) {
    node.refuse("a loop without trips whose results have no known shape", "known shapes");
  }
  return node.splat(node.dtype(type.value.elemType), 0, [0, ...(shape as number[])]);
}

function repeat(node: NodeView, body: GraphProto): readonly Operand[] {
  const [trips, maxTrips] = tripCount(node);
  const given = node.optional(1);
  const condition = given ? node.reshape(given, []) : node.splat("bool", 1);
  const carried = node.inputs.slice(2).map((_, i) => node.input(i + 2));
  const types: TensorType[] = [tensorType("i64"), tensorType("bool")];
  const open = node.subgraphs.open(body, [...types, ...carried.map((o) => o.type)]);
  const { graphs, captures } = closeSubgraphs([withScalarCondition(open)], node.origin);
  const attrs = { body: graphs[0]!, carried: carried.length, maxTrips };
  return node.emitAll("loop", [trips, condition, ...carried, ...captures], attrs);

  /** The condition may be a tensor of one element; the core op wants a scalar. */
  function withScalarCondition(part: typeof open): typeof open {
    const [first, ...rest] = part.outputs;
    if (first === undefined) node.refuse("a body without outputs", "a condition");
    const { assembly } = part.emitter;
    const type = assembly.typeOf(first);
    const value: Operand = { kind: "value", type, home: assembly, id: first };
    if (type.shape.length === 0) return part;
    const scalar = part.emitter.emit("reshape", [value], { shape: [] }, node.origin);
    return { ...part, outputs: [part.emitter.valueOf(scalar, node.origin), ...rest] };
  }
}

/** Version 8 scans axis 1 of each entry of a batch by itself. */
function scanBatch(node: NodeView): readonly Operand[] {
  if (node.inputs[0]) node.refuse("sequence lengths", "whole sequences (no first operand)");
  const operands = node.inputs.slice(1).map((_, i) => node.input(i + 1));
  const count = node.fixedExtent(operands[0]?.type.shape[0] ?? constant(0), "the batch");
  if (count < 1 || count > largestUnroll)
    node.refuse(`a batch of ${count}`, `1 to ${largestUnroll}`);
  const sequences = node.attributes.int("num_scan_inputs") ?? 0;
  const directions = flags(node, "directions", sequences);
  const runs = Array.from({ length: count }, (_, b) => {
    const entries = operands.map((x) => {
      const part = sliceAxis(node, x, { axis: 0, start: constant(b), step: 1, size: constant(1) });
      return node.reshape(part, x.type.shape.slice(1));
    });
    return scanWith(node, entries, directions);
  });
  return runs[0]!.map((_, o) =>
    stack(
      node,
      runs.map((run) => run[o]!),
      0,
    ),
  );
}

function scan(node: NodeView): readonly Operand[] {
  if (node.version < 9) return scanBatch(node);
  const sequences = node.attributes.int("num_scan_inputs") ?? 0;
  const directions = flags(node, "scan_input_directions", sequences);
  return scanWith(node, node.allInputs(), directions);
}

interface ScanParts {
  readonly body: GraphProto;
  readonly operands: readonly Operand[];
  /** How many of the operands go from trip to trip; the others are taken apart. */
  readonly carried: number;
  readonly inputAxes: readonly number[];
  readonly inputReversed: readonly boolean[];
}

function scanWith(
  node: NodeView,
  operands: readonly Operand[],
  inputDirections: readonly number[],
): readonly Operand[] {
  const { attributes } = node;
  const body = attributes.graph("body");
  const sequences = attributes.int("num_scan_inputs") ?? 0;
  const carried = operands.length - sequences;
  if (!body || sequences < 1 || carried < 0) node.refuse("a Scan without a body or inputs", "both");
  const inputAxes = flags(node, "scan_input_axes", sequences).map((axis, i) =>
    node.axis(axis, operands[carried + i]!.type.shape.length),
  );
  const inputReversed = inputDirections.map((direction) => direction === 1);
  const parts = { body, operands, carried, inputAxes, inputReversed };
  const repeated = node.subgraphs.attempt(() => repeatScan(node, parts));
  if (repeated.ok) return repeated.value;
  const trips = constantValue(operands[carried]!.type.shape[inputAxes[0]!]!);
  if (trips === undefined || trips < 1 || trips > largestUnroll) {
    throw new DiagnosticError(repeated.diagnostics);
  }
  return unrollScan(node, parts, trips);
}

function repeatScan(
  node: NodeView,
  { body, operands, carried, inputAxes, inputReversed }: ScanParts,
): readonly Operand[] {
  const elements = operands.slice(carried).map(
    ({ type }, i): TensorType => ({
      dtype: type.dtype,
      shape: type.shape.filter((_, axis) => axis !== inputAxes[i]),
    }),
  );
  const states = operands.slice(0, carried).map((o) => o.type);
  const open = node.subgraphs.open(body, [...states, ...elements]);
  const { outputReversed, axisOf } = scanOutputs(node, body.output.length - carried);
  const outputAxes = outputReversed.map((_, i) =>
    axisOf(i, open.emitter.assembly.typeOf(open.outputs[carried + i]!).shape.length + 1),
  );
  const { graphs, captures } = closeSubgraphs([open], node.origin);
  return node.emitAll("scan", [...operands, ...captures], {
    body: graphs[0]!,
    carried,
    sequences: inputAxes.length,
    inputAxes,
    inputReversed,
    outputAxes,
    outputReversed,
  });
}

/** As copies of the body, where what it needs to know differs from trip to trip. */
function unrollScan(
  node: NodeView,
  { body, operands, carried, inputAxes, inputReversed }: ScanParts,
  trips: number,
): readonly Operand[] {
  let states: readonly Bound[] = operands.slice(0, carried);
  const collected: Operand[][] = body.output.slice(carried).map(() => []);
  const tensor = (b: Bound): Operand =>
    isOperand(b) ? b : node.refuse(describeBound(b), "a tensor");
  for (let trip = 0; trip < trips; trip++) {
    const elements = operands.slice(carried).map((x, i) => {
      const axis = inputAxes[i]!;
      const start = constant(inputReversed[i] ? trips - 1 - trip : trip);
      const part = sliceAxis(node, x, { axis, start, step: 1, size: constant(1) });
      return node.reshape(
        part,
        x.type.shape.filter((_, a) => a !== axis),
      );
    });
    const results = node.subgraphs.inline(body, [...states, ...elements]);
    states = results.slice(0, carried);
    for (const [o, list] of collected.entries()) list.push(tensor(results[carried + o]!));
  }
  const { outputReversed, axisOf } = scanOutputs(node, collected.length);
  const stacked = collected.map((list, o) => {
    const ordered = outputReversed[o] ? list.toReversed() : list;
    return stack(node, ordered, axisOf(o, list[0]!.type.shape.length + 1));
  });
  return [...states.map(tensor), ...stacked];
}

/** Where and which way round results of trips are joined; an axis may be counted from the end. */
function scanOutputs(node: NodeView, count: number) {
  const axes = flags(node, "scan_output_axes", count);
  const directions = flags(node, "scan_output_directions", count);
  return {
    outputReversed: directions.map((direction) => direction === 1),
    axisOf: (output: number, rank: number): number => node.axis(axes[output]!, rank),
  };
}

/** A list attribute with one entry a sequence; all 0 when absent. */
function flags(node: NodeView, name: string, count: number): readonly number[] {
  const most = Math.max(node.inputs.length, node.outputs.length);
  if (count > most) node.refuse(`${count} sequences of ${most} operands`, "as many as operands");
  const values = node.attributes.ints(name) ?? new Array<number>(Math.max(0, count)).fill(0);
  if (values.length !== count) node.attributes.refuse(name, `[${values}]`, `${count} numbers`);
  return values;
}

export const controlRows = {
  If: { since: [1, 11, 13, 16, 19, 21, 23, 24, 25], convert: branch },
  Loop: { since: [1, 11, 13, 16, 19, 21, 23, 24, 25], convert: loop },
  Scan: { since: [8, 9, 11, 16, 19, 21, 23, 24, 25], convert: scan },
} satisfies OperatorTable;
