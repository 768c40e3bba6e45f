/**
 * A container (container.ts) to the artifact that it holds, checked: the grammar of every text, the
 * graph's types, each weight against the graph, and each program against the graph and its weights, and
 * by itself (program/validate/): texts and hashes that were forged together give no program that reads
 * or writes outside its buffers, races or waits for ever. Indices that data give are checked in every run.
 * What fails a check is a diagnostic.
 */
import type { Graph, WeightStore } from "../graph/graph.ts";
import { parseGraph } from "../graph/graph-text.ts";
import type { Program } from "../program/program.ts";
import { parseBuffer, parseProgram } from "../program/program-parse.ts";
import { arenaSizes } from "../program/storage-sizes.ts";
import { validateProgram } from "../program/validate/validate.ts";
import type { Schedule } from "../schedule/directive.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { storageBytes } from "../semantics/dtype.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { elementCount } from "../semantics/shape.ts";
import { type Tensor, tensorOnBytes } from "../semantics/tensor.ts";
import {
  attempt,
  type Diagnostic,
  DiagnosticError,
  type Result,
  reject,
} from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import {
  type Artifact,
  type ArtifactMeta,
  type Checksums,
  containerTypes,
  type TargetCode,
  tensorNames,
} from "./artifact.ts";
import { checkPorts, checkProgram } from "./check-program.ts";
import { checkedIndices } from "./checked-indices.ts";
import { type Container, damaged, openContainer, readText, take } from "./container.ts";
import { baseName, type PackedTensor, unpackerOf } from "./packed-weights.ts";

export interface ReadOptions {
  /** Which of the targets to read; by default all. The others stay unread and unproved. */
  readonly choose?: (names: readonly string[]) => readonly string[];
  /** Its programs were proved by this version: they are not proved again. */
  readonly proved?: boolean;
}

/** Opens and reads in one step. */
export function readArtifact(
  bytes: Uint8Array,
  options: ReadOptions & { readonly checksums?: Checksums } = {},
): Result<Artifact> {
  const container = openContainer(bytes, options.checksums);
  return container.ok ? readContainer(container.value, options) : container;
}

