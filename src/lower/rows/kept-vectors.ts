/**
 * Where a thread keeps vectors of its elements: the first ones in registers, the last ones in shared memory, at
 * places that no other thread reads, so that nobody waits for them. Neighbouring threads have neighbouring vectors.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import { stagingRegisters } from "../../schedule/rows/rows-form.ts";
import { type DType, dtypes, zeroOf } from "../../semantics/dtype.ts";
import { constant, type IndexLike, variable } from "../../semantics/index-expr.ts";
import type { Names } from "../block.ts";

export interface KeptVectors {
  readonly dtype: DType;
  readonly lanes: number;
  /** How many are in registers, and the buffers where there are such. */
  readonly inRegisters: number;
  readonly registers: string | undefined;
  readonly shared: string | undefined;
  /** The thread's variable. */
  readonly thread: string;
}

interface KeptPlace extends Pick<KeptVectors, "dtype" | "lanes" | "thread"> {
  /** Vectors of a thread, how many of these are in shared memory, and threads of the block. */
  readonly count: number;
  readonly inShared: number;
  readonly threads: number;
  readonly names: Names;
  readonly buffers: Buffer[];
}

export function makeKept(stem: string, place: KeptPlace): KeptVectors {
  const { dtype, lanes, thread, count, inShared, threads, names, buffers } = place;
  const inRegisters = count - inShared;
  const make = (parts: Pick<Buffer, "scope" | "lanes" | "shape">): string => {
    const name = names.freshBuffer(stem);
    buffers.push({ name, kind: "scratch", dtype, ...parts });
    return name;
  };
  const ofThread = [constant(inRegisters)];
  const ofBlock = [inShared, threads, lanes].map((n) => constant(n));
  return {
    ...{ dtype, lanes, inRegisters, thread },
    registers: inRegisters > 0 ? make({ scope: "register", lanes, shape: ofThread }) : undefined,
    shared: inShared > 0 ? make({ scope: "shared", lanes: 1, shape: ofBlock }) : undefined,
  };
}

/** Vectors that a thread loads before it leaves them in shared memory. */
export function stagedVectors({ dtype, lanes }: KeptVectors): number {
  return Math.max(1, Math.floor((32 * stagingRegisters) / (lanes * dtypes[dtype].bits)));
}

function placeOf(kept: KeptVectors, at: number): readonly [string, readonly IndexLike[]] {
  const { inRegisters, registers, shared, thread } = kept;
  return at < inRegisters ? [registers!, [at]] : [shared!, [at - inRegisters, variable(thread), 0]];
}

export function storeKept(kept: KeptVectors, at: number, value: Expr): Statement {
  return storeTo(...placeOf(kept, at), value);
}

export function loadKept(kept: KeptVectors, at: number): Expr {
  const { dtype, lanes } = kept;
  return loadExpr(...placeOf(kept, at), { dtype, lanes }, { guard: [], fill: zeroOf(dtype) });
}
