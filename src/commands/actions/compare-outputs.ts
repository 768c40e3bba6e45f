/**
 * What `verify` says of each output: how far it is from the reference, and of how many elements that is said. NaNs
 * and infinities can only be alike or not; an output that has nothing else, or one value everywhere, agrees with
 * the reference whatever the code between computes.
 */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import { isFloatDType } from "../../semantics/dtype.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import { type Comparison, compareTensors } from "../../verdict/tolerance.ts";
import type { Tensors } from "../library/loaded-model.ts";
import { printTable } from "./table.ts";

export interface ComparedOutput extends Comparison {
  readonly name: string;
  readonly tolerance: number;
  /** Nothing differs by more than the tolerance, and there was something to compare. */
  readonly agrees: boolean;
}

export interface ComparedOutputs {
  readonly outputs: readonly ComparedOutput[];
  readonly text: string;
  readonly failed: readonly Diagnostic[];
  /** Outputs that agree, of which that says little. */
  readonly warnings: readonly Diagnostic[];
}

export interface Sides {
  readonly ports: Pick<ArtifactMeta, "inputs" | "outputs">;
  readonly found: Tensors;
  readonly expected: readonly RefTensor[];
  /** Of each output, relative to its largest value. */
  readonly tolerances: readonly number[];
  /** See hasRanks: rows may stand elsewhere. */
  readonly isRanked: () => boolean;
  /** See hasSteps: differences may be larger than the tolerance then. */
  readonly isStepped: boolean;
  /** Name of the reference. */
  readonly against: string;
}

export function compareOutputs(sides: Sides): ComparedOutputs {
  const { ports, found, expected, tolerances } = sides;
  const outputs = ports.outputs.map(({ name }, i): ComparedOutput => {
    const comparison = compareTensors(toRef(found[name]!), expected[i]!);
    const { worst, elements, compared } = comparison;
    const tolerance = tolerances[i]!;
    const agrees = worst.relative <= tolerance && (compared > 0 || elements === 0);
    return { name, tolerance, ...comparison, agrees };
  });
  const differing = outputs.filter(isDifferent).map((o) => differs(o, sides));
  const empty = outputs.filter((o) => !o.agrees && !isDifferent(o));
  const failed = [...differing, ...empty.map((o) => sayingNothing(o, ports))];
  const warnings = outputs
    .filter((o) => o.agrees)
    .flatMap((o) => {
      const isFloat = isFloatDType(found[o.name]!.dtype);
      return [...sayingLittle(o, ports, isFloat), ...grantingMuch(o)];
    });
  return { outputs, text: tableOf(outputs), failed, warnings };
}

function tableOf(outputs: readonly ComparedOutput[]): string {
  const isMarred = outputs.some(({ nan, infinite }) => nan + infinite > 0);
  const rows = outputs.map((o) => [
    o.name,
    o.worst.relative.toExponential(2),
    o.tolerance.toExponential(2),
    `${o.compared} of ${o.elements}`,
    ...(isMarred ? [String(o.nan), String(o.infinite)] : []),
    answerOf(o),
  ]);
  const marred = isMarred ? ["NaN", "infinite"] : [];
  return printTable(["output", "difference", "tolerance", "compared", ...marred, "agrees"], rows);
}

function isDifferent({ worst, tolerance }: ComparedOutput): boolean {
  return !(worst.relative <= tolerance);
}

function answerOf(output: ComparedOutput): string {
  const { elements, compared } = output;
  if (isDifferent(output)) return "no";
  if (elements === 0) return "empty";
  if (compared === 0) return "nothing compared";
  return 2 * compared < elements ? "in part" : "yes";
}

function differs(
  { name, worst, tolerance }: ComparedOutput,
  { against, isStepped, isRanked }: Sides,
): Diagnostic {
  const { index, found, expected, relative } = worst;
  const stepped =
    "the model makes integers of floats on the way: a value near the edge of a step may fall on either side, which the tolerance counts for integers of a byte or less, outside of loops";
  const ranked =
    "the model ranks numbers (TopK, NonMaxSuppression): of two that differ by rounding alone either may come first, and whole rows of the results change places; compare them as a set, sorted by something else";
  return diagnostic(
    "CLI004",
    `output ${name}: element ${index} is ${found}, ${against} has ${expected}`,
    {
      notes: [
        `relative difference ${relative}, tolerance ${tolerance}`,
        ...(isStepped && Number.isFinite(relative) ? [stepped] : []),
        ...(isRanked() ? [ranked] : []),
      ],
    },
  );
}

/** Of the largest value: beyond it zero is as right as what is expected. */
const muchGranted = 0.5;

function grantingMuch({ name, tolerance }: ComparedOutput): readonly Diagnostic[] {
  if (tolerance < muchGranted) return [];
  const message = `output ${name}: a tolerance of ${tolerance.toPrecision(2)} of the largest value grants nearly anything: values near an edge decide it`;
  const help =
    "compare another output, or inputs further from the edge (--seed, --input NAME=FILE.npy)";
  return [diagnostic("CLI009", message, { severity: "warning", help })];
}

function sayingNothing(output: ComparedOutput, ports: Sides["ports"]): Diagnostic {
  const { name, elements } = output;
  return diagnostic(
    "CLI009",
    `output ${name}: nothing was compared, none of its ${elements} elements is a finite number: ${countsOf(output)} on both sides`,
    { help: helpFor(ports) },
  );
}

function sayingLittle(
  output: ComparedOutput,
  ports: Sides["ports"],
  isFloat: boolean,
): readonly Diagnostic[] {
  const { name, elements, nan, infinite, onlyValue } = output;
  const said =
    nan + infinite > 0
      ? `${countsOf(output)} of ${elements} elements, the same ones on both sides`
      : isFloat && onlyValue !== undefined
        ? `all ${elements} elements are ${onlyValue}, which says little of the code that makes them`
        : undefined;
  if (said === undefined) return [];
  const help = helpFor(ports);
  return [diagnostic("CLI009", `output ${name}: ${said}`, { severity: "warning", help })];
}

function countsOf({ nan, infinite }: Comparison): string {
  const counts = [
    ...(nan > 0 ? [`${nan} NaN`] : []),
    ...(infinite > 0 ? [`${infinite} infinite`] : []),
  ];
  return counts.join(" and ");
}

/** What an input that was drawn may have been wrong for, only whoever has the model can know. */
function helpFor({ inputs }: Sides["ports"]): string {
  if (inputs.length === 0)
    return "the model has no inputs left: give those that --value fixed other values";
  const names = inputs.map((p) => p.name).join(", ");
  return `give inputs that mean something to the model, --input NAME=FILE.npy (its inputs: ${names}), or fix one by --value NAME=NUMBER`;
}
