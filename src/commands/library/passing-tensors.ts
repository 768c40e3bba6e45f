/**
 * Memory of tensors that one stage of a run makes and later ones take: when the last of them has run, the next tensor
 * of that size is made in it. New memory for each has to be cleared, is far from the processor, and there may be
 * a hundred of one size in a run, as where experts add to one sum. Lives as long as the run.
 */
import type { DType } from "../../semantics/dtype.ts";
import { elementCount, type Shape } from "../../semantics/shape.ts";
import { makeTensor, type Tensor, type TensorData } from "../../semantics/tensor.ts";

export class PassingTensors {
  readonly #free = new Map<string, TensorData[]>();
  readonly #made = new Set<ArrayBufferLike>();

  /** A tensor that holds anything. */
  readonly make = (dtype: DType, shape: Shape): Tensor => {
    const data = this.#free.get(keyOf(dtype, elementCount(shape)))?.pop();
    if (data) return { dtype, shape, data } as Tensor;
    const tensor = makeTensor(dtype, shape);
    this.#made.add(tensor.data.buffer);
    return tensor;
  };

  /**
   * Takes back the memory of a tensor that was made here, of which nobody has the name any more.
   * @param alive what may still be read: a tensor under another name, or a part of it, keeps the memory
   */
  giveBack({ dtype, shape, data }: Tensor, alive: Iterable<Tensor>): void {
    if (!this.#made.has(data.buffer)) return;
    for (const other of alive) if (other.data.buffer === data.buffer) return;
    const key = keyOf(dtype, elementCount(shape));
    const known = this.#free.get(key);
    if (known) known.push(data);
    else this.#free.set(key, [data]);
  }
}

function keyOf(dtype: DType, count: number): string {
  return `${dtype} ${count}`;
}
