/** A model started on random inputs: one program, several in turn where data decide sizes, or one for these inputs. */
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { CommandContext } from "../command.ts";
import { LoadedModel, type Tensors } from "../library/loaded-model.ts";
import { startStages } from "../library/staged-session.ts";
import { randomInputs } from "./inputs.ts";
import { type OpenArgs, startPath } from "./open.ts";
import { openInStages } from "./open-stages.ts";
import { startSpecialised } from "./start-specialised.ts";

export interface FedModel {
  readonly model: LoadedModel;
  readonly feeds: Tensors;
  readonly threads: number;
  readonly target: string;
  readonly isOnnx: boolean;
}

export function startRandom(
  args: OpenArgs & { readonly seed: number },
  context: CommandContext,
): Result<FedModel> {
  const started = startPath(args, context);
  if (started.ok) {
    const { model, opened, threads } = started.value;
    const feeds = randomInputs(opened, args.seed);
    const isOnnx = opened.origin !== undefined;
    return ok({ model, feeds, threads, target: opened.target.name, isOnnx }, started.warnings);
  }
  const special = startSpecialised(args, context, started.diagnostics);
  if (special)
    return special.ok ? ok({ ...special.value, isOnnx: true }, special.warnings) : special;
  const staged = openInStages(args, context, started.diagnostics);
  if (!staged) return started;
  if (!staged.ok) return staged;
  const { face, stages, imported, target } = staged.value;
  const threads = args.threads ?? threadsHere().threads;
  const session = startStages(stages, threads);
  if (!session.ok) return session;
  const model = new LoadedModel(face, session.value);
  const { graph } = stages;
  const feeds = randomInputs({ artifact: { graph, meta: face.start.meta } }, args.seed);
  const isOnnx = imported !== undefined;
  return ok({ model, feeds, threads, target, isOnnx }, staged.warnings);
}
