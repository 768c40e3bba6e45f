/**
 * Decides every directive of a model of a thousand regions, once, in a process that has decided nothing
 * before; prints the milliseconds and what came out. Regions and schedules are read before the clock
 * starts; no two have the same sizes.
 */
import { applySchedule } from "../../src/schedule/apply.ts";
import { drawRegion } from "../../src/schedule/choice/model-regions.test-support.ts";
import { decideSchedule } from "../../src/schedule/legality/legality.ts";
import { LegalityClasses } from "../../src/schedule/legality/legality-class.ts";
import { Rng } from "../../src/support/rng.ts";

const count = 1000;
const sizes = { least: 16, most: 2048, factors: [2, 3, 4, 6, 8, 12, 16, 32] };

const rng = new Rng(1);
const drawn = Array.from({ length: count }, (_, turn) => drawRegion(turn, rng, sizes));
const classes = new LegalityClasses();
let legal = 0;
const start = performance.now();
const processor = process.cpuUsage();
for (const { region, schedule } of drawn) {
  const applied = applySchedule(region, schedule);
  const decided = applied.ok ? decideSchedule(applied.value, classes) : applied;
  if (decided.ok) legal++;
}
const ms = performance.now() - start;
const userMs = process.cpuUsage(processor).user / 1000;
process.stdout.write(JSON.stringify({ ms, userMs, regions: count, legal, classes: classes.size }));
