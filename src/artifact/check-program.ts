/**
 * Whether a program of an artifact belongs to its graph: target, inputs, outputs and weights with their
 * types, and a place in memory for every buffer that owns storage.
 */
import type { Graph, TensorType } from "../graph/graph.ts";
import { printType, sameType } from "../graph/tensor-type.ts";
import type { Buffer, Program } from "../program/program.ts";
import { isHalfDType } from "../semantics/dtype.ts";
import { constant, constantValue } from "../semantics/index-expr.ts";
import { elementCount } from "../semantics/shape.ts";
import { reject } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import type { ArtifactMeta } from "./artifact.ts";

const arenaOfKind = {
  input: "caller",
  output: "caller",
  weight: "weights",
  scratch: "scratch",
  state: "state",
} as const satisfies Record<Buffer["kind"], string>;

/** The named inputs and outputs are the graph's, in order. */
export function checkPorts(graph: Graph, meta: ArtifactMeta): void {
  for (const side of ["inputs", "outputs"] as const) {
    const values = graph[side].map((v) => graph.values[v]!.name);
    const named = meta[side].map((p) => p.value);
    if (values.join(" ") !== named.join(" ")) {
      wrong(`its ${side} are ${named.join(", ")}, the graph's are ${values.join(", ")}`);
    }
  }
}

export function checkProgram(
  target: string,
  program: Program,
  graph: Graph,
  meta: ArtifactMeta,
): void {
  if (program.target !== target) wrong(`it is for target ${program.target}, not ${target}`);
  if (!targets.has(target)) {
    reject("ART006", `target ${target} is unknown here`, {
      help: `known are ${[...targets.keys()].join(", ")}; a newer version may know it`,
    });
  }
  const values = new Map(graph.values.map((v) => [v.name, v.type]));
  const weights = weightTypes(graph, meta);
  const names = new Set<string>();
  for (const buffer of program.buffers) {
    if (names.has(buffer.name)) wrong(`it declares buffer ${buffer.name} twice`);
    names.add(buffer.name);
  }
  for (const buffer of program.buffers) {
    if (buffer.viewOf !== undefined) {
      if (!names.has(buffer.viewOf)) wrong(`buffer ${buffer.name} is a view of nothing`);
      continue;
    }
    checkPlace(buffer);
    if (buffer.kind === "scratch") continue;
    const known = buffer.kind === "weight" ? weights : values;
    const type = known.get(buffer.source ?? "");
    if (!type) wrong(`buffer ${buffer.name} holds ${buffer.source}, which the graph lacks`);
    checkType(buffer, type);
  }
}

function checkPlace(buffer: Buffer): void {
  const { placement, kind } = buffer;
  const at = placement && constantValue(placement.byteOffset);
  const valid = at !== undefined && Number.isSafeInteger(at) && at >= 0;
  if (!valid || placement?.arena !== arenaOfKind[kind]) {
    wrong(`${kind} buffer ${buffer.name} has no valid place in memory`);
  }
}

function checkType(buffer: Buffer, type: TensorType): void {
  // A packed buffer has the shape of its layout; only the element type can be compared.
  const same = buffer.layout ? buffer.dtype === type.dtype : sameType(buffer, type);
  if (same && buffer.lanes === 1) return;
  wrong(`buffer ${buffer.name} is ${printType(buffer)}, the graph has ${printType(type)}`);
}

/** Types by name of all weights, also of those that are seen in another shape. */
function weightTypes(graph: Graph, meta: ArtifactMeta): ReadonlyMap<string, TensorType> {
  const types = new Map(
    graph.weights.map((w) => {
      const { name, type } = graph.values[w.value]!;
      return [name, type] as const;
    }),
  );
  for (const { name, of, shape, dtype } of meta.views) {
    const type = types.get(of);
    const extents = type?.shape.map((e) => constantValue(e) ?? -1);
    if (!type || elementCount(extents!) !== elementCount(shape)) {
      wrong(`weight ${name} is no reshape of ${of}`);
    }
    if (dtype && !isHalfDType(type.dtype)) wrong(`weight ${name} is wider than ${of} can be`);
    types.set(name, { dtype: dtype ?? type.dtype, shape: shape.map((n) => constant(n)) });
  }
  return types;
}

function wrong(why: string): never {
  return reject("ART005", `the program does not belong to the graph: ${why}`, {
    help: "the artifact was put together from different models; optimize the model again",
  });
}
