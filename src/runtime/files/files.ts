/**
 * Writing whole files. Nothing here throws for what the operating system refuses: the
 * answer is a Result. A write goes to a new file in the same folder which then takes the place of the
 * old one, so that a reader sees all of it or nothing.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { describeCode, systemCode } from "./system-error.ts";

/** Writes a file whole or not at all; folders on the way are made. */
export function writeAtomically(path: string, contents: Uint8Array | string): Result<void> {
  return replaceFile(path, (passing) => writeFileSync(passing, contents, { flag: "wx" }));
}

/** Bytes at their place in a file; read when their turn comes. */
export interface FilePart {
  readonly offset: number;
  readonly read: () => Uint8Array;
}

/** Node writes less than 2 GiB in one call. */
const mostWritten = 2 ** 30;

/**
 * As `writeAtomically`, of more than memory should hold at once; zeros between the parts.
 * @param byteLength of the file; default: up to the end of the last part
 */
export function writePartsAtomically(
  path: string,
  parts: readonly FilePart[],
  byteLength?: number,
): Result<void> {
  return replaceFile(path, (passing) => {
    const file = openSync(passing, "wx");
    try {
      for (const { offset, read } of parts) {
        const bytes = read();
        for (let done = 0; done < bytes.length; ) {
          const count = Math.min(mostWritten, bytes.length - done);
          done += writeSync(file, bytes, done, count, offset + done);
        }
      }
      if (byteLength !== undefined) ftruncateSync(file, byteLength);
    } finally {
      closeSync(file);
    }
  });
}

/** Fills a new file beside the old one, then puts it in its place. */
function replaceFile(path: string, fill: (passing: string) => void): Result<void> {
  const folder = dirname(path);
  const passing = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    makeFolder(folder);
    fill(passing);
    renameSync(passing, path);
    return ok(undefined);
  } catch (error) {
    removeLeftover(passing);
    const why = describeCode(systemCode(error));
    return fail(
      diagnostic("RUN031", `${path} cannot be written: ${why}`, {
        at: path,
        help: "choose a folder that you may write to",
      }),
    );
  }
}

/**
 * Makes a folder and those on the way to it. Node's own recursive mkdir does not return where a parent
 * exists and refuses every child with ENOENT, as /proc does.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it in between; a file of that name is refused by what comes next.
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

/** Removes the unfinished file; what the system refuses here changes nothing about the answer. */
function removeLeftover(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    systemCode(error);
  }
}

export function fileExists(path: string): boolean {
  return existsSync(path);
}
