/** The command line of a campaign: NAME [--target T] [--seed N] [--count N] [--json]. */
import { parseArgs } from "node:util";
import { exitCodes, Refusal, readInteger } from "../bench/refusal.ts";
import type { Campaign } from "./campaign.ts";

export interface CampaignCommandLine {
  readonly campaign: Campaign;
  readonly target: string;
  readonly seed: number;
  readonly count: number;
  readonly json: boolean;
}

const largestSeed = 2 ** 31 - 1;

export function readCampaignCommandLine(
  args: readonly string[],
  campaigns: readonly Campaign[],
): CampaignCommandLine {
  const { values, positionals } = parse(args);
  const campaign = campaigns.find((c) => c.name === positionals[0]);
  if (campaign === undefined || positionals.length > 1) {
    const known = campaigns.map((c) => `  ${c.name}: ${c.summary}`).join("\n");
    throw new Refusal(`name one campaign:\n${known}`, exitCodes.usage);
  }
  const { name, targets, defaultCount } = campaign;
  const target = values.target ?? targets[0]!;
  if (!targets.includes(target)) {
    const message = `campaign ${name} has no target "${target}"; it has ${targets.join(", ")}`;
    throw new Refusal(message, exitCodes.usage);
  }
  return {
    campaign,
    target,
    seed: readInteger("--seed", values.seed, [0, largestSeed]),
    count: readInteger("--count", values.count ?? String(defaultCount), [1, largestSeed]),
    json: values.json,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        target: { type: "string" },
        seed: { type: "string", default: "0" },
        count: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(error.message, exitCodes.usage);
    throw error;
  }
}
