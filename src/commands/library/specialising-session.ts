/**
 * A model whose extents nobody bounded: its program is made when the first inputs of a size come, for
 * exactly that size, and kept for the next of it; where small values decide what the graph is (a shape, a
 * number of steps, which branch), for exactly these too: those of inputs, and those that a program of their own
 * computes first. Sizes follow from the shapes of the feeds as they do for
 * parameters. What is kept is bounded by number and by bytes; the least recently used leaves first, and
 * comes back by being compiled again, to the same program. States are carried between programs outside of
 * them (carried-states.ts).
 */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import { spellName } from "../../frontend/onnx/import/assembly.ts";
import { readInterface } from "../../frontend/onnx/import/import-model.ts";
import type { ShapeOverrides } from "../../frontend/onnx/import/shape-override.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Program } from "../../program/program.ts";
import { arenaSizes, capacityBytes, memoryBytes } from "../../program/storage-sizes.ts";
import { bindParameters, type GivenShape } from "../../runtime/bind-parameters.ts";
import {
  type Feeds,
  type KernelTime,
  type Outputs,
  unknownInput,
  wrongType,
} from "../../runtime/model-session.ts";
import { evaluate, variablesOf } from "../../semantics/index-expr.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { emptyNamed, named } from "../../support/named.ts";
import { RecentValues } from "../../support/recent-values.ts";
import { assumeSizes, firstSizes } from "./assumed-sizes.ts";
import type { ModelFace, RunningModel } from "./loaded-model.ts";
import { givenSizes, importBytes, type ModelBytes, portNames } from "./model-bytes.ts";
import { type OpenModel, type OpenOptions, openModel, startSession } from "./open-model.ts";
import { describePorts } from "./ports.ts";
import { openStaged, startStages } from "./staged-session.ts";

/** What is kept of the programs that were made. */
export interface SpecialisationLimits {
  readonly programs: number;
  /** Of memory that their instances hold. */
  readonly bytes: number;
}

export const defaultLimits: SpecialisationLimits = { programs: 8, bytes: 2 ** 30 };

export interface SpecialiseOptions extends OpenOptions {
  readonly threads: number;
  readonly limits: SpecialisationLimits;
}

/** A program for one size, with what the model calls its inputs and outputs. */
interface Specialised {
  readonly session?: RunningModel;
  readonly meta: Ports;
  /** Of memory that it holds. */
  readonly bytes: number;
  /**
   * Set where the whole model cannot be made yet: values that have to be known for it, of which the session
   * gives those that are computed.
   */
  readonly asks?: readonly string[];
  /** The sizes and values that it was made for. */
  readonly options?: OpenOptions;
}

type Ports = Pick<ArtifactMeta, "inputs" | "outputs">;
type Running = Specialised & { readonly session: RunningModel; readonly options: OpenOptions };

type Sizes = ReadonlyMap<string, number>;

export interface Specialising {
  readonly face: ModelFace;
  readonly session: SpecialisingSession;
}

/** Imports the model once, for its ports; nothing is compiled yet. */
export function specialise(source: ModelBytes, options: SpecialiseOptions): Result<Specialising> {
  const read = importBytes(source, options);
  if (!read.ok) return specialiseDeclared(source, options) ?? read;
  const { graph } = read.value;
  const meta = portNames(read.value, graph);
  const face = { start: { meta }, ports: describePorts(graph, meta) };
  const session = new SpecialisingSession(source, options, { graph, meta });
  return ok({ face, session }, read.warnings);
}

/**
 * A model that is no graph before its sizes are numbers (how many parts a tensor is split into, how often a
 * loop is copied out), or before the values of small inputs are known: its ports are those that it declares.
 * Undefined where neither can help.
 */
function specialiseDeclared(
  source: ModelBytes,
  options: SpecialiseOptions,
): Result<Specialising> | undefined {
  const found = readInterface(source.bytes, givenSizes(options));
  if (!found.ok) return undefined;
  const { graph, inputNames, outputs } = found.value;
  const needsSizes = assumeSizes(source, options, { ranges: [], bounded: true }) !== undefined;
  if (!needsSizes && !needsValues(source, options)) return undefined;
  const { inputs } = portNames({ inputNames, outputNames: [] }, graph);
  const meta = { inputs, outputs: outputs.map(({ name }) => ({ name, value: name })) };
  const ports = { ...describePorts(graph, { inputs, outputs: [] }), outputs };
  const session = new SpecialisingSession(source, options, { graph, meta, isDeclared: true });
  return ok({ face: { start: { meta }, ports }, session });
}

