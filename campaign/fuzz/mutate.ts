/** Ways to damage a file: bits, lengths and numbers of the bytes, or the meaning of a decoded model. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  SparseTensorProtoSchema,
  StringStringEntryProtoSchema,
  TensorProto_DataLocation,
  TensorProtoSchema,
  TypeProto_SequenceSchema,
  TypeProtoSchema,
} from "../../src/frontend/onnx/generated/onnx_pb.ts";
import { operatorTables } from "../../src/frontend/onnx/import/operator-table.ts";
import {
  packFloats,
  packIntegers,
  readFloats,
  readIntegers,
} from "../../src/frontend/onnx/packed-list.ts";
import type { Rng } from "../../src/support/rng.ts";

/** A few random changes to the bytes. */
export function mutateBytes(bytes: Uint8Array, rng: Rng): Uint8Array {
  let result = Uint8Array.from(bytes);
  for (let n = rng.integer(1, 6); n > 0; n--) result = mutateOnce(result, rng);
  return result;
}

function mutateOnce(bytes: Uint8Array, rng: Rng): Uint8Array<ArrayBuffer> {
  const result = Uint8Array.from(bytes);
  const at = rng.integer(0, Math.max(0, result.length - 1));
  const end = Math.min(result.length, at + rng.integer(1, 12));
  switch (rng.integer(0, 5)) {
    case 0:
      result[at] = (result[at] ?? 0) ^ (1 << rng.integer(0, 7));
      return result;
    case 1:
      result[at] = rng.integer(0, 255);
      return result;
    case 2:
      return result.slice(0, at);
    case 3:
      result.fill(0xff, at, end);
      return result;
    case 4:
      return Uint8Array.from([...result.slice(0, end), ...result.slice(at)]);
    default:
      return Uint8Array.from([...result.slice(0, at), ...result.slice(end)]);
  }
}

const extremes = [0n, -1n, 1n, 2n ** 31n, 2n ** 40n, 2n ** 53n, 2n ** 62n, -(2n ** 63n)] as const;

const oddNumbers = [0, -0, 1e-45, 1e38, -1e38, Number.NaN, Infinity, -Infinity] as const;

/** What every object inherits: a name like any other in a model. */
const inheritedNames = ["__proto__", "constructor", "toString", "hasOwnProperty"] as const;

/** Attributes that count something: parts, operands, units, samples. */
/** Items of lists that are long for their kind. */
const longLists = [1_000, 100_000, 4_000_000] as const;

const counts = [
  ...["num_outputs", "num_scan_inputs", "hidden_size", "num_heads", "group", "sample_size", "k"],
  ...["size", "max_skip_count", "n_supports", "num_branches", "max_ngram_size", "max_distance"],
] as const;

type Change = (graph: GraphProto, model: ModelProto, rng: Rng) => void;

const somewhere = <T>(list: readonly T[], rng: Rng): T | undefined =>
  list.length === 0 ? undefined : rng.pick(list);

