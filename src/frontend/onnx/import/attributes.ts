/**
 * Attributes of one ONNX node, read by type. Reading a name marks it as understood; what nobody read is
 * reported (`reportUnread`), so that no attribute is dropped in silence. A function body's references
 * (`ref_attr_name`) are resolved to the call's attributes first.
 */
import { type Diagnostic, diagnostic, reject } from "../../../support/diagnostic.ts";
import {
  type AttributeProto,
  AttributeProto_AttributeType as AttributeType,
  type GraphProto,
  type SparseTensorProto,
  type TensorProto,
} from "../generated/onnx_pb.ts";
import { readFloats, readIntegers } from "../packed-list.ts";
import { decodeTexts } from "../tensor-proto.ts";

export type AttributeMap = ReadonlyMap<string, AttributeProto>;

const decoder = new TextDecoder("utf-8", { fatal: false });

export class Attributes {
  readonly #map: AttributeMap;
  readonly #at: string;
  readonly #read = new Set<string>();

  constructor(map: AttributeMap, at: string) {
    this.#map = map;
    this.#at = at;
  }

  /** The map itself, for the attributes of a function call. */
  get all(): AttributeMap {
    return this.#map;
  }

  has(name: string): boolean {
    return this.#map.has(name);
  }

  int(name: string): number | undefined {
    const value = this.#get(name, AttributeType.INT)?.i;
    return value === undefined ? undefined : exact(Number(value));
  }

  ints(name: string): readonly number[] | undefined {
    const list = this.#get(name, AttributeType.INTS);
    return list && readIntegers(list.ints).map(exact);
  }

  float(name: string): number | undefined {
    return this.#get(name, AttributeType.FLOAT)?.f;
  }

  floats(name: string): readonly number[] | undefined {
    const list = this.#get(name, AttributeType.FLOATS);
    return list && readFloats(list.floats);
  }

  string(name: string): string | undefined {
    const bytes = this.#get(name, AttributeType.STRING)?.s;
    return bytes && decoder.decode(bytes);
  }

  strings(name: string): readonly string[] | undefined {
    const list = this.#get(name, AttributeType.STRINGS);
    return list && decodeTexts(list.strings);
  }

  tensor(name: string): TensorProto | undefined {
    return this.#get(name, AttributeType.TENSOR)?.t;
  }

  sparse(name: string): SparseTensorProto | undefined {
    return this.#get(name, AttributeType.SPARSE_TENSOR)?.sparseTensor;
  }

  graph(name: string): GraphProto | undefined {
    return this.#get(name, AttributeType.GRAPH)?.g;
  }

  /** 0 or 1 as a truth value. */
  flag(name: string, otherwise: boolean): boolean {
    const value = this.int(name);
    if (value === undefined) return otherwise;
    if (value !== 0 && value !== 1) this.refuse(name, value, "0 or 1");
    return value === 1;
  }

  /** One of a few words; the first is the default. */
  choice<const T extends readonly string[]>(name: string, ...choices: T): T[number] {
    const value = this.string(name);
    if (value === undefined) return choices[0]!;
    if (!choices.includes(value)) this.refuse(name, JSON.stringify(value), choices.join(", "));
    return value;
  }

  /** Attributes that change nothing in inference (momentum…). */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.#read.add(name);
  }

  /** Rejects a value (ONX009). */
  refuse(name: string, value: unknown, allowed: string): never {
    return reject("ONX009", `attribute "${name}" is ${value}; supported: ${allowed}`, {
      at: `${this.#at} attribute "${name}"`,
      help: "export the model with a supported value",
    });
  }

  /** A diagnostic for each attribute that was not asked for. */
  unread(): readonly Diagnostic[] {
    const names = [...this.#map.keys()].filter((name) => !this.#read.has(name));
    return names.map((name) =>
      diagnostic("ONX008", `attribute "${name}" is not known for this operator version`, {
        at: `${this.#at} attribute "${name}"`,
        help: "export the model with an operator set that has the attribute, or remove it",
      }),
    );
  }

  #get(name: string, type: AttributeType): AttributeProto | undefined {
    this.#read.add(name);
    const proto = this.#map.get(name);
    if (!proto) return undefined;
    // Models before IR version 2 do not say the type.
    const matches = proto.type === type || proto.type === AttributeType.UNDEFINED;
    if (!matches || (type === AttributeType.TENSOR && !proto.t)) {
      reject("ONX008", `attribute "${name}" has the wrong type (${proto.type}, not ${type})`, {
        at: `${this.#at} attribute "${name}"`,
        help: "export the model again; the operator's documentation gives the type",
      });
    }
    return proto;
  }
}

/** The number next to an integer of 64 bits, if it is exact: else what old Slices mean by INT64_MAX and INT64_MIN, "to the end". */
function exact(value: number): number {
  return Number.isSafeInteger(value) ? value : Math.sign(value) * 2 ** 41;
}
