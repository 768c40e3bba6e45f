/** Times a model on random inputs; against onnxruntime in turns, A B B A, on the same inputs and threads. */
import { type Diagnostic, diagnostic, fail, ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { openPeer } from "../library/onnxruntime.ts";
import { atSizes } from "./at-sizes.ts";
import { ofDrawn } from "./inputs.ts";
import { feedsOfPeer, type OpenArgs } from "./open.ts";
import { startRandom } from "./start-random.ts";
import { printTable } from "./table.ts";

interface BenchArgs extends OpenArgs {
  readonly against?: "onnxruntime" | undefined;
  readonly runs: number;
  readonly seed: number;
}

/** Untimed runs before the timed ones. */
const warmUps = 3;

const benchAtSizes: Action<BenchArgs> = async (args, context) => {
  const begin = context.now();
  const started = startRandom(args, context);
  if (!started.ok) return started;
  const loadMs = context.now() - begin;
  const { model, feeds, threads, target, isOnnx } = started.value;
  if (args.against && !isOnnx) {
    return fail(
      diagnostic("CLI001", "onnxruntime reads ONNX models, not artifacts", {
        at: "--against onnxruntime",
        help: "give the ONNX model, with the --shape options of the artifact",
      }),
    );
  }
  const peer = args.against ? await openPeer(args.model, threads) : undefined;
  if (peer && !peer.ok) return peer;
  const theirFeeds = feedsOfPeer(args, feeds);
  if (!theirFeeds.ok) return theirFeeds;
  const ours: number[] = [];
  const theirs: number[] = [];
  context.progress("time");
  const signal = context.interrupted();
  for (let i = -warmUps; i < args.runs && !signal.aborted; i++) {
    // Lets an interrupt be seen.
    await new Promise((resume) => setImmediate(resume));
    const start = context.now();
    const run = model.tryRun(feeds);
    const middle = context.now();
    if (!run.ok) return ofDrawn(run, feeds, { options: "--value NAME=FILE.npy" });
    const other = await peer?.value.run(theirFeeds.value);
    const end = context.now();
    if (other && !other.ok) return other;
    if (i < 0) continue;
    ours.push(middle - start);
    theirs.push(end - middle);
  }
  await model.dispose();
  await peer?.value.release();
  if (ours.length === 0) return fail(interruptedAfter(0, args.runs));
  const rows = [{ name: "wavetile", ...summarize(ours) }];
  if (peer) rows.push({ name: peer.value.name, ...summarize(theirs) });
  const ratio = peer ? ratioOf(ours, theirs) : undefined;
  const text = printTable(
    ["runtime", "median ms", "low", "high"],
    rows.map((r) => [r.name, ...[r.medianMs, r.lowMs, r.highMs].map((x) => x.toFixed(3))]),
  );
  const last = ratio
    ? `\nratio ${ratio.ratio.toFixed(3)} (${ratio.low.toFixed(3)} to ${ratio.high.toFixed(3)}; above 1: wavetile is faster)`
    : "";
  const data = { threads, loadMs, n: ours.length, results: rows, ...ratio };
  const failed = [
    ...(ratio && ratio.high < 1 ? [slower(rows[1]!.name, ratio)] : []),
    ...(signal.aborted ? [interruptedAfter(ours.length, args.runs)] : []),
  ];
  return ok({ data, text: text + last, target, failed }, started.warnings);
};

export const benchModel = atSizes(benchAtSizes, { ranges: [] });

interface Ratio {
  readonly ratio: number;
  /** Quartiles of the ratios of neighbouring runs. */
  readonly low: number;
  readonly high: number;
}

function ratioOf(ours: readonly number[], theirs: readonly number[]): Ratio {
  const { lowMs, highMs } = summarize(ours.map((t, i) => theirs[i]! / t));
  return { ratio: summarize(theirs).medianMs / summarize(ours).medianMs, low: lowMs, high: highMs };
}

function slower(peer: string, { ratio, low, high }: Ratio): Diagnostic {
  return diagnostic("CLI007", `${peer} is faster: ratio ${ratio.toFixed(3)}`, {
    notes: [`quartiles of the ratio: ${low.toFixed(3)} to ${high.toFixed(3)}`],
    help: "wavetile run --profile shows the slowest kernels",
  });
}

function interruptedAfter(done: number, wanted: number): Diagnostic {
  return diagnostic("CLI008", `interrupted after ${done} of ${wanted} runs`);
}

/** Median and quartiles. */
function summarize(times: readonly number[]) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (q: number): number => sorted[Math.floor((sorted.length - 1) * q)]!;
  return { medianMs: at(0.5), lowMs: at(0.25), highMs: at(0.75) };
}
