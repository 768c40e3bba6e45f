/** Planning for programs: what the commands `detect`, `targets` and `plan …` do, as functions. */
import { detectMachine } from "../../runtime/detect/detect-machine.ts";
import type { MachineReport } from "../../runtime/detect/machine-report.ts";
import { nodeProbe } from "../../runtime/detect/node-probe.ts";
import type { Result } from "../../support/diagnostic.ts";

export { type DeviceOverrides, deviceOfTarget, type PlanDevice } from "../../plan/device.ts";
export { Dispatcher } from "../../plan/dispatch/dispatcher.ts";
export type { Accelerator, Job } from "../../plan/dispatch/fleet.ts";
export { type Assignment, type Move, suggestMoves } from "../../plan/dispatch/migrate.ts";
export { type FleetState, parseFleetState } from "../../plan/dispatch/read-state.ts";
export {
  type Arrival,
  type DispatchReport,
  simulateDispatch,
} from "../../plan/dispatch/simulate.ts";
export { makeStrategy, type StrategyName, strategyNames } from "../../plan/dispatch/strategies.ts";
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

/** The processors, memory and GPUs of this machine. */
export async function detect(): Promise<Result<MachineReport>> {
  return detectMachine(nodeProbe);
}
