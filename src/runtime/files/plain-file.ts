/**
 * Opening and reading what a path names, whatever that is: a plain file, or a pipe that the caller was
 * given as an open one (`/dev/stdin`, `/dev/fd/63` of a shell's `<(…)`). Anything else could be waited for
 * or read for ever (a pipe in the file system, a device) and is refused. Nothing here throws for what the
 * operating system refuses.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { describeCode, systemCode } from "./system-error.ts";

/** Node reads less than 2 GiB in one call. */
const mostRead = 2 ** 30;
/** Of a file that is read whole: what it is read as has no more either (protobuf). */
const mostOfFile = 2 ** 31;
/** Of a pipe, whose length nobody knows: its parts are copied once. */
const mostOfPipe = 2 ** 29;
const pipePart = 2 ** 20;
/** Milliseconds between looks at a pipe that has nothing yet. */
const pipeWait = 5;

export function cannotRead(path: string, why: string): Result<never> {
  return fail(
    diagnostic("RUN030", `${path} cannot be read: ${why}`, {
      at: path,
      help: "check the path and who may read it",
    }),
  );
}

export interface PlainFile {
  /** Its descriptor; whoever opened it closes it. */
  readonly file: number;
  readonly bytes: number;
}

/** Opens a plain file for reading; a pipe is not waited for. */
export function openPlain(path: string): Result<PlainFile> {
  let file: number;
  try {
    // Without the flag the system waits for a writer of a pipe; Windows has none.
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    return cannotRead(path, describeCode(systemCode(error)));
  }
  const stat = fstatSync(file);
  if (stat.isFile()) return ok({ file, bytes: stat.size });
  closeSync(file);
  return cannotRead(path, stat.isDirectory() ? describeCode("EISDIR") : "it is no plain file");
}

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

/** All bytes of a plain file, or of a pipe that is open already: of that at most `mostPiped`. */
export function readWhole(path: string, mostPiped = mostOfPipe): Result<Uint8Array> {
  const pipe = openPipe(path);
  if (pipe !== undefined) return readPipe(path, pipe, mostPiped);
  const opened = openPlain(path);
  if (!opened.ok) return opened;
  const { file, bytes: size } = opened.value;
  try {
    if (size >= mostOfFile) return cannotRead(path, describeCode("ERR_FS_FILE_TOO_LARGE"));
    // The kernel's own files say that they are empty.
    if (size === 0) return readParts(path, mostPiped, (part) => readSync(file, part));
    const bytes = new Uint8Array(size);
    return ok(bytes.subarray(0, readFully(file, bytes, 0)));
  } catch (error) {
    return cannotRead(path, describeCode(systemCode(error)));
  } finally {
    closeSync(file);
  }
}

/** The descriptor that a path stands for; undefined for the path of a file. */
export function descriptorOf(path: string): number | undefined {
  if (path === "/dev/stdin") return 0;
  const [, number] = /^\/(?:dev|proc\/self)\/fd\/(\d{1,9})$/.exec(path) ?? [];
  return number === undefined ? undefined : Number(number);
}

interface OpenPipe {
  readonly file: number;
  /** Which pipe it is: descriptors are given again. */
  readonly key: string;
}

/** What pipes gave: they are read once, by whoever asks first, and a command may open its model twice. */
const gaveBefore = new Map<string, Result<Uint8Array>>();

/** The descriptor that a path stands for, where that is an open pipe or socket. */
function openPipe(path: string): OpenPipe | undefined {
  const file = descriptorOf(path);
  if (file === undefined) return undefined;
  try {
    const stat = fstatSync(file);
    const isPipe = stat.isFIFO() || stat.isSocket();
    return isPipe ? { file, key: `${file} ${stat.dev} ${stat.ino}` } : undefined;
  } catch (error) {
    // It is not open: opening it by its path says so.
    systemCode(error);
    return undefined;
  }
}

function readPipe(path: string, { file, key }: OpenPipe, most: number): Result<Uint8Array> {
  const before = gaveBefore.get(key);
  if (before) return before;
  const waiting = new Int32Array(new SharedArrayBuffer(4));
  const given = readParts(path, most, (part) => {
    for (;;) {
      try {
        return readSync(file, part);
      } catch (error) {
        const code = systemCode(error);
        if (code === "EOF") return 0;
        if (code !== "EAGAIN") throw error;
        Atomics.wait(waiting, 0, 0, pipeWait);
      }
    }
  });
  gaveBefore.set(key, given);
  return given;
}

/** Reads on until `read` gives 0. */
function readParts(
  path: string,
  most: number,
  read: (part: Uint8Array) => number,
): Result<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const part = new Uint8Array(pipePart);
      const count = read(part);
      if (count === 0) break;
      length += count;
      if (length > most) {
        return cannotRead(path, `it has more than ${most} bytes, and no length: give a plain file`);
      }
      parts.push(count === pipePart ? part : part.slice(0, count));
    }
  } catch (error) {
    return cannotRead(path, describeCode(systemCode(error)));
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return ok(bytes);
}
