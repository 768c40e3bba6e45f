/**
 * Which target a wish stands for: where a model is compiled, and of the programs of an artifact. What runs in
 * the place of what was asked for, or of what the artifact was made for, is said with its reason.
 */
import type { Container } from "../../artifact/container.ts";
import {
  nativeTargets,
  type RunnableTargets,
  runnableTargets,
} from "../../runtime/create-session.ts";
import { type CudaFeatures, probeCuda } from "../../runtime/cuda/features.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";

/** Names that a wish stands for where a model is compiled, best first. */
function namesFor(wanted: string, runnable = runnableTargets().names): readonly string[] {
  if (wanted === "cpu") return runnable;
  if (wanted !== "auto") return [wanted];
  // Machine code is compiled with a WebAssembly program beside it: twice the work, for one run perhaps.
  return runnable.filter((name) => targets.get(name)?.emitter === "wasm");
}

/** What of an artifact's programs may run on this machine. */
interface Here extends RunnableTargets {
  /** The same of its GPU; absent where the artifact has no program for one, or none was wished for. */
  readonly gpu?: Result<Pick<CudaFeatures, "device" | "targets">>;
}

const emitterOf = (name: string): Target["emitter"] | undefined => targets.get(name)?.emitter;

/**
 * Of an artifact's programs: `auto` is one of the GPU here, if the artifact was made for it, or the first that
 * runs here.
 */
function programOf(
  targetNames: readonly string[],
  wanted: string,
  { names, gpu }: Here,
): string | undefined {
  const isThere = (name: string): boolean => targetNames.includes(name);
  const onGpu = gpu?.ok ? gpu.value.targets : [];
  if (wanted === "auto") return onGpu.find(isThere) ?? names.find(isThere);
  return (wanted === "cuda" ? onGpu : namesFor(wanted, names)).find(isThere);
}

/** Engines are asked for no more than the answer needs: the first of GPU, machine code, WebAssembly decides. */
function runnableFor(
  { targetNames }: Pick<Container, "targetNames">,
  wanted: string,
  gpuOrdinal: number,
): Here {
  const isForGpu = wanted === "auto" && targetNames.some((n) => emitterOf(n) === "ptx");
  const gpu = isForGpu || wanted === "cuda" ? { gpu: probeCuda(gpuOrdinal) } : {};
  if (gpu.gpu?.ok && gpu.gpu.value.targets.some((n) => targetNames.includes(n)))
    return { names: [], reasons: [], ...gpu };
  const native = wanted === "auto" || wanted === "cpu" ? nativeTargets() : [];
  const isThere = native.some((name) => targetNames.includes(name) && targets.has(name));
  return { ...(isThere ? { names: native, reasons: [] } : runnableTargets()), ...gpu };
}

/** As chooseTarget, on this machine and its GPU of a number. */
export function chooseTargetHere(
  container: Pick<Container, "targetNames">,
  wanted: string,
  gpuOrdinal = 0,
): Result<Target> {
  return chooseTarget(container, wanted, runnableFor(container, wanted, gpuOrdinal));
}

/** The target of a wish that the artifact has programs for, of those that run `here`. */
export function chooseTarget(
  { targetNames }: Pick<Container, "targetNames">,
  wanted: string,
  here: Here,
): Result<Target> {
  if (wanted === "cuda" && here.gpu && !here.gpu.ok) return here.gpu;
  const name = programOf(targetNames, wanted, here);
  if (name === undefined) return fail(noProgram(targetNames, wanted, here));
  const target = targets.get(name);
  if (target) {
    const warnings = [
      ...insteadOfGpuCode(targetNames, wanted, target, here),
      ...insteadOfMachineCode(targetNames, wanted, target, here),
    ];
    return ok(target, warnings);
  }
  return fail(
    diagnostic("ART006", `target ${name} is unknown here`, {
      help: "a newer version of Wavetile may know it; optimize the model again",
    }),
  );
}

