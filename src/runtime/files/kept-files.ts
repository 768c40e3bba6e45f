/**
 * Files in the user's cache folder that save work in a later process: each under a key, whole or not at
 * all, with a hash of its contents, so that a damaged one counts as absent. The folder keeps to a size:
 * what was used longest ago goes first. Who can write there can change the package itself. A folder that
 * cannot be read or written costs time, nothing else.
 */
import { readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { writeAtomically } from "./files.ts";
import { folderOf } from "./folders.ts";
import { hashBytes } from "./hash-bytes.ts";
import { join } from "./paths.ts";
import { readWhole } from "./plain-file.ts";
import { systemCode } from "./system-error.ts";

export interface KeptFiles {
  read(key: string): Uint8Array | undefined;
  write(key: string, contents: Uint8Array): void;
}

const hashLength = 64;
const defaultLimitBytes = 512 * 2 ** 20;

/** `kind` names the folder; keys are hexadecimal hashes of all that the contents depend on. */
export function openKeptFiles(kind: string, limitBytes = defaultLimitBytes): KeptFiles {
  const folder = join(folderOf("cache"), kind);
  return {
    read: (key) => {
      const file = readWhole(join(folder, key));
      if (!file.ok || file.value.length < hashLength) return undefined;
      const contents = file.value.subarray(hashLength);
      const hash = new TextDecoder().decode(file.value.subarray(0, hashLength));
      if (hashBytes(contents) !== hash) return undefined;
      attemptQuietly(() => utimesSync(join(folder, key), new Date(), new Date()));
      return contents;
    },
    write: (key, contents) => {
      const size = hashLength + contents.length;
      if (size > limitBytes) return;
      attemptQuietly(() => makeRoom(folder, limitBytes - size));
      const file = new Uint8Array(size);
      file.set(new TextEncoder().encode(hashBytes(contents)));
      file.set(contents, hashLength);
      writeAtomically(join(folder, key), file);
    },
  };
}

function makeRoom(folder: string, roomBytes: number): void {
  const files = readdirSync(folder).map((name) => {
    const { mtimeMs, size } = statSync(join(folder, name));
    return { name, mtimeMs, size };
  });
  files.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.name < b.name ? -1 : 1));
  let used = 0;
  for (const { name, size } of files) {
    used += size;
    if (used > roomBytes) rmSync(join(folder, name), { force: true });
  }
}

/** What the system refuses here is time lost, not an error. Another process may have been first. */
function attemptQuietly(action: () => void): void {
  try {
    action();
  } catch (error) {
    systemCode(error);
  }
}
