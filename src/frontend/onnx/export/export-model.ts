/**
 * Graph to ONNX: the door of the exporter. A model in, the bytes of an .onnx file out, with the weights
 * inside, or, where they are more than a protobuf file may hold, as references to a second file whose
 * contents are given in order. Composites become the operator of ONNX that means the same, or the
 * operators of their definition. Extents that only running decides are computed by nodes on shapes.
 * What ONNX cannot say is ONX018. The rows by op stand in rows/, joined by export-table.ts.
 */
import { rangesOf } from "../../../graph/counts.ts";
import type {
  Graph,
  Model,
  Node,
  NodeOf,
  OpKind,
  ValueId,
  WeightStore,
} from "../../../graph/graph.ts";
import { bytesOf } from "../../../graph/tensor-type.ts";
import { constantValue } from "../../../semantics/index-expr.ts";
import type { Tensor } from "../../../semantics/tensor.ts";
import { attempt, type Result } from "../../../support/diagnostic.ts";
import type { TensorProto } from "../generated/onnx_pb.ts";
import { writeModel } from "../model-writer.ts";
import { writeExternalTensorProto, writeTensorProto } from "../tensor-proto.ts";
import type { ExportRow } from "./export-row.ts";
import { ExportSpace, type Initializer } from "./export-space.ts";
import { exportTable } from "./export-table.ts";
import { GraphSink, type ValueNames, valueSpec, type WriteNodes } from "./graph-sink.ts";
import { type OperandSum, operandSums } from "./operand-sums.ts";

export interface ExportOptions {
  /** Names of inputs and outputs, in order; by default those of the graph. */
  readonly inputNames?: readonly string[];
  readonly outputNames?: readonly string[];
  /** Where the weights lie if they are too many for one file, relative to it. */
  readonly dataLocation?: string;
  /** Bytes of weights up to which they stand in the file itself. */
  readonly inlineBytes?: number;
}

/** Bytes of the second file: each tensor at its offset, in order, zeros between. */
export interface ExternalPart {
  readonly offset: number;
  readonly bytes: number;
  readonly read: () => Tensor;
}

export interface ExportedModel {
  readonly bytes: Uint8Array;
  readonly nodes: number;
  readonly weightBytes: number;
  /** Parts of the second file; empty where there is none. */
  readonly external: readonly ExternalPart[];
}

/** Operators of this version and the forms of it that onnxruntime has had for years. */
export const exportOpset = 21;

/** Protobuf files end at 2 GiB; the rest is for nodes and names. */
const defaultInlineBytes = 2 ** 31 - 2 ** 27;
/** Weights of a second file start at multiples of a page, as onnx.save_model writes them. */
const alignment = 4096;
/** Weights below this stay in the file, so that shapes can be inferred from it alone. */
const smallBytes = 1024;

export function exportOnnx(model: Model, options: ExportOptions = {}): Result<ExportedModel> {
  return attempt(() => {
    const { graph } = model;
    const nameOf = (id: ValueId) => graph.values[id]!.name;
    const inputNames = options.inputNames ?? graph.inputs.map(nameOf);
    const outputNames = options.outputNames ?? graph.outputs.map(nameOf);
    const space = new ExportSpace(rangesOf(graph), [...inputNames, ...outputNames]);
    const names: ValueNames = new Map(graph.inputs.map((id, i) => [id, inputNames[i]!]));
    const titles = new Map(graph.outputs.map((id, i) => [id, outputNames[i]!]));
    const sink = new GraphSink(space, writerOf(model.weights, new Map()));
    for (const id of graph.inputs) sink.bind(graph.values[id]!.type, names.get(id)!);
    writerOf(model.weights, titles)(graph, names, sink);
    for (const [i, id] of graph.outputs.entries()) {
      const name = names.get(id)!;
      if (name !== outputNames[i]) sink.copy(name, outputNames[i]!);
    }
    const specs = (ids: readonly ValueId[], spelled: readonly string[]) =>
      ids.map((id, i) => valueSpec(spelled[i]!, graph.values[id]!.type));
    const { tensors, external, weightBytes } = placeWeights(space.initializers, options);
    const bytes = writeModel({
      opset: exportOpset,
      name: graph.name,
      inputs: specs(graph.inputs, inputNames),
      outputs: specs(graph.outputs, outputNames),
      tensors,
      nodes: sink.nodes,
    });
    return { bytes, nodes: sink.nodes.length, weightBytes, external };
  });
}

