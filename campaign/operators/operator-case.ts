/**
 * One operator with random operands, as onnxruntime-node, the oracle and WebAssembly compute it. A case is
 * plain data: attributes, operands and results of one node. An operand is a shape (random float32), or
 * says its type and values; a weight is constant in the model.
 */
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { fromOrtTensors } from "../../bench/sessions/ort-tensors.ts";
import type { Runtime, Tensor, Tensors } from "../../bench/sessions/session.ts";
import { fromStored } from "../../bench/sessions/stored-tensors.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import {
  type ModelSpec,
  type NodeSpec,
  type ValueSpec,
  writeModel,
} from "../../src/frontend/onnx/model-writer.ts";
import { fromRef, refTensor, type Tensor as Stored } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

export interface OperandSpec {
  readonly shape: readonly number[];
  readonly dtype?: "f32" | "f64" | "i32" | "i64" | "u8" | "i8" | "bool";
  /** Element values; random ones between the ends of `range` otherwise. */
  readonly values?: readonly number[];
  readonly range?: readonly [number, number];
  readonly weight?: boolean;
  /** Axes whose extents the model leaves open, up to twice what they are in this case. */
  readonly open?: readonly number[];
  /** The result that the peer writes over this operand. */
  readonly becomes?: string;
}

/** Name, element type, and the rank where it is not that of the first operand. */
export type OutputSpec = readonly [
  name: string,
  dtype: "f32" | "f64" | "u8" | "i8" | "i32" | "i64",
  rank?: number,
];

export interface OperatorCase {
  readonly node: Omit<NodeSpec, "inputs" | "outputs" | "domain"> & { readonly domain?: string };
  readonly operands: readonly (readonly number[] | OperandSpec | undefined)[];
  /** An undefined result is not asked for. */
  readonly outputs?: readonly (OutputSpec | undefined)[];
  /** Results that are defined in every place; all of them otherwise. */
  readonly compared?: readonly string[];
  /** Largest difference allowed of real results; quantised ones may differ by one step of rounding. */
  readonly tolerance?: number;
  /** Of the default domain; 17 where nothing is said. */
  readonly opset?: number;
}

/** Of the domains that are not the default one. */
const domainVersions = { "com.microsoft": 1, "ai.onnx.ml": 3 };

export interface DrawnCase {
  readonly bytes: Uint8Array;
  readonly feeds: Tensors;
  /** Bounds of the extents that are open. */
  readonly shapes: Readonly<Record<string, string>>;
  /** Results that the peer writes over inputs. */
  readonly becomes: readonly (readonly [result: string, input: string])[];
}

export function draw(c: OperatorCase, seed: number): DrawnCase {
  const { node, operands, outputs } = c;
  const rng = new Rng(seed);
  const specs = operands.map((o): OperandSpec | undefined => (isShape(o) ? { shape: o } : o));
  const tensors = specs.map((spec) => spec && filled(spec, rng));
  const fed = specs.map((spec, i) => spec && !spec.weight && `x${i}`);
  const inputs = specs.flatMap((spec, i): ValueSpec[] =>
    fed[i] && spec
      ? [{ name: fed[i], dtype: spec.dtype ?? "f32", shape: declaredShape(spec, fed[i]) }]
      : [],
  );
  const weights: Record<string, Stored> = {};
  for (const [i, spec] of specs.entries()) if (spec?.weight) weights[`x${i}`] = tensors[i]!;
  const names = specs.map((spec, i) => (spec ? `x${i}` : ""));
  const becomes = specs.flatMap((spec, i): [string, string][] =>
    spec?.becomes ? [[spec.becomes, `x${i}`]] : [],
  );
  const results = outputs ?? [["y", "f32"] as const];
  const rank = specs[0]!.shape.length;
  const spec: ModelSpec = {
    opset: c.opset ?? 17,
    domains: domainVersions,
    inputs,
    weights,
    outputs: results.flatMap((o) => (o ? [unknownExtents(o, rank)] : [])),
    nodes: [{ ...node, inputs: names, outputs: results.map((o) => o?.[0] ?? "") }],
  };
  const feeds = fed.flatMap((name, i): [string, Tensor][] =>
    name ? [[name, fromStored(tensors[i]!)]] : [],
  );
  const bounds = specs.flatMap((spec, i): [string, string][] =>
    (spec?.open ?? []).map((axis) => [`x${i}_${axis}`, `1..${2 * spec!.shape[axis]!}`]),
  );
  const shapes = Object.fromEntries(bounds);
  return { bytes: writeModel(spec), feeds: Object.fromEntries(feeds), becomes, shapes };
}