/** Whether values that a run has would make a graph of the model. */
function needsValues(source: ModelBytes, options: SpecialiseOptions): boolean {
  const unknown: string[] = [];
  const shapes = firstSizes(source, options);
  importBytes(source, { ...options, shapes, onUnknown: (name) => unknown.push(name) });
  return unknown.length > 0;
}

interface NamedModel {
  readonly graph: Graph;
  readonly meta: Ports;
  /** There is no graph yet: the ports are those that the model declares. */
  readonly isDeclared?: boolean;
}

/** Numbers of one tensor that may decide what a model is: shapes, sizes and counts, not data. */
const mostValues = 2 ** 16;

function tooManyValues(name: string, { data }: Tensor): Diagnostic {
  return diagnostic(
    "ONX013",
    `${data.length} values of ${name} decide what the model is, at most ${mostValues} may`,
    { at: name, help: "export the model with constants there" },
  );
}

/** What a program holds beside its weights, and the copies of its outputs that the caller gets. */
function bytesOfRun(program: Program): number {
  const outputs = program.buffers.filter((b) => b.kind === "output");
  const copies = outputs.reduce((sum, b) => sum + capacityBytes(program, b), 0);
  return memoryBytes(program) - arenaSizes(program).weights + copies;
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}

/** Programs in a row that tell values which the next one is made for. */
const mostQuestions = 64;

export class SpecialisingSession implements RunningModel {
  readonly #source: ModelBytes;
  readonly #options: SpecialiseOptions;
  readonly #graph: Graph;
  readonly #meta: Specialised["meta"];
  readonly #isDeclared: boolean;
  readonly #kept: RecentValues<Specialised>;
  readonly #ending: Promise<unknown>[] = [];
  #compiled = 0;

  constructor(
    source: ModelBytes,
    options: SpecialiseOptions,
    { graph, meta, isDeclared = false }: NamedModel,
  ) {
    this.#source = source;
    this.#options = options;
    this.#graph = graph;
    this.#meta = meta;
    this.#isDeclared = isDeclared;
    const { programs, bytes } = options.limits;
    this.#kept = new RecentValues({ values: programs, weight: bytes });
  }

  /** Whose inputs are the model's. */
  get graph(): Graph {
    return this.#graph;
  }

  /** Programs that were made so far; a size that is asked for again while it is kept makes none. */
  get compiled(): number {
    return this.#compiled;
  }

  /** What makes the model one program, or stages, for these feeds: it is compiled for them, and kept. */
  settle(feeds: Feeds): Result<OpenOptions> {
    const found = this.#programFor(feeds);
    return found.ok ? ok(found.value.options) : found;
  }

  run(feeds: Feeds): Result<Outputs> {
    const found = this.#programFor(feeds);
    if (!found.ok) return found;
    return this.#named(found.value, found.value.session.run(this.#fed(found.value.meta, feeds)));
  }

