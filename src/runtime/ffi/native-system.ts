/**
 * What running machine code needs of the operating system: pages, calls, threads, addresses. The seam is
 * this interface, so that another foreign-function interface can take koffi's place (koffi-system.ts).
 */
import type { System } from "../../emit/x64/thread-code.ts";
import type { TensorData } from "../../semantics/tensor.ts";

/** A function in memory that takes one pointer. */
export interface NativeFunction {
  (argument: bigint): void;
  /** On a thread of the process's pool, so that the caller's event loop stays free. */
  readonly onPool: (argument: bigint) => Promise<void>;
}

export interface NativeSystem {
  /** Calling convention, and how emitted code sleeps. */
  readonly kind: System;
  readonly pageBytes: number;
  /** Zeroed pages for reading and writing; undefined: refused. */
  map(bytes: number): bigint | undefined;
  /**
   * The pages of an open file, for reading; undefined: refused. They outlive the file's number, and are given
   * back like others. Absent: a system that this is not written for.
   */
  readonly mapFile?: (file: number, bytes: number) => bigint | undefined;
  /**
   * Lets pages of a mapped file leave the process; they come again when they are touched. Absent: a system that
   * this is not written for.
   */
  readonly forgetFile?: (address: bigint, bytes: number) => void;
  unmap(address: bigint, bytes: number): void;
  /** Makes pages executable and no longer writable; false: the host forbids it. */
  seal(address: bigint, bytes: number): boolean;
  /** Takes all access to pages away: whoever touches them faults. */
  close(address: bigint, bytes: number): boolean;
  /** The bytes themselves, not a copy; at most viewLimit of them. Not to be used after unmap. */
  view(address: bigint, bytes: number): ArrayBuffer;
  /** Of an array of a caller: good while nothing can take them away, as within one call. */
  addressOf(data: TensorData): bigint;
  functionAt(address: bigint): NativeFunction;
  /** A function of the C library; undefined: it has none of this name. */
  symbol(name: string): bigint | undefined;
  /** Starts a thread at a function of one pointer; undefined: refused. */
  startThread(address: bigint, argument: bigint): bigint | undefined;
  joinThread(thread: bigint): void;
}

/** Larger views end the process (koffi 3). */
export const viewLimit = 2 ** 32 - 65536;
