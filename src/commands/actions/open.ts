/** Opening a model as commands do: path, target, shapes and threads from the arguments. */

import { looksLikeArtifact } from "../../artifact/artifact.ts";
import type { RewriteMode } from "../../rewrite/families/index.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { openModelFile, readModelFile } from "../../runtime/files/model-source.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { type Diagnostic, ok, type Result } from "../../support/diagnostic.ts";
import type { Allowance } from "../../target/allowing.ts";
import type { CommandContext } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import { parseShapes, startOtherwise } from "../library/load.ts";
import { LoadedModel, type Tensors } from "../library/loaded-model.ts";
import type { CalibrationWish } from "../library/machine-calibration.ts";
import type { ModelBytes } from "../library/model-bytes.ts";
import {
  type OpenModel,
  type OpenOptions,
  openModel,
  startSession,
} from "../library/open-model.ts";
import { defaultLimits } from "../library/specialising-session.ts";
import { readAssignments } from "./inputs.ts";
import { readRules } from "./rules-file.ts";
import { readValues } from "./values.ts";

export interface OpenArgs {
  readonly model: string;
  readonly target: string;
  readonly shape: readonly string[];
  readonly state: readonly string[];
  readonly value?: readonly string[] | undefined;
  readonly seed?: number;
  readonly threads?: number | undefined;
  readonly portable?: boolean;
  readonly measured?: ReadonlyMap<string, Schedule>;
  readonly allow?: readonly Allowance[];
  readonly rewrite?: RewriteMode;
  /** A file of rules. */
  readonly rules?: string | undefined;
  readonly explainRewrite?: boolean;
  readonly calibration?: CalibrationWish | undefined;
  readonly onScheduled?: OpenOptions["onScheduled"];
}

export function openPath(args: OpenArgs, context: CommandContext): Result<OpenModel> {
  const request = readRequest(args, context);
  return request.ok ? openModel(request.value.source, request.value.options) : request;
}

interface OpenRequest {
  readonly source: ModelBytes;
  readonly options: OpenOptions;
}

export function readRequest(
  args: OpenArgs,
  context: Pick<CommandContext, "progress">,
): Result<OpenRequest> {
  const source = openModelFile(args.model, looksLikeArtifact);
  if (!source.ok) return source;
  const assigned = readAssignments("--shape", args.shape);
  if (!assigned.ok) return assigned;
  const shapes = parseShapes(assigned.value);
  if (!shapes.ok) return shapes;
  const states = readAssignments("--state", args.state);
  if (!states.ok) return states;
  const values = readValues(args.value ?? [], source.value);
  if (!values.ok) return values;
  const rules = readRules(args.rules, args.rewrite);
  if (!rules.ok) return rules;
  const options = {
    target: args.target,
    shapes: shapes.value,
    states: states.value,
    values: values.value,
    seed: args.seed ?? 0,
    ...(args.threads !== undefined && { threads: args.threads }),
    ...(args.portable && { portable: true }),
    ...(args.measured && { measured: args.measured }),
    ...(args.allow && { allow: args.allow }),
    ...(args.rewrite && { rewrite: args.rewrite }),
    ...(rules.value.length > 0 && { rules: rules.value }),
    ...(args.explainRewrite && { explainRewrite: true }),
    calibration: args.calibration ?? "auto",
    ...(args.onScheduled && { onScheduled: args.onScheduled }),
    onPass: context.progress,
  };
  return ok({ source: source.value, options });
}

export interface StartedModel {
  readonly opened: OpenModel;
  readonly model: LoadedModel;
  readonly threads: number;
}

/**
 * A model that has no one program, for the inputs that will be fed: `diagnostics` say why, and stay the
 * answer where something else is missing.
 */
export function startFed(
  args: OpenArgs,
  context: CommandContext,
  diagnostics: readonly Diagnostic[],
): Result<Omit<StartedModel, "opened"> & { readonly target: string }> {
  const request = readRequest(args, context);
  if (!request.ok) return request;
  const target = findTarget(args.target);
  if (!target.ok) return target;
  const threads = args.threads ?? threadsHere().threads;
  const { source, options } = request.value;
  const wanted = { ...options, threads, limits: defaultLimits };
  const made = startOtherwise(source, wanted, diagnostics);
  if (!made.ok) return made;
  const { face, session } = made.value;
  const model = new LoadedModel(face, session);
  return ok({ model, threads, target: target.value.name }, made.warnings);
}

/** What a runtime that reads the model itself is fed: the inputs that are fixed here are its inputs too. */
export function feedsOfPeer(
  { model, value = [] }: Pick<OpenArgs, "model" | "value">,
  feeds: Tensors,
): Result<Tensors> {
  if (value.length === 0) return ok(feeds);
  const source = readModelFile(model);
  if (!source.ok) return source;
  const fixed = readValues(value, source.value);
  return fixed.ok ? ok({ ...fixed.value, ...feeds }) : fixed;
}

export function startPath(args: OpenArgs, context: CommandContext): Result<StartedModel> {
  const opened = openPath(args, context);
  if (!opened.ok) return opened;
  context.progress("load");
  const threads = args.threads ?? threadsHere().threads;
  const session = startSession(opened.value, threads);
  if (!session.ok) return session;
  const model = new LoadedModel(opened.value, session.value);
  return ok({ opened: opened.value, model, threads }, opened.warnings);
}
