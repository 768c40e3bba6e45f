/** Bytes that are copied before what they were copied from may go. */
const pieceBytes = 2 ** 22;

/**
 * Puts `from` at the beginning of `to`.
 * @param forget lets what was read of `from` leave memory, where it is of a mapped file: it is never there as a whole
 */
export function copyInPieces(to: Uint8Array, from: Uint8Array, forget?: () => void): void {
  const step = forget ? pieceBytes : Math.max(1, from.length);
  for (let at = 0; at < from.length; at += step) {
    to.set(from.subarray(at, at + step), at);
    forget?.();
  }
}

/** How the bytes of a program's buffers come and go, wherever they lie: in this process or on a device. */
export interface BufferMemory {
  /**
   * Puts `bytes` at the buffer's beginning.
   * @param forget see copyInPieces
   */
  write(buffer: string, bytes: Uint8Array, forget?: () => void): void;
  /** Has `put` write all bytes of the buffer, which hold anything before; it is called before this returns. */
  compose(buffer: string, put: (bytes: Uint8Array) => void): void;
  /** A copy of the first `count` bytes. */
  read(buffer: string, count: number): Uint8Array<ArrayBuffer>;
  /** As many of its first bytes as there is room for in `bytes`. */
  readInto(buffer: string, bytes: Uint8Array): void;
  /** The same value in every byte. */
  fill(buffer: string, value: number): void;
  /** All bytes of one buffer over those of another of the same size. */
  copy(from: string, to: string): void;
}

/** The same of views, for a reader that changes nothing and is done before the next run. */
export function readableViews(bytes: (buffer: string) => Uint8Array): {
  readonly write: BufferMemory["write"];
  readonly fill: BufferMemory["fill"];
  readonly read: (buffer: string, count: number) => Uint8Array;
} {
  const { write, fill } = memoryOfViews(bytes);
  return { write, fill, read: (buffer, count) => bytes(buffer).subarray(0, count) };
}

/** Of buffers that are views of this process's memory. */
export function memoryOfViews(bytes: (buffer: string) => Uint8Array): BufferMemory {
  return {
    write: (buffer, given, forget) => copyInPieces(bytes(buffer), given, forget),
    compose: (buffer, put) => put(bytes(buffer)),
    read: (buffer, count) => {
      // Not `from`, which goes element by element, nor `slice`, which is a view where a Buffer is given.
      const view = bytes(buffer).subarray(0, count);
      const copy = new Uint8Array(view.length);
      copy.set(view);
      return copy;
    },
    readInto: (buffer, into) => into.set(bytes(buffer).subarray(0, into.length)),
    fill: (buffer, value) => void bytes(buffer).fill(value),
    copy: (from, to) => bytes(to).set(bytes(from)),
  };
}
