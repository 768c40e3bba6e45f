/** The public door: what `import … from "wavetile"` gives. */
export {
  type CalibrateOptions,
  type CalibrationReport,
  calibrate,
} from "./commands/library/calibrate.ts";
export {
  InferenceSession,
  type OnnxFeeds,
  type OnnxTensor,
} from "./commands/library/inference-session.ts";
export type { StateLinks } from "./commands/library/link-states.ts";
export { type LoadOptions, load, tryLoad } from "./commands/library/load.ts";
export {
  LoadedModel,
  type RunOptions,
  type Tensors,
} from "./commands/library/loaded-model.ts";
export {
  type Accelerator,
  type Arrival,
  type Assignment,
  configureKernel,
  type DeviceOverrides,
  Dispatcher,
  type DispatchReport,
  describeModel,
  detect,
  deviceOfTarget,
  type FleetState,
  findDevices,
  findMachine,
  formatNamed,
  type Job,
  type KernelChoice,
  type KernelProblem,
  type ModelDescription,
  type Move,
  makeStrategy,
  modelOfSize,
  type PlacePlan,
  type PlaceProblem,
  type PlanDevice,
  parseFleetState,
  parsePlaceProblem,
  place,
  type QuantizePlan,
  type QuantizeRequest,
  recommendFormat,
  type Strategy,
  type StrategyName,
  simulateDispatch,
  strategyNames,
  suggestMoves,
  weightFormats,
} from "./commands/library/planning.ts";
export type { Port } from "./commands/library/ports.ts";
export { tensor } from "./commands/library/tensor.ts";
export { WavetileError } from "./commands/library/wavetile-error.ts";
export { version } from "./commands/version.ts";
export type { DType } from "./semantics/dtype.ts";
export type { Tensor, TensorData } from "./semantics/tensor.ts";
export type { Diagnostic, Result } from "./support/diagnostic.ts";
export { targets } from "./target/index.ts";
export { parseTarget, readTarget } from "./target/read-target.ts";
export type { Target } from "./target/target.ts";
