/**
 * Memory of tensors that one stage of a run makes and later ones take: when the last of them has run, the next tensor
 * of that size is made in it. New memory for each has to be cleared, is far from the processor, and there may be
 * a hundred of one size in a run, as where experts add to one sum. Lives as long as the run.
 */
import type { DType } from "../../semantics/dtype.ts";
import { elementCount, type Shape } from "../../semantics/shape.ts";
import { makeTensor, type Tensor, type TensorData } from "../../semantics/tensor.ts";

export class PassingTensors {
  /** Memory that nobody names, by type and number of elements. */
  readonly #free = new Map<DType, Map<number, TensorData[]>>();
  /** Of memory that was made here: under how many names a run knows it. */
  readonly #names = new Map<ArrayBufferLike, number>();

  /** A tensor that holds anything. */
  readonly make = (dtype: DType, shape: Shape): Tensor => {
    const data = this.#free.get(dtype)?.get(elementCount(shape))?.pop();
    if (data) return { dtype, shape, data } as Tensor;
    const tensor = makeTensor(dtype, shape);
    this.#names.set(tensor.data.buffer, 0);
    return tensor;
  };

  /** The tensor has one name more; other names may stand for it already, or for a part of its memory. */
  name({ data }: Tensor): void {
    const names = this.#names.get(data.buffer);
    if (names !== undefined) this.#names.set(data.buffer, names + 1);
  }

  /** The tensor has one name less; memory that was made here is taken back with the last one. */
  forget({ dtype, shape, data }: Tensor): void {
    const names = this.#names.get(data.buffer);
    if (names === undefined) return;
    this.#names.set(data.buffer, names - 1);
    if (names > 1) return;
    const ofType = this.#free.get(dtype) ?? new Map<number, TensorData[]>();
    this.#free.set(dtype, ofType);
    const count = elementCount(shape);
    const known = ofType.get(count);
    if (known) known.push(data);
    else ofType.set(count, [data]);
  }
}