/** Each does one thing that a hostile or broken exporter may do. */
const changes: Readonly<Record<string, Change>> = {
  hugeDimension: (graph, _model, rng) => {
    const tensor = somewhere(graph.initializer, rng);
    if (tensor && tensor.dims.length > 0) tensor.dims[0] = rng.pick(extremes);
  },
  overflowedProduct: (graph, _model, rng) => {
    const tensor = somewhere(graph.initializer, rng);
    if (tensor) tensor.dims = [2n ** 32n, 2n ** 32n, 2n];
  },
  hugeInput: (graph, _model, rng) => {
    const type = somewhere(graph.input, rng)?.type?.value;
    const dim =
      type?.case === "tensorType" ? somewhere(type.value.shape?.dim ?? [], rng) : undefined;
    if (dim) dim.value = { case: "dimValue", value: rng.pick(extremes) };
  },
  sparse: (graph, _model, rng) => {
    const values = somewhere(graph.initializer, rng);
    if (!values) return;
    const count = rng.integer(0, 3);
    const places = Array.from({ length: count }, () => rng.pick([...extremes, 2n, 3n]));
    graph.initializer = graph.initializer.filter((t) => t !== values);
    const indices = create(TensorProtoSchema, {
      ...{ dims: [BigInt(count)], dataType: 7, int64Data: packIntegers(places) },
    });
    const dims = rng.integer(0, 1) === 0 ? values.dims : [rng.pick(extremes), rng.pick(extremes)];
    graph.sparseInitializer = [create(SparseTensorProtoSchema, { values, indices, dims })];
  },
  inheritedName: (graph, _model, rng) => {
    const node = somewhere(graph.node, rng);
    const old = somewhere([...(node?.input ?? []), ...(node?.output ?? [])], rng);
    if (!old) return;
    const name = rng.pick(inheritedNames);
    const renamed = (names: readonly string[]) => names.map((n) => (n === old ? name : n));
    for (const n of graph.node) {
      n.input = renamed(n.input);
      n.output = renamed(n.output);
    }
    for (const port of [...graph.input, ...graph.output, ...graph.initializer])
      if (port.name === old) port.name = name;
  },
  inheritedDimension: (graph, _model, rng) => {
    const type = somewhere(graph.input, rng)?.type?.value;
    const dim =
      type?.case === "tensorType" ? somewhere(type.value.shape?.dim ?? [], rng) : undefined;
    if (dim) dim.value = { case: "dimParam", value: rng.pick(inheritedNames) };
  },
  hugeCount: (graph, _model, rng) => {
    const node = somewhere(graph.node, rng);
    if (!node) return;
    const [name, i] = [rng.pick(counts), rng.pick([...extremes, 100_000n, 1_000_000_000n])];
    const attribute = create(AttributeProtoSchema, {
      ...{ name, i, type: AttributeProto_AttributeType.INT },
    });
    node.attribute = [...node.attribute.filter((a) => a.name !== name), attribute];
  },
  wrongType: (graph, _model, rng) => {
    const tensor = somewhere(graph.initializer, rng);
    if (tensor) tensor.dataType = rng.integer(0, 40);
  },
  duplicateName: (graph, _model, rng) => {
    const [a, b] = [somewhere(graph.node, rng), somewhere(graph.node, rng)];
    if (a && b) a.output = [...b.output];
  },
  cycle: (graph, _model, rng) => {
    const [a, b] = [somewhere(graph.node, rng), graph.node.at(-1)];
    if (a && b) a.input = [...b.output];
  },
  callsItself: (_graph, model) => {
    for (const f of model.functions) {
      const call = { opType: f.name, domain: f.domain, input: [...f.input], output: [...f.output] };
      f.node = [create(NodeProtoSchema, call), create(NodeProtoSchema, { ...call, output: ["r"] })];
    }
  },
  deepNesting: (graph, _model, rng) => nest(graph, rng.pick([5, 40, 400])),
  hugeNumbers: (graph, _model, rng) => {
    const tensor = somewhere(
      graph.initializer.filter((t) => t.dataType === 7),
      rng,
    );
    if (!tensor) return;
    const values = tensor.rawData.length / 8;
    tensor.rawData = new Uint8Array(
      BigInt64Array.from({ length: values }, () => rng.pick(extremes)).buffer,
    );
  },
  attributeValue: (graph, _model, rng) => {
    const attribute = somewhere(somewhere(graph.node, rng)?.attribute ?? [], rng);
    if (!attribute) return;
    attribute.i = rng.pick(extremes);
    attribute.ints = packIntegers(readIntegers(attribute.ints).map(() => rng.pick(extremes)));
    if (rng.integer(0, 3) === 0) attribute.type = AttributeProto_AttributeType.FLOATS;
  },
  swappedOperator: (graph, _model, rng) => {
    const [a, b] = [somewhere(graph.node, rng), somewhere(graph.node, rng)];
    if (a && b) a.opType = b.opType;
  },
  foreignOperator: (graph, model, rng) => {
    const node = somewhere(graph.node, rng);
    const domain = rng.pick(Object.keys(operatorTables));
    if (!node) return;
    Object.assign(node, { domain, opType: rng.pick(Object.keys(operatorTables[domain]!)) });
    if (!model.opsetImport.some((o) => o.domain === domain)) {
      model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain, version: 1n }));
    }
  },
  foreignAttribute: (graph, _model, rng) => {
    const [a, b] = [somewhere(graph.node, rng), somewhere(graph.node, rng)];
    const attribute = somewhere(b?.attribute ?? [], rng);
    if (a && attribute) a.attribute = [...a.attribute, attribute];
  },
  oddFloats: (graph, _model, rng) => {
    const attribute = somewhere(somewhere(graph.node, rng)?.attribute ?? [], rng);
    if (!attribute) return;
    attribute.f = rng.pick(oddNumbers);
    attribute.floats = packFloats(readFloats(attribute.floats).map(() => rng.pick(oddNumbers)));
  },
  longAttribute: (graph, _model, rng) => {
    const attribute = somewhere(somewhere(graph.node, rng)?.attribute ?? [], rng);
    if (!attribute) return;
    const count = rng.pick(longLists);
    const types = AttributeProto_AttributeType;
    attribute.type = rng.pick([types.INTS, types.FLOATS, types.STRINGS]);
    attribute.ints = [new Uint8Array(count).fill(1)];
    attribute.floats = [new Uint8Array(4 * count)];
    attribute.strings = new Array<Uint8Array>(Math.floor(count / 8)).fill(Uint8Array.of(97));
  },
  longTensor: (graph, _model, rng) => {
    const tensor = somewhere(graph.initializer, rng);
    if (!tensor) return;
    const count = rng.pick(longLists);
    const varints = [new Uint8Array(count).fill(1)];
    // FLOAT, INT8, INT32, INT64, STRING, FLOAT16, UINT64.
    tensor.dataType = rng.pick([1, 3, 6, 7, 8, 10, 13]);
    tensor.dims = [BigInt(tensor.dataType === 8 ? Math.floor(count / 8) : count)];
    tensor.rawData = new Uint8Array(0);
    tensor.int32Data = varints;
    tensor.int64Data = varints;
    tensor.uint64Data = varints;
    tensor.floatData = [new Uint8Array(4 * count)];
    tensor.stringData = new Array<Uint8Array>(Math.floor(count / 8)).fill(Uint8Array.of(97));
  },
  external: (graph, _model, rng) => {
    const tensor = somewhere(graph.initializer, rng);
    if (!tensor) return;
    const pairs = { location: "data.bin", offset: "0", length: String(rng.pick(extremes)) };
    tensor.dataLocation = TensorProto_DataLocation.EXTERNAL;
    tensor.externalData = Object.entries(pairs).map(([key, value]) =>
      create(StringStringEntryProtoSchema, { key, value }),
    );
  },
  nestedTypes: (graph, _model, rng) => {
    const value = somewhere(graph.input, rng);
    for (let n = rng.pick([1, 20, 300]); value && n > 0; n--) {
      const elemType = value.type ?? create(TypeProtoSchema);
      const sequence = create(TypeProto_SequenceSchema, { elemType });
      value.type = create(TypeProtoSchema, { value: { case: "sequenceType", value: sequence } });
    }
  },
  lostOperand: (graph, _model, rng) => {
    const node = somewhere(graph.node, rng);
    if (node) node.input = rng.integer(0, 1) === 0 ? node.input.slice(1) : ["", ...node.input];
  },
  otherOpset: (_graph, model, rng) => {
    for (const opset of model.opsetImport)
      opset.version = rng.pick([...extremes, 7n, 8n, 11n, 13n]);
  },
};

