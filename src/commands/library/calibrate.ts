/**
 * `calibrate`: measures samples on this machine, fits the cost model to them, and keeps both in a file that
 * compiling finds. Throws nothing: all that can go wrong is a diagnostic. In: options. Out: what improved, held
 * out by shape.
 */
import { type Calibration, calibrate as fitCalibration } from "../../cost/calibration.ts";
import {
  type CalibrationFile,
  checkOrigin,
  printCalibration,
} from "../../cost/calibration-file.ts";
import { type CoreFigure, type CoreFigures, coreFigures } from "../../cost/core-figures.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { steadyNowMs } from "../../runtime/measure/steady-clock.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { CommandContext } from "../command.ts";
import { version } from "../version.ts";
import { findTarget } from "./choose-target.ts";
import {
  calibrationPath,
  describeMachine,
  placeOf,
  readCalibration,
} from "./machine-calibration.ts";
import { measureSamples } from "./measure-samples.ts";

/** Limits of what is measured: fewer samples fit nothing, and nobody waits longer. */
export const [fewestSamples, mostSamples, mostSeconds] = [50, 200, 170] as const;

export interface CalibrateOptions {
  /** Name of a target, `auto` or `cpu`; default: auto. */
  readonly target?: string;
  /** Schedules that are measured, 50 to 200; default: 200. */
  readonly samples?: number;
  /** Seconds that measuring may take, at most 170; default: 150. */
  readonly seconds?: number;
  readonly seed?: number;
  /** The file to write; default: where compiling looks for it. */
  readonly output?: string;
  /** A calibration file whose samples are fitted again; nothing is measured. */
  readonly from?: string;
}

export interface CalibrationReport {
  readonly file: string;
  readonly target: string;
  readonly machine: string;
  readonly samples: number;
  /** Candidates that gave no sample, by why. */
  readonly left: Readonly<Record<string, number>>;
  readonly heldOut: Calibration["heldOut"];
  /** Spread of measured over priced time. */
  readonly sigma: number;
  /** Part of what the trees say that is believed; 0 where they did not help. */
  readonly trust: number;
  /** Figures that the fit moved. */
  readonly moved: readonly {
    readonly figure: CoreFigure;
    readonly from: number;
    readonly to: number;
  }[];
}

export async function calibrate(
  options: CalibrateOptions = {},
  context: Partial<Pick<CommandContext, "now" | "progress">> = {},
): Promise<Result<CalibrationReport>> {
  const misused = misuse(options);
  if (misused) return fail(misused);
  const found = findTarget(options.target ?? "auto");
  if (!found.ok) return found;
  const target = found.value;
  const { now = steadyNowMs, progress = () => {} } = context;
  const refused = refusal(target);
  if (refused) return fail(refused);
  const measured = await (options.from === undefined
    ? measureHere(target, options, { now, progress })
    : samplesOf(options.from, target));
  if (!measured.ok) return measured;
  progress("fit");
  const { left, ...rest } = measured.value;
  const start = coreFigures(target);
  const fit = fitCalibration(rest.samples, start);
  const file: CalibrationFile = { ...rest, fit };
  const path = options.output ?? calibrationPath(target.name);
  const written = writeAtomically(path, printCalibration(file));
  if (!written.ok) return written;
  return ok(
    {
      file: path,
      target: target.name,
      machine: rest.machine,
      samples: rest.samples.length,
      left,
      heldOut: fit.heldOut,
      sigma: fit.sigma,
      trust: fit.trust,
      moved: movedFigures(start, fit.core),
    },
    found.warnings,
  );
}

type Measured = Omit<CalibrationFile, "fit"> & Pick<CalibrationReport, "left">;

async function measureHere(
  target: Target,
  { samples: count = 200, seconds = 150, seed = 0 }: CalibrateOptions,
  context: Pick<CommandContext, "now" | "progress">,
): Promise<Result<Measured>> {
  const measured = await measureSamples(target, { count, seconds, seed }, context);
  if (!measured.ok) return measured;
  const { samples, left, protocol } = measured.value;
  if (samples.length < fewestSamples) {
    return fail(
      diagnostic("CAL003", `${samples.length} samples in ${seconds} s are too few`, {
        notes: Object.entries(left).map(([why, n]) => `${n} ${why}`),
        help: `a fit needs ${fewestSamples}; give it more --seconds, on an idle machine`,
      }),
    );
  }
  return ok({
    target: target.name,
    machine: describeMachine(target),
    codegen: version,
    command: `wavetile calibrate --target ${target.name} --samples ${count} --seconds ${seconds} --seed ${seed}`,
    protocol,
    seed,
    samples,
    left,
  });
}

/** A file's samples, which are this machine's or another's: what is fitted keeps their origin. */
function samplesOf(path: string, target: Target): Result<Measured> {
  const read = readCalibration(path);
  if (!read.ok) return read;
  const { fit: _, ...rest } = read.value.file;
  const place = { ...placeOf(target), machine: rest.machine };
  const fault = checkOrigin(rest, place, path);
  return fault ? fail(fault) : ok({ ...rest, left: {} });
}

function refusal(target: Target): Diagnostic | undefined {
  if (!target.blocks && runnableTargets().names.includes(target.name)) return undefined;
  const why = target.blocks ? "its prices have no figures to fit" : "it does not run here";
  return diagnostic("CAL004", `target ${target.name} cannot be calibrated: ${why}`, {
    at: "--target",
    help: `here can be calibrated ${runnableTargets().names.join(", ")}`,
  });
}

function misuse(options: CalibrateOptions): Diagnostic | undefined {
  const ranges = [
    ["samples", options.samples, fewestSamples, mostSamples],
    ["seconds", options.seconds, 1, mostSeconds],
  ] as const;
  for (const [name, value, least, most] of ranges) {
    if (value === undefined || (value >= least && value <= most)) continue;
    const help = `give ${least} to ${most}`;
    return diagnostic("CLI001", `${name} is ${value}`, { at: `--${name}`, help });
  }
  return undefined;
}

function movedFigures(from: CoreFigures, to: CoreFigures): CalibrationReport["moved"] {
  return (Object.keys(from) as CoreFigure[])
    .filter((name) => from[name] !== to[name])
    .map((name) => ({ figure: name, from: from[name], to: to[name] }));
}
