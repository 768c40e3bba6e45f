/**
 * What `wavetile optimize` takes as a user runs it: a process of its own from the built package, nothing in
 * its cache folder, checks included. ours is its time, the peer the time that it may take; beside it the
 * processor time of all its processes, which other users of the machine disturb less. A model that takes
 * more of the processor than the most it ever should is a failure.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { median } from "../../src/runtime/measure/statistics.ts";
import { ownVersion } from "../installed.ts";
import { fetchModel, modelPath } from "../models/fetch.ts";
import { findModel, type ModelRow } from "../models/table.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase, Suite } from "./suite.ts";

interface Limits {
  readonly seconds: number;
  /** Of the processor, all processes together: a busy machine stays below that, a regression does not. */
  readonly mostProcessorSeconds: number;
}

/** By the kind of target; an artifact with machine code has a program for WebAssembly too. */
const allowed: Readonly<Record<string, { readonly wasm: Limits; readonly native: Limits }>> = {
  "mobilenet-v2": {
    wasm: { seconds: 3, mostProcessorSeconds: 10 },
    native: { seconds: 2, mostProcessorSeconds: 19 },
  },
  "minilm-l6": {
    wasm: { seconds: 7, mostProcessorSeconds: 16 },
    native: { seconds: 10, mostProcessorSeconds: 30 },
  },
  "gpt-2": {
    wasm: { seconds: 7, mostProcessorSeconds: 26 },
    native: { seconds: 10, mostProcessorSeconds: 44 },
  },
};
const rounds = 3;
const peerName = "allowed";
const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

export const optimizeSuite: Suite = {
  name: "optimize",
  summary: "wavetile optimize as a process of the built package, against the time it may take",
  targets: ["wasm", "cpu", "x64-avx512-vnni", "x64-avx512", "x64-avx2"],
  peers: [],
  load: async ({ target: asked }) => {
    const name = asked === "cpu" ? (runnableTargets().names[0] ?? asked) : asked;
    return {
      versions: { wavetile: ownVersion() },
      cases: Object.entries(allowed).map(([model, limits]): ForeignCase => {
        const title = `${model}/${name}`;
        const limit = asked === "wasm" ? limits.wasm : limits.native;
        const row = findModel(model)!;
        return { case: title, peerName, measure: async () => timeRow(title, row, name, limit) };
      }),
    };
  },
};

function timeRow(
  title: string,
  row: ModelRow,
  target: string,
  { seconds, mostProcessorSeconds }: Limits,
): BenchRow | FailedCase {
  if (!existsSync(cli)) {
    const reason = "there is no build: run npm run build";
    return { case: title, peerName, kind: "unsupported", reason };
  }
  const folder = mkdtempSync(join(tmpdir(), "wavetile-optimize-"));
  let model = modelPath(row);
  if (model === undefined) {
    model = join(folder, "model.onnx");
    writeFileSync(model, unwrap(fetchModel(row)));
  }
  const shapes = Object.entries(row.shapes ?? {}).flatMap(([n, v]) => ["--shape", `${n}=${v}`]);
  const runs = Array.from({ length: rounds }, (_, i) => {
    const home = join(folder, `home-${i}`);
    const args = ["optimize", model, "-o", join(folder, "model.wt"), "--target", target, ...shapes];
    return timeProcess([cli, ...args], home);
  });
  rmSync(folder, { recursive: true });
  const peer = seconds * 1e9;
  const walls = runs.map((r) => r.wallNs);
  const processor = median(runs.map((r) => r.processorSeconds));
  if (processor > mostProcessorSeconds) {
    const reason = `${processor.toFixed(1)} s of processor time, more than ${mostProcessorSeconds} s`;
    return { case: title, peerName, kind: "slow", reason };
  }
  return {
    case: title,
    peerName,
    ours: median(walls),
    peer,
    ratio: peer / median(walls),
    low: peer / Math.max(...walls),
    high: peer / Math.min(...walls),
    n: rounds,
    // Zero where the system does not tell.
    beside: { processorSeconds: processor },
  };
}

interface Run {
  readonly wallNs: number;
  readonly processorSeconds: number;
}

function timeProcess(args: readonly string[], home: string): Run {
  const before = childSeconds();
  const start = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...process.env, WAVETILE_HOME: home },
  });
  const wallNs = (performance.now() - start) * 1e6;
  if (status !== 0) throw new Error(`node ${args.slice(0, 3).join(" ")}: ${stderr}`);
  return { wallNs, processorSeconds: childSeconds() - before };
}

/** Clock ticks of Linux's process files, whatever the kernel's own. */
const ticksPerSecond = 100;

/** Processor time of children that have ended, with theirs (proc(5): cutime and cstime); 0 elsewhere. */
function childSeconds(): number {
  const path = "/proc/self/stat";
  if (!existsSync(path)) return 0;
  const text = readFileSync(path, "utf8");
  // The command's name, in parentheses, may hold spaces.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
}
