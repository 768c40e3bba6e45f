/**
 * A log of lines in a file that several processes append to without locks: each append is one write to
 * a file opened for appending, which the system puts at the end as a whole. A line that a stopped
 * writer left open is closed first, so that it spoils no other.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { fileExists, makeFolder } from "./files.ts";
import { readWhole } from "./plain-file.ts";
import { describeCode, systemCode } from "./system-error.ts";

export interface AppendLog {
  readonly name: string;
  read(): Result<string>;
  append(lines: readonly string[]): Result<void>;
}

export function openAppendLog(path: string): AppendLog {
  return {
    name: path,
    read: () => readText(path),
    append: (lines) => appendLines(path, lines),
  };
}

function readText(path: string): Result<string> {
  if (!fileExists(path)) return ok("");
  const bytes = readWhole(path);
  return bytes.ok ? ok(new TextDecoder().decode(bytes.value)) : bytes;
}

function appendLines(path: string, lines: readonly string[]): Result<void> {
  try {
    makeFolder(dirname(path));
    const file = openSync(path, "a+");
    try {
      const start = endsOpen(file) ? "\n" : "";
      const bytes = Buffer.from(start + lines.map((line) => `${line}\n`).join(""));
      const written = writeSync(file, bytes);
      return written === bytes.length ? ok(undefined) : cannotAppend(path, "the disk is full");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return cannotAppend(path, describeCode(systemCode(error)));
  }
}

function endsOpen(file: number): boolean {
  const { size } = fstatSync(file);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}

function cannotAppend(path: string, why: string): Result<never> {
  return fail(
    diagnostic("RUN031", `${path} cannot be written: ${why}`, {
      at: path,
      help: "choose a folder that you may write to (WAVETILE_HOME)",
    }),
  );
}
