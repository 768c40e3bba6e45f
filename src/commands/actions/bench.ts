/** Times a model on random inputs; against onnxruntime in turns, A B A B, on the same inputs and threads. */
import { readBytes } from "../../runtime/files/files.ts";
import { diagnostic, fail, ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { openPeer } from "../library/onnxruntime.ts";
import { randomInputs } from "./inputs.ts";
import { type OpenArgs, startPath } from "./open.ts";
import { printTable } from "./table.ts";

interface BenchArgs extends OpenArgs {
  readonly against?: "onnxruntime" | undefined;
  readonly runs: number;
  readonly threads?: number | undefined;
  readonly seed: number;
}

/** Untimed runs before the timed ones. */
const warmUps = 3;

export const benchModel: Action<BenchArgs> = async (args, context) => {
  const begin = context.now();
  const started = startPath(args, context);
  if (!started.ok) return started;
  const loadMs = context.now() - begin;
  const { model, opened, threads } = started.value;
  if (args.against && !opened.origin) {
    return fail(
      diagnostic("CLI001", "onnxruntime reads ONNX models, not artifacts", {
        at: "--against onnxruntime",
        help: "give the ONNX model, with the --shape options of the artifact",
      }),
    );
  }
  const bytes = readBytes(args.model);
  if (!bytes.ok) return bytes;
  const peer = args.against ? await openPeer(bytes.value, threads) : undefined;
  if (peer && !peer.ok) return peer;
  const feeds = randomInputs(opened, args.seed);
  const ours: number[] = [];
  const theirs: number[] = [];
  context.progress("time");
  for (let i = -warmUps; i < args.runs; i++) {
    const start = context.now();
    const run = model.tryRun(feeds);
    const middle = context.now();
    if (!run.ok) return run;
    if (peer) await peer.value.run(feeds);
    const end = context.now();
    if (i < 0) continue;
    ours.push(middle - start);
    theirs.push(end - middle);
  }
  await model.dispose();
  await peer?.value.release();
  const rows = [{ name: "wavetile", ...summarize(ours) }];
  if (peer) rows.push({ name: peer.value.name, ...summarize(theirs) });
  const ratio = peer ? { ratio: rows[1]!.medianMs / rows[0]!.medianMs } : {};
  const text = printTable(
    ["runtime", "median ms", "low", "high"],
    rows.map((r) => [r.name, ...[r.medianMs, r.lowMs, r.highMs].map((x) => x.toFixed(3))]),
  );
  const last = peer ? `\nratio ${(ratio.ratio ?? 0).toFixed(3)} (above 1: wavetile is faster)` : "";
  const data = { threads, loadMs, n: args.runs, results: rows, ...ratio };
  return ok({ data, text: text + last, target: opened.target.name }, started.warnings);
};

/** Median and quartiles. */
function summarize(times: readonly number[]) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (q: number): number => sorted[Math.floor((sorted.length - 1) * q)]!;
  return { medianMs: at(0.5), lowMs: at(0.25), highMs: at(0.75) };
}
