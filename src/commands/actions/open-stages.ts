/** A model that runs in stages, opened for commands that have a form for it: programs and references in turn. */
import type { Diagnostic, Result } from "../../support/diagnostic.ts";
import { ok } from "../../support/diagnostic.ts";
import type { CommandContext } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import type { OpenModel } from "../library/open-model.ts";
import { openStaged, type StagedModel } from "../library/staged-session.ts";
import type { OpenStage } from "../library/stages.ts";
import { type OpenArgs, readRequest } from "./open.ts";

export interface StagesOfModel extends StagedModel {
  readonly target: string;
}

/**
 * @param diagnostics why the model has no one program
 * @returns undefined where stages do not help: the diagnostics are the answer
 */
export function openInStages(
  args: OpenArgs,
  context: CommandContext,
  diagnostics: readonly Diagnostic[],
): Result<StagesOfModel> | undefined {
  if (args.state.length > 0 || diagnostics.some((d) => d.code !== "SCH015")) return undefined;
  const request = readRequest(args, context);
  if (!request.ok) return request;
  const { source, options } = request.value;
  const opened = openStaged(source, options);
  if (!opened?.ok) return opened;
  const [first] = programsOf(opened.value);
  const wished = first ? ok(first.opened.target) : findTarget(args.target);
  if (!wished.ok) return wished;
  return ok({ ...opened.value, target: wished.value.name }, opened.warnings);
}

export interface ProgramStage {
  /** Counted from 1. */
  readonly number: number;
  readonly opened: OpenModel;
}

export function programsOf({ stages }: StagedModel): readonly ProgramStage[] {
  return stages.stages.flatMap(({ opened }, i) => (opened ? [{ number: i + 1, opened }] : []));
}

/** The line above what is told of a stage. */
export function titleOf({ graph, opened }: OpenStage, number: number): string {
  const names = [...new Set(graph.nodes.map((node) => node.op))].join(", ");
  return opened
    ? `stage ${number}, a program of ${graph.nodes.length} nodes:`
    : `stage ${number}, computed by the reference, because data decide: ${names}`;
}
