/** Parts of files that are too large to be read whole, and what is in a folder. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { ok, type Result } from "../../support/diagnostic.ts";
import { cannotRead } from "./files.ts";
import { describeCode, systemCode } from "./system-error.ts";

/** Node reads less than 2 GiB in one call. */
const mostRead = 2 ** 30;

/** Fills `bytes` from an open file; gives how many there were. */
export function readFully(
  file: number,
  bytes: Uint8Array,
  offset: number,
  most = mostRead,
): number {
  let done = 0;
  while (done < bytes.length) {
    const wanted = Math.min(most, bytes.length - done);
    const count = readSync(file, bytes, done, wanted, offset + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

export interface OpenRanges {
  readonly bytes: number;
  /** Up to `length` bytes: fewer at the end of the file. */
  readonly readAt: (offset: number, length: number) => Uint8Array;
  readonly close: () => void;
}

export function openRanges(path: string): Result<OpenRanges> {
  try {
    const file = openSync(path, "r");
    const stat = fstatSync(file);
    if (!stat.isFile()) {
      closeSync(file);
      return cannotRead(path, "it is no plain file");
    }
    return ok({
      bytes: stat.size,
      readAt: (offset, length) => {
        const bytes = new Uint8Array(Math.max(0, Math.min(length, stat.size - offset)));
        return bytes.subarray(0, readFully(file, bytes, offset));
      },
      close: () => closeSync(file),
    });
  } catch (error) {
    return cannotRead(path, describeCode(systemCode(error)));
  }
}

/** Names in a folder, sorted; undefined when the path is no folder. */
export function listFolder(path: string): readonly string[] | undefined {
  try {
    return statSync(path).isDirectory() ? readdirSync(path).sort() : undefined;
  } catch (error) {
    systemCode(error);
    return undefined;
  }
}
