/**
 * The time to decide a schedule of a product of two matrices, by its loops and by its tree: tiles of
 * tiles, an order, lanes, unrolled copies and threads, applied and judged. Nothing is enumerated, so
 * sizes do not matter. Medians in microseconds, as JSON:
 *
 * - `decide`: the next schedule of a region of 4096 x 4096 x 4096, whose dependences are known;
 * - `other`: a product of another size each time, by one who has decided about products before;
 * - `first`: by one who knows nothing of regions or their classes: dependences are found anew;
 * - `small`: as `decide`, with matrices of 64.
 */
import type { Region } from "../../src/region/nest.ts";
import { parseRegion } from "../../src/region/nest-reader.ts";
import { median } from "../../src/runtime/measure/statistics.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import { decideSchedule } from "../../src/schedule/legality/legality.ts";
import { LegalityClasses } from "../../src/schedule/legality/legality-class.ts";
import { planTree } from "../../src/schedule/tree/tree-schedule.ts";
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

interface Asked {
  readonly region: Region;
  readonly classes: LegalityClasses;
}

/** Median microseconds of one decision about what `ask` makes, which is not timed. */
function timeOf(decide: Decide, ask: (run: number) => Asked): number {
  const times: number[] = [];
  for (let run = 0; run < warmUps + runs; run++) {
    const { region, classes } = ask(run);
    const schedule = schedules[run % schedules.length]!;
    const start = performance.now();
    decide(region, schedule, classes);
    if (run >= warmUps) times.push((performance.now() - start) * 1000);
  }
  return median(times);
}

const classes = new LegalityClasses();
const [large, small] = [edge.large, edge.small].map(product) as [Region, Region];
const measured = Object.entries({ loops: byLoops, tree: byTree }).map(([form, decide]) => ({
  form,
  decide: timeOf(decide, () => ({ region: large, classes })),
  other: timeOf(decide, (run) => ({ region: product(edge.large + 1 + run), classes })),
  first: timeOf(decide, () => ({ region: { ...large }, classes: new LegalityClasses() })),
  small: timeOf(decide, () => ({ region: small, classes })),
}));
process.stdout.write(JSON.stringify(measured));
