/**
 * The calibration of this machine: where its file lies, and whether it may be used. In: a target and the wish of
 * the user. Out: prices with their origin; a file that belongs elsewhere is never used. How such a file is
 * made is calibrate.ts.
 */
import type { CostModel, HeldOut } from "../../cost/calibration.ts";
import { type CalibrationFile, checkPlace, parseCalibration } from "../../cost/calibration-file.ts";
import { describeDevice } from "../../runtime/device.ts";
import { describeHost } from "../../runtime/emit-here.ts";
import { fileExists } from "../../runtime/files/files.ts";
import { folderOf } from "../../runtime/files/folders.ts";
import { join } from "../../runtime/files/paths.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";
import { sha256Text } from "../../support/hash.ts";
import type { Target } from "../../target/target.ts";
import { version } from "../version.ts";

/** `auto`: the file of this machine, where there is one. `off`: none. Else the path of a file. */
export type CalibrationWish = string;

export interface UsedCalibration {
  readonly model: CostModel;
  readonly origin: CalibrationOrigin;
}

/** What reports say of where prices come from. */
export interface CalibrationOrigin {
  readonly file: string;
  /** The first digits of the file's SHA-256. */
  readonly hash: string;
  readonly samples: number;
  readonly heldOut: Omit<HeldOut, "workloads">;
}

const hashDigits = 12;

export function calibrationPath(target: string): string {
  return join(folderOf("data"), `calibration-${target}.json`);
}

/** What times on this machine depend on: the processor, and the engine where it compiles the code. */
export function describeMachine(target: Target): string {
  const { processor, engine } = describeDevice();
  const parts = [processor, describeHost(target)];
  return [...parts, ...(target.compiledByEngine ? [engine] : [])].join("; ");
}

/** Prices to compile with; a warning where this machine's own file cannot be used. */
export function findCalibration(
  target: Target,
  wish: CalibrationWish,
): Result<UsedCalibration | undefined> {
  if (wish === "off" || target.blocks) return ok(undefined);
  const path = wish === "auto" ? calibrationPath(target.name) : wish;
  if (wish === "auto" && !fileExists(path)) return ok(undefined);
  const read = readCalibration(path);
  const fault = read.ok ? checkPlace(read.value.file, placeOf(target), path) : read.diagnostics[0]!;
  if (!fault && read.ok) return ok(usedOf(path, read.value.file, read.value.text));
  if (wish !== "auto") return fail(fault!);
  return ok(undefined, [{ ...fault!, severity: "warning" }]);
}

export function placeOf(target: Target) {
  return { target, machine: describeMachine(target), codegen: version };
}

export function readCalibration(
  path: string,
): Result<{ readonly file: CalibrationFile; readonly text: string }> {
  const bytes = readWhole(path);
  if (!bytes.ok) return bytes;
  const text = new TextDecoder().decode(bytes.value);
  const file = parseCalibration(text, path);
  return file.ok ? ok({ file: file.value, text }) : file;
}

function usedOf(path: string, { fit, samples }: CalibrationFile, text: string): UsedCalibration {
  const { heldOut, ...model } = fit;
  const { workloads: _, ...means } = heldOut;
  const hash = sha256Text(text).slice(0, hashDigits);
  return { model, origin: { file: path, hash, samples: samples.length, heldOut: means } };
}
