/**
 * What all graphs of one exported model share: names, which ONNX wants unique across subgraphs, and the
 * initializers. Initializers stand in the outermost graph, where every subgraph sees them; their elements
 * are read when the file is written.
 */
import type { TensorType } from "../../../graph/graph.ts";
import type { IndexRanges } from "../../../semantics/index-range.ts";
import { type Tensor, tensorBytes } from "../../../semantics/tensor.ts";

export interface Initializer {
  readonly name: string;
  readonly type: TensorType;
  readonly read: () => Tensor;
}

export class ExportSpace {
  readonly ranges: IndexRanges;
  readonly initializers: Initializer[] = [];
  readonly #taken: Set<string>;
  readonly #next = new Map<string, number>();
  readonly #constants = new Map<string, string>();

  /** @param reserved names of the model's inputs and outputs */
  constructor(ranges: IndexRanges, reserved: Iterable<string>) {
    this.ranges = ranges;
    this.#taken = new Set(reserved);
  }

  /** `wanted`, with a number where it is taken. */
  name(wanted: string): string {
    let name = wanted;
    let count = this.#next.get(wanted) ?? 0;
    while (this.#taken.has(name)) name = `${wanted}_${++count}`;
    this.#next.set(wanted, count);
    this.#taken.add(name);
    return name;
  }

  weight(wanted: string, type: TensorType, read: () => Tensor): string {
    const name = this.name(wanted);
    this.initializers.push({ name, type, read });
    return name;
  }

  /** A small constant; equal ones are one initializer. */
  constant(type: TensorType, tensor: Tensor): string {
    const key = `${tensor.dtype}[${tensor.shape}] ${tensorBytes(tensor).join(" ")}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = this.weight("constant", type, () => tensor);
    this.#constants.set(key, name);
    return name;
  }
}
