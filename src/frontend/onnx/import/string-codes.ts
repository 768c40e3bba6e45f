/**
 * Operators that only move or compare elements, on strings: every string becomes its number in a
 * dictionary, the operator's own row runs on the numbers (which are constants, so that the importer
 * computes it), and results are spelled again.
 */
import { indicesOf, refTensor, toRef } from "../../../semantics/tensor.ts";
import { reject } from "../../../support/diagnostic.ts";
import type { StringTensor } from "../host-value.ts";
import type { NodeView } from "./node-view.ts";
import { type Bound, constantFromRef, describeBound, isOperand, type Operand } from "./operand.ts";

/** Their results are elements of their operands. */
const movers = new Set(
  "Reshape Squeeze Unsqueeze Flatten Transpose Concat Gather GatherElements GatherND Slice Split Expand Tile Where Compress".split(
    " ",
  ),
);
const comparers = new Set(["Equal"]);

export function takesStringCodes(op: string, inputs: readonly (Bound | undefined)[]): boolean {
  const known = movers.has(op) || comparers.has(op);
  return known && inputs.some((bound) => bound?.kind === "strings");
}

export class StringCodes {
  readonly #codes = new Map<string, number>();
  readonly #strings: string[] = [];

  encode({ shape, elements }: StringTensor): Operand {
    return constantFromRef(
      refTensor(
        "i64",
        shape,
        elements.map((e) => this.codeOf(e)),
      ),
    );
  }

  codeOf(text: string): number {
    let code = this.#codes.get(text);
    if (code === undefined) {
      code = this.#strings.push(text) - 1;
      this.#codes.set(text, code);
    }
    return code;
  }

  decode(bound: Bound, at: string): StringTensor {
    if (bound.kind !== "constant") {
      return reject("ONX013", "strings are chosen by a value that is not known at import", {
        at,
        help: "fix the inputs that choose: --value NAME=NUMBER or NAME=FILE.npy (values: { NAME } of load)",
      });
    }
    const elements = Array.from(indicesOf(toRef(bound.source.read())), (c) => this.#strings[c]!);
    return { kind: "strings", shape: bound.shape, elements };
  }
}

/** Runs the converter with numbers in the place of strings. */
export function convertStrings(
  view: NodeView,
  convert: (view: NodeView) => Bound | readonly (Bound | undefined)[],
): readonly (Bound | undefined)[] {
  const codes = new StringCodes();
  const inputs = view.inputs.map((b) => (b?.kind === "strings" ? codes.encode(b) : b));
  const found = convert(view.withInputs(inputs));
  const results = "kind" in found ? [found] : found;
  if (comparers.has(view.op)) return results;
  return results.map((r) => r && codes.decode(r, view.origin.at));
}

/** The elements of strings or of constant integers as numbers of one dictionary. */
export function encodeAny(bound: Bound, codes: StringCodes, node: NodeView): Operand {
  if (bound.kind === "strings") return codes.encode(bound);
  if (isOperand(bound)) return bound;
  return node.refuse(describeBound(bound), "numbers or strings");
}
