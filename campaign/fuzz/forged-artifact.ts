/**
 * Artifacts that were damaged or forged: bytes, a text (graph, program, schedules, part of a stage), what
 * `meta` says, or tensors that change places, with hashes and seal that were made to agree. One that is
 * opened all the same is run on inputs of its own ports: whatever its programs say, it ends and stays in its
 * memory.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { tensorNames } from "../../src/artifact/artifact.ts";
import { readArtifact } from "../../src/artifact/read-artifact.ts";
import { LoadedModel } from "../../src/commands/library/loaded-model.ts";
import { type OpenModel, openModel, startSession } from "../../src/commands/library/open-model.ts";
import { stageModel } from "../../src/commands/library/staged-session.ts";
import {
  readSafetensors,
  type Safetensor,
  writeSafetensors,
} from "../../src/frontend/safetensors/safetensors.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { randomTensor } from "../../src/semantics/tensor.ts";
import type { Result } from "../../src/support/diagnostic.ts";
import { sha256 } from "../../src/support/hash.ts";
import type { Rng } from "../../src/support/rng.ts";
import { type Finding, passed } from "../campaign.ts";
import type { ArtifactSeeds } from "./artifact-seeds.ts";
import { judge } from "./judge.ts";
import { mutateBytes } from "./mutate.ts";

/** Elements that a trial feeds at most. */
const mostElements = 2 ** 20;
/** Of each extent that is left open. */
const mostExtent = 4;
const wish = { target: "wasm", seed: 3, shapes: {}, threads: 1 } as const;

export function wholeArtifact(seeds: ArtifactSeeds): (rng: Rng) => Finding {
  return (rng) => runWhole(hostile(rng.pick(seeds.whole), seeds, rng), rng);
}

export function stagedArtifact(seeds: ArtifactSeeds): (rng: Rng) => Finding {
  return (rng) => runStaged(hostile(rng.pick(seeds.staged), seeds, rng), rng);
}

/** Damaged bytes, or a forgery. */
function hostile(original: Uint8Array, seeds: ArtifactSeeds, rng: Rng): Uint8Array {
  return rng.integer(0, 3) === 0 ? mutateBytes(original, rng) : forged(original, seeds, rng);
}

export function runWhole(bytes: Uint8Array, rng: Rng): Finding {
  const read = readArtifact(bytes);
  if (!read.ok) return judge(read);
  const found = openModel({ bytes }, wish);
  return found.ok ? runOnce(found.value, rng) : judge(found);
}

/** As `load` does: what says that it is in stages is opened stage by stage. */
export function runStaged(bytes: Uint8Array, rng: Rng): Finding {
  const whole = openModel({ bytes }, wish);
  if (whole.ok) return runOnce(whole.value, rng);
  if (whole.diagnostics.some((d) => d.code !== "SCH015")) return judge(whole);
  const staged = stageModel({ bytes }, wish);
  if (!staged?.ok) return staged ? judge(staged) : passed;
  const { face, session } = staged.value;
  const model = new LoadedModel(face, session);
  const finding = judge(runModel(model, rng));
  void model.dispose();
  return finding;
}

function runModel(model: LoadedModel, rng: Rng): Result<unknown> {
  const feeds = model.inputs.map(({ name, dtype, shape }) => {
    const sizes = shape.map((d) => (typeof d === "number" ? d : rng.integer(1, mostExtent)));
    return [name, randomTensor(dtype, isFed([sizes]) ? sizes : [1], rng)] as const;
  });
  return model.tryRun(Object.fromEntries(feeds));
}

/** Starts it and runs it once, where its inputs are of a size to feed. */
export function runOnce(model: OpenModel, rng: Rng): Finding {
  const session = startSession(model, 1);
  if (!session.ok) return judge(session);
  const { inputs } = session.value;
  const small = new Map<string, number>();
  for (const { name, min, max } of model.code.program.parameters) {
    small.set(name, Math.min(max, min + rng.integer(0, mostExtent - 1)));
  }
  const shapes = inputs.map((port) => port.shape.map((e) => evaluate(e, small)));
  if (!isFed(shapes)) return passed;
  const feeds = inputs.map(({ name, dtype }, i) => [name, randomTensor(dtype, shapes[i]!, rng)]);
  const finding = judge(session.value.run(Object.fromEntries(feeds)));
  void session.value.dispose();
  return finding;
}

function isFed(shapes: readonly (readonly number[])[]): boolean {
  const count = shapes.reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
  return count <= mostElements;
}

/** The tensors of a file, to be changed and sealed again. */
export class Forgery {
  readonly tensors: Map<string, Safetensor>;
  readonly meta: Meta;

  constructor(original: Uint8Array) {
    this.tensors = new Map(unwrap(readSafetensors(original)));
    this.meta = JSON.parse(this.text(tensorNames.meta)) as Meta;
  }

  /** Names of all tensors whose hashes stand in `meta`. */
  get names(): readonly string[] {
    return [...this.tensors.keys()].filter(
      (name) => name !== tensorNames.meta && name !== tensorNames.seal,
    );
  }

  text(name: string): string {
    return new TextDecoder().decode(this.tensors.get(name)!.bytes);
  }

  put(name: string, text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.tensors.set(name, { type: "U8", shape: [bytes.length], bytes });
  }

  /** With the hashes of what stands in it now, and with `meta` as `spell` writes it. */
  sealed(spell: (meta: string) => string = (meta) => meta): Uint8Array {
    const { tensors, meta } = this;
    meta.hashes = Object.fromEntries(this.names.map((n) => [n, sha256(tensors.get(n)!.bytes)]));
    // Hashes alone then, which are checked where there are no tags.
    delete meta.tags;
    this.put(tensorNames.meta, spell(JSON.stringify(meta)));
    this.put(tensorNames.seal, sha256(tensors.get(tensorNames.meta)!.bytes));
    return writeSafetensors(tensors);
  }
}

