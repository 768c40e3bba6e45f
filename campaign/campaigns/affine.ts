/**
 * The integer-set library against isl. Trials from seed 0 on are the fixed cases: hard systems and
 * isl's own inputs (campaign/affine/); every later one draws an operation and its operands and
 * compares the answers (bench/isl/). An answer of ours that is "unknown" is a skip with its reason, and
 * when more than 1 in 200 are, the trial that makes it so fails.
 */

import { IslDriver, prepareIsl } from "../../bench/isl/isl-driver.ts";
import { type Judgement, judge } from "../../bench/isl/judge.ts";
import { questions } from "../../bench/isl/questions.ts";
import { exitCodes, Refusal } from "../../bench/refusal.ts";
import { Rng } from "../../src/support/rng.ts";
import { fixedCases } from "../affine/fixed-cases.ts";
import type { Campaign, Finding } from "../campaign.ts";

/** Unknown answers that are allowed: this share of all, and a few in a short run. */
const mostUnknown = { share: 1 / 200, few: 2 };

export const affine: Campaign = {
  name: "affine",
  summary: "integer sets and maps against isl, every operation on random operands",
  targets: ["isl"],
  // 20,000 random ones after the fixed cases.
  defaultCount: 20_100,
  atOnce: 4,
  open: async () => {
    const missing = prepareIsl(false);
    if (missing !== undefined) throw new Refusal(missing, exitCodes.environment);
    const driver = new IslDriver();
    const tally = { asked: 0, unknown: 0 };
    const fixed = fixedCases();
    return async (seed) => {
      const own = fixed[seed];
      return counted(await (own ? own(driver) : randomTrial(driver, seed)), tally);
    };
  },
};

function randomTrial(driver: IslDriver, seed: number): Promise<Judgement> {
  const rng = new Rng(seed);
  const question = rng.pick(questions);
  return judge(driver, question, question.draw(rng));
}

interface UnknownTally {
  asked: number;
  unknown: number;
}

/** An unknown answer is a skip while they are few. */
function counted(found: Judgement, tally: UnknownTally): Finding {
  tally.asked++;
  if (found.kind !== "unknown") return found;
  tally.unknown++;
  const { share, few } = mostUnknown;
  if (tally.unknown <= few + share * tally.asked) return { kind: "skipped", reason: found.reason };
  const rate = `${tally.unknown} of ${tally.asked} answers are unknown`;
  return { kind: "failed", reason: `${rate}; the last: ${found.reason}` };
}
