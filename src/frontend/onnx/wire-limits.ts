/**
 * What a model file may come to when it is decoded. Two bytes can encode an empty message that takes
 * hundreds of bytes, so a bound on the file alone does not help: everything is charged with about what
 * it takes in memory before it is made.
 */
import { reject } from "../../support/diagnostic.ts";

export interface ModelLimits {
  /** Of the model file; protobuf itself stops at 2 GiB. */
  readonly bytes: number;
  /** Bytes of memory that messages, texts and lists take beside those of the file; a node about 2 KiB. */
  readonly memory: number;
  /** Numbers in one list of an attribute. */
  readonly items: number;
  /** Nesting of messages: four levels for each level of subgraphs. */
  readonly depth: number;
}

export const defaultModelLimits: ModelLimits = {
  bytes: 2 ** 31,
  memory: 2 ** 29,
  items: 2 ** 24,
  depth: 96,
};

/** Adds up what is decoded; rejects (ONX002) what is beyond its limits. */
export class WireMeter {
  readonly #limits: ModelLimits;
  #memory = 0;

  constructor(limits: ModelLimits) {
    this.#limits = limits;
  }

  checkFile(bytes: number): void {
    if (bytes > this.#limits.bytes) exceed(`${bytes} bytes`, this.#limits.bytes, cures.bytes);
  }

  checkDepth(depth: number): void {
    if (depth > this.#limits.depth)
      exceed(`${depth} nested messages`, this.#limits.depth, cures.depth);
  }

  checkItems(count: number, field: string): void {
    const { items } = this.#limits;
    if (count <= items) return;
    exceed(`${count} list items in "${field}" of an attribute`, items, cures.items);
  }

  /** About `bytes` of memory for something new. */
  charge(bytes: number): void {
    this.#memory += bytes;
    if (this.#memory <= this.#limits.memory) return;
    const { memory } = this.#limits;
    exceed(`more than ${memory} bytes of nodes, texts and lists`, memory, cures.memory);
  }
}

const cures = {
  bytes: "store large tensors as external data",
  depth: "flatten branches and functions: a model nested this deeply is likely damaged",
  items: "store the numbers as a tensor where the operator takes one, or split the model",
  memory: "store large tensors as raw_data or external data, or split the model",
} as const;

function exceed(what: string, allowed: number, help: string): never {
  reject("ONX002", `the model has ${what}, at most ${allowed} are read`, { help });
}
