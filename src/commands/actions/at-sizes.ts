/**
 * Commands at some sizes where none were given: each extent of the model that has no upper bound takes one
 * (library/assumed-sizes.ts), and the answer says so first. With `--shape` for all of them nothing is assumed.
 */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import { spellName } from "../../frontend/onnx/import/assembly.ts";
import { type Diagnostic, diagnostic, fail, ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { assumeSizes, type SizeWish, sizeTexts } from "../library/assumed-sizes.ts";
import { type OpenArgs, readRequest } from "./open.ts";

type ModelArgs = Pick<OpenArgs, "model" | "target" | "shape" | "value"> &
  Partial<Pick<OpenArgs, "state">>;

/** The action with assumed sizes among its `--shape`s, and what was assumed among its warnings. */
export function atSizes<A extends ModelArgs>(action: Action<A>, wish: SizeWish): Action<A> {
  return async (args, context) => {
    const texts = assumedShapes(args, wish);
    if (texts.length === 0) return action(args, context);
    const names = new Set(texts.map(nameOf));
    const shape = args.shape.filter((text) => !names.has(spellName(nameOf(text), "dim")));
    const answer = await action({ ...args, shape: [...shape, ...texts] }, context);
    const said = assumed(texts);
    return answer.ok
      ? ok(answer.value, [said, ...answer.warnings])
      : fail(...answer.diagnostics, said);
  };
}

function nameOf(text: string): string {
  return text.slice(0, text.indexOf("="));
}

/** Empty where all is given, and where the command will say what is wrong with the model. */
function assumedShapes(args: ModelArgs, wish: SizeWish): readonly string[] {
  const request = readRequest({ state: [], ...args }, { progress: () => {} });
  if (!request.ok) return [];
  const { source, options } = request.value;
  if (looksLikeArtifact(source.bytes)) return [];
  const sizes = assumeSizes(source, options, wish);
  return sizes ? sizeTexts(sizes) : [];
}

/** What was taken, as a warning. */
export function assumed(texts: readonly string[]): Diagnostic {
  const options = texts.map((t) => `--shape ${t}`).join(" ");
  const ranged = texts.some((t) => t.includes(".."));
  return diagnostic("CLI005", `extents without an upper bound were taken as ${texts.join(", ")}`, {
    severity: "warning",
    at: "--shape",
    help: `give the sizes that matter to you: ${options}${ranged ? "; code for one size is faster than code for a range" : ""}`,
  });
}
