/**
 * A file as pages of this process, read only: they come when they are first touched, from the system's own
 * copy of the file, which all processes share. A file that takes its place is another one and changes
 * nothing; one that is written in place shows through, and one that is cut short ends a process that
 * touches what is gone (SIGBUS), as with every mapped library.
 */
import { closeSync } from "node:fs";
import { viewLimit } from "../ffi/native-system.ts";
import { probeNativeFeatures } from "../native/features.ts";
import { openPlain, type PlainFile } from "./plain-file.ts";

export interface MappedFile {
  readonly bytes: Uint8Array;
  /** Gives the pages back; who reads a view of the bytes from then on ends the process. */
  release(): void;
  /** Lets the pages that were read leave this process; they come again when they are touched. */
  forget(): void;
}

/** Where the buffers of mapped files lie. */
const addresses = new WeakMap<ArrayBufferLike, bigint>();

/** Of bytes of a mapped file; undefined: of no file that is mapped. */
export function mappedAddress(bytes: Uint8Array): bigint | undefined {
  const base = addresses.get(bytes.buffer);
  return base === undefined ? undefined : base + BigInt(bytes.byteOffset);
}

/** Mappings of files that nobody can read any more. */
const forgotten = new FinalizationRegistry<() => void>((unmap) => unmap());

/** Undefined where it cannot be mapped, and can be read perhaps: no plain file, an empty one, no such system. */
export function mapFile(path: string): MappedFile | undefined {
  const native = probeNativeFeatures();
  if (!native.ok) return undefined;
  const { system } = native.value;
  const found = withFile(path, ({ file, bytes: size }) => {
    if (size === 0 || size > viewLimit) return undefined;
    const address = system.mapFile?.(file, size);
    return address === undefined ? undefined : { address, size };
  });
  if (!found) return undefined;
  const { address, size } = found;
  const buffer = system.view(address, size);
  addresses.set(buffer, address);
  const unmap = (): void => system.unmap(address, size);
  const token = {};
  forgotten.register(buffer, unmap, token);
  let isMapped = true;
  return {
    bytes: new Uint8Array(buffer),
    release: () => {
      isMapped = false;
      if (forgotten.unregister(token)) unmap();
    },
    forget: () => {
      if (isMapped) system.forgetFile?.(address, size);
    },
  };
}

/** Undefined where it cannot be opened: whoever reads it then says why. */
function withFile<T>(path: string, body: (opened: PlainFile) => T): T | undefined {
  const opened = openPlain(path);
  if (!opened.ok) return undefined;
  try {
    return body(opened.value);
  } finally {
    closeSync(opened.value.file);
  }
}
