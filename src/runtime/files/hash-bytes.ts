/** Checksums by the system's library: SHA-256 an order of magnitude faster than support/hash.ts, and GMAC. */
import { createCipheriv, createHash } from "node:crypto";
import { type Checksums, sumOf } from "../../artifact/artifact.ts";
import type { RunningSum } from "../../support/hash.ts";

/** More at once the library refuses. */
const mostAtOnce = 2 ** 30;

function inPieces(put: (piece: Uint8Array) => unknown, digest: () => string): RunningSum {
  return {
    update: (bytes) => {
      for (let at = 0; at < bytes.length; at += mostAtOnce) {
        put(bytes.subarray(at, at + mostAtOnce));
      }
    },
    digest,
  };
}

function startHash(): RunningSum {
  const hash = createHash("sha256");
  return inPieces(
    (piece) => hash.update(piece),
    () => hash.digest("hex"),
  );
}

/** GMAC of the bytes: AES-128-GCM that encrypts nothing and authenticates them, under a key of zeros. */
function startTag(): RunningSum {
  const cipher = createCipheriv("aes-128-gcm", new Uint8Array(16), new Uint8Array(12));
  return inPieces(
    (piece) => cipher.setAAD(piece),
    () => {
      cipher.final();
      return cipher.getAuthTag().toString("hex");
    },
  );
}

/** What artifacts are written and read with here. */
export const checksums: Checksums = { hash: startHash, tag: startTag };

export function hashBytes(bytes: Uint8Array): string {
  return sumOf(checksums.hash, bytes);
}