/** Why there is no GPU comes first where the artifact was made for one alone. */
function noProgram(targetNames: readonly string[], wanted: string, { gpu }: Here): Diagnostic {
  if (gpu && !gpu.ok) return gpu.diagnostics[0]!;
  const asked = wanted === "auto" ? "that runs here" : `for target ${spelled(wanted)}`;
  const named = targets.has(wanted) ? wanted : "cpu";
  return diagnostic("CLI002", `the artifact has no program ${asked}`, {
    help: `it has ${targetNames.join(", ")}; programs are made from the model: wavetile optimize MODEL.onnx --target ${named} -o FILE.wt`,
  });
}

/** What a wish stands for, in words. */
function spelled(wanted: string): string {
  return namesFor(wanted).join(" or ") || wanted;
}

/** Emitters that a whole model can be compiled with; the other targets are for planning. */
const compiledEmitters: ReadonlySet<Target["emitter"]> = new Set(["wasm", "x64", "ptx"] as const);

/** Why what `cpu` stands for is no machine code here. */
function insteadOfNative(asked: string, found: Target): readonly Diagnostic[] {
  if (asked !== "cpu" || found.emitter === "x64") return [];
  return asWarnings(runnableTargets().reasons);
}

/** Why what runs of an artifact that was made for a GPU is a program for a processor. */
function insteadOfGpuCode(
  targetNames: readonly string[],
  wanted: string,
  found: Target,
  { gpu }: Here,
): readonly Diagnostic[] {
  if (wanted !== "auto" || !gpu || found.emitter === "ptx") return [];
  const help = `its program for ${found.name} runs instead`;
  if (!gpu.ok) return asWarnings(gpu.diagnostics).map((d) => ({ ...d, help }));
  const names = targetNames.filter((n) => emitterOf(n) === "ptx").join(", ");
  const message = `the artifact's GPU code is for ${names}, the GPU here is ${gpu.value.device}`;
  return [
    diagnostic("RUN040", message, {
      severity: "warning",
      help: `${help}; optimize the model for ${gpu.value.targets[0]!}`,
    }),
  ];
}

/** Why what runs of an artifact is no machine code, where that was asked for or the artifact has some. */
function insteadOfMachineCode(
  targetNames: readonly string[],
  wanted: string,
  found: Target,
  { reasons }: RunnableTargets,
): readonly Diagnostic[] {
  if ((wanted !== "auto" && wanted !== "cpu") || found.emitter !== "wasm") return [];
  const native = targetNames.filter((n) => emitterOf(n) === "x64");
  if (wanted === "auto" && native.length === 0) return [];
  if (reasons.length > 0) return asWarnings(reasons);
  const message =
    native.length === 0
      ? "the artifact has no machine code"
      : `the artifact's machine code is for ${native.join(", ")}, which this machine does not run`;
  const help = `its program for ${found.name} runs instead; optimize the model on this machine with --target cpu`;
  return [diagnostic("RUN040", message, { severity: "warning", help })];
}

function asWarnings(reasons: readonly Diagnostic[]): readonly Diagnostic[] {
  return reasons.map((d) => ({ ...d, severity: "warning" as const }));
}

/**
 * The target that a model is compiled for; `auto` is WebAssembly, `cpu` machine code where it runs.
 * @param gpuOrdinal of the device that `cuda` means
 */
export function findTarget(name: string, gpuOrdinal = 0): Result<Target> {
  const onGpu = name === "cuda" ? probeCuda(gpuOrdinal) : undefined;
  if (onGpu && !onGpu.ok) return onGpu;
  const target = targets.get(onGpu?.value.targets[0] ?? namesFor(name)[0] ?? name);
  if (target && compiledEmitters.has(target.emitter)) {
    return ok(target, insteadOfNative(name, target));
  }
  const compiled = [...targets.values()].filter((t) => compiledEmitters.has(t.emitter));
  const found = target ? "is known for planning, it has no program" : "is unknown";
  return fail(
    diagnostic("CLI002", `target ${JSON.stringify(name)} ${found}`, {
      at: "--target",
      help: `use auto or one of ${compiled.map((t) => t.name).join(", ")}`,
    }),
  );
}
