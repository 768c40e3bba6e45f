/**
 * The door for browsers: what `import … from "wavetile/web"` gives. An artifact that `wavetile optimize`
 * wrote for WebAssembly is proved, emitted and run; models are not compiled here. Nothing in this bundle
 * needs Node.
 */
export type { Tensors } from "../commands/library/loaded-model.ts";
export type { Port } from "../commands/library/ports.ts";
export { tensor } from "../commands/library/tensor.ts";
export { WavetileError } from "../commands/library/wavetile-error.ts";
export type { DType } from "../semantics/dtype.ts";
export type { Tensor, TensorData } from "../semantics/tensor.ts";
export type { Diagnostic } from "../support/diagnostic.ts";
export { type ArtifactModel, type ArtifactOptions, loadArtifact } from "./load-artifact.ts";
