/**
 * What a model's float32 rounding depends on, read from its file: how many layers that sum products
 * lie on the longest path, and how many terms the longest of these sums has. Subgraphs count with the
 * node that holds them; of several branches the deepest.
 */
import type { GraphProto, NodeProto } from "../../src/frontend/onnx/generated/onnx_pb.ts";
import { readModelFile } from "../../src/frontend/onnx/model-file.ts";
import { ok, type Result } from "../../src/support/diagnostic.ts";
import type { Rounding } from "../sessions/compare.ts";

type Dims = readonly number[];

/** Terms of one sum of a layer, by its weight's extents; the layers are those that have a row. */
const termsOf: Readonly<Record<string, (weights: readonly Dims[]) => number>> = {
  Conv: ([w]) => product(w!.slice(1)),
  ConvTranspose: ([w]) => product(w!) / w![1]!,
  MatMul: ([w]) => w!.at(-2) ?? w![0]!,
  MatMulInteger: ([w]) => w!.at(-2) ?? w![0]!,
  Gemm: ([w]) => Math.max(...w!),
  LSTM: ([w, r]) => w!.at(-1)! + r!.at(-1)!,
  GRU: ([w, r]) => w!.at(-1)! + r!.at(-1)!,
};

export function roundingOf(model: Uint8Array): Result<Rounding> {
  const file = readModelFile(model);
  if (!file.ok) return file;
  const scan = new Scan();
  const depth = scan.depthOf(file.value.graph!, new Map());
  const graph = file.value.graph!;
  const isQuantized = hasQuantized(graph);
  const storedEpsilon = isQuantized ? 2 ** -8 : storedEpsilonOf(graph);
  return ok({
    depth: Math.max(1, depth),
    longestSum: scan.longestSum,
    ...(storedEpsilon > 0 && { storedEpsilon }),
    ...(isQuantized && { isQuantized }),
  });
}

const halfType = 10;
const brainFloatType = 16;

/** Whether values are quantised to eight bits between layers. */
function hasQuantized({ node }: GraphProto): boolean {
  return node.some((n) => /^(Dynamic)?QuantizeLinear$|^QLinear/.test(n.opType));
}

/** Of narrow weights. */
function storedEpsilonOf({ initializer }: GraphProto): number {
  const types = new Set(initializer.map((t) => t.dataType));
  if (types.has(brainFloatType)) return 2 ** -8;
  return types.has(halfType) ? 2 ** -10 : 0;
}

class Scan {
  longestSum = 1;
  readonly #dims = new Map<string, Dims>();

  /** @param outer depths of the values that the graph may see from outside */
  depthOf(graph: GraphProto, outer: ReadonlyMap<string, number>): number {
    const depths = new Map(outer);
    for (const t of graph.initializer) this.#dims.set(t.name, t.dims.map(Number));
    for (const node of graph.node) {
      this.#noteConstant(node);
      const before = Math.max(0, ...node.input.map((name) => depths.get(name) ?? 0));
      const depth = Math.max(before, this.#depthInside(node, depths)) + this.#ownDepth(node);
      for (const name of node.output) depths.set(name, depth);
    }
    return Math.max(0, ...graph.output.map(({ name }) => depths.get(name) ?? 0));
  }

  #depthInside(node: NodeProto, depths: ReadonlyMap<string, number>): number {
    const graphs = node.attribute.flatMap((a) => (a.g === undefined ? [] : [a.g]));
    return Math.max(0, ...graphs.map((graph) => this.depthOf(graph, depths)));
  }

  /** 1 for a layer that sums products, and its sum is noted where the weight is in the file. */
  #ownDepth(node: NodeProto): number {
    const terms = termsOf[node.opType];
    if (terms === undefined) return 0;
    const weights = node.input.slice(1).map((name) => this.#dims.get(name));
    const first = this.#dims.get(node.input[0]!);
    const known = [...weights, first].filter((d) => d !== undefined);
    if (known.length > 0) this.longestSum = Math.max(this.longestSum, terms(known));
    return 1;
  }

  #noteConstant(node: NodeProto): void {
    const tensor = node.opType === "Constant" ? node.attribute[0]?.t : undefined;
    if (tensor !== undefined) this.#dims.set(node.output[0]!, tensor.dims.map(Number));
    const same = node.opType === "Identity" ? this.#dims.get(node.input[0]!) : undefined;
    if (same !== undefined) this.#dims.set(node.output[0]!, same);
  }
}

function product(dims: Dims): number {
  return dims.reduce((a, b) => a * b, 1);
}