interface Meta {
  hashes: Record<string, string>;
  tags?: Record<string, string>;
  packed?: { target: string; buffers: Record<string, string> };
  stages?: (Record<string, unknown> | null)[];
}

/** One way to forge; hashes and seal are made afterwards. */
type Forging = (forgery: Forgery, seeds: ArtifactSeeds, rng: Rng) => void;

const forgings = {
  editedText: (forgery, _seeds, rng) => {
    const texts = forgery.names.filter((n) => !n.includes("weight."));
    // Programs, and the parts that the reference computes, are what runs.
    const run = texts.filter((n) => n.endsWith(".program") || n.endsWith(tensorNames.part));
    const name = rng.pick(run.length > 0 && rng.integer(0, 2) > 0 ? run : texts);
    let changed = forgery.text(name);
    for (let n = rng.pick([1, 1, 1, 2, 3]); n > 0; n--) changed = editNumbers(changed, rng);
    forgery.put(name, changed);
  },
  /** Programs and parts of other stages, weights of other tensors. */
  exchanged: ({ tensors, names }, _seeds, rng) => {
    const name = rng.pick(names);
    const last = name.slice(name.lastIndexOf("."));
    const alike = names.filter((n) => n.endsWith(last) || last.startsWith(".weight"));
    const other = rng.pick(rng.integer(0, 3) === 0 ? names : alike);
    const [a, b] = [tensors.get(name)!, tensors.get(other)!];
    tensors.set(name, b);
    tensors.set(other, a);
  },
  /** From an artifact of another model. */
  transplanted: ({ tensors, names }, { whole, staged }, rng) => {
    const donor = new Forgery(rng.pick([...whole, ...staged]));
    const name = rng.pick(donor.names);
    const last = name.slice(name.lastIndexOf("."));
    const places = names.filter((n) => n.endsWith(last));
    tensors.set(places.length > 0 ? rng.pick(places) : name, donor.tensors.get(name)!);
  },
  otherShape: ({ tensors, names }, _seeds, rng) => {
    const name = rng.pick(names);
    const tensor = tensors.get(name)!;
    const cut = rng.integer(0, tensor.bytes.length);
    tensors.set(
      name,
      rng.integer(0, 1) === 0
        ? { ...tensor, type: "U8", shape: [cut], bytes: tensor.bytes.slice(0, cut) }
        : { ...tensor, shape: [1, ...tensor.shape] },
    );
  },
  renamed: ({ tensors, names }, _seeds, rng) => {
    const name = rng.pick(names);
    const tensor = tensors.get(name)!;
    if (rng.integer(0, 2) > 0) tensors.delete(name);
    const number = rng.pick(["0", "1", "2", "3", "9", "-1", "01", "4294967296"]);
    const moved = name.replace(/^stage\.\d+/, `stage.${number}`);
    tensors.set(moved === name ? `stage.${number}.${name}` : moved, tensor);
  },
  restaged: ({ meta, names }, _seeds, rng) => {
    const stages = meta.stages ?? [];
    const at = rng.integer(0, Math.max(0, stages.length - 1));
    const from = rng.pick([...stages, null]);
    const keys = names.filter((n) => n.includes("weight.")).map((n) => n.replace(/.*weight\./, ""));
    const ways: Readonly<Record<string, () => void>> = {
      gone: () => void stages.splice(at, 1),
      twice: () => void stages.splice(at, 0, stages[at] ?? null),
      other: () => void stages.splice(at, 1, from),
      reversed: () => void stages.reverse(),
      reference: () => void stages.splice(at, 1, null),
      shared: () => void Object.assign(stages[at] ?? {}, { shared: rng.pick([keys, [], ["no"]]) }),
      ports: () => void Object.assign(stages[at] ?? {}, { inputs: from?.outputs ?? [] }),
      none: () => void delete meta.stages,
      empty: () => void stages.splice(0),
    };
    ways[rng.pick(Object.keys(ways))]!();
  },
  /** Where weights are said to stand in the arena, and of which target it is. */
  repacked: ({ meta, names }, _seeds, rng) => {
    const { packed } = meta;
    const keys = Object.keys(packed?.buffers ?? {});
    if (!packed || keys.length === 0) return;
    const [key, other] = [rng.pick(keys), rng.pick(keys)];
    const to: Record<string, string> = packed.buffers;
    const ways: readonly (() => unknown)[] = [
      () => Object.assign(to, { [key]: editNumbers(to[key]!, rng) }),
      () => Object.assign(to, { [key]: to[other] }),
      () => delete to[key],
      () => Object.assign(packed, { target: rng.pick(["wasm", "x64-avx2", "none", ...names]) }),
    ];
    rng.pick(ways)();
  },
} satisfies Readonly<Record<string, Forging>>;

/** Several changes at once, whose hashes agree with them; then perhaps numbers of `meta` itself. */
export function forged(original: Uint8Array, seeds: ArtifactSeeds, rng: Rng): Uint8Array {
  const forgery = new Forgery(original);
  const kinds: readonly Forging[] = [
    forgings.editedText,
    forgings.editedText,
    ...Object.values(forgings),
  ];
  for (let n = rng.pick([0, 1, 1, 1, 2]); n > 0; n--) rng.pick(kinds)(forgery, seeds, rng);
  return forgery.sealed((meta) => (rng.integer(0, 5) === 0 ? editNumbers(meta, rng) : meta));
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
