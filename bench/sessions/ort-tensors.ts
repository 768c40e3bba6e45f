/**
 * Tensors and tensor descriptions between our Session interface and onnxruntime's two JavaScript
 * packages, which share their types through onnxruntime-common.
 */
import type { InferenceSession, Tensor as OrtTensor, TensorConstructor } from "onnxruntime-node";
import { invariant } from "../../src/support/invariant.ts";
import type { ElementType, Tensor, TensorInfo, Tensors } from "./session.ts";

const elementTypes: readonly string[] = [
  "float32",
  "float64",
  "int32",
  "int64",
  "uint8",
  "int8",
  "bool",
] satisfies ElementType[];

function elementType(type: string, name: string): ElementType {
  invariant(elementTypes.includes(type), () => `${name}: element type ${type} is not carried`);
  return type as ElementType;
}

export function toOrtTensors(
  feeds: Tensors,
  construct: TensorConstructor,
): Record<string, OrtTensor> {
  return Object.fromEntries(
    Object.entries(feeds).map(([name, t]) => [name, new construct(t.type, t.data, t.dims)]),
  );
}

export function fromOrtTensors(results: InferenceSession.OnnxValueMapType): Tensors {
  return Object.fromEntries(
    Object.entries(results).map(([name, value]) => {
      const t = value as OrtTensor;
      const type = elementType(t.type, name);
      return [name, { type, dims: t.dims, data: t.data } as Tensor];
    }),
  );
}

export function infosOf(metadata: readonly InferenceSession.ValueMetadata[]): TensorInfo[] {
  return metadata.map((value) => {
    invariant(value.isTensor, () => `${value.name} is no tensor`);
    return { name: value.name, type: elementType(value.type, value.name), dims: value.shape };
  });
}
