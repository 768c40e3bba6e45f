/**
 * Decodes protobuf messages along their schema: those of untrusted files, charged as they are made
 * (wire-limits.ts). Lists of numbers stay packed (packed-list.ts), bytes are views of the file, equal
 * short texts one object. As with every protobuf reader a field that is not in the schema is skipped, of
 * a field that comes twice the last counts, lists are joined, messages merged. Malformed bytes throw a
 * RangeError or a TypeError.
 */
import {
  create,
  type DescField,
  type DescMessage,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { InternalError, invariant } from "../../support/invariant.ts";
import { countFloats, countVarints, packedFields } from "./packed-list.ts";
import type { ModelLimits } from "./wire-limits.ts";
import { WireMeter } from "./wire-limits.ts";
import { WireReader } from "./wire-reader.ts";

/**
 * About what things take in memory, in bytes, as measured with Node.js 20 and rounded up: most of them as
 * they are decoded, nodes, tensors and names with what the importer makes of them.
 */
const bytesOf = {
  field: 24,
  list: 40,
  item: 64,
  text: 32,
  part: 192,
  bigint: 48,
  node: 1536,
  tensor: 512,
  name: 256,
};

const bytesImported: ReadonlyMap<string, number> = new Map([
  ["onnx.NodeProto", bytesOf.node],
  ["onnx.TensorProto", bytesOf.tensor],
]);

interface Decoding {
  readonly reader: WireReader;
  readonly meter: WireMeter;
  /** Where the message ends whose field is being read. */
  end: number;
}

/** A message under construction: its fields by their names. */
type Fields = Record<string, unknown>;

/** What is to be done with one field of a message. */
interface FieldPlan {
  readonly field: DescField;
  readonly read: (decoding: Decoding, message: Fields, type: WireType, depth: number) => void;
}

interface MessagePlan {
  readonly fields: readonly (FieldPlan | undefined)[];
  readonly bytes: number;
}

/** Decodes a whole file. Rejects (ONX002) what is beyond `limits`. */
export function decodeMessage<T extends DescMessage>(
  schema: T,
  bytes: Uint8Array,
  limits: ModelLimits,
): MessageShape<T> {
  const meter = new WireMeter(limits);
  meter.checkFile(bytes.length);
  const message = create(schema);
  const reader = new WireReader(bytes);
  const decoding = { reader, meter, end: bytes.length };
  fill(decoding, message as unknown as Fields, schema, 1);
  return message;
}

/** Reads the fields of a message up to its end. */
function fill(decoding: Decoding, message: Fields, schema: DescMessage, depth: number): void {
  const { reader, meter, end } = decoding;
  const plan = planOf(schema);
  meter.checkDepth(depth);
  while (reader.at < end) {
    const tag = reader.varint();
    const type = tag & 7;
    const field = plan.fields[tag >>> 3];
    if (field) field.read(decoding, message, type, depth);
    else if (tag >>> 3 === 0) throw new RangeError("a field of number 0");
    else reader.skip(type);
    decoding.end = end;
  }
  if (reader.at !== end) throw new RangeError("a field is longer than its message");
}

const plans = new WeakMap<DescMessage, MessagePlan>();

function planOf(schema: DescMessage): MessagePlan {
  const known = plans.get(schema);
  if (known) return known;
  const fields: (FieldPlan | undefined)[] = [];
  for (const field of schema.fields) fields[field.number] = { field, read: readerOf(field) };
  const lists = schema.fields.filter((f) => f.fieldKind === "list").length;
  const imported = bytesImported.get(schema.typeName) ?? 0;
  const bytes = bytesOf.field * schema.fields.length + bytesOf.list * lists + imported;
  const plan = { fields, bytes };
  plans.set(schema, plan);
  return plan;
}

function readerOf(field: DescField): FieldPlan["read"] {
  const numbers = packedFields.get(`${field.parent.typeName}.${field.name}`);
  if (numbers !== undefined) return packedReader(field, numbers);
  if (field.fieldKind === "message") return messageReader(field);
  if (field.fieldKind === "list") {
    return field.listKind === "message" ? messagesReader(field) : itemsReader(field);
  }
  invariant(field.fieldKind !== "map", () => `a map ${field}`);
  const value = valueReader(field, field.fieldKind === "enum" ? ScalarType.INT32 : field.scalar);
  const { localName, oneof } = field;
  return (decoding, message, type) => {
    const found = value(decoding, type);
    if (oneof) message[oneof.localName] = { case: localName, value: found };
    else message[localName] = found;
  };
}

function messageReader(
  field: DescField & { fieldKind: "message"; message: DescMessage },
): FieldPlan["read"] {
  const { localName, oneof, message: schema } = field;
  return (decoding, message, type, depth) => {
    decoding.end = endOf(decoding, type);
    const before = oneof ? (message[oneof.localName] as Fields) : undefined;
    const same = before?.case === localName ? before.value : undefined;
    const old = oneof ? same : message[localName];
    const inner = (old ?? make(decoding, schema)) as Fields;
    fill(decoding, inner, schema, depth + 1);
    if (oneof) message[oneof.localName] = { case: localName, value: inner };
    else message[localName] = inner;
  };
}

function messagesReader(
  field: DescField & { fieldKind: "list"; listKind: "message"; message: DescMessage },
): FieldPlan["read"] {
  const { localName, message: schema } = field;
  return (decoding, message, type, depth) => {
    decoding.end = endOf(decoding, type);
    const inner = make(decoding, schema);
    fill(decoding, inner, schema, depth + 1);
    (message[localName] as unknown[]).push(inner);
  };
}

function make({ meter }: Decoding, schema: DescMessage): Fields {
  meter.charge(planOf(schema).bytes);
  return create(schema) as unknown as Fields;
}

/** The end of what a length stands in front of. */
function endOf({ reader, end }: Decoding, type: WireType): number {
  if (type !== WireType.LengthDelimited) throw new RangeError(`a field of wire type ${type}`);
  const length = reader.varint();
  if (length > end - reader.at) throw new RangeError("a field is longer than its message");
  return reader.at + length;
}

/** Items of lists that are no messages and do not stay packed: texts, bytes, and the few integers left. */
function itemsReader(
  field: DescField & { fieldKind: "list"; listKind: "scalar" | "enum" },
): FieldPlan["read"] {
  const scalar = field.listKind === "enum" ? ScalarType.INT32 : field.scalar;
  const value = valueReader(field, scalar);
  const isText = scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
  const bytes = scalar === ScalarType.STRING ? bytesOf.name : bytesOf.item;
  return (decoding, message, type) => {
    const items = message[field.localName] as unknown[];
    if (isText || type !== WireType.LengthDelimited) {
      decoding.meter.charge(bytes);
      items.push(value(decoding, type));
      return;
    }
    const end = endOf(decoding, type);
    while (decoding.reader.at < end) {
      decoding.meter.charge(bytesOf.item);
      items.push(value(decoding, WireType.Varint));
    }
    if (decoding.reader.at !== end) throw new RangeError("a list is longer than its field");
  };
}

function valueReader(
  field: DescField,
  scalar: ScalarType,
): (decoding: Decoding, type: WireType) => unknown {
  const expect = (type: WireType, wanted: WireType): void => {
    if (type !== wanted) throw new RangeError(`${field.name} has wire type ${type}, not ${wanted}`);
  };
  switch (scalar) {
    case ScalarType.STRING:
      return (decoding, type) => {
        expect(type, WireType.LengthDelimited);
        const length = endOf(decoding, type) - decoding.reader.at;
        return decoding.reader.text(length, () => decoding.meter.charge(bytesOf.text + length));
      };
    case ScalarType.BYTES:
      return (decoding, type) => {
        expect(type, WireType.LengthDelimited);
        const length = endOf(decoding, type) - decoding.reader.at;
        return decoding.reader.sharedPart(length, () => decoding.meter.charge(bytesOf.part));
      };
    case ScalarType.FLOAT:
      return ({ reader }, type) => {
        expect(type, WireType.Bit32);
        return reader.float();
      };
    case ScalarType.INT32:
      return ({ reader }, type) => {
        expect(type, WireType.Varint);
        return reader.varint() | 0;
      };
    case ScalarType.INT64:
      return ({ reader, meter }, type) => {
        expect(type, WireType.Varint);
        meter.charge(bytesOf.bigint);
        return reader.int64();
      };
    default:
      throw new InternalError(`${field} has a type that no field of ONNX has`);
  }
}

/** Numbers in bytes: packed as they are, single ones in a row packed together. */
function packedReader(field: DescField, item: WireType): FieldPlan["read"] {
  const isAttribute = field.parent.typeName.endsWith("AttributeProto");
  const counted = new WeakMap<object, number>();
  return (decoding, message, type) => {
    const { reader, meter } = decoding;
    const packed = type === WireType.LengthDelimited;
    if (!packed && type !== item) {
      throw new RangeError(`${field.name} has wire type ${type}, not ${item}`);
    }
    meter.charge(bytesOf.part);
    const part = packed
      ? reader.part(endOf(decoding, type) - reader.at)
      : packRun(decoding, field.number, item);
    const list = message[field.localName] as Uint8Array[];
    list.push(part);
    const width = item === WireType.Bit32 ? 4 : 8;
    const count = item === WireType.Varint ? countVarints(part) : countFloats(part, width);
    if (isAttribute) {
      const sum = (counted.get(list) ?? 0) + count;
      counted.set(list, sum);
      meter.checkItems(sum, field.name);
      meter.charge(8 * count);
    } else if (item === WireType.Varint) {
      meter.charge((field.name === "int32_data" ? 4 : 8) * count);
    }
  };
}

/** The bytes of items that stand one after the other, each behind a tag of its own: without the tags. */
function packRun(decoding: Decoding, number: number, item: WireType): Uint8Array {
  const { reader, meter, end: last } = decoding;
  const { bytes, at: from } = reader;
  const tag = (number << 3) | item;
  invariant(tag < 128, () => `a tag of two bytes for field ${number}`);
  let length = 0;
  for (;;) {
    const start = reader.at;
    reader.skip(item);
    length += reader.at - start;
    if (reader.at >= last || bytes[reader.at] !== tag) break;
    reader.at++;
  }
  const end = reader.at;
  meter.charge(length);
  const packed = new Uint8Array(length);
  let to = 0;
  reader.at = from;
  for (;;) {
    const start = reader.at;
    reader.skip(item);
    for (let i = start; i < reader.at; i++) packed[to++] = bytes[i]!;
    if (reader.at >= end) break;
    reader.at++;
  }
  return packed;
}
