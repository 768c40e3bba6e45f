/** The bytes of an artifact to a model that runs in this page or worker. */
import type { Artifact } from "../artifact/artifact.ts";
import { type Container, openContainer } from "../artifact/container.ts";
import { readContainer } from "../artifact/read-artifact.ts";
import { readStages } from "../artifact/read-stages.ts";
import { readerOfWeights } from "../artifact/weights.ts";
import { LoadedModel, type RunOptions, type Tensors } from "../commands/library/loaded-model.ts";
import { describePorts, type Port } from "../commands/library/ports.ts";
import { type Stage, StagedSession } from "../commands/library/staged-run.ts";
import { unwrap } from "../commands/library/wavetile-error.ts";
import type { ModelSession } from "../runtime/model-session.ts";
import { probeWasmFeatures, type WasmFeatures } from "../runtime/wasm/features.ts";
import { createWasmSession, startPool, type WasmSessionOptions } from "../runtime/wasm/session.ts";
import { webWorkerHost } from "../runtime/wasm/web-worker-host.ts";
import type { WorkerHost } from "../runtime/wasm/worker-host.ts";
import type { WorkerPool } from "../runtime/wasm/worker-pool.ts";
import { contain, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";

export interface ArtifactOptions {
  /**
   * Compute threads, 1 to 64. By default one for each hardware thread where the page may share memory
   * (it is cross-origin isolated), else 1; `model.threads` says how many there are.
   */
  readonly threads?: number;
}

/** A model that runs in workers, or, on one thread, where it was loaded. */
export interface ArtifactModel {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly threads: number;
  /** Outputs for these inputs. Any number of calls may wait; they run in turn. */
  run(feeds: Tensors, options?: RunOptions): Promise<Tensors>;
  /** Forgets the states: the next run starts from zeros. */
  resetStates(): void;
  /** Ends the threads and frees the memory, after the runs that were asked for. */
  dispose(): Promise<void>;
}

const mostThreads = 64;

/** Rejects with WavetileError: a damaged artifact, one without WebAssembly, threads that cannot be. */
export async function loadArtifact(
  bytes: Uint8Array,
  { threads }: ArtifactOptions = {},
): Promise<ArtifactModel> {
  const host = webWorkerHost() ?? noHost;
  const features = probeWasmFeatures();
  const count = unwrap(chooseThreads(threads, features, host));
  const container = unwrap(openContainer(bytes));
  // One thread is the caller's own: no memory is shared and no worker started.
  const page = { threads: count, features: { ...features, threads: count > 1 }, host };
  const start = container.meta.stages ? startStages : startProgram;
  const model = unwrap(contain(() => ok(start(container, page))));
  return {
    inputs: model.inputs,
    outputs: model.outputs,
    threads: count,
    run: (feeds, options) => model.runAsync(feeds, options),
    resetStates: () => model.resetStates(),
    dispose: () => model.dispose(),
  };
}

/** What sessions in this page run on. */
type Page = Pick<WasmSessionOptions, "threads" | "features" | "host">;

function startProgram(container: Container, page: Page): LoadedModel {
  const { session, artifact } = startContained(container, page);
  const { meta, graph } = artifact;
  return new LoadedModel({ start: { meta }, ports: describePorts(graph, meta) }, session);
}

/** A model in which data decide sizes: its programs take turns on the same threads. */
function startStages(container: Container, page: Page): LoadedModel {
  const { graph, weights, stages: parts } = unwrap(readStages(container));
  const pool = startPool(page);
  const stages = parts.map(({ part, program }): Stage => {
    const started = program && startContained(program, page, pool);
    return { graph: part, weights, bytes: 0, ...(started && { session: started.session }) };
  });
  const { meta } = container;
  const session = new StagedSession({ graph, weights }, stages, pool);
  return new LoadedModel({ start: { meta }, ports: describePorts(graph, meta) }, session);
}

function startContained(
  container: Container,
  page: Page,
  pool?: WorkerPool,
): { readonly session: ModelSession; readonly artifact: Artifact } {
  const name = unwrap(chooseProgram(container.targetNames, page.features));
  const artifact = unwrap(readContainer(container, { choose: () => [name] }));
  const weight = readerOfWeights(artifact, artifact.meta.views);
  const options = { ...page, weight, ...(pool && { pool }) };
  return {
    artifact,
    session: unwrap(createWasmSession(artifact.targets.get(name)!.program, options)),
  };
}

const noHost: WorkerHost = {
  parallelism: 1,
  spawn: () => {
    throw new Error("one thread needs no worker");
  },
};

function chooseThreads(
  wanted: number | undefined,
  features: WasmFeatures,
  host: WorkerHost,
): Result<number> {
  const canShare = features.threads && host !== noHost;
  const most = canShare ? Math.min(mostThreads, host.parallelism) : 1;
  if (wanted === undefined) return ok(most);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > mostThreads) {
    const help = `give an integer from 1 to ${mostThreads}`;
    return fail(diagnostic("CLI001", `threads is ${JSON.stringify(wanted)}`, { help }));
  }
  if (wanted === 1 || canShare) return ok(wanted);
  return fail(
    diagnostic("RUN045", `${wanted} threads need memory that this page must not share`, {
      help: "serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp, or leave threads out",
    }),
  );
}

/** The program for WebAssembly that this engine can run, the fused one if it may. */
function chooseProgram(names: readonly string[], features: WasmFeatures): Result<string> {
  const wasm = features.simd ? (features.relaxedFma ? ["wasm-relaxed", "wasm"] : ["wasm"]) : [];
  const name = wasm.find((n) => names.includes(n) && targets.has(n));
  if (name !== undefined) return ok(name);
  const why = features.simd
    ? `the artifact has programs for ${names.join(", ")} only`
    : "this engine has no SIMD in WebAssembly";
  return fail(
    diagnostic("RUN046", why, {
      help: features.simd
        ? "optimize the model with --target wasm"
        : "use a browser with WebAssembly SIMD (all current ones have it)",
    }),
  );
}