export function readContainer(container: Container, options: ReadOptions = {}): Result<Artifact> {
  const { choose = (names) => names, proved = false } = options;
  const { tensors, targetNames } = container;
  return attempt(() => {
    const { meta } = container;
    const known = new Set<string>([tensorNames.meta, tensorNames.seal]);
    const text = (name: string): string => {
      known.add(name);
      return readText(tensors, name);
    };
    if (meta.stages) damaged("it is of a model in stages");
    const graph = within(tensorNames.graph, () => take(parseGraph(text(tensorNames.graph))));
    checkPorts(graph, meta);
    const targets = new Map<string, TargetCode>();
    if (targetNames.length === 0) damaged("it has no program");
    for (const name of targetNames) {
      known.add(tensorNames.program(name)).add(tensorNames.schedules(name));
      if (tensors.has(tensorNames.arena(name))) known.add(tensorNames.arena(name));
    }
    const arenas = new Map<string, Uint8Array>();
    for (const name of choose(targetNames)) {
      const code = readTarget(name, text);
      within(tensorNames.program(name), () => {
        checkProgram(name, code.program, graph, meta);
        if (!proved) checkValid(code.program);
      });
      targets.set(name, code);
      const arena = readArena(container, name, arenaSizes(code.program).weights);
      if (arena) arenas.set(name, arena);
    }
    const weights = readWeights(graph, container, known);
    checkNames(tensors, known, meta);
    return { meta, graph, targets, weights, ...(arenas.size > 0 && { arenas }) };
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

function readTarget(name: string, text: (tensor: string) => string): TargetCode {
  const program = within(tensorNames.program(name), () =>
    checkedIndices(take(parseProgram(text(tensorNames.program(name))))),
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

/**
 * The arena of a target's weights, checked; undefined: it is not stored.
 * @param size bytes that its program has for it
 */
export function readArena(
  { tensors, contents }: Pick<Container, "tensors" | "contents">,
  target: string,
  size: number,
): Uint8Array | undefined {
  const name = tensorNames.arena(target);
  const found = tensors.get(name);
  if (!found) return undefined;
  if (found.type === "U8" && found.shape.length === 1 && found.bytes.length === size) {
    return contents(name);
  }
  return reject(
    "ART004",
    `${name} is ${found.type}[${found.shape}], the program has ${size} bytes`,
    {
      help: "the artifact was put together from different models; optimize the model again",
    },
  );
}

export function readWeights(
  graph: Graph,
  container: Pick<Container, "tensors" | "contents" | "meta">,
  known: Set<string>,
): WeightStore {
  const { tensors, contents } = container;
  const read = new Map<string, () => Tensor>();
  for (const { value, source } of graph.weights) {
    if (source.kind === "inline") continue;
    const { dtype, shape } = graph.values[value]!.type;
    const name = tensorNames.weight(source.key);
    const extents = shape.map((e) => constantValue(e) ?? damaged(`${name} has a symbolic shape`));
    const found = tensors.get(name);
    if (!found) {
      const type = { name: graph.values[value]!.name, dtype, shape: extents };
      read.set(source.key, readPacked(source.key, type, container));
      continue;
    }
    known.add(name);
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
    read.set(source.key, () => tensorOnBytes(dtype, extents, contents(name)));
  }
  return {
    read(key) {
      const weight = read.get(key);
      invariant(weight, () => `no weight ${key}`);
      return weight();
    },
  };
}

/**
 * Of a weight that stands in an arena alone: where it is looked for, and that it is there.
 * @param type what the graph calls the weight, and its type
 */
export function readPacked(
  key: string,
  { name, dtype, shape }: PackedTensor & { readonly name: string },
  container: Pick<Container, "tensors" | "contents" | "meta">,
): () => Tensor {
  const missing = (): never => damaged(`it has no weight ${JSON.stringify(key)}`);
  const { packed, views } = container.meta;
  const text = packed && Object.hasOwn(packed.buffers, key) ? packed.buffers[key] : undefined;
  if (text === undefined) return missing();
  const arenaName = tensorNames.arena(packed!.target);
  const arena = container.tensors.get(arenaName) ?? missing();
  const buffer = within(`packed weight ${key}`, () => take(parseBuffer(text)));
  const bases = new Map(views.map((v) => [v.name, v.of]));
  if (baseName(buffer.source ?? "", bases) !== name) return missing();
  const seen = views.find((v) => v.name === buffer.source)?.shape ?? shape;
  if (elementCount(seen) !== elementCount(shape)) return missing();
  const type = { dtype, shape: seen };
  const unpacker = unpackerOf(buffer, arena.bytes.length, type);
  if (typeof unpacker === "string") return damaged(unpacker);
  return () => ({ ...unpacker(container.contents(arenaName)), shape });
}

export function checkNames(
  tensors: Container["tensors"],
  known: ReadonlySet<string>,
  meta: ArtifactMeta,
): void {
  const unknown = [...tensors.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) damaged(`it has the unknown tensor ${JSON.stringify(unknown)}`);
  const unnamed = [tensorNames.meta, tensorNames.seal] as readonly string[];
  const bare = [...known].find((n) => !Object.hasOwn(meta.hashes, n) && !unnamed.includes(n));
  if (bare !== undefined) damaged(`its meta has no hash of ${JSON.stringify(bare)}`);
}

/** Says in which text a diagnostic's line is. */
export function within<T>(text: string, body: () => T): T {
  const result = attempt(body);
  if (result.ok) return result.value;
  throw new DiagnosticError(
    result.diagnostics.map((d: Diagnostic) => ({ ...d, at: d.at ? `${text}, ${d.at}` : text })),
  );
}