  async runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    const found = this.#programFor(feeds);
    if (!found.ok) return found;
    const { session } = found.value;
    return this.#named(
      found.value,
      await session.runAsync(this.#fed(found.value.meta, feeds), signal),
    );
  }

  profile(
    feeds: Feeds,
    now: () => number,
  ): Result<{ readonly outputs: Outputs; readonly kernels: readonly KernelTime[] }> {
    const found = this.#programFor(feeds);
    if (!found.ok) return found;
    const run = found.value.session.profile(this.#fed(found.value.meta, feeds), now);
    if (!run.ok) return run;
    const outputs = this.#named(found.value, ok(run.value.outputs));
    return outputs.ok ? ok({ ...run.value, outputs: outputs.value }) : outputs;
  }

  poison(): void {
    for (const { session } of this.#kept.values()) session?.poison();
  }

  /** A specialised model has no states. */
  resetStates(): void {}

  async dispose(): Promise<void> {
    this.#ending.push(...this.#kept.clear().map(async (s) => s.session?.dispose()));
    await Promise.all(this.#ending);
  }

  #programFor(feeds: Feeds): Result<Running> {
    const sizes = this.#sizesOf(feeds);
    if (!sizes.ok) return sizes;
    const size = [...sizes.value].map(([name, value]) => `${name}=${value}`);
    const shapes = fixedShapes(this.#options.shapes, sizes.value);
    const known = new Map<string, Tensor>();
    for (let question = 0; question < mostQuestions; question++) {
      const key = [...size, ...[...known].map(([name, t]) => `${name}=[${t.data}]`)].join(",");
      const found = this.#keptAt(key, { ...this.#options, shapes }, known);
      if (!found.ok) return found;
      if (!found.value.asks) return found as Result<Running>;
      const answers = this.#answers(found.value, feeds);
      if (!answers.ok) return answers;
      for (const [name, value] of answers.value) known.set(name, value);
    }
    return fail(
      diagnostic("ONX013", `values decide more than ${mostQuestions} times what the model is`, {
        help: "fix some of them: --value NAME=NUMBER or NAME=FILE.npy (values: { NAME } of load), or export the model with constants there",
      }),
    );
  }

  #keptAt(
    key: string,
    options: SpecialiseOptions,
    known: ReadonlyMap<string, Tensor>,
  ): Result<Specialised> {
    const kept = this.#kept.use(key);
    if (kept) return ok(kept);
    const made = this.#isDeclared ? this.#makeNext(options, known) : this.#make(options, known);
    if (!made.ok) return made;
    if (!made.value.asks) this.#compiled++;
    const left = this.#kept.keep(key, made.value, made.value.bytes);
    this.#ending.push(...left.map(async (s) => s.session?.dispose()));
    return made;
  }

  /** The whole model where what is known is enough, else what tells the values that are missing. */
  #makeNext(options: SpecialiseOptions, known: ReadonlyMap<string, Tensor>): Result<Specialised> {
    const isInput = (name: string): boolean => this.#meta.inputs.some((p) => p.name === name);
    const fixed = [...known].filter(([name]) => isInput(name));
    const computed = [...known].filter(([name]) => !isInput(name));
    const given = {
      ...options,
      values: { ...options.values, ...Object.fromEntries(fixed) },
      computed: Object.fromEntries(computed),
    };
    const unknown = new Set<string>();
    const read = importBytes(this.#source, { ...given, onUnknown: (name) => unknown.add(name) });
    if (read.ok) return this.#make(given, known);
    if (unknown.size === 0) return read;
    const asks = [...unknown];
    const outputs = asks.filter((name) => !isInput(name));
    if (outputs.length === 0) return ok({ asks, meta: { inputs: [], outputs: [] }, bytes: 0 });
    const made = this.#make({ ...given, outputs }, known);
    return made.ok ? ok({ ...made.value, asks }, made.warnings) : made;
  }

  /** The values that a program asks for: of the feeds, or what it computes of them. */
  #answers(
    { asks = [], session, meta }: Specialised,
    feeds: Feeds,
  ): Result<readonly (readonly [string, Tensor])[]> {
    const ran = session ? session.run(this.#fed(meta, feeds)) : ok<Outputs>({});
    if (!ran.ok) return ran;
    const outputs = new Map(meta.outputs.map((p) => [p.name, ran.value[p.value]!]));
    const inputs = new Map(this.#meta.inputs.map((p) => [p.name, named(feeds, p.value)!]));
    const known = asks.map((name) => [name, outputs.get(name) ?? inputs.get(name)!] as const);
    const long = known.find(([, tensor]) => tensor.data.length > mostValues);
    return long ? fail(tooManyValues(...long)) : ok(known);
  }

  #make(options: SpecialiseOptions, known: ReadonlyMap<string, Tensor>): Result<Running> {
    const opened = openModel(this.#source, options);
    if (opened.ok) {
      const large = this.#tooLarge([opened.value], known);
      if (large) return fail(large);
      const session = startSession(opened.value, options.threads, { gpu: options.gpu });
      if (!session.ok) return session;
      const { meta, program } = opened.value.start;
      return ok({ session: session.value, meta, bytes: memoryBytes(program), options });
    }
    const needsStages = opened.diagnostics.every((d) => d.code === "SCH015");
    const staged = needsStages ? openStaged(this.#source, options) : undefined;
    if (!staged) return opened;
    if (!staged.ok) return staged;
    const { face, stages } = staged.value;
    const large = this.#tooLarge(
      stages.stages.flatMap((stage) => stage.opened ?? []),
      known,
    );
    if (large) return fail(large);
    const session = startStages(stages, options.threads, options.gpu);
    if (!session.ok) return session;
    const { bytes } = session.value;
    return ok({ session: session.value, meta: face.start.meta, bytes, options });
  }

  /**
   * Shapes come with as much data as they say; a number in a feed may ask for any size. Where one has decided what
   * the programs are, they are held to the bound before they get their memory.
   */
  #tooLarge(
    programs: readonly OpenModel[],
    known: ReadonlyMap<string, Tensor>,
  ): Diagnostic | undefined {
    if (known.size === 0) return undefined;
    const bytes = programs.reduce((sum, { start }) => sum + bytesOfRun(start.program), 0);
    const most = this.#options.limits.bytes;
    if (bytes <= most) return undefined;
    const names = [...known.keys()].join(", ");
    return diagnostic(
      "RUN038",
      `a run for these values takes ${mebibytes(bytes)} beside the weights, allowed are ${mebibytes(most)}`,
      {
        at: `values of ${names}`,
        help: "feed other values, or allow more (specialise: { bytes } of load)",
      },
    );
  }

  /** Values of the symbols of the inputs' shapes, by name. */
  #sizesOf(feeds: Feeds): Result<Sizes> {
    const shapes: GivenShape[] = [];
    const ports = this.#meta.inputs.map(({ name }) => ({ title: name }));
    const values = new Set(this.#meta.inputs.map(({ value }) => value));
    const unknown = Object.keys(feeds).find((name) => !values.has(name));
    if (unknown !== undefined) return fail(unknownInput(unknown, ports));
    for (const [i, { name, value }] of this.#meta.inputs.entries()) {
      const feed = named(feeds, value);
      if (!feed) return fail(missing(name));
      const { dtype, shape } = this.#graph.values[this.#graph.inputs[i]!]!.type;
      // Before a program is made for these sizes: that takes its time.
      if (feed.dtype !== dtype) return fail(wrongType({ title: name, dtype }, feed));
      shapes.push({ port: { name, shape }, shape: feed.shape });
    }
    const used = new Set(shapes.flatMap((g) => [...variablesOf(...g.port.shape)]));
    const given = Object.keys(this.#options.shapes).map((name) => spellName(name, "dim"));
    // What nobody gave a range may be empty: keys and values before the first token are.
    const parameters = this.#graph.symbols
      .filter((s) => used.has(s.name))
      .map((s) => (s.max === Infinity && !given.includes(s.name) ? { ...s, min: 0 } : s));
    const bound = bindParameters({ parameters, requires: [] }, shapes);
    if (!bound.ok) return bound;
    const order = [...bound.value].sort(([a], [b]) => (a < b ? -1 : 1));
    return ok(new Map(order));
  }

  /** Feeds by the names that the values have in the specialised graph; others are its own to refuse. */
  #fed(meta: Ports, feeds: Feeds): Feeds {
    const names = new Map(this.#meta.inputs.map((p) => [p.value, p.name]));
    const values = new Map(meta.inputs.map((p) => [p.name, p.value]));
    return Object.fromEntries(
      Object.entries(feeds).flatMap(([value, tensor]) => {
        const name = names.get(value) ?? value;
        const isFixed = names.has(value) && !values.has(name);
        return isFixed ? [] : [[values.get(name) ?? name, tensor] as const];
      }),
    );
  }

  /** Outputs by the names that the values have in the graph whose ports are shown. */
  #named({ meta }: Specialised, outputs: Result<Outputs>): Result<Outputs> {
    if (!outputs.ok) return outputs;
    const values = new Map(this.#meta.outputs.map((p) => [p.name, p.value]));
    // A list that a size decides the length of has outputs that no declaration names.
    const own = meta.outputs.map((p) => [values.get(p.name) ?? p.name, outputs.value[p.value]!]);
    return ok(Object.fromEntries(own) as Outputs, outputs.warnings);
  }
}

/** The same overrides with a value in the place of every range and expression. */
function fixedShapes(overrides: ShapeOverrides, sizes: Sizes): ShapeOverrides {
  const fixed = emptyNamed<number>();
  const settled = new Set<string>();
  for (const [name, override] of Object.entries(overrides)) {
    const spelled = spellName(name, "dim");
    settled.add(spelled);
    if (typeof override === "number") fixed[name] = override;
    else if ("min" in override) {
      const value = sizes.get(spelled);
      if (value !== undefined) fixed[name] = value;
    } else {
      fixed[name] = evaluate(override, sizes);
      for (const free of variablesOf(override)) settled.add(free);
    }
  }
  for (const [name, value] of sizes) if (!settled.has(name)) fixed[name] = value;
  return fixed;
}

function missing(name: string) {
  return diagnostic("RUN012", `input "${name}" is missing`, {
    help: "feed every input: their shapes decide the program",
  });
}
