/**
 * The bytes of an artifact to what it holds, checked: container, hashes, the grammar of every text, the
 * graph's types, each weight against the graph, and each program against the graph and its weights, and
 * by itself (program/validate/): texts and hashes that were forged together give no program that reads
 * or writes outside its buffers, races or waits for ever. What fails a check is a diagnostic.
 */
import { readSafetensors, type Safetensor } from "../frontend/safetensors/safetensors.ts";
import type { Graph, WeightStore } from "../graph/graph.ts";
import { parseGraph } from "../graph/graph-text.ts";
import type { Program } from "../program/program.ts";
import { parseProgram } from "../program/program-parse.ts";
import { validateProgram } from "../program/validate/validate.ts";
import type { Schedule } from "../schedule/directive.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { storageBytes } from "../semantics/dtype.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { elementCount } from "../semantics/shape.ts";
import { type Tensor, tensorFromBytes } from "../semantics/tensor.ts";
import {
  attempt,
  type Diagnostic,
  DiagnosticError,
  type Result,
  reject,
} from "../support/diagnostic.ts";
import { sha256 } from "../support/hash.ts";
import { invariant } from "../support/invariant.ts";
import {
  type Artifact,
  type ArtifactMeta,
  containerTypes,
  type HashBytes,
  metaSchema,
  type TargetCode,
  tensorNames,
} from "./artifact.ts";
import { checkPorts, checkProgram } from "./check-program.ts";

type Tensors = ReadonlyMap<string, Safetensor>;

/** Programs that were proved valid before, by the hash of their text. */
export interface ProofStore {
  has(textHash: string): boolean;
  add(textHash: string): void;
}

export interface ReadOptions {
  readonly hash?: HashBytes;
  /** Which of the targets to read; by default all. The others stay unread and unproved. */
  readonly choose?: (names: readonly string[]) => readonly string[];
  /** A program is proved again unless it is known here. */
  readonly proofs?: ProofStore;
}

export function readArtifact(bytes: Uint8Array, options: ReadOptions = {}): Result<Artifact> {
  const { hash = sha256, choose = (names) => names, proofs } = options;
  return attempt(() => {
    const tensors = take(readSafetensors(bytes));
    checkHash(tensors, tensorNames.meta, readText(tensors, tensorNames.seal), hash);
    const meta = readMeta(tensors);
    for (const [name, wanted] of Object.entries(meta.hashes)) {
      checkHash(tensors, name, wanted, hash);
    }
    const known = new Set<string>([tensorNames.meta, tensorNames.seal]);
    const text = (name: string): string => {
      known.add(name);
      return readText(tensors, name);
    };
    const graph = within(tensorNames.graph, () => take(parseGraph(text(tensorNames.graph))));
    checkPorts(graph, meta);
    const weights = readWeights(graph, tensors, known);
    const targets = new Map<string, TargetCode>();
    const names = targetNames(tensors);
    if (names.length === 0) damaged("it has no program");
    for (const name of names) {
      known.add(tensorNames.program(name)).add(tensorNames.schedules(name));
    }
    for (const name of choose(names)) {
      const code = readTarget(name, text);
      const proof = meta.hashes[tensorNames.program(name)]!;
      within(tensorNames.program(name), () => {
        checkProgram(name, code.program, graph, meta);
        if (!proofs?.has(proof)) checkValid(code.program);
      });
      proofs?.add(proof);
      targets.set(name, code);
    }
    checkNames(tensors, known, meta);
    return { meta, graph, targets, weights };
  });
}

/** Hashes of the programs' texts, of an artifact that was just written. */
export function programHashes(bytes: Uint8Array): readonly string[] {
  const tensors = take(readSafetensors(bytes));
  const { hashes } = readMeta(tensors);
  return targetNames(tensors).map((name) => hashes[tensorNames.program(name)]!);
}

