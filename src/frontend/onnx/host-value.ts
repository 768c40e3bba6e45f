/**
 * Values of ONNX that are more than one tensor: strings, sequences, and an optional that holds nothing
 * (one that holds something is that thing). The compiler knows tensors only, so such values live at
 * import: a sequence is a list of known length whose elements may be run-time tensors.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { Shape } from "../../semantics/shape.ts";
import type { Tensor } from "../../semantics/tensor.ts";

/** A tensor of strings. */
export interface StringTensor {
  readonly kind: "strings";
  readonly shape: Shape;
  readonly elements: readonly string[];
}

export interface SequenceOf<T> {
  readonly kind: "sequence";
  readonly elements: readonly T[];
}

/** An optional without a value. */
export interface NoValue {
  readonly kind: "none";
}

/** A whole value, as files of test data hold it and runs return it. */
export type HostValue = Tensor | StringTensor | SequenceOf<HostValue> | NoValue;

/** A tensor that is given when the model runs. */
export interface RunTimeTensor {
  readonly kind: "runtime";
  readonly dtype: DType;
  readonly shape: Shape;
}

/** What an import may be told of an input: what is known is fixed, the rest stays an input. */
export type InputValue = Tensor | StringTensor | SequenceOf<InputValue> | NoValue | RunTimeTensor;

/** How an output of the model is made of outputs of the graph, by their position. */
export type OutputForm =
  | { readonly kind: "output"; readonly index: number }
  | StringTensor
  | SequenceOf<OutputForm>
  | NoValue;

export function isTensor(value: InputValue | HostValue): value is Tensor {
  return !("kind" in value);
}

/** The value of an output from the graph's outputs. */
export function assembleOutput(form: OutputForm, outputs: readonly Tensor[]): HostValue {
  if (form.kind === "output") return outputs[form.index]!;
  if (form.kind !== "sequence") return form;
  return { kind: "sequence", elements: form.elements.map((e) => assembleOutput(e, outputs)) };
}
