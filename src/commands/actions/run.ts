/** Runs a model once; with --profile or --trace kernel by kernel with times. */
import { writeAtomically } from "../../runtime/files/files.ts";
import { writeNpy } from "../../runtime/files/npy.ts";
import { join } from "../../runtime/files/paths.ts";
import type { KernelTime } from "../../runtime/model-session.ts";
import { type Tensor, toRef } from "../../semantics/tensor.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";
import { emptyNamed, named } from "../../support/named.ts";
import type { Action, CommandContext } from "../command.ts";
import type { LoadedModel, Tensors } from "../library/loaded-model.ts";
import { atSizes } from "./at-sizes.ts";
import { ofDrawn, readInputs } from "./inputs.ts";
import { type OpenArgs, startFed, startPath } from "./open.ts";
import { startRandom } from "./start-random.ts";
import { printTable } from "./table.ts";

interface RunArgs extends OpenArgs {
  readonly input: readonly string[];
  readonly random: boolean;
  readonly outputDir?: string | undefined;
  readonly profile: boolean;
  readonly trace?: string | undefined;
  readonly seed: number;
}

const runGiven: Action<RunArgs> = async (args, context) => {
  const given = readInputs(args.input);
  if (!given.ok) return given;
  const started = startFor(args, context, given.value);
  if (!started.ok) return started;
  const { model, feeds, threads, target } = started.value;
  const options = "--input NAME=FILE.npy or --value NAME=NUMBER";
  const timed = args.profile || args.trace !== undefined;
  // The first run of new code is slow everywhere: profiles are of the second.
  const first = model.tryRun(feeds);
  const ran = timed && first.ok ? model.profile(feeds, context.now) : first;
  await model.dispose();
  if (!ran.ok) return ofDrawn(ran, feeds, { given: given.value, options });
  const { outputs, kernels } = timed
    ? (ran.value as { outputs: Tensors; kernels: readonly KernelTime[] })
    : { outputs: ran.value as Tensors, kernels: [] };
  const written = writeOutputs(outputs, args.outputDir);
  if (!written.ok) return written;
  if (args.trace !== undefined) {
    const trace = writeAtomically(args.trace, JSON.stringify(chromeTrace(kernels)));
    if (!trace.ok) return trace;
  }
  const data = {
    threads,
    outputs: Object.entries(outputs).map(([name, t]) =>
      describe(name, t, named(written.value, name)),
    ),
    ...(timed && { profile: { totalMs: totalMsOf(kernels), kernels: kernelRows(kernels) } }),
  };
  const text = [
    ...data.outputs.map(
      (o) => `${o.name} ${o.dtype}[${o.shape.join(", ")}] ${o.first.join(" ")} …`,
    ),
    ...(args.profile ? ["", profileText(kernels)] : []),
  ].join("\n");
  return ok({ data, text, target }, started.warnings);
};

const runAtSizes = atSizes(runGiven, { ranges: [] });

/** Random inputs need sizes; what comes from files has them. */
export const runModel: Action<RunArgs> = (args, context) =>
  args.random && args.input.length === 0 ? runAtSizes(args, context) : runGiven(args, context);

interface ReadyModel {
  readonly model: LoadedModel;
  readonly feeds: Tensors;
  readonly threads: number;
  readonly target: string;
}

/** The model for these inputs; what has no bound gets its sizes from them, where none is random. */
function startFor(args: RunArgs, context: CommandContext, given: Tensors): Result<ReadyModel> {
  if (args.random) {
    const started = startRandom(args, context);
    if (!started.ok) return started;
    const feeds = { ...started.value.feeds, ...given };
    return ok({ ...started.value, feeds }, started.warnings);
  }
  const started = startPath(args, context);
  if (started.ok) {
    const { model, opened, threads } = started.value;
    return ok({ model, feeds: given, threads, target: opened.target.name }, started.warnings);
  }
  const made = startFed(args, context, started.diagnostics);
  return made.ok ? ok({ ...made.value, feeds: given }, made.warnings) : made;
}

function describe(name: string, tensor: Tensor, file: string | undefined) {
  const { dtype, shape } = tensor;
  const values = toRef({ ...tensor }).data;
  const first = Array.from(values.subarray(0, 8), String);
  return { name, dtype, shape, first, ...(file !== undefined && { file }) };
}

function writeOutputs(
  outputs: Tensors,
  folder: string | undefined,
): Result<Readonly<Record<string, string>>> {
  const files = emptyNamed<string>();
  if (folder === undefined) return ok(files);
  for (const [name, tensor] of Object.entries(outputs)) {
    const bytes = writeNpy(tensor);
    if (!bytes.ok) return fail(...bytes.diagnostics.map((d) => ({ ...d, at: `output ${name}` })));
    const path = join(folder, `${name.replace(/[^\w.-]/g, "_")}.npy`);
    const written = writeAtomically(path, bytes.value);
    if (!written.ok) return written;
    files[name] = path;
  }
  return ok(files);
}

interface KernelRow {
  readonly kernel: string;
  readonly region: string;
  /** Stage of a model that runs in some. */
  readonly stage?: number;
  readonly launches: number;
  /** Of all launches together. */
  readonly ms: number;
}

/** Kernels in the order of their first launches; those in loops are launched more than once. */
function kernelRows(times: readonly KernelTime[]): readonly KernelRow[] {
  const rows = new Map<string, KernelRow>();
  for (const { kernel, region, stage, startMs, endMs } of times) {
    const key = `${stage ?? 0} ${kernel}`;
    const { launches, ms } = rows.get(key) ?? { launches: 0, ms: 0 };
    const row = { launches: launches + 1, ms: ms + endMs - startMs };
    rows.set(key, { kernel, region, ...(stage !== undefined && { stage }), ...row });
  }
  return [...rows.values()];
}

function totalMsOf(kernels: readonly KernelTime[]): number {
  return kernelRows(kernels).reduce((sum, row) => sum + row.ms, 0);
}

function profileText(kernels: readonly KernelTime[]): string {
  const rows = kernelRows(kernels).toSorted((a, b) => b.ms - a.ms);
  const total = totalMsOf(kernels);
  return printTable(
    ["kernel", "launches", "ms", "share"],
    rows.map((r) => [r.kernel, `${r.launches}`, r.ms.toFixed(3), (r.ms / total).toFixed(3)]),
  );
}

/** The Trace Event Format of Chrome: complete events, times in microseconds. */
export function chromeTrace(kernels: readonly KernelTime[]) {
  const origin = kernels[0]?.startMs ?? 0;
  return {
    displayTimeUnit: "ms",
    traceEvents: kernels.map(({ kernel, region, startMs, endMs }) => ({
      name: kernel,
      cat: region,
      ph: "X",
      ts: (startMs - origin) * 1000,
      dur: (endMs - startMs) * 1000,
      pid: 1,
      tid: 1,
    })),
  };
}
