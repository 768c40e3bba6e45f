/**
 * Compares a compiled program with a reference on fresh random inputs, memory poisoned beforehand. The
 * reference is the float64 interpreter on the graph as it was imported (for an artifact: as it was
 * stored), or onnxruntime on the model file. The tolerance follows from the graph.
 */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import type { Graph, Model } from "../../graph/graph.ts";
import { keepRange } from "../../graph/transforms/keep-range.ts";
import { runGraph } from "../../interp/graph.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { hasRanks, hasSteps, isMovable, tolerancesOf } from "../../verdict/tolerance.ts";
import type { Action, CommandContext, CommandResult } from "../command.ts";
import { LoadedModel, type Tensors } from "../library/loaded-model.ts";
import { openPeer } from "../library/onnxruntime.ts";
import { openModel } from "../library/open-model.ts";
import { specialisedReference } from "../library/specialised-reference.ts";
import { openStaged, startStages } from "../library/staged-session.ts";
import { atSizes } from "./at-sizes.ts";
import { compareOutputs } from "./compare-outputs.ts";
import { extentsOf, shapesOfInputs } from "./given-inputs.ts";
import { conditionsOf, movesOf } from "./grants.ts";
import { ofDrawn, randomInputs, readInputs } from "./inputs.ts";
import { feedsOfPeer, type OpenArgs, startPath } from "./open.ts";
import { openInStages, programsOf, type StagesOfModel } from "./open-stages.ts";
import { atTrips, oracleSeconds, type Symbols, shapesWithin } from "./oracle-budget.ts";
import { type SpecialisedModel, startSpecialised } from "./start-specialised.ts";
import { verifyRegions } from "./verify-regions.ts";

interface VerifyArgs extends OpenArgs {
  readonly against: "oracle" | "onnxruntime";
  /** Seconds that the oracle may take. */
  readonly budget: number;
  readonly seed: number;
  readonly input?: readonly string[];
  /** What the files of `input` hold: in place of what would be drawn. */
  readonly given?: Tensors;
}

/** What is compared: a model that runs, and what it has to agree with. */
interface Compared {
  readonly model: LoadedModel;
  readonly threads: number;
  readonly target: string;
  readonly ports: Pick<ArtifactMeta, "inputs" | "outputs">;
  /** Of the program: its rounding gives the tolerance. */
  readonly graph: Graph;
  /** The graph as it was imported, or as an artifact has it. */
  readonly reference: () => Result<Model>;
  /** The inputs that it was made for, where their values decide what it is. */
  readonly feeds?: Tensors;
  readonly isOnnx: boolean;
  /** What rules that approximate may have added. */
  readonly granted: number;
  /** The answer where the whole oracle is over the budget. */
  readonly verifyParts: (neededSeconds: number) => Promise<Result<CommandResult>>;
}

const verifyAtSizes: Action<VerifyArgs> = async (args, context) => {
  const started = startCompared(args, context);
  if (!started.ok) return started;
  const compared = started.value;
  const { model, graph, ports } = compared;
  const { given = {} } = args;
  const names = ports.inputs.map((p) => p.name);
  const settled = extentsOf(graph, names, given);
  const ends = new Map(graph.symbols.map((s) => [s.name, settled.get(s.name) ?? s.max]));
  const fed = atTrips(graph, names, { ...compared.feeds, ...given });
  const shapes = shapesFor(args, fed, ends);
  if (!shapes) {
    await model.dispose();
    const needed = oracleRuns(graph) * oracleSeconds(fed, ends);
    return Object.keys(given).length > 0 ? fail(overBudget(needed)) : compared.verifyParts(needed);
  }
  const drawn =
    compared.feeds ?? randomInputs({ artifact: { graph, meta: ports } }, args.seed, shapes);
  const feeds = { ...drawn, ...given };
  model.poison();
  const options = "--input NAME=FILE.npy or --value NAME=NUMBER";
  const found = ofDrawn(model.tryRun(feeds), feeds, { given, options });
  await model.dispose();
  if (!found.ok) return found;
  context.progress(args.against);
  const expected =
    args.against === "oracle" ? runOracle(compared, feeds) : await runPeer(args, compared, feeds);
  if (!expected.ok) return expected;
  const reference = { ...compared, ...args, feeds, expected: expected.value };
  const moves = movesOf(reference);
  if (!moves.ok) return moves;
  const { isMoved, tolerances: granting } = moves.value;
  const tolerances = tolerancesOf(fed, { isMoved }).map(
    (t, i) => t + compared.granted + (granting[i] ?? 0),
  );
  const sides = { ports, found: found.value, expected: expected.value, against: args.against };
  const judge = (beside: readonly number[]) =>
    compareOutputs({
      ...sides,
      isStepped: hasSteps(graph),
      isRanked: () => ranks(compared),
      tolerances: tolerances.map((t, i) => t + (beside[i] ?? 0)),
    });
  const plain = judge([]);
  // Asked only where it matters: it takes the oracle once more.
  const conditions = plain.failed.length > 0 ? conditionsOf(reference) : ok([]);
  if (!conditions.ok) return conditions;
  const { outputs, text, failed, warnings } = judge(conditions.value);
  const { granted, target, threads } = compared;
  const coverage = { kind: "whole", shapes: Object.fromEntries(shapes) };
  const approximation = granted > 0 ? { errorBound: granted } : {};
  const asked = { against: args.against, seed: args.seed, threads };
  const moved = granting.length > 0 ? { moves: granting } : {};
  const hung = conditions.value.length > 0 ? { conditions: conditions.value } : {};
  const data = { ...asked, coverage, ...approximation, ...moved, ...hung, outputs };
  const told =
    text +
    grantedError(granted) +
    grantedMoves(granting) +
    grantedConditions(conditions.value) +
    smallerShapes(shapes, ends);
  return ok({ data, text: told, target, failed }, [...started.warnings, ...warnings]);
};

