/**
 * Whole models through the command line on a GPU: `wavetile optimize MODEL --target cuda` (which checks every
 * region on the device against the oracle) and `wavetile run ARTIFACT`, the outputs then compared with
 * onnxruntime's on the host (through Python) and the artifact's arenas and launches counted. Models are those
 * of model-cases.ts, with seeded weights; several are compiled side by side, and take turns on the device.
 * Usage: node command-line.mjs CLI [--only TEXT,…] [--processes N] [--budget SECONDS], where CLI is dist/cli.js.
 * Ends with `N passed, N failed`.
 */
import { type SpawnSyncReturns, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readNpy, writeNpy } from "../../src/runtime/files/npy.ts";
import { fetchModel, modelPath } from "../models/fetch.ts";
import { toStored } from "../sessions/stored-tensors.ts";
import { deviceModels, fixedShapes, openCase, rowOf } from "./model-cases.ts";
import { needDevice, take } from "./ptx-launch.ts";

const [cli = "", ...rest] = process.argv.slice(2);
if (!cli.endsWith(".js")) {
  console.error(
    "usage: node command-line.mjs CLI [--only TEXT,…] [--processes N] [--budget SECONDS]",
  );
  process.exit(2);
}
needDevice();
const given = new Map<string, string>();
for (let i = 0; i + 1 < rest.length; i += 2) given.set(rest[i]!, rest[i + 1]!);
const only = (given.get("--only") ?? "").split(",");
const budget = given.get("--budget");
const processes = Number(given.get("--processes") ?? 6);

/** The peer's logistic function comes from a value near 1, and has that one's error where it is near 0. */
const peerRounding = 2 ** -23;

const peer = `
import sys, json, numpy, onnxruntime
case = json.load(open(sys.argv[1]))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
s = onnxruntime.InferenceSession(case["model"], options, providers=["CPUExecutionProvider"])
for name, y in zip(case["outputs"], s.run(case["outputs"], {k: numpy.load(v) for k, v in case["inputs"].items()})):
    numpy.save(case["files"][name], y.astype(numpy.float32))
`;

