/**
 * A model on disk: its bytes, and the data files beside it by range. Data files must really be in the
 * model's folder: the path with all symbolic links followed decides, so that a model from elsewhere
 * cannot read the rest of the disk. That the path as text is harmless is checked by the frontend.
 */
import { closeSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { mapFile } from "./mapped-file.ts";
import { cannotRead, descriptorOf, openPlain, readFully, readWhole } from "./plain-file.ts";
import { describeCode, systemCode } from "./system-error.ts";

export interface ModelSource {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Gives the pages of a mapped file back: nothing may read `bytes`, or what was made on them, after it. */
  readonly release?: () => void;
  /** Of a mapped file: what was read of `bytes` may leave memory; it comes again when it is touched. */
  readonly forget?: () => void;
  /** Exactly `length` bytes at `offset` of a file in the model's folder. */
  readonly readExternal: (location: string, offset: number, length: number) => Result<Uint8Array>;
}

export function readModelFile(path: string): Result<ModelSource> {
  const bytes = readWhole(path);
  return bytes.ok ? ok(sourceOf(path, bytes.value)) : bytes;
}

/** As `readModelFile`, of a file that `isMapped` by its first bytes: mapped where the system does that. */
export function openModelFile(
  path: string,
  isMapped: (first: Uint8Array) => boolean,
): Result<ModelSource> {
  const mapped = mapFile(path);
  if (!mapped) return readModelFile(path);
  const { bytes, release, forget } = mapped;
  if (isMapped(bytes)) return ok({ ...sourceOf(path, bytes), release, forget });
  release();
  return readModelFile(path);
}

function sourceOf(path: string, bytes: Uint8Array): ModelSource {
  if (descriptorOf(path) !== undefined) {
    const why = `the model comes from ${path} and has no folder: give the path of its file`;
    return { path, bytes, readExternal: (location) => cannotRead(location, why) };
  }
  const folder = realpathSync(dirname(path));
  return {
    path,
    bytes,
    readExternal: (location, offset, length) => readWithin(folder, location, offset, length),
  };
}

function readWithin(
  folder: string,
  location: string,
  offset: number,
  length: number,
): Result<Uint8Array> {
  let path: string;
  try {
    path = realpathSync(join(folder, location));
  } catch (error) {
    return cannotRead(join(folder, location), describeCode(systemCode(error)));
  }
  if (!path.startsWith(folder.endsWith(sep) ? folder : folder + sep)) {
    return fail(
      diagnostic("RUN032", `external data ${JSON.stringify(location)} leads out of ${folder}`, {
        notes: [`it is ${path}`],
        help: "copy the data file into the model's folder; links that leave it are not followed",
      }),
    );
  }
  return readRange(path, offset, length);
}

function readRange(path: string, offset: number, length: number): Result<Uint8Array> {
  const opened = openPlain(path);
  if (!opened.ok) return opened;
  const { file, bytes: size } = opened.value;
  try {
    if (offset + length > size) {
      return cannotRead(
        path,
        `bytes ${offset} to ${offset + length} are asked for, it has ${size}`,
      );
    }
    const bytes = new Uint8Array(length);
    const done = readFully(file, bytes, offset);
    return done === length ? ok(bytes) : cannotRead(path, "it became shorter while it was read");
  } catch (error) {
    return cannotRead(path, describeCode(systemCode(error)));
  } finally {
    closeSync(file);
  }
}
