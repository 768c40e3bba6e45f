/**
 * The integer-set library against isl, and the time to decide schedules with it. A case an operation,
 * each on the same random operands as the campaign draws. Both sides time the operation alone, on operands that are read anew for every run
 * (both keep what they have found out about a value); the driver repeats within its process. A time of
 * an operand is the median of a few short ones in turn, so that runs which lost the processor do not
 * count; the time of a case is the sum over its operands. The last cases have no peer but a limit: a
 * large product of matrices, and all directives of a thousand regions, decided in processes that have
 * decided nothing before.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { estimateRatio, median, type TimingPair } from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";
import { IslDriver, prepareIsl } from "../isl/isl-driver.ts";
import { judge } from "../isl/judge.ts";
import { type Question, questions } from "../isl/questions.ts";
import { type BenchRow, type FailedCase, summarise } from "../report.ts";
import type { ForeignCase, Suite } from "./suite.ts";

/** Random operands a case. */
const drawn = 40;
const rounds = 5;
/** Rounds before the first that counts. */
const warmUps = 1;
/**
 * Runs on each operand that are timed together, on both sides: more where they take less than a clock tells
 * apart (one that finds nothing to do is over in a tenth of a microsecond).
 */
const fewRepeats = 3;
const manyRepeats = 40;
const cheapNs = 2000;
/** Times of an operand within a round; the median counts. */
const takes = 3;

/** Reading is no operation: both sides read before the clock starts. */
const timed = questions.filter((q) => q.timed !== false && !q.name.endsWith("_read"));

export const affineSuite: Suite = {
  name: "affine",
  summary: "operations on integer sets and maps against isl",
  targets: ["node"],
  peers: [],
  preparePeers: prepareIsl,
  load: async () => {
    const driver = new IslDriver();
    const version = await driver.ask("version");
    const text = version.kind === "ok" ? version.text : "unknown";
    return {
      versions: { isl: text },
      cases: [
        ...timed.map((question) => caseOf(question, driver, text)),
        ...matmulCases,
        modelCase,
      ],
      summarise: (rows) => ({ ...summarise(rows.filter((r) => !r.detail)) }),
    };
  },
};

function caseOf(question: Question, driver: IslDriver, peerName: string): ForeignCase {
  const name = `${question.name.slice(2)}/${question.name.startsWith("s") ? "sets" : "maps"}`;
  return {
    case: name,
    peerName,
    measure: async () => {
      const operands = await drawAgreed(question, driver);
      if (typeof operands === "string") {
        return { case: name, peerName, kind: "wrong", reason: operands } satisfies FailedCase;
      }
      return { case: name, peerName, ...rowOf(await timeBoth(question, driver, operands)) };
    },
  };
}

/** Operands on which both have an answer, and the same one; or a difference. */
async function drawAgreed(
  question: Question,
  driver: IslDriver,
): Promise<string | readonly (readonly string[])[]> {
  const operands: (readonly string[])[] = [];
  for (let seed = 0; operands.length < drawn; seed += drawn) {
    const batch = Array.from({ length: drawn }, (_, i) => question.draw(new Rng(seed + i)));
    const found = await Promise.all(batch.map((own) => judge(driver, question, own)));
    const wrong = found.find((f) => f.kind === "failed");
    if (wrong?.kind === "failed") return wrong.reason;
    const agreed = batch.filter((_, i) => found[i]!.kind === "passed");
    const times = await Promise.all(agreed.map((own) => driver.time(1, question.name, ...own)));
    operands.push(...agreed.filter((_, i) => times[i] !== undefined));
  }
  return operands.slice(0, drawn);
}

