/** What a region cannot do without, for bounds on its time. */
import type { Region } from "../region/nest.ts";
import type { Work } from "../runtime/measure/roofline.ts";
import { dtypes, isFloatDType } from "../semantics/dtype.ts";
import { constantValue, evaluate, substitute } from "../semantics/index-expr.ts";
import type { Symbols } from "./region-inputs.ts";

/**
 * Additions and multiplications of float folds over whole domains, and each tensor's bytes once. What
 * runs on narrower types than the peak is measured with, or under a guard, is not counted: a bound may
 * be too low, never too high.
 */
export function workOf(region: Region, symbols: Symbols): Work {
  let flops = 0;
  for (const { loops, body, reduction, guard, reads } of region.statements) {
    const wide = reads.every((r) => dtypes[region.tensors.get(r.tensor)!.dtype].bits >= 32);
    const floats = body.every((e) => isFloatDType(e.dtype));
    const inside = guard.length === 0 && reads.every((r) => r.guard.length === 0);
    if (!reduction || !wide || !floats || !inside) continue;
    const points = loops.reduce((n, l) => n * Math.max(0, boundedExtent(l.extent, symbols)), 1);
    const perPoint = body.length + (body[0]!.kind === "apply" ? 1 : 0);
    flops += points * perPoint;
  }
  let bytes = 0;
  for (const [name, { shape, dtype, role }] of region.tensors) {
    if (role === "local" || !isReadWhole(region, name)) continue;
    const elements = shape.reduce((n, e) => n * evaluate(e, symbols), 1);
    bytes += (elements * dtypes[dtype].bits) / 8;
  }
  return { flops, bytes };
}

/** An extent over symbols; 0 where it depends on other loops. */
function boundedExtent(
  extent: Region["statements"][number]["loops"][number]["extent"],
  symbols: Symbols,
): number {
  return constantValue(substitute(extent, symbols)) ?? 0;
}

/** Tensors that are gathered from, or cut, may be touched in part. */
function isReadWhole({ statements, tensors }: Region, name: string): boolean {
  const { shape } = tensors.get(name)!;
  const accesses = statements.flatMap(({ reads, finishReads, writes, loops }) =>
    [...reads, ...finishReads, ...writes]
      .filter((a) => a.tensor === name)
      .map((a) => ({ index: a.index, loops })),
  );
  return accesses.some(({ index, loops }) =>
    index.every((e, axis) =>
      loops.some((l) => l.name === e.key && l.extent.key === shape[axis]!.key),
    ),
  );
}
