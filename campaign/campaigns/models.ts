/**
 * Every model of the table at every shape on 20 random inputs, and on 5 real ones where there are any
 * (real-pictures.ts, real-sounds.ts), against onnxruntime-node within the model's rounding, or within what one rounding of the inputs does to
 * onnxruntime's own answer. Trial number n takes case n of
 * the table, around and around, with inputs of its own. Target `wasm`: compiled once for all shapes of a
 * model and run; `oracle`: import and float64 semantics on one random input, nothing compiled.
 */
import { fetchModel } from "../../bench/models/fetch.ts";
import { hintsFor, randomInputs } from "../../bench/models/random-inputs.ts";
import { roundingOf } from "../../bench/models/rounding.ts";
import { type ModelRow, modelTable } from "../../bench/models/table.ts";
import {
  countElements,
  type Rounding,
  toleranceOf,
  worstDifference,
} from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import type { Runtime, Session, Tensors } from "../../bench/sessions/session.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { DiagnosticError, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Campaign, Finding } from "../campaign.ts";
import { lacksKernels, openPeer } from "../open-peer.ts";
import { realInputs } from "../real-pictures.ts";
import { realSounds } from "../real-sounds.ts";

const cases = modelTable.flatMap((row) => row.cases.map((modelCase) => ({ row, modelCase })));

/** Random inputs of a trial; the oracle is a thousand times slower. */
const randomCounts = { wasm: 20, oracle: 1 } as const;

export const models: Campaign = {
  name: "models",
  summary: "the model table on random and real inputs against onnxruntime-node",
  targets: ["wasm", "oracle"],
  defaultCount: cases.length,
  names: () => cases.map(({ row, modelCase }) => `${row.name}/${modelCase.name}`),
  open: async (target) => {
    const ours = target === "wasm" ? wavetileRuntime("wasm", 1) : oracleRuntime;
    const count = randomCounts[target as keyof typeof randomCounts];
    const sessions = new RowSessions(ours);
    return async (seed) => {
      const { row, modelCase } = cases[seed % cases.length]!;
      const rng = new Rng(seed);
      const random = Array.from({ length: count }, () => randomInputs(modelCase, rng));
      const pictures = target === "wasm" ? realInputs(modelCase) : [];
      const sounds = target === "wasm" ? await realSounds(row, modelCase) : [];
      const inputs = [...random, ...pictures, ...sounds];
      const open = await sessions.of(row);
      if ("skipped" in open) return { kind: "skipped", reason: open.skipped };
      return compare(open, inputs, `${row.name} ${modelCase.name}`);
    };
  },
};

interface OpenRow {
  readonly name: string;
  readonly rounding: Rounding;
  readonly peer: Session;
  readonly session: Session;
}

/** The sessions of one model at a time: its cases follow each other, and one program serves them all. */
class RowSessions {
  readonly #ours: Runtime;
  #open: OpenRow | undefined;

  constructor(ours: Runtime) {
    this.#ours = ours;
  }

  /** Or why there is nothing to compare with. */
  async of(row: ModelRow): Promise<OpenRow | { readonly skipped: string }> {
    if (this.#open?.name === row.name) return this.#open;
    await this.#open?.session.release();
    await this.#open?.peer.release();
    this.#open = undefined;
    const bytes = unwrap(fetchModel(row));
    const hints = hintsFor(row);
    const peer = await openPeer(bytes, hints);
    if (!peer) return { skipped: lacksKernels(row.name) };
    const session = await this.#ours.open(bytes, hints);
    this.#open = { name: row.name, rounding: unwrap(roundingOf(bytes)), peer, session };
    return this.#open;
  }
}

/** Draws of rounded inputs. */
const roundings = 4;

/**
 * By how much the peer's own answer changes when each element of its float inputs moves by one rounding, as
 * it may where a model takes the logarithm of nearly nothing: no runtime's answer is better known than that.
 */
async function sensitivity(peer: Session, feeds: Tensors, rounding: Rounding): Promise<number> {
  const rng = new Rng(1);
  const expected = await peer.run(feeds);
  let worst = 0;
  for (let n = 0; n < roundings; n++) {
    const moved = Object.entries(feeds).map(([name, tensor]): [string, Tensors[string]] => {
      if (tensor.type !== "float32") return [name, tensor];
      const step = (): number => 1 + (rng.integer(0, 1) === 0 ? -1 : 1) * 2 ** -23;
      return [name, { ...tensor, data: tensor.data.map((x) => x * step()) }];
    });
    const found = await peer.run(Object.fromEntries(moved));
    worst = Math.max(worst, worstDifference(found, expected, rounding));
  }
  return worst;
}

async function compare(
  { rounding, peer, session }: OpenRow,
  inputs: readonly Tensors[],
  name: string,
): Promise<Finding> {
  for (const [i, feeds] of inputs.entries()) {
    const expected = await peer.run(feeds);
    const tolerance = toleranceOf(rounding, countElements(expected));
    const worst = worstDifference(await session.run(feeds), expected, rounding);
    if (worst <= tolerance || worst <= (await sensitivity(peer, feeds, rounding))) continue;
    const found = `differs by ${worst.toExponential(2)}, allowed ${tolerance.toExponential(2)}`;
    return { kind: "failed", reason: `${name} input ${i} ${found}` };
  }
  return { kind: "passed", note: `${inputs.length} inputs` };
}

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}
