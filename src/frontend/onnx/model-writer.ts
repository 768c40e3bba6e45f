/**
 * Writing ONNX: a model from plain objects to bytes. Attribute types follow from the JavaScript values
 * (see AttributeValue), so that tests and exports read like the operator's documentation. No checks of
 * meaning: what is written is what was asked for.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import type { DType } from "../../semantics/dtype.ts";
import type { Tensor, TensorData } from "../../semantics/tensor.ts";
import { onnxTypeOf } from "./data-types.ts";
import {
  type AttributeProto,
  AttributeProtoSchema,
  AttributeProto_AttributeType as AttributeType,
  type FunctionProto,
  FunctionProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from "./generated/onnx_pb.ts";
import { packFloats, packIntegers } from "./packed-list.ts";
import { writeTensorProto } from "./tensor-proto.ts";

/** Plain numbers are FLOAT, bigints INT, lists of them FLOATS and INTS (an empty list is INTS). */
export type AttributeValue =
  | number
  | bigint
  | string
  | Tensor
  | GraphSpec
  | readonly number[]
  | readonly bigint[]
  | readonly string[]
  | { readonly reference: string };

export interface NodeSpec {
  readonly op: string;
  readonly domain?: string;
  readonly name?: string;
  /** Value names; an empty name is an absent optional. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
}

/** Extents are numbers, names of symbolic dimensions, or null for an unnamed dynamic one. */
export interface ValueSpec {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly (number | string | null)[];
  /** An optional that may hold such a tensor. */
  readonly isOptional?: true;
}

export interface GraphSpec {
  readonly name?: string;
  readonly inputs: readonly ValueSpec[];
  /** Types of outputs are optional in subgraphs. */
  readonly outputs: readonly (ValueSpec | string)[];
  readonly weights?: Readonly<Record<string, Tensor>>;
  /** Weights that are written already, for instance as references to external data. */
  readonly tensors?: readonly TensorProto[];
  readonly nodes: readonly NodeSpec[];
}

export interface FunctionSpec {
  readonly domain: string;
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: readonly string[];
  readonly nodes: readonly NodeSpec[];
}

export interface ModelSpec extends GraphSpec {
  /** Version of the default operator set. */
  readonly opset: number;
  /** Versions of further operator sets by domain. */
  readonly domains?: Readonly<Record<string, number>>;
  readonly functions?: readonly FunctionSpec[];
}

/** A tensor from element values in storage form. */
export function tensorOf(dtype: DType, shape: readonly number[], data: TensorData): Tensor {
  return { dtype, shape, data };
}

/** The bytes of a .onnx file. */
export function writeModel(spec: ModelSpec): Uint8Array {
  return toBinary(ModelProtoSchema, buildModel(spec));
}

function buildModel(spec: ModelSpec): ModelProto {
  return create(ModelProtoSchema, {
    irVersion: 10n,
    producerName: "wavetile",
    opsetImport: [
      { domain: "", version: BigInt(spec.opset) },
      ...Object.entries(spec.domains ?? {}).map(([domain, version]) => ({
        domain,
        version: BigInt(version),
      })),
    ],
    graph: buildGraph(spec),
    functions: (spec.functions ?? []).map((f) => buildFunction(f, spec.opset)),
  });
}

function buildGraph(spec: GraphSpec): GraphProto {
  const weights = Object.entries(spec.weights ?? {}).map(([name, t]) => writeTensorProto(name, t));
  return create(GraphProtoSchema, {
    name: spec.name ?? "graph",
    input: spec.inputs.map(buildValue),
    output: spec.outputs.map((o) =>
      typeof o === "string" ? create(ValueInfoProtoSchema, { name: o }) : buildValue(o),
    ),
    initializer: [...weights, ...(spec.tensors ?? [])],
    node: spec.nodes.map(buildNode),
  });
}

function buildFunction(spec: FunctionSpec, opset: number): FunctionProto {
  return create(FunctionProtoSchema, {
    domain: spec.domain,
    name: spec.name,
    input: [...spec.inputs],
    output: [...spec.outputs],
    attribute: [...(spec.attributes ?? [])],
    opsetImport: [{ domain: "", version: BigInt(opset) }],
    node: spec.nodes.map(buildNode),
  });
}

function buildValue(spec: ValueSpec): ValueInfoProto {
  const dim = spec.shape.map((extent) => {
    if (extent === null) return {};
    return typeof extent === "string"
      ? { value: { case: "dimParam" as const, value: extent } }
      : { value: { case: "dimValue" as const, value: BigInt(extent) } };
  });
  const value = { elemType: onnxTypeOf[spec.dtype], shape: { dim } };
  const held = { value: { case: "tensorType" as const, value } };
  return create(ValueInfoProtoSchema, {
    name: spec.name,
    type: spec.isOptional ? { value: { case: "optionalType", value: { elemType: held } } } : held,
  });
}

function buildNode(spec: NodeSpec): NodeProto {
  return create(NodeProtoSchema, {
    opType: spec.op,
    domain: spec.domain ?? "",
    name: spec.name ?? "",
    input: [...spec.inputs],
    output: [...spec.outputs],
    attribute: Object.entries(spec.attributes ?? {}).map(([n, v]) => buildAttribute(n, v)),
  });
}

function buildAttribute(name: string, value: AttributeValue): AttributeProto {
  if (typeof value !== "object") return create(AttributeProtoSchema, { name, ...single(value) });
  if (isList(value)) return create(AttributeProtoSchema, { name, ...list(value) });
  if ("reference" in value) {
    return create(AttributeProtoSchema, { name, refAttrName: value.reference });
  }
  if ("nodes" in value) {
    return create(AttributeProtoSchema, { name, type: AttributeType.GRAPH, g: buildGraph(value) });
  }
  const t = writeTensorProto("", value);
  return create(AttributeProtoSchema, { name, type: AttributeType.TENSOR, t });
}

function isList(value: object): value is readonly number[] | readonly bigint[] | readonly string[] {
  return Array.isArray(value);
}

function single(value: number | bigint | string) {
  if (typeof value === "number") return { type: AttributeType.FLOAT, f: value };
  if (typeof value === "bigint") return { type: AttributeType.INT, i: value };
  return { type: AttributeType.STRING, s: new TextEncoder().encode(value) };
}

function list(values: readonly number[] | readonly bigint[] | readonly string[]) {
  const encode = (text: string) => new TextEncoder().encode(text);
  if (typeof values[0] === "number") {
    return { type: AttributeType.FLOATS, floats: packFloats(values as number[]) };
  }
  if (typeof values[0] === "string") {
    return { type: AttributeType.STRINGS, strings: (values as string[]).map(encode) };
  }
  return { type: AttributeType.INTS, ints: packIntegers(values as bigint[]) };
}
