/** Parts of files that are too large to be read whole, and what is in a folder. */
import { closeSync, readdirSync, statSync } from "node:fs";
import { ok, type Result } from "../../support/diagnostic.ts";
import { openPlain, readFully } from "./plain-file.ts";
import { systemCode } from "./system-error.ts";

export interface OpenRanges {
  readonly bytes: number;
  /** Up to `length` bytes: fewer at the end of the file. */
  readonly readAt: (offset: number, length: number) => Uint8Array;
  readonly close: () => void;
}

export function openRanges(path: string): Result<OpenRanges> {
  const opened = openPlain(path);
  if (!opened.ok) return opened;
  const { file, bytes: size } = opened.value;
  return ok({
    bytes: size,
    readAt: (offset, length) => {
      const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
      return bytes.subarray(0, readFully(file, bytes, offset));
    },
    close: () => closeSync(file),
  });
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