async function timeBoth(
  question: Question,
  driver: IslDriver,
  operands: readonly (readonly string[])[],
): Promise<TimingPair[]> {
  const pairs: TimingPair[] = [];
  let repeats = fewRepeats;
  for (let round = -warmUps; round < rounds; round++) {
    const ours: number[][] = [];
    const peer: number[][] = [];
    for (let take = 0; take < takes; take++) {
      ours.push(operands.map((own) => timeOurs(question, own, repeats)));
      // Asked at once: a question that waits for the answer before it mostly waits for the processor.
      const asked = operands.map((own) => driver.time(repeats, question.name, ...own));
      peer.push((await Promise.all(asked)).map((ns) => ns!));
    }
    const pair = { oursNs: sumOfMedians(ours), peerNs: sumOfMedians(peer) };
    if (round >= 0) pairs.push(pair);
    else if (pair.oursNs < cheapNs * operands.length) repeats = manyRepeats;
  }
  return pairs;
}

/** Takes of all operands: each operand by its median. */
function sumOfMedians(takesOf: readonly (readonly number[])[]): number {
  const [first] = takesOf;
  return first!.reduce((sum, _, i) => sum + median(takesOf.map((take) => take[i]!)), 0);
}

/** Mean time of a run. */
function timeOurs(question: Question, operands: readonly string[], repeats: number): number {
  const runs = Array.from({ length: repeats }, () => question.prepare(operands));
  const start = performance.now();
  for (const run of runs) run();
  return ((performance.now() - start) * 1e6) / repeats;
}

function rowOf(pairs: readonly TimingPair[]): Omit<BenchRow, "case" | "peerName"> {
  const { oursNs, peerNs, ratio, low, high, n } = estimateRatio(pairs, new Rng(1));
  return { ours: oursNs, peer: peerNs, ratio, low, high, n };
}

/** Fresh processes for each of the cases without a peer. */
const processes = 3;

/** What deciding a product of matrices may take, and a model, in place of a peer. */
const limitNs = { matmul: 1e5, model: 1e9 };

interface TimedMatmul {
  readonly form: string;
  readonly decide: number;
  readonly other: number;
  readonly first: number;
  readonly small: number;
}

const matmulCases = ["loops", "tree"].map((form): ForeignCase => {
  const name = `decide/matmul-4096-by-${form}`;
  return {
    case: name,
    peerName: "limit",
    measure: async () => {
      const runs = Array.from(
        { length: processes },
        () => runScript<readonly TimedMatmul[]>("matmul.ts").find((r) => r.form === form)!,
      );
      const us = runs.map((r) => r.decide);
      return {
        ...limited(
          name,
          limitNs.matmul,
          us.map((t) => t * 1e3),
        ),
        detail: {
          us: median(us),
          least: Math.min(...us),
          most: Math.max(...us),
          otherSizeUs: median(runs.map((r) => r.other)),
          firstUs: median(runs.map((r) => r.first)),
          smallUs: median(runs.map((r) => r.small)),
        },
      };
    },
  };
});

interface DecidedModel {
  readonly ms: number;
  readonly userMs: number;
  readonly regions: number;
  readonly legal: number;
  readonly classes: number;
}

const modelCase: ForeignCase = {
  case: "decide/1000-regions",
  peerName: "limit",
  measure: async () => {
    const runs = Array.from({ length: processes }, () => runScript<DecidedModel>("decide.ts"));
    const ms = runs.map((r) => r.ms);
    const { regions, legal, classes } = runs[0]!;
    return {
      ...limited(
        "decide/1000-regions",
        limitNs.model,
        ms.map((t) => t * 1e6),
      ),
      detail: {
        ms: median(ms),
        least: Math.min(...ms),
        most: Math.max(...ms),
        processorMs: median(runs.map((r) => r.userMs)),
        regions,
        legal,
        classes,
      },
    };
  },
};

/** A row that compares the median of some times with a limit. */
function limited(name: string, limit: number, timesNs: readonly number[]): BenchRow {
  const ours = median(timesNs);
  return {
    case: name,
    peerName: "limit",
    ours,
    peer: limit,
    ratio: limit / ours,
    low: limit / Math.max(...timesNs),
    high: limit / Math.min(...timesNs),
    n: timesNs.length,
  };
}

function runScript<T>(name: string): T {
  const script = fileURLToPath(new URL(`../legality/${name}`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", script], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${name}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
