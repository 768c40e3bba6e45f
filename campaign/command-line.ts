/** The command line of a campaign: NAME [--target T] [--seed N] [--count N] [--only TEXT …] [--json]. */
import { parseArgs } from "node:util";
import { exitCodes, listed, Refusal, readInteger } from "../bench/refusal.ts";
import type { Campaign } from "./campaign.ts";

export interface CampaignCommandLine {
  readonly campaign: Campaign;
  readonly target: string;
  readonly seed: number;
  /** Of the trials from `seed` on, as many as were asked for, those that `--only` picks. */
  readonly seeds: readonly number[];
  readonly json: boolean;
}

const largestSeed = 2 ** 31 - 1;

export function readCampaignCommandLine(
  args: readonly string[],
  campaigns: readonly Campaign[],
): CampaignCommandLine {
  const { values, positionals } = parse(args);
  if (values.help)
    throw new Refusal(
      `npm run campaign -- NAME [--target T] [--seed N] [--count N] [--only TEXT …] [--json]\n${listed(campaigns)}`,
      0,
    );
  const campaign = campaigns.find((c) => c.name === positionals[0]);
  if (campaign === undefined || positionals.length > 1) {
    throw new Refusal(`name one campaign:\n${listed(campaigns)}`, exitCodes.usage);
  }
  const { name, targets, defaultCount } = campaign;
  const target = values.target ?? targets[0]!;
  if (!targets.includes(target)) {
    const message = `campaign ${name} has no target "${target}"; it has ${targets.join(", ")}`;
    throw new Refusal(message, exitCodes.usage);
  }
  const seed = readInteger("--seed", values.seed, [0, largestSeed]);
  const names = campaign.names?.(target) ?? [];
  const usual = String(
    names.length || (typeof defaultCount === "number" ? defaultCount : defaultCount(target)),
  );
  const count = readInteger("--count", values.count ?? usual, [1, largestSeed]);
  const all = Array.from({ length: count }, (_, i) => seed + i);
  const seeds = pick(all, names, values.only);
  return { campaign, target, seed, seeds, json: values.json };
}

/** Trials whose names hold one of the texts; none: all. */
function pick(
  seeds: readonly number[],
  names: readonly string[],
  only: readonly string[],
): readonly number[] {
  if (only.length === 0) return seeds;
  if (names.length === 0) {
    throw new Refusal("--only picks by name, and these trials have none", exitCodes.usage);
  }
  const found = seeds.filter((n) => only.some((text) => nameOf(names, n).includes(text)));
  if (found.length > 0) return found;
  throw new Refusal(`no trial's name holds "${only.join('" or "')}"`, exitCodes.usage);
}

export function nameOf(names: readonly string[], seed: number): string {
  return names[seed % names.length]!;
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
        only: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", short: "h", default: false },
        json: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(error.message, exitCodes.usage);
    throw error;
  }
}
