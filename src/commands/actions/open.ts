/** Opening a model as commands do: path, target, shapes and threads from the arguments. */

import type { RewriteMode } from "../../rewrite/families/index.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { readModelFile } from "../../runtime/files/model-source.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { CommandContext } from "../command.ts";
import { parseShapes } from "../library/load.ts";
import { LoadedModel } from "../library/loaded-model.ts";
import { type OpenModel, openModel, startSession } from "../library/open-model.ts";
import { readAssignments, readInputs } from "./inputs.ts";

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
  readonly rewrite?: RewriteMode;
}

export function openPath(args: OpenArgs, context: CommandContext): Result<OpenModel> {
  const source = readModelFile(args.model);
  if (!source.ok) return source;
  const assigned = readAssignments("--shape", args.shape);
  if (!assigned.ok) return assigned;
  const shapes = parseShapes(assigned.value);
  if (!shapes.ok) return shapes;
  const states = readAssignments("--state", args.state);
  if (!states.ok) return states;
  const values = readInputs(args.value ?? [], "--value");
  if (!values.ok) return values;
  return openModel(source.value, {
    target: args.target,
    shapes: shapes.value,
    states: states.value,
    values: values.value,
    seed: args.seed ?? 0,
    ...(args.threads !== undefined && { threads: args.threads }),
    ...(args.portable && { portable: true }),
    ...(args.measured && { measured: args.measured }),
    ...(args.rewrite && { rewrite: args.rewrite }),
    onPass: context.progress,
  });
}

export interface StartedModel {
  readonly opened: OpenModel;
  readonly model: LoadedModel;
  readonly threads: number;
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
