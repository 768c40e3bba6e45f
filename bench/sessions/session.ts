/**
 * The one interface through which demo and bench see an inference runtime, shaped like
 * onnxruntime's InferenceSession: named tensors in, named tensors out. ort-node.ts and ort-web.ts
 * implement it for the two peers.
 */
import { invariant } from "../../src/support/invariant.ts";

/** Element types that the demo's and the benches' models carry, with the array that holds each. */
export interface TensorArrays {
  float32: Float32Array;
  float64: Float64Array;
  int32: Int32Array;
  int64: BigInt64Array;
  uint8: Uint8Array;
  int8: Int8Array;
  bool: Uint8Array;
}
export type ElementType = keyof TensorArrays;

/** A dense row-major tensor. */
export type Tensor = {
  [T in ElementType]: {
    readonly type: T;
    readonly dims: readonly number[];
    readonly data: TensorArrays[T];
  };
}[ElementType];

export type Tensors = Readonly<Record<string, Tensor>>;

/** A declared input or output; a string dimension is symbolic. */
export interface TensorInfo {
  readonly name: string;
  readonly type: ElementType;
  readonly dims: readonly (number | string)[];
}

/** One row of a runtime's own account of where its time goes. */
export interface RegionRow {
  readonly region: string;
  readonly ops: string;
  readonly medianNs: number;
}

/** What a graph does at its largest extents: operations, and bytes that its nodes read and write. */
export interface GraphWork {
  readonly flops: number;
  readonly bytes: number;
}

/** A loaded model. */
export interface Session {
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /** @param into what the outputs were in a run before, of the same shapes: may be written in place of new tensors */
  run(feeds: Tensors, into?: Tensors): Promise<Tensors>;
  /** Where the time of the last runs went, for a runtime that can tell. */
  profile?(): readonly RegionRow[];
  /** Of the graph that is run, and of the one that it was made from, where the runtime shows them. */
  readonly work?: { readonly imported: GraphWork; readonly run: GraphWork };
  /** Of what is run: sessions with one text run the same program. */
  readonly program?: string;
  /** Nanoseconds that no correct run on such inputs can stay below, for a runtime that knows its work. */
  floorNs?(feeds: Tensors): Promise<number>;
  release(): Promise<void>;
}

/** What is known of a model's use before it is opened; a runtime may ignore it. */
export interface ModelHints {
  /** Inputs that are the same in every run; `run` is given them all the same. */
  readonly constants?: Tensors;
  /** What symbolic dimensions may be, as after `--shape`: `W` to `32..960`. */
  readonly shapes?: Readonly<Record<string, string>>;
  /** The path of the model's file, where weights lie in files beside it. */
  readonly path?: string;
}

/** A runtime that loads models. */
export interface Runtime {
  /** As printed beside numbers: `onnxruntime-node`. */
  readonly name: string;
  readonly version: string;
  readonly threads: number;
  open(model: Uint8Array, hints?: ModelHints): Promise<Session>;
}

export function float32Tensor(dims: readonly number[], data: Float32Array): Tensor {
  const count = dims.reduce((a, b) => a * b, 1);
  invariant(count === data.length, () => `${data.length} elements for shape [${dims.join(", ")}]`);
  return { type: "float32", dims, data };
}

/** The named tensor as float32; an absent name or another type is a bug of the caller. */
export function takeFloat32(tensors: Tensors, name: string): Tensor & { type: "float32" } {
  const tensor = tensors[name];
  invariant(tensor?.type === "float32", () => `${name}: float32 expected, found ${tensor?.type}`);
  return tensor;
}
