/** Planning for programs: what the commands `detect`, `targets` and `plan …` do, as functions. */
import type { Accelerator } from "../../plan/dispatch/fleet.ts";
import {
  type Arrival,
  type DispatchReport,
  simulateDispatch as playDispatch,
} from "../../plan/dispatch/simulate.ts";
import { type Strategy, type StrategyName, strategyNamed } from "../../plan/dispatch/strategies.ts";
import { detectMachine } from "../../runtime/detect/detect-machine.ts";
import type { MachineReport } from "../../runtime/detect/machine-report.ts";
import { nodeProbe } from "../../runtime/detect/node-probe.ts";
import type { Result } from "../../support/diagnostic.ts";
import { unwrap } from "./wavetile-error.ts";

export { type DeviceOverrides, deviceOfTarget, type PlanDevice } from "../../plan/device.ts";
export { Dispatcher } from "../../plan/dispatch/dispatcher.ts";
export type { Accelerator, Job } from "../../plan/dispatch/fleet.ts";
export { type Assignment, type Move, suggestMoves } from "../../plan/dispatch/migrate.ts";
export { type FleetState, parseFleetState } from "../../plan/dispatch/read-state.ts";
export type { Arrival, DispatchReport } from "../../plan/dispatch/simulate.ts";
export { type Strategy, type StrategyName, strategyNames } from "../../plan/dispatch/strategies.ts";
export { configureKernel, type KernelChoice } from "../../plan/kernels/configure.ts";
export type { KernelProblem } from "../../plan/kernels/problem.ts";
export { type PlacePlan, place } from "../../plan/place/place.ts";
export type { PlaceProblem } from "../../plan/place/problem.ts";
export { parsePlaceProblem } from "../../plan/place/read-problem.ts";
export { formatNamed, weightFormats } from "../../plan/quantize/formats.ts";
export { type ModelDescription, modelOfSize } from "../../plan/quantize/model.ts";
export {
  type QuantizePlan,
  type QuantizeRequest,
  recommendFormat,
} from "../../plan/quantize/recommend.ts";
export { describeModel } from "./describe-model.ts";
export { findDevices } from "./find-devices.ts";
export { findMachine } from "./find-machine.ts";

/** A dispatch strategy at its beginning; a name that is none is thrown (PLN008). */
export function makeStrategy(name: StrategyName): Strategy {
  return unwrap(strategyNamed(name));
}

/** Arrivals, in order of time, played through a strategy. */
export function simulateDispatch(
  devices: readonly Accelerator[],
  arrivals: readonly Arrival[],
  name: StrategyName,
): DispatchReport {
  return playDispatch(devices, arrivals, makeStrategy(name).name);
}

/** The processors, memory and GPUs of this machine. */
export async function detect(): Promise<Result<MachineReport>> {
  return detectMachine(nodeProbe);
}
