/**
 * All of rewriting (parts, saturation, extraction, splicing, prices) on whole networks against a limit of three
 * seconds of processor time: of the first run in a process that was just started, with the engine set as the
 * command line sets it, the least of a few processes. Every run has to give the same text.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { shortRunFlags } from "../../src/runtime/engine-flags.ts";
import type { Target } from "../../src/target/target.ts";
import { modelTable } from "../models/table.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { wholeNetworks } from "./whole-networks.ts";

const limitNs = 3e9;
const processes = 3;
const peerName = "limit of 3 s";

/** What a process of scale-run.ts prints. */
export interface ScaleRun {
  readonly firstNs: number;
  readonly againNs: number;
  readonly nodes: number;
  readonly hashes: readonly string[];
}

export function scaleCases(target: Target): readonly ForeignCase[] {
  const read = modelTable.map((row) => row.name).filter((name) => name.startsWith("ppocr"));
  return [...Object.keys(wholeNetworks), ...read].map((network) => scaleCase(network, target));
}

function scaleCase(network: string, target: Target): ForeignCase {
  const name = `scale/${network}`;
  const measure = async (): Promise<BenchRow | FailedCase> => {
    const runs = Array.from({ length: processes }, () => runOnce(network, target));
    const texts = new Set(runs.flatMap((run) => run.hashes));
    if (texts.size > 1) {
      const reason = `${texts.size} different graphs came out of ${2 * processes} runs`;
      return { case: name, peerName, kind: "wrong", reason };
    }
    const first = runs.map((run) => run.firstNs);
    const ours = Math.min(...first);
    const ratio = limitNs / ours;
    const figures = { ours, peer: limitNs, peerName, ratio, low: limitNs / Math.max(...first) };
    const beside = {
      nodes: runs[0]!.nodes,
      "again, ms": Math.min(...runs.map((run) => run.againNs)) / 1e6,
      graph: [...texts].join().slice(0, 12),
    };
    return { case: name, ...figures, high: ratio, n: processes, onlyWorst: true, beside };
  };
  return { case: name, peerName, measure };
}

function runOnce(network: string, target: Target): ScaleRun {
  const script = fileURLToPath(new URL("scale-run.ts", import.meta.url));
  const args = [...shortRunFlags(), "--import", "tsx", script, network, target.name];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${network}: ${stderr}`);
  return JSON.parse(stdout) as ScaleRun;
}
