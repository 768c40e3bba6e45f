/**
 * How many bytes of cache lines a part of a schedule touches: along each axis affine/ counts the values
 * that the loops inside give the index (box-image.ts), the product over the axes is a box of the tensor,
 * and rows that are contiguous share lines. Exact where no loop moves two axes.
 */
import { BoxImage } from "../../affine/index.ts";
import type { AccessFigures, AxisFigures, LoopFigures } from "./nest-figures.ts";

export const lineBytes = 64;

/** Counted anew for each axis: prices ask for millions. */
const image = new BoxImage();

/** What one run of the loops does to the index of the axis. */
function imageOf(axis: AxisFigures, loops: readonly LoopFigures[]): BoxImage {
  image.clear();
  for (const loop of loops) addLoop(image, axis, loop);
  return image;
}

function addLoop(to: BoxImage, axis: AxisFigures, { origin, unit, trips }: LoopFigures): void {
  const { steps, divisor } = axis;
  const step = steps[origin]!;
  if (step !== 0) to.add(divisor === 1 ? step * unit : Math.round(step * divisor) * unit, trips);
}

/** Bytes of cache lines that an access touches, under loops that are put around it one by one. */
export class GrowingFootprint {
  readonly #access: AccessFigures;
  readonly #images: readonly BoxImage[];

  constructor(access: AccessFigures) {
    this.#access = access;
    this.#images = access.axes.map(() => new BoxImage());
  }

  clear(): void {
    for (const one of this.#images) one.clear();
  }

  add(loop: LoopFigures): void {
    const { axes } = this.#access;
    for (let i = 0; i < axes.length; i++) addLoop(this.#images[i]!, axes[i]!, loop);
  }

  /** @param grain bytes of which the distances of its rows are multiples, a power of two: where in a line rows begin */
  bytes(grain: number): number {
    return boxBytes(this.#access, (axis) => this.#images[axis]!, grain);
  }
}

/** Bytes of cache lines that the access touches in one run of the loops. */
export function footprintBytes(a: AccessFigures, loops: readonly LoopFigures[]): number {
  return boxBytes(a, (axis) => imageOf(a.axes[axis]!, loops), lineBytes);
}

function boxBytes(
  { axes, bytes }: AccessFigures,
  imageOfAxis: (axis: number) => BoxImage,
  grain: number,
): number {
  if (axes.length === 0) return lineBytes;
  let run = 1;
  let rows = 1;
  let joined = true;
  for (let axis = axes.length - 1; axis >= 0; axis--) {
    const { extent, divisor } = axes[axis]!;
    const values = imageOfAxis(axis);
    const width = Math.min(values.span(divisor), extent);
    // Lines of the last axis hold what lies between its elements too.
    const touched = joined && axis === axes.length - 1 ? width : values.count(divisor);
    if (joined) run *= Math.min(width, touched);
    else rows *= Math.min(width, touched);
    // A whole axis is contiguous with the next one out; a part of it ends the run.
    joined = joined && width === extent;
  }
  return rows * linesOf(run * bytes, grain) * lineBytes;
}

/** Lines that a run of bytes touches, as a mean over the places in a line where it may begin. */
function linesOf(run: number, grain: number): number {
  if (grain >= lineBytes) return Math.max(1, Math.ceil(run / lineBytes));
  return Math.max(1, (run + lineBytes - grain) / lineBytes);
}

/** Elements that the access touches in one run of the loops, shared positions counted once. */
export function distinctElements(a: AccessFigures, loops: readonly LoopFigures[]): number {
  let all = 1;
  for (const axis of a.axes) all *= Math.min(valuesAlong(axis, loops), axis.extent);
  return all;
}

/** Values that the loops give the index of an axis; mostly none or one of them moves it. */
function valuesAlong(axis: AxisFigures, loops: readonly LoopFigures[]): number {
  const { steps, divisor } = axis;
  let moving: LoopFigures | undefined;
  for (const loop of loops) {
    if (loop.trips <= 1 || steps[loop.origin] === 0) continue;
    if (moving) return imageOf(axis, loops).count(divisor);
    moving = loop;
  }
  if (!moving) return 1;
  if (divisor === 1) return moving.trips;
  return imageOf(axis, [moving]).count(divisor);
}

/** Bytes that the loops touch in all; accesses of one tensor with the same steps count once. */
export function workingSetBytes(
  accesses: readonly AccessFigures[],
  loops: readonly LoopFigures[],
): number {
  const seen = new Map<string, number>();
  for (const a of accesses) {
    const bytes = footprintBytes(a, loops);
    seen.set(a.tensor, Math.max(seen.get(a.tensor) ?? 0, bytes));
  }
  let sum = 0;
  for (const bytes of seen.values()) sum += bytes;
  return sum;
}

/** How the lanes of an access lie: side by side, all at one place, or apart. */
export type LaneOrder = "contiguous" | "uniform" | "apart";

export function laneOrder(a: AccessFigures, lane: number | undefined): LaneOrder {
  if (lane === undefined) return "contiguous";
  const last = a.axes.length - 1;
  let moves = false;
  for (let axis = 0; axis < last; axis++) {
    // Blocks of a packed axis move with whole lanes only.
    if (Math.abs(a.axes[axis]!.steps[lane]!) >= 1) return "apart";
  }
  const step = last < 0 ? 0 : a.axes[last]!.steps[lane]!;
  moves = step !== 0;
  if (!moves) return "uniform";
  return step === 1 ? "contiguous" : "apart";
}
