/**
 * Artifacts that were damaged or forged: bytes, or a text (graph, program, schedules, meta) that was
 * changed and whose hash was made to agree. One that is opened all the same is run on inputs of its own
 * ports: whatever its program says, it ends and stays in its memory.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { tensorNames } from "../../src/artifact/artifact.ts";
import { readArtifact } from "../../src/artifact/read-artifact.ts";
import { writeArtifact } from "../../src/artifact/write-artifact.ts";
import { type OpenModel, openModel, startSession } from "../../src/commands/library/open-model.ts";
import { readSafetensors, writeSafetensors } from "../../src/frontend/safetensors/safetensors.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { randomTensor } from "../../src/semantics/tensor.ts";
import { sha256 } from "../../src/support/hash.ts";
import type { Rng } from "../../src/support/rng.ts";
import { type Finding, passed } from "../campaign.ts";
import { judge } from "./judge.ts";
import { mutateBytes } from "./mutate.ts";

/** Elements that a trial feeds at most. */
const mostElements = 2 ** 20;

export function forgedArtifacts(opened: OpenModel): (rng: Rng) => Finding {
  const original = writeArtifact(opened.artifact);
  return (rng) => {
    const bytes = rng.integer(0, 1) === 0 ? mutateBytes(original, rng) : editedText(original, rng);
    const read = readArtifact(bytes);
    if (!read.ok) return judge(read);
    const found = openModel({ bytes }, { target: "wasm", seed: 3, shapes: {} });
    return found.ok ? runOnce(found.value, rng) : judge(found);
  };
}

/** Starts it and runs it once, where its inputs are of a size to feed. */
export function runOnce(model: OpenModel, rng: Rng): Finding {
  const session = startSession(model, 1);
  if (!session.ok) return judge(session);
  const { inputs } = session.value;
  const small = new Map<string, number>();
  for (const { name, min, max } of model.code.program.parameters) {
    small.set(name, Math.min(max, min + rng.integer(0, 3)));
  }
  const shapes = inputs.map((port) => port.shape.map((e) => evaluate(e, small)));
  const count = shapes.reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
  if (!(count <= mostElements)) return passed;
  const feeds = inputs.map(({ name, dtype }, i) => [name, randomTensor(dtype, shapes[i]!, rng)]);
  const finding = judge(session.value.run(Object.fromEntries(feeds)));
  void session.value.dispose();
  return finding;
}

function editedText(original: Uint8Array, rng: Rng): Uint8Array {
  const tensors = new Map(unwrap(readSafetensors(original)));
  const texts = [...tensors.keys()].filter(
    (name) => name !== tensorNames.meta && tensors.get(name)!.type === "U8",
  );
  // Programs are what runs.
  const programs = texts.filter((name) => name.includes("program"));
  const name = rng.pick(programs.length > 0 && rng.integer(0, 1) === 0 ? programs : texts);
  const tensor = tensors.get(name)!;
  let changed = new TextDecoder().decode(tensor.bytes);
  for (let n = rng.pick([1, 1, 1, 2, 3]); n > 0; n--) changed = editNumbers(changed, rng);
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

/** Another number, a line twice or not at all, or a piece of the text somewhere else. */
function editNumbers(text: string, rng: Rng): string {
  const numbers = [...text.matchAll(/\d+/g)];
  const kind = rng.integer(0, 7);
  if (numbers.length === 0 || kind === 0) {
    const at = rng.integer(0, text.length);
    const from = rng.integer(0, text.length);
    return text.slice(0, at) + text.slice(from, from + 40) + text.slice(at);
  }
  if (kind <= 2) {
    const lines = text.split("\n");
    const at = rng.integer(0, lines.length - 1);
    lines.splice(at, kind === 1 ? 1 : 0, ...(kind === 1 ? [] : [lines[at]!]));
    return lines.join("\n");
  }
  const found = rng.pick(numbers);
  const own = Number(found[0]);
  const value = rng.pick([
    "0",
    "1",
    "7",
    "64",
    "1000000",
    "9007199254740991",
    "-1",
    String(own + 1),
    String(own * 2),
    rng.pick(numbers)[0],
  ]);
  return text.slice(0, found.index) + value + text.slice(found.index + found[0].length);
}
