/**
 * One process from nothing to the first result of a model: the runtime's package is imported, the model
 * loaded, the inputs run once. In: which runtime, the model's file, the inputs. Out: nanoseconds of each
 * part, and the outputs where they are asked for, both in files of tensors (tensor-files.ts).
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Parts of the way to a first result. */
export interface FirstResult {
  readonly importNs: number;
  readonly loadNs: number;
  readonly runNs: number;
}

export interface Start {
  /** The model or artifact. */
  readonly path: string;
  readonly inputs: string;
  /** A file for the outputs. */
  readonly outputs?: string;
  /** What the runtime takes of the machine: JSON. */
  readonly options: object;
  /** Folder of what earlier loads left. */
  readonly home: string;
}

export type RuntimeName = "wavetile" | "onnxruntime-node";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The built package, as users import it. */
export const builtIndex = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

const arraysText = `{ float32: Float32Array, float64: Float64Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, int8: Int8Array, bool: Uint8Array }`;

/** Each imports its package, then loads `path`, then runs `given`: `[outputs, times]` by name. */
const bodies: Readonly<Record<RuntimeName, string>> = {
  wavetile: `const { load } = await import(${JSON.stringify(builtIndex)});
    const imported = now();
    const feeds = Object.fromEntries(given.map(([name, t]) =>
      [name, { dtype: t.dtype, shape: t.dims, data: t.data }]));
    const begin = now();
    const model = await load(path, options);
    const loaded = now();
    const results = model.run(feeds);
    const end = now();
    const outputs = Object.entries(results).map(([name, t]) => [name, t.dtype, t.shape, t.data]);`,
  "onnxruntime-node": `const { InferenceSession, Tensor } = await import("onnxruntime-node");
    const imported = now();
    const feeds = Object.fromEntries(given.map(([name, t]) => [name, new Tensor(t.type, t.data, t.dims)]));
    const begin = now();
    const session = await InferenceSession.create(path, options);
    const loaded = now();
    const results = await session.run(feeds);
    const end = now();
    const outputs = Object.entries(results).map(([name, t]) => [name, t.type, t.dims, t.data]);`,
};

function scriptOf(runtime: RuntimeName, start: Start): string {
  const { path, inputs, outputs, options } = start;
  return `import { readFileSync, writeFileSync } from "node:fs";
    const arrays = ${arraysText};
    const now = () => performance.now() * 1e6;
    const given = JSON.parse(readFileSync(${JSON.stringify(inputs)}, "utf8")).map((t) => {
      const bytes = Uint8Array.from(Buffer.from(t.data, "base64"));
      return [t.name, { ...t, data: new arrays[t.type](bytes.buffer) }];
    });
    const [path, options] = ${JSON.stringify([path, options])};
    const start = now();
    ${bodies[runtime]}
    const times = { importNs: imported - start, loadNs: loaded - begin, runNs: end - loaded };
    const target = ${JSON.stringify(outputs ?? null)};
    if (target !== null) writeFileSync(target, JSON.stringify(outputs.map(([name, type, dims, { buffer, byteOffset, byteLength }]) =>
      ({ name, type, dims, data: Buffer.from(buffer, byteOffset, byteLength).toString("base64") }))));
    process.stdout.write(JSON.stringify(times), () => process.exit(0));`;
}

/** Throws with what the process said where it failed. */
export function firstResult(runtime: RuntimeName, start: Start): FirstResult {
  const script = scriptOf(runtime, start);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "-e", script],
    { cwd: root, encoding: "utf8", env: { ...process.env, WAVETILE_HOME: start.home } },
  );
  if (status !== 0) throw new Error(`${runtime}, ${start.path}: ${stderr}`);
  return JSON.parse(stdout) as FirstResult;
}