const names = deviceModels.filter((name) => only.some((part) => name.includes(part)));
const waiting = [...names];
let [passed, failed] = [0, 0];
await Promise.all(
  Array.from({ length: processes }, async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const began = performance.now();
      const lines: string[] = [];
      const fault = await faultOf(name, lines).catch((error) => String(error).slice(0, 900));
      if (fault === undefined) passed++;
      else failed++;
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      console.log(`${fault === undefined ? "ok  " : "FAIL"} ${name} (${seconds} s) ${fault ?? ""}`);
      for (const line of lines) console.log(`     ${line}`);
    }
  }),
);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function faultOf(name: string, lines: string[]): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "wavetile-cli-"));
  try {
    return await compareIn(folder, name, lines);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compareIn(
  folder: string,
  name: string,
  lines: string[],
): Promise<string | undefined> {
  const { row, first } = rowOf(name);
  const bytes = take(fetchModel(row));
  const opened = openCase(name);
  const model = join(folder, "model.onnx");
  const beside = modelPath(row);
  // Weights that lie beside a model are found from where it is.
  if (beside === undefined) writeFileSync(model, bytes);
  else symlinkSync(beside, model);
  const inputs: Record<string, string> = {};
  for (const [input, tensor] of Object.entries(opened.feeds)) {
    inputs[input] = join(folder, `in-${Object.keys(inputs).length}.npy`);
    writeFileSync(inputs[input], take(writeNpy(toStored(tensor))));
  }
  const shapes = fixedShapes(bytes, first);
  const shape = Object.entries(shapes).flatMap(([k, v]) => ["--shape", `${k}=${v}`]);
  const artifact = join(folder, "model.wt");
  const more = budget === undefined ? [] : ["--budget", budget];
  const source = beside ?? model;
  const made = await wavetile(
    "optimize",
    source,
    "--target",
    "cuda",
    ...shape,
    ...more,
    "-o",
    artifact,
  );
  if (made.status !== 0) return `optimize: exit ${made.status} ${made.stderr.slice(0, 700)}`;
  const { arenas, regions, measured } = made.data as unknown as {
    readonly arenas: Record<string, number>;
    readonly regions: readonly { readonly check: { readonly checked: number } | null }[];
    readonly measured?: unknown;
  };
  const checks = regions.map((r) => r.check?.checked ?? 0);
  const points = checks.reduce((a, b) => a + b, 0);
  const mb = Object.entries(arenas).map(([k, v]) => `${k} ${(v / 1e6).toFixed(1)}`);
  lines.push(
    `${regions.length} regions, ${checks.filter((c) => c > 0).length} compared with the oracle in ${points} elements; MB: ${mb.join(", ")}`,
  );
  if (measured) lines.push(`measured: ${JSON.stringify(measured).slice(0, 300)}`);
  const out = join(folder, "out");
  const feeds = Object.entries(inputs).flatMap(([k, v]) => ["--input", `${k}=${v}`]);
  const ran = await wavetile("run", artifact, "--target", "cuda", ...feeds, "--output-dir", out);
  if (ran.status !== 0) return `run: exit ${ran.status} ${ran.stderr.slice(0, 700)}`;
  return compare({ folder, source, name, inputs, ran: ran.data as never }, opened, lines);
}

interface Ran {
  readonly folder: string;
  readonly source: string;
  readonly name: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly ran: { readonly outputs: readonly { readonly name: string; readonly file: string }[] };
}

async function compare(
  { folder, source, inputs, ran }: Ran,
  { tolerances }: ReturnType<typeof openCase>,
  lines: string[],
): Promise<string | undefined> {
  const outputs = ran.outputs.map((o) => o.name);
  mkdirSync(join(folder, "peer"));
  const files = Object.fromEntries(outputs.map((o, i) => [o, join(folder, "peer", `${i}.npy`)]));
  const description = join(folder, "case.json");
  writeFileSync(description, JSON.stringify({ model: source, outputs, inputs, files }));
  const judged = await start("python3", ["-c", peer, description]);
  if (judged.status !== 0) return `onnxruntime: ${judged.stderr.slice(-400)}`;
  let fault: string | undefined;
  for (const [i, { name, file }] of ran.outputs.entries()) {
    const [ours, theirs] = [file, files[name]!].map((path) =>
      Float64Array.from(take(readNpy(readFileSync(path))).data as ArrayLike<number>, Number),
    ) as [Float64Array, Float64Array];
    const scale = theirs.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-30);
    let worst = ours.length === theirs.length ? 0 : Infinity;
    for (let e = 0; e < theirs.length; e++) {
      const off = Math.max(0, Math.abs(ours[e]! - theirs[e]!) - peerRounding) / scale;
      worst = Number.isNaN(off) ? Infinity : Math.max(worst, off);
    }
    const words = `${name}: ${worst.toExponential(1)} of its largest from onnxruntime, allowed ${tolerances[i]!.toExponential(1)}`;
    lines.push(words);
    if (!(worst <= tolerances[i]!)) fault ??= words;
  }
  return fault;
}

interface Answer extends Pick<SpawnSyncReturns<string>, "status" | "stdout" | "stderr"> {
  readonly data?: Record<string, unknown>;
}

async function wavetile(...args: readonly string[]): Promise<Answer> {
  const answer = await start(process.execPath, [cli, ...args, "--json"]);
  if (answer.status !== 0) return { ...answer, stderr: `${answer.stderr} ${answer.stdout}` };
  return { ...answer, data: JSON.parse(answer.stdout).data };
}

function start(command: string, args: readonly string[]): Promise<Answer> {
  const child = spawn(command, args, { cwd: dirname(cli) });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (d) => (stdout += String(d)));
  child.stderr.on("data", (d) => (stderr += String(d)));
  return new Promise((resolve) =>
    child.on("close", (status) => resolve({ status, stdout, stderr })),
  );
}