/** Of a damaged file: what the campaign itself holds counts as memory that reading took. */
const mostBytes = 2 ** 26;

/** If in If in If, each with the node list of the graph around it. */
function nest(graph: GraphProto, depth: number): void {
  let nodes: NodeProto[] = graph.node;
  // Both branches are one object: written out, a few levels are all that fits, of what is not nested yet.
  const bytes = toBinary(GraphProtoSchema, graph).length;
  const fitting = Math.max(0, Math.floor(Math.log2(mostBytes / bytes)));
  const doubled = nodes.some((n) => n.opType === "If") ? 0 : Math.min(8, fitting);
  const output = graph.output.map((o) => o.name);
  for (let i = 0; i < depth; i++) {
    const g = { node: nodes, output: graph.output };
    const branches = ["then_branch", "else_branch"].map((name) =>
      create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.GRAPH, g }),
    );
    const attribute = i < doubled ? branches : branches.slice(0, 1);
    nodes = [create(NodeProtoSchema, { opType: "If", input: ["go"], output, attribute })];
  }
  graph.node = nodes;
}

/** One change of meaning, and its name. */
export function mutateModel(bytes: Uint8Array, rng: Rng): Uint8Array {
  const model = fromBinary(ModelProtoSchema, bytes);
  for (let n = rng.integer(1, 3); n > 0; n--) {
    changes[rng.pick(Object.keys(changes))]!(model.graph!, model, rng);
  }
  return toBinary(ModelProtoSchema, model);
}
