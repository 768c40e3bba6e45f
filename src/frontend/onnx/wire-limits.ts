/**
 * The check before decoding: walks the protobuf bytes of a ModelProto along the schema, without
 * building anything, and refuses files whose decoded form would exhaust memory or the stack. Two bytes
 * can encode an empty message that costs hundreds of bytes decoded, so a bound on the file alone does
 * not help. Bulk data (raw_data, strings) is skipped by its length. Wire format: protobuf.dev,
 * "Encoding".
 */
import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { reject } from "../../support/diagnostic.ts";
import { ModelProtoSchema } from "./generated/onnx_pb.ts";

export interface ModelLimits {
  /** Of the model file; protobuf itself stops at 2 GiB. */
  readonly bytes: number;
  /** Nodes, attributes, tensors, dimensions…: every protobuf message counts. */
  readonly messages: number;
  /** Numbers and strings in repeated fields (float_data, ints, names…). */
  readonly items: number;
  /** Nesting of messages: four levels for each level of subgraphs. */
  readonly depth: number;
}

export const defaultModelLimits: ModelLimits = {
  bytes: 2 ** 31,
  messages: 4_000_000,
  items: 64_000_000,
  depth: 96,
};

interface Walk {
  readonly reader: BinaryReader;
  readonly limits: ModelLimits;
  messages: number;
  items: number;
}

/** Rejects (ONX002) a ModelProto beyond `limits`; throws the reader's errors on malformed bytes. */
export function checkWireLimits(bytes: Uint8Array, limits: ModelLimits): void {
  if (bytes.length > limits.bytes) exceed("bytes", bytes.length, limits.bytes);
  const walk: Walk = { reader: new BinaryReader(bytes), limits, messages: 0, items: 0 };
  walkMessage(walk, ModelProtoSchema, bytes.length, 1);
}

function walkMessage(walk: Walk, message: DescMessage, end: number, depth: number): void {
  const { reader, limits } = walk;
  if (depth > limits.depth) exceed("nested messages", depth, limits.depth);
  if (++walk.messages > limits.messages) exceed("messages", walk.messages, limits.messages);
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = message.fields.find((f) => f.number === number);
    if (field && wireType === WireType.LengthDelimited) {
      const length = reader.uint32();
      const inner = reader.pos + length;
      if (inner > end) throw new RangeError("a field is longer than its message");
      if (field.message) walkMessage(walk, field.message, inner, depth + 1);
      else if (field.fieldKind === "list") countItems(walk, field.scalar, length);
      reader.pos = inner;
    } else {
      if (field?.fieldKind === "list") countItems(walk, undefined, 1);
      reader.skip(wireType, number);
    }
  }
  if (reader.pos !== end) throw new RangeError("a field is longer than its message");
}

/** Adds the items of one list field occurrence: a string or bytes is one, packed numbers are many. */
function countItems(walk: Walk, scalar: ScalarType | undefined, bytes: number): void {
  walk.items += packedCount(scalar, bytes);
  if (walk.items > walk.limits.items) exceed("list items", walk.items, walk.limits.items);
}

function packedCount(scalar: ScalarType | undefined, bytes: number): number {
  if (scalar === undefined || scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return 1;
  if (scalar === ScalarType.FLOAT) return Math.floor(bytes / 4);
  if (scalar === ScalarType.DOUBLE) return Math.floor(bytes / 8);
  // A varint takes at least one byte.
  return bytes;
}

function exceed(what: string, found: number, allowed: number): never {
  reject("ONX002", `the model has ${found} ${what}, at most ${allowed} are read`, {
    help: "store large tensors as raw_data or external data; a model this large is likely damaged",
  });
}
