/** What `optimize` is asked and says, of a model with one program or in stages. */
import type { CompiledModel } from "../../compile.ts";
import type { Target } from "../../target/target.ts";
import type { Agreement } from "../../verdict/verdict.ts";
import { checkOf, type RegionReport } from "./check-regions.ts";
import type { OpenArgs } from "./open.ts";
import { printTable } from "./table.ts";

export interface OptimizeArgs extends OpenArgs {
  readonly output?: string | undefined;
  readonly budget?: number | undefined;
}

export function outputOf({ output, model }: OptimizeArgs): string {
  return output ?? `${model.replace(/\.onnx$/, "")}.wt`;
}

export interface OptimizedRegion {
  readonly name: string;
  readonly origins: readonly string[];
  readonly estimateNs: number;
  readonly flops: number;
  readonly bytes: number;
  readonly candidates: number;
  readonly check: Agreement | null;
}

export function describeRegions(
  { regions }: CompiledModel,
  reports: readonly RegionReport[],
): readonly OptimizedRegion[] {
  return regions.map((r, i) => ({
    name: r.name,
    origins: r.origins,
    estimateNs: r.price.estimateNs,
    flops: r.flops,
    bytes: r.bytes,
    candidates: r.candidates,
    check: checkOf(reports[i]),
  }));
}

/** What an estimate is of: programs of CPUs are priced on one thread, those of a GPU on all of it. */
export function estimatedOn({ blocks }: Pick<Target, "blocks">): string {
  return blocks ? "on the whole device" : "on one thread";
}

/** A table of the ten regions that take longest. */
export function slowestOf(regions: readonly OptimizedRegion[]): string {
  const slowest = [...regions].sort((a, b) => b.estimateNs - a.estimateNs).slice(0, 10);
  return printTable(
    ["region", "estimate ms", "Mflop", "candidates"],
    slowest.map((r) => [
      r.name,
      (r.estimateNs / 1e6).toFixed(3),
      (r.flops / 1e6).toFixed(2),
      String(r.candidates),
    ]),
  );
}
