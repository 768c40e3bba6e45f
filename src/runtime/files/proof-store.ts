/**
 * Hashes of programs that this version proved valid on this machine, as empty files in the user's cache
 * folder: a program is proved once, and its artifact then loads in a fraction of the time. Who can write
 * there can change the package itself. A folder that cannot be written costs time, nothing else.
 */
import { existsSync } from "node:fs";
import { writeAtomically } from "./files.ts";
import { folderOf } from "./folders.ts";
import { join } from "./paths.ts";

export function openProofStore(version: string): {
  has(textHash: string): boolean;
  add(textHash: string): void;
} {
  const pathOf = (textHash: string): string =>
    join(folderOf("cache"), "proofs", `${version}-${textHash}`);
  return {
    has: (textHash) => existsSync(pathOf(textHash)),
    add: (textHash) => {
      if (!existsSync(pathOf(textHash))) writeAtomically(pathOf(textHash), "");
    },
  };
}