/** Of the graph as it was imported: programs select in other steps. */
function ranks({ reference }: Compared): boolean {
  const imported = reference();
  return imported.ok && hasRanks(imported.value.graph);
}

const verifyGiven = atSizes(verifyAtSizes, { ranges: [] });

export const verifyModel: Action<VerifyArgs> = async (args, context) => {
  const given = readInputs(args.input ?? []);
  if (!given.ok) return given;
  const shapes = shapesOfInputs(args, given.value, context);
  if (!shapes.ok) return shapes;
  const shape = [...args.shape, ...shapes.value];
  return verifyGiven({ ...args, shape, given: given.value }, context);
};

/** At which extents is compared: inputs that are given have theirs. Undefined: the oracle takes too long. */
function shapesFor(
  { against, budget, seed, given = {} }: VerifyArgs,
  graph: Graph,
  ends: Symbols,
): Symbols | undefined {
  if (against !== "oracle") return ends;
  const seconds = budget / oracleRuns(graph);
  if (Object.keys(given).length === 0) return shapesWithin(graph, seconds, seed);
  return oracleSeconds(graph, ends) <= seconds ? ends : undefined;
}

/** Of what a graph rounds to 16 bits or less the oracle tells the other side too. */
function oracleRuns(graph: Graph): number {
  return isMovable(graph) ? 2 : 1;
}

function overBudget(neededSeconds: number): Diagnostic {
  const seconds = Math.ceil(neededSeconds);
  return diagnostic("CLI001", `the oracle takes about ${seconds} s on these inputs`, {
    at: "--input",
    help: `allow it: --budget ${seconds}; or --against onnxruntime; without --input its regions are compared by samples`,
  });
}

function startCompared(args: VerifyArgs, context: CommandContext): Result<Compared> {
  const started = startPath(args, context);
  if (!started.ok) {
    const special = startSpecialised(args, context, started.diagnostics);
    if (special) return special.ok ? comparedSpecialised(special, args, context) : special;
    const staged = openInStages(args, context, started.diagnostics);
    if (!staged) return started;
    return staged.ok ? comparedStages(staged.value, args, context, staged.warnings) : staged;
  }
  const { model, opened, threads } = started.value;
  const { graph, meta } = opened.artifact;
  const compared = {
    model,
    threads,
    target: opened.target.name,
    ports: meta,
    graph,
    reference: () => ok(opened.origin?.imported ?? opened.artifact),
    isOnnx: opened.origin !== undefined,
    // The artifact alone is held to its own graph, approximated or not.
    granted: opened.origin ? (meta.errorBound ?? 0) : 0,
    verifyParts: (seconds: number) => verifyRegions(opened, args.seed, seconds, context),
  };
  return ok(compared, started.warnings);
}

/** The model as it is for the inputs that were drawn; its reference computes what decides that by itself. */
function comparedSpecialised(
  {
    value,
    warnings,
  }: { readonly value: SpecialisedModel; readonly warnings: readonly Diagnostic[] },
  args: VerifyArgs,
  context: CommandContext,
): Result<Compared> {
  const { source, options, model, feeds, threads, target } = value;
  const common = {
    model,
    threads,
    target,
    feeds,
    isOnnx: true,
    reference: () => specialisedReference(source, options, feeds),
  };
  const opened = openModel(source, options);
  if (opened.ok) {
    const { graph, meta } = opened.value.artifact;
    const granted = meta.errorBound ?? 0;
    const verifyParts = (seconds: number) =>
      verifyRegions(opened.value, args.seed, seconds, context);
    return ok({ ...common, ports: meta, graph, granted, verifyParts }, warnings);
  }
  const staged = openStaged(source, options);
  if (!staged) return opened;
  if (!staged.ok) return staged;
  const { face, stages } = staged.value;
  const whole = { ...staged.value, target };
  return ok(
    {
      ...common,
      ports: face.start.meta,
      graph: stages.graph,
      granted: grantedTo(whole),
      verifyParts: (seconds: number) => verifyPrograms(whole, args.seed, seconds, context),
    },
    warnings,
  );
}