/** @param titles names that results must have */
function writerOf(weights: WeightStore, titles: ReadonlyMap<ValueId, string>): WriteNodes {
  return (graph, names, sink) => {
    const { space } = sink;
    for (const { value, source } of graph.weights) {
      const { name, type } = graph.values[value]!;
      const written =
        source.kind === "inline"
          ? space.constant(type, source.tensor)
          : space.weight(name, type, () => weights.read(source.key));
      names.set(value, written);
    }
    const { byNode, covered } = operandSums(graph);
    for (const node of graph.nodes) {
      if (covered.has(node)) continue;
      const sum = byNode.get(node);
      const written = sum ? withOperand(sum, node) : node;
      writeNode(written as NodeOf<OpKind>, { graph, names, titles, sink });
    }
  };
}

/** What is written in place of an addition to it. */
function withOperand({ node, operand }: OperandSum, { outputs }: Node): Node {
  return { ...node, inputs: [...node.inputs, operand], outputs };
}

interface Writing {
  readonly graph: Graph;
  readonly names: ValueNames;
  readonly titles: ReadonlyMap<ValueId, string>;
  readonly sink: GraphSink;
}

function writeNode(node: NodeOf<OpKind>, { graph, names, titles, sink }: Writing): void {
  const { op, attrs, inputs, outputs, origin } = node;
  const types = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.type);
  const start = sink.nodes.length;
  sink.at = origin ?? op;
  const row = exportTable[op] as ExportRow<OpKind>;
  const results = row(
    {
      op,
      attrs,
      inputs: inputs.map((id) => names.get(id)!),
      types: types(inputs),
      results: types(outputs),
    },
    sink,
  );
  const made = new Set(sink.nodes.slice(start).flatMap((n) => n.outputs));
  for (const [i, id] of outputs.entries()) {
    const { name, type } = graph.values[id]!;
    const result = results[i]!;
    const isOwn = made.delete(result);
    const spelled = isOwn ? (titles.get(id) ?? sink.space.name(name)) : result;
    if (isOwn) sink.rename(start, result, spelled);
    names.set(id, spelled);
    sink.bind(type, spelled);
  }
}

interface PlacedWeights {
  readonly tensors: readonly TensorProto[];
  readonly external: readonly ExternalPart[];
  readonly weightBytes: number;
}

function placeWeights(all: readonly Initializer[], options: ExportOptions): PlacedWeights {
  const { inlineBytes = defaultInlineBytes, dataLocation = "weights.data" } = options;
  const sizes = all.map((weight) => constantValue(bytesOf(weight.type))!);
  const weightBytes = sizes.reduce((sum, n) => sum + n, 0);
  if (weightBytes <= inlineBytes) {
    const tensors = all.map(({ name, read }) => writeTensorProto(name, read()));
    return { tensors, external: [], weightBytes };
  }
  const external: ExternalPart[] = [];
  let offset = 0;
  const tensors = all.map(({ name, type, read }, i) => {
    const length = sizes[i]!;
    if (length < smallBytes) return writeTensorProto(name, read());
    offset = Math.ceil(offset / alignment) * alignment;
    const range = { location: dataLocation, offset, length };
    external.push({ offset, bytes: length, read });
    offset += length;
    const shape = type.shape.map((d) => constantValue(d)!);
    return writeExternalTensorProto(name, { dtype: type.dtype, shape }, range);
  });
  return { tensors, external, weightBytes };
}
