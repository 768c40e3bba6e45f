/** The optional peer onnxruntime-node: loaded only when a command asks for it. */
import type { Tensor } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Tensors } from "./loaded-model.ts";

export interface Peer {
  readonly name: string;
  run(feeds: Tensors): Promise<Result<Tensors>>;
  release(): Promise<void>;
}

const typeOf: Readonly<Record<string, string>> = {
  f32: "float32",
  f64: "float64",
  f16: "float16",
  i8: "int8",
  i16: "int16",
  i32: "int32",
  i64: "int64",
  u8: "uint8",
  u16: "uint16",
  u32: "uint32",
  u64: "uint64",
  bool: "bool",
};
const dtypeOf = new Map(Object.entries(typeOf).map(([dtype, type]) => [type, dtype]));

type Runtime = typeof import("onnxruntime-node");

async function importRuntime(): Promise<Result<Runtime>> {
  try {
    return ok(await import("onnxruntime-node"));
  } catch (error) {
    const missing =
      error instanceof Error && "code" in error && /MODULE_NOT_FOUND/.test(String(error.code));
    if (!missing) throw error;
    return fail(
      diagnostic("CLI003", "onnxruntime-node is not installed", {
        help: "npm install onnxruntime-node",
      }),
    );
  }
}

/** What it throws is what it says of the model or of its inputs. */
async function asked<T>(what: "model" | "run", ask: () => Promise<T>): Promise<Result<T>> {
  try {
    return ok(await ask());
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return fail(
      diagnostic("CLI010", `onnxruntime refused the ${what}: ${error.message}`, {
        help: "wavetile verify --against oracle needs no peer; inputs that it takes are given by --input of verify, or --value",
      }),
    );
  }
}

/** Newer engines have an array type for f16; ours holds its bits. */
function storedBits(data: Tensor["data"]): Tensor["data"] {
  if ((data.constructor.name as string) !== "Float16Array") return data;
  return new Uint16Array(data.buffer, data.byteOffset, data.length);
}

/**
 * Opens an ONNX model in onnxruntime with `threads` threads. One with external data only by its path: from bytes it
 * looks for them in the process's folder.
 */
export async function openPeer(
  source: string | Uint8Array,
  threads: number,
): Promise<Result<Peer>> {
  const runtime = await importRuntime();
  if (!runtime.ok) return runtime;
  const { InferenceSession, Tensor: OrtTensor } = runtime.value;
  const options = {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
    extra: { session: { force_spinning_stop: "1" } },
  } as const;
  const opened = await asked("model", () =>
    typeof source === "string"
      ? InferenceSession.create(source, options)
      : InferenceSession.create(source, options),
  );
  if (!opened.ok) return opened;
  const session = opened.value;
  const construct = (t: Tensor) => {
    const made = new OrtTensor(typeOf[t.dtype] as "float32", t.data as Float32Array, t.shape);
    // Where the engine has Float16Array the tensor turns our bits into one, and the binding of 1.30 takes its
    // length to be 0 (microsoft/onnxruntime, pull request 32323). It reads the bits themselves everywhere.
    return t.dtype === "f16" ? Object.defineProperty(made, "data", { value: t.data }) : made;
  };
  return ok({
    name: "onnxruntime",
    run: async (feeds) => {
      const given = Object.entries(feeds).map(([name, t]) => [name, construct(t)] as const);
      const ran = await asked("run", () => session.run(Object.fromEntries(given)));
      if (!ran.ok) return ran;
      const outputs = Object.entries(ran.value).map(([name, value]) => {
        const { type, dims, data } = value as InstanceType<typeof OrtTensor>;
        const dtype = dtypeOf.get(type) as Tensor["dtype"];
        return [name, { dtype, shape: dims, data: storedBits(data as Tensor["data"]) }] as const;
      });
      return ok(Object.fromEntries(outputs));
    },
    release: () => session.release(),
  });
}
