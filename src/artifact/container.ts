/**
 * The bytes of an artifact to its tensors, every one of them against its hash or tag in `meta`, and `meta`
 * against its seal. Weights may wait until they are read. What the texts say is not read here.
 */
import { readSafetensors, type Safetensor } from "../frontend/safetensors/safetensors.ts";
import { attempt, DiagnosticError, type Result, reject } from "../support/diagnostic.ts";
import {
  type ArtifactMeta,
  type Checksums,
  metaSchema,
  plainChecksums,
  type StartSum,
  sumOf,
  tensorNames,
} from "./artifact.ts";

type Tensors = ReadonlyMap<string, Safetensor>;

export interface Container {
  readonly meta: ArtifactMeta;
  readonly tensors: Tensors;
  /** Targets that it has a program for, of a model in stages one for each; sorted. */
  readonly targetNames: readonly string[];
  /** Equal for containers of equal content only: a hash over all hashes and names. */
  readonly fingerprint: string;
  /** Bytes of a tensor that is there, checked now where they were not before. */
  readonly contents: (name: string) => Uint8Array;
  /** It is of a model in stages. */
  readonly isStaged: boolean;
}

/**
 * @param later weights are checked, and `meta` is read by its schema, when they are asked for: a run needs one
 * form of the weights, and none of the reports
 */
export function openContainer(
  bytes: Uint8Array,
  checksums: Checksums = plainChecksums,
  { later = false }: { readonly later?: boolean } = {},
): Result<Container> {
  const { hash } = checksums;
  return attempt(() => {
    const tensors = take(readSafetensors(bytes));
    const seal = readText(tensors, tensorNames.seal);
    checkHash(tensors, tensorNames.meta, seal, hash);
    const spelled = parseMeta(tensors);
    const isStaged = spelled.stages !== undefined;
    let meta: ArtifactMeta | undefined;
    const readOnce = (): ArtifactMeta => {
      meta ??= readMeta(spelled);
      return meta;
    };
    const isLater = later && !isStaged;
    if (!isLater) readOnce();
    const checked = new Set<string>();
    const contents = (name: string): Uint8Array => {
      if (!checked.has(name)) checkContents(name, tensors, spelled, checksums);
      checked.add(name);
      return tensors.get(name)!.bytes;
    };
    for (const name of Object.keys(recordOf(spelled.hashes))) {
      if (!isLater || !isWeights(name)) contents(name);
    }
    // Names, types and shapes stand in no hash of `meta`.
    const heads = [...tensors].map(([name, t]) => `${JSON.stringify(name)} ${t.type}[${t.shape}]`);
    const told = new TextEncoder().encode([seal, ...heads.sort()].join("\n"));
    const fingerprint = sumOf(hash, told);
    const names = targetNames(tensors);
    const container: Container = {
      get meta() {
        return readOnce();
      },
      tensors,
      targetNames: names,
      fingerprint,
      contents,
      isStaged,
    };
    return isStaged ? { ...container, targetNames: targetsOfAll(container) } : container;
  });
}

/** A part of a model in stages, as a container of its own; its `part` stands beside. */
export interface StageContainer {
  /** Text of the part of the whole graph. */
  readonly part: string;
  /** Absent: the reference computes it. */
  readonly program?: Container;
}

