/**
 * A calibration as a file: the fit beside everything it was made of, so that it can be made again and read where it
 * does not belong is refused. Text: JSON in the form `wavetile/calibration/2`. In: text. Out: the value, or
 * diagnostics. Whose file it is and where files lie is the caller's.
 */
import { z } from "zod";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import type { CostSample } from "./calibrated.ts";
import { type Calibration, mostScaled } from "./calibration.ts";
import { featureCount } from "./code-features.ts";
import { type CoreFigure, type CoreFigures, coreFigures } from "./core-figures.ts";
import type { Tree } from "./residual-trees.ts";

export const calibrationSchema = "wavetile/calibration/2";

const amount = z.number().nonnegative();
const mixRow = z.strictObject({
  loads: amount,
  stores: amount,
  arithmetic: amount,
  series: amount,
  splats: amount,
  laneMoves: amount,
  tests: amount,
  spills: amount,
  alive: amount,
  control: amount,
  chain: amount,
  additions: amount,
});

const workRow = z.strictObject({
  runs: z.array(
    z.strictObject({ mix: mixRow, executions: amount, chains: amount, entries: amount }),
  ),
  traffic: z.array(
    z.array(z.strictObject({ bytes: amount, scattered: amount, written: amount, jumps: amount })),
  ),
  counted: z.strictObject({ spills: amount, reloads: amount }).exactOptional(),
});

const sampleRow = z.strictObject({
  workload: z.string(),
  family: z.string(),
  schedule: z.string(),
  ns: z.number().positive(),
  regions: z.array(workRow).min(1),
});

/** Levels of a tree that is read; those that are grown have fewer. */
const mostLevels = 8;

function treeOf(levels: number): z.ZodType<Tree> {
  const feature = z.int().nonnegative().lt(featureCount);
  let row: z.ZodType<Tree> = z.number();
  for (let level = 0; level < levels; level++) {
    const below = row;
    row = z.union([z.number(), z.strictObject({ feature, at: z.number(), below, above: below })]);
  }
  return row;
}

const comparison = {
  before: z.number(),
  after: z.number(),
  errorBefore: amount,
  errorAfter: amount,
};

const fileRow = z.strictObject({
  schema: z.literal(calibrationSchema),
  target: z.string(),
  /** What the times depend on beside the target. */
  machine: z.string(),
  /** Version of the code generator whose code was timed. */
  codegen: z.string(),
  /** What makes the file again. */
  command: z.string(),
  protocol: z.string(),
  seed: z.int(),
  fit: z.strictObject({
    core: z.record(z.string(), amount),
    residual: z.strictObject({ trees: z.array(treeOf(mostLevels)), sigma: amount }).optional(),
    trust: z.number().min(0).max(1),
    sigma: amount,
    heldOut: z.strictObject({
      ...comparison,
      workloads: z.array(
        z.strictObject({ workload: z.string(), n: z.int().positive(), ...comparison }),
      ),
    }),
  }),
  samples: z.array(sampleRow).min(1),
});

type StoredFile = Readonly<z.infer<typeof fileRow>>;

/** A sample, and the schedule that was timed, in the schedule language. */
export interface StoredSample extends CostSample {
  readonly schedule: string;
}

export interface CalibrationFile extends Omit<StoredFile, "schema" | "fit" | "samples"> {
  readonly fit: Calibration;
  readonly samples: readonly StoredSample[];
}

/** Where a calibration is to be used. */
export interface CalibrationPlace {
  readonly target: Target;
  readonly machine: string;
  readonly codegen: string;
}

export function printCalibration(file: CalibrationFile): string {
  return `${JSON.stringify({ schema: calibrationSchema, ...file })}\n`;
}

/** The file in a text; CAL001 for what is none. */
export function parseCalibration(text: string, at: string): Result<CalibrationFile> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return fail(malformed(at, "it is not JSON"));
  }
  const row = fileRow.safeParse(parsed);
  if (!row.success) {
    const [issue] = row.error.issues;
    return fail(malformed(at, `${issue!.path.join(".") || "the file"}: ${issue!.message}`));
  }
  const { schema: _, fit, ...rest } = row.data;
  const { core, residual, ...others } = fit;
  const found = { ...others, core: core as Record<CoreFigure, number> };
  return ok({ ...rest, fit: { ...found, ...(residual && { residual }) } });
}

/** Rounding of numbers on their way through a file. */
const slack = 1e-6;

/** What is wrong with a file for this place: it was made elsewhere (CAL002). */
export function checkOrigin(
  { target: name, machine, codegen }: Omit<CalibrationFile, "fit">,
  place: CalibrationPlace,
  at: string,
): Diagnostic | undefined {
  const found: readonly (readonly [string, string, string])[] = [
    ["target", name, place.target.name],
    ["machine", machine, place.machine],
    ["version", codegen, place.codegen],
  ];
  const other = found.find(([, of, here]) => of !== here);
  if (!other) return undefined;
  const [what, of, here] = other;
  return diagnostic("CAL002", `it was made for the ${what} ${of}, this is ${here}`, {
    at,
    help: `measure here: wavetile calibrate --target ${place.target.name}`,
  });
}

/** As `checkOrigin`, and figures out of their bounds (CAL001): those from which a fit begins may have changed. */
export function checkPlace(
  file: CalibrationFile,
  place: CalibrationPlace,
  at: string,
): Diagnostic | undefined {
  const elsewhere = checkOrigin(file, place, at);
  if (elsewhere) return elsewhere;
  const { fit } = file;
  const start = coreFigures(place.target);
  const names = Object.keys(start) as CoreFigure[];
  const unknown = Object.keys(fit.core).find((key) => !Object.hasOwn(start, key));
  const outside = names.find((key) => !isWithin(fit.core, start, key));
  if (unknown !== undefined) return malformed(at, `there is no figure ${unknown}`);
  if (outside === undefined) return undefined;
  const value = fit.core[outside] as number | undefined;
  if (value === undefined) return malformed(at, `it lacks the figure ${outside}`);
  const range = `${mostScaled} times ${start[outside]} up or down`;
  return malformed(at, `${outside} is ${value}, beyond ${range}`);
}

/** Figures that are zero have no part in the fit. */
function isWithin(core: CoreFigures, start: CoreFigures, name: CoreFigure): boolean {
  const [value, first] = [core[name] as number | undefined, start[name]];
  if (value === undefined) return false;
  if (first === 0) return value === 0;
  const ratio = value / first;
  return ratio <= mostScaled + slack && ratio >= 1 / mostScaled - slack;
}

function malformed(at: string, why: string): Diagnostic {
  return diagnostic("CAL001", `${at} is no calibration: ${why}`, {
    at,
    help: "make it again with wavetile calibrate",
  });
}
