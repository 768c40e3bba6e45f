/**
 * What an artifact saves: `wavetile optimize` against loading its artifact until it can run, each a
 * process of its own with the built package, in turns. A ratio of 10 means that loading takes a tenth of
 * the time. Two cases a model: `here`, where it was optimized (what optimizing proved and emitted is in
 * the cache folder), and `first`, with an empty cache folder, as on another machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { estimateRatio, type TimingPair } from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";
import { ownVersion } from "../installed.ts";
import { fetchModel } from "../models/fetch.ts";
import { type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase, Suite } from "./suite.ts";

/** Those that `npm ci` installs: nothing is fetched. */
const rows = modelTable.filter((row) => row.source.kind === "dependency");
const rounds = 5;
const built = (name: string): string =>
  fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));
const peerName = "optimize";

export const loadSuite: Suite = {
  name: "load",
  summary: "optimizing a model against loading its artifact, as processes of the built package",
  targets: ["wasm", "cpu"],
  peers: [],
  load: async ({ target, threads }) => ({
    versions: { wavetile: ownVersion() },
    cases: rows.flatMap((row) =>
      (["here", "first"] as const).map((where): ForeignCase => {
        const name = `${row.family}/${row.name}/${where}`;
        return {
          case: name,
          peerName,
          measure: async () => timeRow(name, row, { where, target, threads }),
        };
      }),
    ),
  }),
};

interface Wanted {
  readonly where: "here" | "first";
  readonly target: string;
  readonly threads: number;
}

function timeRow(name: string, row: ModelRow, wanted: Wanted): BenchRow | FailedCase {
  if (!existsSync(built("cli.js"))) {
    const reason = "there is no build: run npm run build";
    return { case: name, peerName, kind: "unsupported", reason };
  }
  const folder = mkdtempSync(join(tmpdir(), "wavetile-load-"));
  const model = join(folder, "model.onnx");
  const output = join(folder, "model.wt");
  writeFileSync(model, unwrap(fetchModel(row)));
  const shapes = Object.entries(row.shapes ?? {}).flatMap(([n, value]) => [
    "--shape",
    `${n}=${value}`,
  ]);
  const optimize = [built("cli.js"), "optimize", model, "-o", output, ...shapes];
  const load = `const { load } = await import(${JSON.stringify(built("index.js"))});
    const options = { threads: ${wanted.threads}, target: ${JSON.stringify(wanted.target)} };
    await (await load(${JSON.stringify(output)}, options)).dispose();`;
  const pairs: TimingPair[] = [];
  for (let round = 0; round < rounds; round++) {
    const home = join(folder, `home-${round}`);
    const peerNs = timeProcess([...optimize, "--target", wanted.target], home);
    const away = wanted.where === "here" ? home : `${home}-away`;
    const oursNs = timeProcess(["--input-type=module", "-e", load], away);
    pairs.push({ oursNs, peerNs });
  }
  rmSync(folder, { recursive: true });
  const { oursNs, peerNs, ratio, low, high, n } = estimateRatio(pairs, new Rng(1));
  return { case: name, peerName, ours: oursNs, peer: peerNs, ratio, low, high, n };
}

function timeProcess(args: readonly string[], home: string): number {
  const start = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...process.env, WAVETILE_HOME: home },
  });
  const end = performance.now();
  if (status !== 0) throw new Error(`node ${args.slice(0, 2).join(" ")}: ${stderr}`);
  return (end - start) * 1e6;
}
