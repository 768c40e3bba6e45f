/**
 * The weights of a program as they lie in its arena: packed once when the artifact is written, mapped or
 * copied as a whole when it is loaded. A weight that stands so, bit by bit, is not stored a second time: its
 * elements are found there again for whoever wants them in the graph's order.
 */
import type { Graph } from "../graph/graph.ts";
import type { Buffer, Program } from "../program/program.ts";
import { arenaSizes, capacityBytes } from "../program/storage-sizes.ts";
import { storageBytes } from "../semantics/dtype.ts";
import { constant, constantValue } from "../semantics/index-expr.ts";
import { layoutFault, packInto, unpackFrom } from "../semantics/layout.ts";
import { elementCount } from "../semantics/shape.ts";
import { withoutSubnormals } from "../semantics/subnormals.ts";
import { type Tensor, tensorBytes, tensorFromBytes } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import { type Target, targets } from "../target/index.ts";
import { flushesSubnormals } from "../target/target.ts";
import type { ArtifactMeta } from "./artifact.ts";

/** Buffers whose storage is their own, with their places. */
function storedWeights({ buffers }: Program): readonly Buffer[] {
  return buffers.filter((b) => b.kind === "weight" && b.viewOf === undefined);
}

function offsetOf({ name, placement }: Buffer): number {
  const at = placement && constantValue(placement.byteOffset);
  invariant(at !== undefined, () => `weight ${name} has no place`);
  return at;
}

/** Whether programs of a target take their weights from an arena of this process: none on a device does. */
export function isPackable(target: Target): boolean {
  return target.blocks === undefined;
}

/** Subnormal numbers stay what they are where arithmetic counts them as zeros itself. */
function asRead(tensor: Tensor, target: string): Tensor {
  const keeps = targets.get(target)?.capabilities.has(flushesSubnormals);
  return keeps ? tensor : withoutSubnormals(tensor);
}

/** A part of a tensor's bytes, made when it is asked for. */
export interface Piece {
  /** Where it begins in the tensor. */
  readonly offset: number;
  readonly byteLength: number;
  readonly read: () => Uint8Array;
}

export interface PackedWeights {
  /** Of the program's arena of weights. */
  readonly byteLength: number;
  /** What is in it, in order; what lies between is zeros. */
  readonly pieces: readonly Piece[];
  /** Of weights that stand in it bit by bit: key to the buffer. */
  readonly buffers: ReadonlyMap<string, Buffer>;
}

/**
 * Weights are read one after another, and none is kept.
 * @param read elements of a weight by the name of a buffer's source
 */
export function packWeights(
  program: Program,
  graph: Graph,
  views: ArtifactMeta["views"],
  read: (name: string) => Tensor,
): PackedWeights {
  const byteLength = arenaSizes(program).weights;
  const keyOf = new Map(
    graph.weights.flatMap(({ value, source }) =>
      source.kind === "inline" ? [] : [[graph.values[value]!.name, source.key] as const],
    ),
  );
  const bases = new Map(views.map((v) => [v.name, v.of]));
  const buffers = new Map<string, Buffer>();
  const stored = storedWeights(program);
  for (const buffer of stored) {
    const key = keyOf.get(baseName(buffer.source!, bases));
    if (key === undefined || buffers.has(key)) continue;
    const given = read(buffer.source!);
    if (asRead(given, program.target) !== given) continue;
    if (typeof unpackerOf(buffer, byteLength, given) !== "string") buffers.set(key, buffer);
  }
  const pieces = stored.map((buffer): Piece => {
    const byteLength = capacityBytes(program, buffer);
    const packed = (): Uint8Array => {
      const tensor = asRead(read(buffer.source!), program.target);
      if (!buffer.layout) return tensorBytes(tensor);
      const bytes = new Uint8Array(byteLength);
      packInto(bytes, tensor, buffer.layout);
      return bytes;
    };
    return { offset: offsetOf(buffer), byteLength, read: packed };
  });
  return { byteLength, pieces: pieces.sort((a, b) => a.offset - b.offset), buffers };
}

/** Of a weight, or of a reshape of a reshape of it. */
export function baseName(name: string, bases: ReadonlyMap<string, string>): string {
  let found = name;
  for (let steps = 0; steps <= bases.size && bases.has(found); steps++) found = bases.get(found)!;
  return found;
}

/** A weight in an arena, of the type and shape that its buffer packs. */
export type PackedTensor = Pick<Tensor, "dtype" | "shape">;

/**
 * Reads a weight out of an arena of `arenaBytes` bytes, in logical order; a text of what is wrong where the
 * buffer does not hold it. Nothing of the buffer is taken for granted.
 */
export function unpackerOf(
  buffer: Buffer,
  arenaBytes: number,
  { dtype, shape }: PackedTensor,
): ((arena: Uint8Array) => Tensor) | string {
  const { layout, name, placement } = buffer;
  if (buffer.dtype !== dtype) return `${name} is ${buffer.dtype}, not ${dtype}`;
  const at = placement && constantValue(placement.byteOffset);
  const size = capacityBytes({ parameters: [] }, buffer);
  if (at === undefined || !(at >= 0 && at + size <= arenaBytes)) {
    return `${name} is not within the ${arenaBytes} bytes of its arena`;
  }
  const fault = layout && layoutFault(layout, shape.map(constant));
  if (fault !== undefined) return `${name}: ${fault}`;
  const extents = layout ? layout.shape.map((e) => constantValue(e)!) : shape;
  const stored = storageBytes(dtype, elementCount(extents));
  if (stored !== size) return `${name} has ${size} bytes, its elements take ${stored}`;
  return (arena) => {
    const bytes = arena.subarray(at, at + size);
    if (!layout) return tensorFromBytes(dtype, shape, bytes);
    return unpackFrom(bytes, { dtype, shape }, layout);
  };
}
