/** Parts of files that are too large to be read whole, and what is in a folder. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { ok, type Result } from "../../support/diagnostic.ts";
import { cannotRead } from "./files.ts";
import { describeCode, systemCode } from "./system-error.ts";

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
        let done = 0;
        while (done < bytes.length) {
          const count = readSync(file, bytes, done, bytes.length - done, offset + done);
          if (count === 0) break;
          done += count;
        }
        return bytes.subarray(0, done);
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