/** The stages of a container in the order they run; rejects what belongs to none. */
export function stageContainers({
  meta,
  tensors,
  fingerprint,
}: Omit<Container, "targetNames">): readonly StageContainer[] {
  const { stages = [], searches: _, checks: __, packed: ___, tags: ____, hashes, ...whole } = meta;
  const tensorsOf = stages.map(() => new Map<string, Safetensor>());
  for (const [name, tensor] of tensors) {
    const [, number, rest] = /^stage\.(0|[1-9][0-9]*)\.(.+)$/.exec(name) ?? [];
    if (number !== undefined) tensorsOf[Number(number)]?.set(rest!, tensor);
  }
  return stages.map((stage, i) => {
    const inner = tensorsOf[i]!;
    const part = readText(inner, tensorNames.part);
    inner.delete(tensorNames.part);
    // What else it has is no tensor that a reader knows (read-stages.ts).
    if (!stage) return { part };
    const { shared, ...described } = stage;
    const prefix = tensorNames.stage(i);
    const known = Object.fromEntries(
      [...inner.keys()].map((name) => [
        name,
        hashes[`${prefix}${name}`] ?? damaged(`${prefix}${name} has no hash`),
      ]),
    );
    for (const key of shared) {
      const name = tensorNames.weight(key);
      const tensor = tensors.get(name);
      if (!tensor || inner.has(name)) damaged(`stage ${i} has no weight ${JSON.stringify(key)}`);
      inner.set(name, tensor);
      known[name] = hashes[name] ?? damaged(`${name} has no hash`);
    }
    const own = { ...whole, ...described, hashes: known };
    const program = {
      meta: own,
      tensors: inner,
      targetNames: targetNames(inner),
      fingerprint: `${fingerprint} ${prefix}`,
      // All of a model in stages was checked when it was opened.
      contents: (name: string) => inner.get(name)!.bytes,
      isStaged: false,
    };
    return { part, program };
  });
}

/** Targets that every stage with a program has one for. */
function targetsOfAll(container: Omit<Container, "targetNames">): readonly string[] {
  const all = stageContainers(container).flatMap((s) => (s.program ? [s.program.targetNames] : []));
  const [first = [], ...others] = all;
  return first.filter((name) => others.every((names) => names.includes(name)));
}

export function readText(tensors: Tensors, name: string): string {
  const tensor = tensors.get(name);
  if (tensor?.type !== "U8") damaged(`it has no text ${JSON.stringify(name)}`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(tensor.bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return damaged(`its text ${JSON.stringify(name)} is not UTF-8`);
  }
}

export function damaged(why: string): never {
  return reject("ART002", `not a valid artifact: ${why}`, {
    help: "write it again with wavetile optimize",
  });
}

export function take<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

type Spelled = Readonly<Record<string, unknown>>;

function parseMeta(tensors: Tensors): Spelled {
  const parsed = parseJson(readText(tensors, tensorNames.meta));
  return isRecord(parsed) ? parsed : damaged("its meta is no JSON object");
}

function isRecord(value: unknown): value is Spelled {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordOf(value: unknown): Spelled {
  return isRecord(value) ? value : {};
}

function readMeta(spelled: Spelled): ArtifactMeta {
  const parsed = metaSchema.safeParse(spelled);
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

/** An arena, or a weight of the whole model. */
export function isWeights(name: string): boolean {
  return /^(weight\.|target\..*\.weights$)/s.test(name);
}

/** Against its tag where it has one and we can compute it, else its hash. */
function checkContents(
  name: string,
  tensors: Tensors,
  { hashes, tags }: Spelled,
  { hash, tag }: Checksums,
): void {
  const wanted = (sums: unknown): unknown =>
    Object.hasOwn(recordOf(sums), name) ? recordOf(sums)[name] : undefined;
  const ownTag = tag && wanted(tags);
  if (ownTag !== undefined) checkHash(tensors, name, ownTag, tag!);
  else checkHash(tensors, name, wanted(hashes), hash);
}

function checkHash(tensors: Tensors, name: string, wanted: unknown, start: StartSum): void {
  const tensor = tensors.get(name);
  if (!tensor) damaged(`it has no tensor ${JSON.stringify(name)}`);
  const found = sumOf(start, tensor.bytes);
  if (wanted === found) return;
  reject("ART003", `${JSON.stringify(name)} has the hash ${found}, not ${wanted}`, {
    help: "the artifact was changed or damaged after it was written; optimize the model again",
  });
}

function targetNames(tensors: Tensors): string[] {
  return [...tensors.keys()].flatMap((n) => /^target\.(.+)\.program$/.exec(n)?.[1] ?? []).sort();
}
