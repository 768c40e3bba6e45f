/**
 * References of if, loop and scan. Bodies are run by the interpreter of graphs through the context;
 * the order of their inputs and outputs stands in core-ops.ts.
 */
import { DiagnosticError, reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { splitAtAxis } from "../shape.ts";
import { type RefTensor, refTensor, zeroRef } from "../tensor.ts";
import { copyRange, type Reference, type ReferenceContext } from "./reference.ts";

/** The outputs of a body; its diagnostics go on to runReference. */
function run<Subgraph>(
  context: ReferenceContext<Subgraph>,
  body: Subgraph,
  inputs: readonly RefTensor[],
): readonly RefTensor[] {
  const result = context.runSubgraph(body, inputs);
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

/** `if` is a reserved word. */
export const branch: Reference<"if"> = (attrs, inputs, context) => {
  const [condition, ...captures] = inputs;
  return run(context, condition!.data[0] ? attrs.then : attrs.else, captures);
};

/** Stacks slices of equal shape along a new axis. */
function stack(slices: readonly RefTensor[], axis: number): RefTensor {
  const first = slices[0]!;
  const shape = [...first.shape.slice(0, axis), slices.length, ...first.shape.slice(axis)];
  const { outer, inner } = splitAtAxis(shape, axis);
  const result = zeroRef(first.dtype, shape);
  for (const [s, slice] of slices.entries()) {
    invariant(slice.data.length === outer * inner, () => `slices of [${shape}] differ in shape`);
    for (let o = 0; o < outer; o++) {
      copyRange(slice.data, o * inner, inner, result.data, (o * slices.length + s) * inner);
    }
  }
  return result;
}

/** The slice at one position of an axis, which it loses. */
function sliceAt(tensor: RefTensor, axis: number, position: number): RefTensor {
  const { outer, extent, inner } = splitAtAxis(tensor.shape, axis);
  const result = zeroRef(
    tensor.dtype,
    tensor.shape.filter((_, i) => i !== axis),
  );
  for (let o = 0; o < outer; o++) {
    copyRange(tensor.data, (o * extent + position) * inner, inner, result.data, o * inner);
  }
  return result;
}

/** Each list stacked along its axis; empty tensors of the body's output types when nothing ran. */
function collect(
  lists: readonly (readonly RefTensor[])[],
  axes: readonly number[],
  emptyTypes: () => readonly Pick<RefTensor, "dtype" | "shape">[],
): RefTensor[] {
  if (lists.every((list) => list.length > 0)) {
    return lists.map((list, c) => stack(list, axes[c]!));
  }
  return emptyTypes().map(({ dtype, shape }, c) =>
    zeroRef(dtype, [...shape.slice(0, axes[c]), 0, ...shape.slice(axes[c])]),
  );
}

/** The count of a loop that none was given to, and all above: its condition alone ends it. */
const noCount = 2 ** 31 - 1;

/** Trips where nothing but data may end a loop, and where its count is known to, which it may well reach. */
const mostUncounted = 2 ** 14;
const mostCounted = 2 ** 18;

/** Elements that are kept of its trips. */
const mostKept = 2 ** 24;

/** Counts what a loop of so many trips takes; gives it up where that is more than it may. */
function tripCounter(trips: number): (trip: number, kept: readonly RefTensor[]) => void {
  const mostTrips = trips < noCount ? mostCounted : mostUncounted;
  let elements = 0;
  return (trip, kept) => {
    for (const { data } of kept) elements += data.length;
    const what = elements > mostKept ? "kept more elements" : "made more trips";
    if (trip < mostTrips && elements <= mostKept) return;
    const most = elements > mostKept ? mostKept : mostTrips;
    reject("RUN007", `a loop ${what} than it may, ${most}`, {
      help: "give it a trip count, let its condition end it sooner, or split the model before it",
    });
  };
}

export const loop: Reference<"loop"> = ({ body, carried }, inputs, context) => {
  const trips = Number(inputs[0]!.data[0]);
  const captures = inputs.slice(2 + carried);
  let condition = inputs[1]!;
  let state = inputs.slice(2, 2 + carried);
  const collected: RefTensor[][] = [];
  const count = tripCounter(trips);
  const bodyInputs = (iteration: number) => [
    refTensor("i64", [], [iteration]),
    condition,
    ...state,
    ...captures,
  ];
  for (let i = 0; i < trips && condition.data[0]; i++) {
    const outputs = run(context, body, bodyInputs(i));
    condition = outputs[0]!;
    state = outputs.slice(1, 1 + carried);
    const kept = outputs.slice(1 + carried);
    collected.push(kept);
    count(i, kept);
  }
  const types = () => context.subgraphOutputTypes(body, bodyInputs(0)).slice(1 + carried);
  const results = collected[0]?.length ?? types().length;
  const lists = Array.from({ length: results }, (_, c) => collected.map((outputs) => outputs[c]!));
  return [...state, ...collect(lists, new Array<number>(results).fill(0), types)];
};

export const scan: Reference<"scan"> = (attrs, inputs, context) => {
  const { body, carried, sequences } = attrs;
  const rows = inputs.slice(carried, carried + sequences);
  const captures = inputs.slice(carried + sequences);
  const steps = rows[0]!.shape[attrs.inputAxes[0]!]!;
  let state = inputs.slice(0, carried);
  const collected: RefTensor[][] = [];
  const bodyInputs = (step: number) => {
    const elements = rows.map((row, s) =>
      sliceAt(row, attrs.inputAxes[s]!, attrs.inputReversed[s] ? steps - 1 - step : step),
    );
    return [...state, ...elements, ...captures];
  };
  for (let step = 0; step < steps; step++) {
    const outputs = run(context, body, bodyInputs(step));
    state = outputs.slice(0, carried);
    collected.push(outputs.slice(carried));
  }
  const types = () => {
    const elements = rows.map((row, s) =>
      zeroRef(
        row.dtype,
        row.shape.filter((_, axis) => axis !== attrs.inputAxes[s]),
      ),
    );
    return context.subgraphOutputTypes(body, [...state, ...elements, ...captures]).slice(carried);
  };
  const ordered = attrs.outputAxes.map((_, c) => {
    const slices = collected.map((outputs) => outputs[c]!);
    return attrs.outputReversed[c] ? slices.reverse() : slices;
  });
  return [...state, ...collect(ordered, attrs.outputAxes, types)];
};
