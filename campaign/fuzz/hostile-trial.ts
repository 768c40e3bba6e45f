/**
 * One trial of the fuzzing campaign, run in a child process: a damaged model, input or artifact is
 * given to the library's doors. Each answer must be a result or diagnostics with codes, whatever was
 * given; what is thrown is a find.
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { tensorNames } from "../../src/artifact/artifact.ts";
import { readArtifact } from "../../src/artifact/read-artifact.ts";
import { writeArtifact } from "../../src/artifact/write-artifact.ts";
import { openModel, startSession } from "../../src/commands/library/open-model.ts";
import { sampleModel } from "../../src/commands/library/sample-model.test-support.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readSafetensors, writeSafetensors } from "../../src/frontend/safetensors/safetensors.ts";
import { readModelFile } from "../../src/runtime/files/model-source.ts";
import { allDTypes } from "../../src/semantics/dtype.ts";
import { randomTensor, type Tensor } from "../../src/semantics/tensor.ts";
import type { Result } from "../../src/support/diagnostic.ts";
import { diagnosticCodes } from "../../src/support/diagnostic-codes.ts";
import { sha256 } from "../../src/support/hash.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Finding, passed } from "../campaign.ts";
import { baseModels, externalModel } from "./base-models.ts";
import { mutateBytes, mutateModel } from "./mutate.ts";

const kinds = [damagedBytes, damagedBytes, changedModel, changedModel, outside, inputs, artifact];

export function hostileTrial(seed: number): Finding {
  const rng = new Rng(seed);
  return kinds[seed % kinds.length]!(rng);
}

/** A result, or a refusal whose diagnostics all have known codes. */
function judge(result: Result<unknown>): Finding {
  if (result.ok) return passed;
  const unknown = result.diagnostics.filter((d) => !Object.hasOwn(diagnosticCodes, d.code));
  if (result.diagnostics.length > 0 && unknown.length === 0) return passed;
  return { kind: "failed", reason: `a refusal without a code: ${JSON.stringify(result)}` };
}

function damagedBytes(rng: Rng): Finding {
  return judge(importOnnx(mutateBytes(rng.pick(baseModels), rng)));
}

function changedModel(rng: Rng): Finding {
  return judge(importOnnx(mutateModel(rng.pick(baseModels), rng)));
}

const secret = "outside the folder of the model";

/** External data that leads out of the model's folder, as text or by a link, is never read. */
function outside(rng: Rng): Finding {
  const home = mkdtempSync(join(tmpdir(), "wavetile-fuzz-"));
  try {
    const folder = mkdtempSync(join(home, "model-"));
    const target = join(home, "secret.bin");
    writeFileSync(target, secret);
    symlinkSync(target, join(folder, "link.bin"));
    symlinkSync(home, join(folder, "up"));
    const locations = ["../secret.bin", target, "link.bin", "up/secret.bin", "x/../../secret.bin"];
    const more = [
      `file://${target}`,
      "..\\secret.bin",
      "./../secret.bin",
      "/etc/hostname",
      "up/../..",
    ];
    const location = rng.pick([...locations, ...more]);
    const path = join(folder, "model.onnx");
    writeFileSync(path, externalModel(location, rng.pick([0, 4]), 16));
    return judgeOutside(path, location);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function judgeOutside(path: string, location: string): Finding {
  const source = unwrap(readModelFile(path));
  const imported = importOnnx(source.bytes, { readExternal: source.readExternal });
  if (!imported.ok) return judge(imported);
  const kept = imported.value.graph.weights.some((w) => w.source.kind === "inline");
  return { kind: "failed", reason: `${location} is ${kept ? "read" : "accepted"}` };
}

const opened = unwrap(
  openModel(
    { bytes: sampleModel(48) },
    { target: "wasm", seed: 3, shapes: { M: { min: 1, max: 8 } } },
  ),
);
const session = unwrap(startSession(opened, 1));

/** Feeds of another type, shape, length or name. */
function inputs(rng: Rng): Finding {
  const feeds: Record<string, Tensor> = {};
  for (const port of session.inputs) {
    const shape = port.shape.map((d) => (d.terms.length > 0 ? rng.integer(1, 8) : d.constant));
    feeds[port.name] = damaged({ dtype: port.dtype, shape }, rng);
    if (rng.integer(0, 15) === 0) delete feeds[port.name];
  }
  if (rng.integer(0, 15) === 0) feeds.other = randomTensor("f32", [1], rng);
  return judge(session.run(feeds));
}

function damaged(type: { dtype: Tensor["dtype"]; shape: number[] }, rng: Rng): Tensor {
  const { dtype, shape } = type;
  const right = randomTensor(dtype, shape, rng);
  switch (rng.integer(0, 5)) {
    case 0:
      return randomTensor(rng.pick(allDTypes), shape, rng);
    case 1:
      return { ...right, shape: [...shape, 1] };
    case 2:
      return { ...right, data: right.data.slice(1) };
    case 3:
      return {
        ...right,
        shape: shape.map(() => rng.pick([0, -1, 2 ** 31, 2 ** 53, 0.5, Number.NaN])),
      };
    case 4:
      return {
        ...right,
        data: Float32Array.from({ length: right.data.length }, () =>
          rng.pick([Number.NaN, Infinity, 1e38]),
        ),
      };
    default:
      return right;
  }
}

const artifactBytes = writeArtifact(opened.artifact);

/** Damaged bytes, or a changed text whose hash was made to agree. */
function artifact(rng: Rng): Finding {
  const bytes = rng.integer(0, 1) === 0 ? mutateBytes(artifactBytes, rng) : editedText(rng);
  const read = readArtifact(bytes);
  if (!read.ok) return judge(read);
  return judge(openModel({ bytes }, { target: "wasm", seed: 3, shapes: {} }));
}

function editedText(rng: Rng): Uint8Array {
  const tensors = new Map(unwrap(readSafetensors(artifactBytes)));
  const texts = [...tensors.keys()].filter(
    (name) => name !== tensorNames.meta && tensors.get(name)!.type === "U8",
  );
  const name = rng.pick(texts);
  const tensor = tensors.get(name)!;
  const changed = editNumbers(new TextDecoder().decode(tensor.bytes), rng);
  const bytes = new TextEncoder().encode(changed);
  tensors.set(name, { ...tensor, shape: [bytes.length], bytes });
  const meta = JSON.parse(new TextDecoder().decode(tensors.get(tensorNames.meta)!.bytes)) as {
    hashes?: Record<string, string>;
  };
  if (meta.hashes && Object.hasOwn(meta.hashes, name)) meta.hashes[name] = sha256(bytes);
  const spelled = new TextEncoder().encode(JSON.stringify(meta));
  tensors.set(tensorNames.meta, {
    ...tensors.get(tensorNames.meta)!,
    shape: [spelled.length],
    bytes: spelled,
  });
  return writeSafetensors(tensors);
}

/** Another number, or a piece of the text somewhere else. */
function editNumbers(text: string, rng: Rng): string {
  const numbers = [...text.matchAll(/\d+/g)];
  if (numbers.length === 0 || rng.integer(0, 3) === 0) {
    const at = rng.integer(0, text.length);
    const from = rng.integer(0, text.length);
    return text.slice(0, at) + text.slice(from, from + 40) + text.slice(at);
  }
  const found = rng.pick(numbers);
  const value = rng.pick(["0", "1", "7", "64", "1000000", "9007199254740991", "-1"]);
  return text.slice(0, found.index) + value + text.slice(found.index + found[0].length);
}