function declaredShape({ shape, open = [] }: OperandSpec, name: string) {
  return shape.map((extent, axis) => (open.includes(axis) ? `${name}_${axis}` : extent));
}

function isShape(o: readonly number[] | OperandSpec | undefined): o is readonly number[] {
  return Array.isArray(o);
}

function filled({ shape, dtype = "f32", values, range }: OperandSpec, rng: Rng): Stored {
  const count = shape.reduce((a, b) => a * b, 1);
  const next = (): number => {
    if (!range) return rng.normal();
    const value = range[0] + (range[1] - range[0]) * rng.uniform();
    return dtype === "f32" || dtype === "f64" ? value : Math.round(value);
  };
  return fromRef(refTensor(dtype, shape, values ?? Array.from({ length: count }, next)));
}

/** Extents that onnxruntime infers itself. */
function unknownExtents([name, dtype, rank]: OutputSpec, otherwise: number): ValueSpec {
  return { name, dtype, shape: new Array<null>(rank ?? otherwise).fill(null) };
}

/**
 * What is wrong with a case, in words; nothing where the oracle, and what is `compiled` (WebAssembly unless told
 * otherwise), agree with `peer`, which is onnxruntime here.
 */
export async function disagreement(
  c: OperatorCase,
  seed: number,
  peer: (drawn: DrawnCase) => Promise<Tensors> = runPeer,
  { compiled = wavetileRuntime("wasm", 1) }: { readonly compiled?: Runtime | false } = {},
): Promise<string | undefined> {
  const drawn = draw(c, seed);
  const only = (found: Tensors): Tensors => {
    const names = c.compared ?? Object.keys(found);
    return Object.fromEntries(names.map((name) => [name, found[name]!]));
  };
  const theirs = only(await peer(drawn));
  const ours = await Promise.all(
    [oracleRuntime, ...(compiled ? [compiled] : [])].map(async (runtime) => {
      const session = await runtime.open(drawn.bytes, { shapes: drawn.shapes });
      const found = await session.run(drawn.feeds);
      await session.release();
      return only(found);
    }),
  );
  const inSteps = (c.outputs ?? []).some((o) => o?.[1] === "u8" || o?.[1] === "i8");
  const limit = inSteps ? 1 : (c.tolerance ?? 2e-5);
  for (const [i, found] of ours.entries()) {
    const apart = inSteps ? worstSteps(found, theirs) : worstDifference(found, theirs);
    if (apart <= limit) continue;
    const name = i === 0 || !compiled ? "the oracle" : compiled.name;
    return `${c.node.op}: ${name} is off by ${apart}, ${limit} allowed; ${describe(c)}`;
  }
  return undefined;
}

/** onnxruntime on copies of the inputs, since it may write over them. */
async function runPeer({ bytes, feeds, becomes }: DrawnCase): Promise<Tensors> {
  const session = await InferenceSession.create(bytes, { logSeverityLevel: 4 });
  const inputs = Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => {
      return [name, new OrtTensor(type, data.slice() as typeof data, dims)];
    }),
  );
  const places = new Map(becomes);
  const results = session.outputNames.map((name) => {
    const place = places.get(name);
    return [name, place === undefined ? null : inputs[place]!] as const;
  });
  const found = fromOrtTensors(await session.run(inputs, Object.fromEntries(results)));
  await session.release();
  return found;
}

function worstSteps(ours: Tensors, theirs: Tensors): number {
  const apart = Object.entries(theirs).flatMap(([name, { data }]) =>
    Array.from(data as ArrayLike<unknown>, (value, i) =>
      Math.abs(Number(value) - Number(ours[name]!.data[i])),
    ),
  );
  return Math.max(...apart);
}

function describe({ node, operands }: OperatorCase): string {
  const attributes = Object.entries(node.attributes ?? {}).map(([k, v]) => `${k}=${String(v)}`);
  const shapes = operands.map((o) => (o ? `[${isShape(o) ? o : o.shape}]` : "-"));
  return `${attributes.join(" ").slice(0, 300)} of ${shapes.join(" ")}`;
}
