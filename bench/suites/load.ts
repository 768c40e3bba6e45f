/**
 * What an artifact saves: optimizing a model against loading its artifact until it can run, in turns in
 * one process. A ratio of 10 means that loading takes a tenth.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { optimizeModel } from "../../src/commands/actions/optimize.ts";
import { load } from "../../src/commands/library/load.ts";
import { estimateRatio, type TimingPair } from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";
import { ownVersion } from "../installed.ts";
import { fetchModel } from "../models/fetch.ts";
import { type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase, Suite } from "./suite.ts";

/** Those that `npm ci` installs: nothing is fetched. */
const rows = modelTable.filter((row) => row.source.kind === "dependency");
const rounds = 5;

export const loadSuite: Suite = {
  name: "load",
  summary: "optimizing a model against loading its artifact",
  targets: ["wasm"],
  peers: [],
  load: async ({ threads }) => ({
    versions: { wavetile: ownVersion() },
    cases: rows.map((row): ForeignCase => {
      const name = `${row.family}/${row.name}`;
      return {
        case: name,
        peerName: "optimize",
        measure: async () => ({
          case: name,
          peerName: "optimize",
          ...(await timeRow(row, threads)),
        }),
      };
    }),
  }),
};

async function timeRow(
  row: ModelRow,
  threads: number,
): Promise<Omit<BenchRow, "case" | "peerName">> {
  const folder = mkdtempSync(join(tmpdir(), "wavetile-load-"));
  const model = join(folder, "model.onnx");
  const output = join(folder, "model.wt");
  writeFileSync(model, unwrap(fetchModel(row)));
  const shape = Object.entries(row.shapes ?? {}).map(([name, value]) => `${name}=${value}`);
  const context = {
    now: () => performance.now(),
    progress: () => {},
    interrupted: () => new AbortController().signal,
  };
  const pairs: TimingPair[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    unwrap(
      await optimizeModel(
        { model, output, shape, state: [], target: "auto", seed: round },
        context,
      ),
    );
    const middle = performance.now();
    const loaded = await load(output, { threads });
    const end = performance.now();
    await loaded.dispose();
    pairs.push({ oursNs: (end - middle) * 1e6, peerNs: (middle - start) * 1e6 });
  }
  rmSync(folder, { recursive: true });
  return rowOf(pairs);
}

function rowOf(pairs: readonly TimingPair[]): Omit<BenchRow, "case" | "peerName"> {
  const { oursNs, peerNs, ratio, low, high, n } = estimateRatio(pairs, new Rng(1));
  return { ours: oursNs, peer: peerNs, ratio, low, high, n };
}
