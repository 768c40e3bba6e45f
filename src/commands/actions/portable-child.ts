/**
 * The portable program of an artifact, compiled and emitted in a process of its own while this one compiles
 * the machine code. What that process cannot answer is compiled here: the same program, later.
 */
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import { builtEntry, OneAnswer } from "../../runtime/child/one-answer.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { type EmittedCode, emitHere } from "../../runtime/emit-here.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { findTarget } from "../library/choose-target.ts";
import { importModel } from "../library/open-model.ts";
import {
  addPortable,
  compilePortable,
  isOfGraph,
  type PortableProgram,
  portableTarget,
} from "../library/portable-program.ts";
import { build } from "../version.ts";
import { type OpenArgs, readRequest } from "./open.ts";

type PortableQuestion = Pick<
  OpenArgs,
  "model" | "target" | "shape" | "state" | "value" | "seed" | "calibration"
>;

export interface PortableAnswer {
  readonly program: PortableProgram | undefined;
  /** Absent where there is no program. */
  readonly emitted?: EmittedCode;
}

/** The other process's side. */
export function answerPortable(question: PortableQuestion): Result<PortableAnswer> {
  const request = readRequest(question, { progress: () => {} });
  if (!request.ok) return request;
  const { source, options } = request.value;
  const imported = importModel(source, options);
  if (!imported.ok) return imported;
  const made = compilePortable(imported.value, options.calibration ?? "off");
  if (!made.ok) return made;
  const program = made.value;
  if (!program) return ok({ program }, made.warnings);
  const emitted = emitHere(program.code.program, targets.get(portableTarget)!);
  return emitted.ok ? ok({ program, emitted: emitted.value }, made.warnings) : emitted;
}

/** An artifact with code that was emitted already, by target. */
export interface WithPortable {
  readonly artifact: ArtifactContent;
  readonly emitted: ReadonlyMap<string, EmittedCode>;
}

export class PortableChild {
  readonly #child: OneAnswer<Result<PortableAnswer>>;

  /** @param entry the built module that answers */
  constructor(question: PortableQuestion, entry = builtEntry("portable-child")) {
    const { model, target, shape, state, value, seed, calibration } = question;
    const asked = { model, target, shape, state, value, seed, calibration };
    this.#child = new OneAnswer(entry, asked);
  }

  /** Where both programs are wanted of the graph as it is imported, and more than one core runs them. */
  static isWorth({ target, rewrite = "off" }: OpenArgs): boolean {
    // A source checkout has no built entry.
    if (build === undefined || rewrite !== "off" || threadsHere().threads < 2) return false;
    const found = findTarget(target);
    return found.ok && found.value.name !== portableTarget;
  }

  /** Behind this, nothing runs beside this process. */
  async settle(): Promise<void> {
    await this.#child.answer();
  }

  /** Adds the program to the artifact of the model that both were made of, and its code to that of the other. */
  async addTo(
    own: WithPortable,
    compileHere: (of: "imported" | "compiled") => Result<PortableProgram | undefined>,
  ): Promise<Result<WithPortable>> {
    let answer = (await this.#child.answer()) ?? compiledHere(compileHere("imported"));
    if (answer.ok && answer.value.program && !isOfGraph(own.artifact, answer.value.program)) {
      answer = compiledHere(compileHere("compiled"));
    }
    if (!answer.ok) return answer;
    const { program, emitted } = answer.value;
    const artifact = addPortable(own.artifact, program);
    const known = new Map(own.emitted);
    if (emitted) known.set(portableTarget, emitted);
    return ok({ artifact, emitted: known }, answer.warnings);
  }

  end(): void {
    this.#child.end();
  }
}

function compiledHere(made: Result<PortableProgram | undefined>): Result<PortableAnswer> {
  return made.ok ? ok({ program: made.value }, made.warnings) : made;
}
