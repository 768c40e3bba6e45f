/**
 * The time to decide a schedule of a product of two matrices, by its loops and by its tree: tiles of
 * tiles, an order, lanes, unrolled copies and threads. `decide` is what the next schedule of a region
 * takes, applied and judged; `first` also finds its dependences; `small` is `decide` for matrices of 64
 * instead of 4096, which takes as long because nothing is enumerated. Medians in microseconds, as JSON.
 */
import type { Region } from "../../src/region/nest.ts";
import { parseRegion } from "../../src/region/nest-reader.ts";
import { median } from "../../src/runtime/measure/statistics.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import { decideSchedule } from "../../src/schedule/legality.ts";
import { LegalityClasses } from "../../src/schedule/legality-class.ts";
import { planTree } from "../../src/schedule/tree-schedule.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";

const edge = { large: 4096, small: 64 };
/** Two are tried in turn: none is decided twice in a row. */
const tiles: readonly (readonly [rows: number, columns: number])[] = [
  [4, 16],
  [2, 8],
];
const runs = 2000;
const warmUps = 500;

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function product(n: number): Region {
  return take(
    parseRegion(`region R group R anchor S0 inlined () epilogue () {
      input x : f32[${n}, ${n}] input w : f32[${n}, ${n}] output y : f32[${n}, ${n}]
      statement S0 "" {i in ${n}, j in ${n}, reduce k in ${n}} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
      } }`),
  );
}

const schedules: readonly Schedule[] = tiles.map(([rows, columns]) =>
  take(
    parseSchedule(`schedule "R" for "wasm" {
      tile S0:(i, j, k) by (64, 64, 32) -> (i0, j0, k0) (i1, j1, k1)
      tile S0:(i1, j1) by (${rows}, ${columns}) -> (i2, j2) (i3, j3)
      reorder S0:(i0, j0, k0, i2, j2, k1, i3, j3)
      unroll S0:i3 vectorize S0:j3 parallelize S0:i0
    }`),
  ),
);

/** Throws unless the schedule is legal. */
type Decide = (region: Region, schedule: Schedule, classes: LegalityClasses) => void;

const byLoops: Decide = (region, schedule, classes) => {
  take(decideSchedule(take(applySchedule(region, schedule)), classes));
};

const byTree: Decide = (region, schedule) => {
  const { verdict } = planTree(region, schedule);
  if (verdict.kind !== "legal") throw new Error(`the tree is ${verdict.kind}`);
};

/** Median microseconds of one decision; each about a region of its own where `first`. */
function timeOf(decide: Decide, n: number, first = false): number {
  const region = product(n);
  const classes = new LegalityClasses();
  const times: number[] = [];
  for (let run = -warmUps; run < runs; run++) {
    const own = first ? { ...region } : region;
    const known = first ? new LegalityClasses() : classes;
    const schedule = schedules[(run + warmUps) % schedules.length]!;
    const start = performance.now();
    decide(own, schedule, known);
    if (run >= 0) times.push((performance.now() - start) * 1000);
  }
  return median(times);
}

const measured = Object.entries({ loops: byLoops, tree: byTree }).map(([form, decide]) => ({
  form,
  decide: timeOf(decide, edge.large),
  first: timeOf(decide, edge.large, true),
  small: timeOf(decide, edge.small),
}));
process.stdout.write(JSON.stringify(measured));
