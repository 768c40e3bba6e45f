/**
 * Constants that are too large to stand in a graph, by the key under which they join the model's
 * weights. Shared by the builders of a graph and its subgraphs, so that keys are unique over all.
 */
import type { Tensor } from "../semantics/tensor.ts";

export class StoredConstants {
  readonly tensors = new Map<string, Tensor>();
  readonly #reserved = new Set<string>();

  /** Keys of weights that exist already. */
  reserve(key: string): void {
    this.#reserved.add(key);
  }

  /** Keeps the tensor and gives its key, which starts with `wanted`. */
  add(wanted: string, tensor: Tensor): string {
    let key = wanted;
    for (let i = 1; this.tensors.has(key) || this.#reserved.has(key); i++) key = `${wanted}#${i}`;
    this.tensors.set(key, tensor);
    return key;
  }
}