function grantedTo(staged: StagesOfModel): number {
  const bounds = programsOf(staged).map((s) => s.opened.artifact.meta.errorBound ?? 0);
  return bounds.reduce((a, b) => a + b, 0);
}

/** The whole model, with the references between its programs. */
function comparedStages(
  staged: StagesOfModel,
  args: VerifyArgs,
  context: CommandContext,
  warnings: readonly Diagnostic[],
): Result<Compared> {
  const { face, stages, imported, target } = staged;
  const threads = args.threads ?? threadsHere().threads;
  const session = startStages(stages, threads);
  if (!session.ok) return session;
  const compared = {
    model: new LoadedModel(face, session.value),
    threads,
    target,
    ports: face.start.meta,
    graph: stages.graph,
    reference: () => ok(imported ?? stages),
    isOnnx: imported !== undefined,
    granted: imported ? grantedTo(staged) : 0,
    verifyParts: (seconds: number) => verifyPrograms(staged, args.seed, seconds, context),
  };
  return ok(compared, warnings);
}

/** The regions of each program by samples; one that differs ends it. */
async function verifyPrograms(
  staged: StagesOfModel,
  seed: number,
  neededSeconds: number,
  context: CommandContext,
): Promise<Result<CommandResult>> {
  const stages: unknown[] = [];
  const texts: string[] = [];
  const failed: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  for (const { number, opened } of programsOf(staged)) {
    const told = await verifyRegions(opened, seed, neededSeconds, context);
    if (!told.ok) return told;
    stages.push({ stage: number, ...told.value.data });
    texts.push(`stage ${number}: ${told.value.text}`);
    failed.push(...(told.value.failed ?? []));
    warnings.push(...told.warnings);
  }
  const data = { against: "oracle", seed, stages };
  return ok({ data, text: texts.join("\n"), target: staged.target, failed }, warnings);
}

/** What to say of rules that approximate. */
function grantedError(bound: number): string {
  if (bound === 0) return "";
  return `\nrules that approximate may have added ${bound.toExponential(2)}: it is part of the tolerance`;
}

/** What to say of quantisations. */
function grantedMoves(moves: readonly number[]): string {
  const most = Math.max(0, ...moves);
  if (most === 0) return "";
  return `\nvalues within their rounding of a quantisation's edge, and values of 16 bits that are rounded elsewhere, may move outputs by ${most.toExponential(2)}: it is part of the tolerance`;
}

function grantedConditions(conditions: readonly number[]): string {
  const most = Math.max(0, ...conditions);
  if (most === 0) return "";
  return `\nresults hang on the last bits of f32: other roundings move outputs by ${most.toExponential(2)}, which is part of the tolerance`;
}

/** What to say where the largest shapes were over the budget. */
function smallerShapes(shapes: Symbols, ends: Symbols): string {
  if ([...ends].every(([name, end]) => shapes.get(name) === end)) return "";
  const chosen = [...shapes].map(([name, value]) => `${name} = ${value}`).join(", ");
  return `\nthe largest shapes are over the budget: compared at ${chosen}`;
}

function runOracle({ reference, ports }: Compared, feeds: Tensors): Result<readonly RefTensor[]> {
  const model = reference();
  if (!model.ok) return model;
  const { graph, weights } = keepRange(model.value);
  const inputs = ports.inputs.map(({ name }) => toRef(feeds[name]!));
  return runGraph(graph, inputs, weights);
}

async function runPeer(
  args: VerifyArgs,
  { isOnnx, ports, threads }: Compared,
  feeds: Tensors,
): Promise<Result<readonly RefTensor[]>> {
  if (!isOnnx) {
    return fail(
      diagnostic("CLI001", "onnxruntime reads ONNX models, not artifacts", {
        at: "--against onnxruntime",
        help: "give the ONNX model, with the --shape options of the artifact",
      }),
    );
  }
  const theirs = feedsOfPeer(args, feeds);
  if (!theirs.ok) return theirs;
  const peer = await openPeer(args.model, threads);
  if (!peer.ok) return peer;
  const outputs = await peer.value.run(theirs.value);
  await peer.value.release();
  if (!outputs.ok) return outputs;
  return ok(ports.outputs.map(({ name }) => toRef(outputs.value[name]!)));
}
