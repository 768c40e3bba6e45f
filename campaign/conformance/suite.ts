/**
 * The ONNX backend test suite from the archive beside the repository: one case a folder with a model
 * and data sets of inputs and expected outputs. The archive is unpacked once into the cache.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import type { ModelProto, ValueInfoProto } from "../../src/frontend/onnx/generated/onnx_pb.ts";
import type { HostValue } from "../../src/frontend/onnx/host-value.ts";
import { readModelFile } from "../../src/frontend/onnx/model-file.ts";
import { invariant } from "../../src/support/invariant.ts";
import { readValueFile } from "./value-file.ts";

const shared = new URL("../../../shared/conformance/onnx-node-simple.tar.xz", import.meta.url);
const archive = fileURLToPath(shared);
const unpacked = fileURLToPath(new URL("../../.cache/conformance", import.meta.url));

export interface DataSet {
  readonly inputs: readonly HostValue[];
  readonly outputs: readonly HostValue[];
}

export interface ConformanceCase {
  readonly model: Uint8Array;
  readonly proto: ModelProto;
  readonly inputNames: readonly string[];
  readonly dataSets: readonly DataSet[];
}

/** Unpacks the archive unless that was done; what is missing, as a sentence, or undefined. */
export function prepareSuite(): string | undefined {
  if (existsSync(join(unpacked, "complete"))) return undefined;
  const path = process.env.WAVETILE_CONFORMANCE ?? archive;
  if (!existsSync(path)) return `the test suite (${path}) is not here`;
  mkdirSync(dirname(unpacked), { recursive: true });
  // Campaigns that start together each unpack; the first that is ready gives the place its name.
  const own = mkdtempSync(join(dirname(unpacked), "conformance-"));
  const run = spawnSync("tar", ["-xJf", path, "-C", own], { encoding: "utf8" });
  if (run.status === 0) {
    mkdirSync(join(own, "complete"));
    if (!existsSync(join(unpacked, "complete"))) rmSync(unpacked, { recursive: true, force: true });
    if (!existsSync(unpacked)) renameSync(own, unpacked);
  }
  rmSync(own, { recursive: true, force: true });
  return run.status === 0 ? undefined : `cannot unpack the test suite: ${run.stderr}`;
}

/** Names of all cases, `node/test_abs` for one, in a fixed order. */
export function caseNames(): readonly string[] {
  return ["node", "simple"].flatMap((group) =>
    readdirSync(join(unpacked, group))
      .sort()
      .map((name) => `${group}/${name}`),
  );
}

export function readCase(name: string): ConformanceCase {
  const folder = join(unpacked, name);
  const model = readFileSync(join(folder, "model.onnx"));
  const proto = unwrap(readModelFile(model));
  invariant(proto.graph !== undefined, () => `${name} has no graph`);
  const weights = new Set(proto.graph.initializer.map((t) => t.name));
  const inputs = proto.graph.input.filter((v) => !weights.has(v.name));
  const sets = readdirSync(folder).filter((entry) => entry.startsWith("test_data_set_"));
  return {
    model,
    proto,
    inputNames: inputs.map((v) => v.name),
    dataSets: sets.sort().map((set) => ({
      inputs: readValues(join(folder, set), "input", inputs),
      outputs: readValues(join(folder, set), "output", proto.graph!.output),
    })),
  };
}

function readValues(
  folder: string,
  kind: "input" | "output",
  declared: readonly ValueInfoProto[],
): readonly HostValue[] {
  const count = readdirSync(folder).filter((f) => f.startsWith(`${kind}_`)).length;
  return Array.from({ length: count }, (_, i) => {
    const bytes = readFileSync(join(folder, `${kind}_${i}.pb`));
    return readValueFile(bytes, declared[i]?.type);
  });
}
