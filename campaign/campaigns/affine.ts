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
import type { Campaign } from "../campaign.ts";
import { UnknownTally } from "../unknown-answers.ts";

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
    const tally = new UnknownTally();
    const fixed = fixedCases();
    return async (seed) => {
      const own = fixed[seed];
      return tally.count(await (own ? own(driver) : randomTrial(driver, seed)));
    };
  },
};

function randomTrial(driver: IslDriver, seed: number): Promise<Judgement> {
  const rng = new Rng(seed);
  const question = rng.pick(questions);
  return judge(driver, question, question.draw(rng));
}