function readMeta(tensors: Tensors): ArtifactMeta {
  const parsed = metaSchema.safeParse(parseJson(readText(tensors, tensorNames.meta)));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return damaged(`its meta is not valid: ${issue?.path.join(".")}: ${issue?.message}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return damaged("its meta is no JSON");
  }
}

function readText(tensors: Tensors, name: string): string {
  const tensor = tensors.get(name);
  if (tensor?.type !== "U8") damaged(`it has no text ${JSON.stringify(name)}`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(tensor.bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return damaged(`its text ${JSON.stringify(name)} is not UTF-8`);
  }
}

function checkHash(tensors: Tensors, name: string, wanted: string, hash: HashBytes): void {
  const tensor = tensors.get(name);
  if (!tensor) damaged(`it has no tensor ${JSON.stringify(name)}`);
  const found = hash(tensor.bytes);
  if (wanted === found) return;
  reject("ART003", `${JSON.stringify(name)} has the hash ${found}, not ${wanted}`, {
    help: "the artifact was changed or damaged after it was written; optimize the model again",
  });
}

/** A program that is not proved right is not run, whatever its hash says. */
function checkValid(program: Program): void {
  const valid = validateProgram(program);
  if (valid.ok) return;
  const help = "the artifact was changed after it was written; optimize the model again";
  throw new DiagnosticError(
    valid.diagnostics.map((d) => ({
      ...d,
      notes: d.help === undefined ? d.notes : [...d.notes, d.help],
      help,
    })),
  );
}

function targetNames(tensors: Tensors): string[] {
  return [...tensors.keys()].flatMap((n) => /^target\.(.+)\.program$/.exec(n)?.[1] ?? []).sort();
}

function readTarget(name: string, text: (tensor: string) => string): TargetCode {
  const program = within(tensorNames.program(name), () =>
    take(parseProgram(text(tensorNames.program(name)))),
  );
  const schedules = within(tensorNames.schedules(name), () =>
    splitSchedules(text(tensorNames.schedules(name))).map((s) => take(parseSchedule(s))),
  );
  const foreign = schedules.find((s: Schedule) => s.target !== name);
  if (foreign) damaged(`a schedule of target ${name} is for ${foreign.target}`);
  return { program, schedules };
}

/** One text a schedule: each begins at the start of a line, its directives are indented. */
export function splitSchedules(text: string): string[] {
  return text.split(/^(?=schedule )/m).filter((part) => part !== "");
}

function readWeights(graph: Graph, tensors: Tensors, known: Set<string>): WeightStore {
  const read = new Map<string, () => Tensor>();
  for (const { value, source } of graph.weights) {
    if (source.kind === "inline") continue;
    const { dtype, shape } = graph.values[value]!.type;
    const name = tensorNames.weight(source.key);
    const found = tensors.get(name);
    if (!found) damaged(`it has no weight ${JSON.stringify(source.key)}`);
    known.add(name);
    const extents = shape.map((e) => constantValue(e) ?? damaged(`${name} has a symbolic shape`));
    const size = storageBytes(dtype, elementCount(extents));
    const type = containerTypes[dtype];
    const expected = type ? extents : [size];
    const fits = found.type === (type ?? "U8") && found.shape.join() === expected.join();
    if (!fits || found.bytes.length !== size) {
      reject(
        "ART004",
        `${name} is ${found.type}[${found.shape}], the graph has ${dtype}[${extents}]`,
        {
          help: "the artifact was put together from different models; optimize the model again",
        },
      );
    }
    read.set(source.key, () => tensorFromBytes(dtype, extents, found.bytes));
  }
  return {
    read(key) {
      const weight = read.get(key);
      invariant(weight, () => `no weight ${key}`);
      return weight();
    },
  };
}

function checkNames(tensors: Tensors, known: ReadonlySet<string>, meta: ArtifactMeta): void {
  const unknown = [...tensors.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) damaged(`it has the unknown tensor ${JSON.stringify(unknown)}`);
  const unnamed = [tensorNames.meta, tensorNames.seal] as readonly string[];
  const bare = [...known].find((n) => !Object.hasOwn(meta.hashes, n) && !unnamed.includes(n));
  if (bare !== undefined) damaged(`its meta has no hash of ${JSON.stringify(bare)}`);
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

/** Says in which text a diagnostic's line is. */
function within<T>(text: string, body: () => T): T {
  const result = attempt(body);
  if (result.ok) return result.value;
  throw new DiagnosticError(
    result.diagnostics.map((d: Diagnostic) => ({ ...d, at: d.at ? `${text}, ${d.at}` : text })),
  );
}

function damaged(why: string): never {
  return reject("ART002", `not a valid artifact: ${why}`, {
    help: "write it again with wavetile optimize",
  });
}
