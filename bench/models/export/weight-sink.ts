/** Where an exported model's weights go: the file beside it, in the order in which they are made. */
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { TensorProto } from "../../../src/frontend/onnx/generated/onnx_pb.ts";
import {
  writeExternalTensorProto,
  writeTensorProto,
} from "../../../src/frontend/onnx/tensor-proto.ts";
import { type Tensor, tensorBytes } from "../../../src/semantics/tensor.ts";

/** Appends bytes to the file of external data and says where they begin. */
export interface WeightSink {
  readonly location: string;
  append(bytes: Uint8Array): number;
}

/** Smaller tensors stay in the model file, as onnx.save_model leaves them. */
const leastExternalBytes = 1024;

/** What stands in the model file for a weight. */
export function storeTensor(sink: WeightSink, name: string, tensor: Tensor): TensorProto {
  const bytes = tensorBytes(tensor);
  if (bytes.length < leastExternalBytes) return writeTensorProto(name, tensor);
  const { location } = sink;
  const range = { location, offset: sink.append(bytes), length: bytes.length };
  return writeExternalTensorProto(name, tensor, range);
}

export class FileSink implements WeightSink {
  readonly location: string;
  readonly #file: number;
  #end = 0;

  constructor(folder: string, location: string) {
    this.location = location;
    this.#file = openSync(join(folder, location), "w");
  }

  append(bytes: Uint8Array): number {
    const start = this.#end;
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(this.#file, bytes, done, bytes.length - done, start + done);
    }
    this.#end += bytes.length;
    return start;
  }

  close(): void {
    closeSync(this.#file);
  }
}
