/**
 * Programs on the GPU of this machine. A kernel that does not end is ended with the process, and one that
 * reads where it may not takes the context along, which no call of the driver mends: the process ends then
 * too, and the driver takes all of its memory back. Both are what a child is for.
 */
import type { Program } from "../../program/program.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { type CudaInstance, createCudaInstance } from "../cuda/cuda-instance.ts";
import type { CudaDevice } from "../cuda/device.ts";
import { guardCuda } from "../cuda/driver.ts";
import { probeCuda } from "../cuda/features.ts";
import type { RotatingRuns } from "../cuda/rotating-runs.ts";
import type { LoadedProgram } from "./executor.ts";

/**
 * Keeps the device's context between programs: the driver destroys one that nobody holds, and would make it anew for
 * each. It ends with the process.
 */
let held: CudaDevice | undefined;

export function cudaExecutor(program: Program, target: Target): Result<LoadedProgram> {
  const features = probeCuda();
  if (!features.ok) return features;
  const { targets, open, store } = features.value;
  if (!targets.includes(target.name)) {
    const help = `on this GPU run ${targets.join(", ")}`;
    return fail(diagnostic("RUN040", `this GPU cannot run target ${target.name}`, { help }));
  }
  const device = open();
  if (!device.ok) return device;
  if (!held) {
    const kept = open();
    if (kept.ok) held = kept.value;
  }
  const made = createCudaInstance(program, target, { device: device.value, store });
  if (!made.ok) return made;
  return ok(executing(made.value));
}

function executing(instance: CudaInstance): LoadedProgram {
  const { memory } = instance;
  let runs: RotatingRuns | undefined;
  const end = (): void => {
    runs?.close();
    runs = undefined;
  };
  return {
    write: (buffer, bytes) => memory.write(buffer, bytes),
    fill: (buffer, value) => memory.fill(buffer, value),
    read: (buffer, count) => memory.read(buffer, count),
    run: (parameters) => intact(instance, instance.runSync(parameters)),
    timed: (parameters) => {
      end();
      const made = instance.rotate(parameters);
      if (!made.ok) return made;
      const rotating = made.value;
      runs = rotating;
      const time = (repeats: number): number => rotating.time(repeats);
      const first = intact(
        instance,
        guardCuda(() => time(1)),
      );
      return first.ok ? ok(time) : first;
    },
    unload: () => {
      end();
      instance.dispose();
    },
  };
}

/** The outcome, unless the context is lost: nothing runs in this process then. */
function intact<T>(instance: CudaInstance, outcome: Result<T>): Result<T> {
  if (outcome.ok || !instance.device.isLost()) return outcome;
  throw new Error(`the GPU's context is lost: ${outcome.diagnostics[0]!.message}`);
}
