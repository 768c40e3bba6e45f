/**
 * External data that leads out of the model's folder, as text, by a link or by a link to a folder, is never
 * read; what is no plain file (a folder, a pipe that nobody writes to) and ranges that the file does not
 * have are refused at once.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readModelFile } from "../../src/runtime/files/model-source.ts";
import type { Rng } from "../../src/support/rng.ts";
import type { Finding } from "../campaign.ts";
import { externalModel } from "./base-models.ts";
import { judge } from "./judge.ts";

const secret = "outside the folder of the model";

export function outside(rng: Rng): Finding {
  const home = mkdtempSync(join(tmpdir(), "wavetile-fuzz-"));
  try {
    const folder = mkdtempSync(join(home, "model-"));
    const target = join(home, "secret.bin");
    writeFileSync(target, secret);
    const { location, offset, length } = lay(home, folder, rng);
    const path = join(folder, "model.onnx");
    writeFileSync(path, externalModel(location, offset, length));
    return judgeRefused(path, location);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

interface Bait {
  readonly location: string;
  readonly offset: number;
  readonly length: number;
}

function lay(home: string, folder: string, rng: Rng): Bait {
  const target = join(home, "secret.bin");
  const offset = rng.pick([0, 4]);
  if (rng.integer(0, 3) === 0) return { ...layBroken(folder, rng), length: 16 };
  symlinkSync(target, join(folder, "link.bin"));
  symlinkSync("link.bin", join(folder, "second.bin"));
  symlinkSync(home, join(folder, "up"));
  symlinkSync("/dev/zero", join(folder, "zeros"));
  symlinkSync("self", join(folder, "self"));
  const location = rng.pick([
    "../secret.bin",
    target,
    "link.bin",
    "second.bin",
    "up/secret.bin",
    "x/../../secret.bin",
    `file://${target}`,
    "..\\secret.bin",
    "./../secret.bin",
    "..//secret.bin",
    "%2e%2e/secret.bin",
    "/etc/hostname",
    "up/../..",
    "zeros",
    "self",
    "/proc/self/environ",
    "link.bin\0",
    "",
    "a/".repeat(5000),
  ]);
  return { location, offset, length: 16 };
}

/** Inside the folder, and not sixteen bytes of a file. */
function layBroken(folder: string, rng: Rng): Omit<Bait, "length"> {
  const location = "data.bin";
  const at = join(folder, location);
  const kind = rng.pick(["folder", "pipe", "short", "far"]);
  if (kind === "folder") mkdirSync(at);
  else if (kind === "pipe") execFileSync("mkfifo", [at]);
  else writeFileSync(at, new Uint8Array(8));
  return { location, offset: kind === "far" ? rng.pick([2 ** 31, 2 ** 53 - 1]) : 0 };
}

function judgeRefused(path: string, location: string): Finding {
  const source = unwrap(readModelFile(path));
  const imported = importOnnx(source.bytes, { readExternal: source.readExternal });
  if (!imported.ok) return judge(imported);
  const kept = imported.value.graph.weights.some((w) => w.source.kind === "inline");
  return { kind: "failed", reason: `${location} is ${kept ? "read" : "accepted"}` };
}
