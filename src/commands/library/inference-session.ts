/**
 * The shape of onnxruntime's InferenceSession over a loaded model, so that trying Wavetile is a change
 * of one import. What a session option would silently not do is not accepted: only the options below.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { diagnostic } from "../../support/diagnostic.ts";
import { named } from "../../support/named.ts";
import { type LoadOptions, load } from "./load.ts";
import type { LoadedModel, Tensors } from "./loaded-model.ts";
import type { Port } from "./ports.ts";
import { WavetileError } from "./wavetile-error.ts";

/** A tensor as onnxruntime has it. Extra members, as of onnxruntime's own class, are ignored. */
export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: Tensor["data"];
}

export type OnnxFeeds = Readonly<Record<string, OnnxTensor>>;

const dtypeOf: Readonly<Record<string, DType>> = {
  float32: "f32",
  float64: "f64",
  float16: "f16",
  int8: "i8",
  int16: "i16",
  int32: "i32",
  int64: "i64",
  uint8: "u8",
  uint16: "u16",
  uint32: "u32",
  uint64: "u64",
  bool: "bool",
};
const typeOf = new Map(Object.entries(dtypeOf).map(([type, dtype]) => [dtype, type]));

export class InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly Port[];
  readonly outputMetadata: readonly Port[];
  readonly #model: LoadedModel;

  static async create(
    source: string | Uint8Array,
    options: LoadOptions = {},
  ): Promise<InferenceSession> {
    return new InferenceSession(await load(source, options));
  }

  private constructor(model: LoadedModel) {
    this.#model = model;
    this.inputMetadata = model.inputs;
    this.outputMetadata = model.outputs;
    this.inputNames = model.inputs.map((p) => p.name);
    this.outputNames = model.outputs.map((p) => p.name);
  }

  /** All outputs, or those named in `fetches`; a tensor there takes its output in place of a new one. */
  async run(
    feeds: OnnxFeeds,
    fetches: readonly string[] | Readonly<Record<string, OnnxTensor | null>> = this.outputNames,
  ): Promise<Record<string, OnnxTensor>> {
    const given = Array.isArray(fetches) ? {} : (fetches as Record<string, OnnxTensor | null>);
    const wanted = Array.isArray(fetches) ? (fetches as readonly string[]) : Object.keys(fetches);
    const unknown = wanted.find((name) => !this.outputNames.includes(name));
    if (unknown !== undefined) {
      refuse(`the model has no output "${unknown}"`, `its outputs: ${this.outputNames.join(", ")}`);
    }
    const taking = Object.entries(given).filter((e): e is [string, OnnxTensor] => e[1] !== null);
    const outputs = await this.#model.runAsync(fromOnnx(feeds, "input"), {
      ...(taking.length > 0 && { outputs: fromOnnx(Object.fromEntries(taking), "output") }),
    });
    return Object.fromEntries(wanted.map((n) => [n, named(given, n) ?? toOnnx(outputs[n]!)]));
  }

  async release(): Promise<void> {
    await this.#model.dispose();
  }
}

function fromOnnx(feeds: OnnxFeeds, kind: "input" | "output"): Tensors {
  return Object.fromEntries(
    Object.entries(feeds).map(([name, { type, dims, data }]) => {
      const dtype = Object.hasOwn(dtypeOf, type) ? dtypeOf[type] : undefined;
      if (!dtype)
        refuse(`${kind} "${name}": type ${type} is not carried`, Object.keys(dtypeOf).join(", "));
      return [name, { dtype, shape: dims, data }];
    }),
  );
}

function toOnnx({ dtype, shape, data }: Tensor): OnnxTensor {
  const type = typeOf.get(dtype);
  if (!type) refuse(`an output is ${dtype}, which has no type name in onnxruntime`, "use load()");
  return { type, dims: shape, data };
}

function refuse(message: string, help: string): never {
  throw new WavetileError([diagnostic("RUN036", message, { help })]);
}
