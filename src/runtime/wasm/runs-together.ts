/**
 * Programs that take turns on one pool of threads, as the stages of a model do: whether a run of all of them
 * is made on the calling thread alone is one decision (thread-choice.ts). A stage takes too little time, and
 * comes in too many sizes, to be decided by itself.
 */
import type { ParameterValues } from "../model-session.ts";
import { type Outcome, ThreadChoices } from "../thread-choice.ts";
import type { WorkerPool } from "./worker-pool.ts";

const clock = (): number => performance.now();

export class RunsTogether {
  readonly #choices: ThreadChoices;
  /** Of runs on workers: they start and end by messages. */
  readonly #choicesBeside: ThreadChoices;

  constructor({ threads, use }: WorkerPool) {
    this.#choices = new ThreadChoices(threads, use);
    this.#choicesBeside = new ThreadChoices(threads, use);
  }

  /** @param parameters what tells runs of one kind from others, as the extents of their inputs */
  run<T extends Outcome>(parameters: ParameterValues, make: () => T): T {
    return this.#choices.runTogether(parameters, clock, make);
  }

  runAsync<T extends Outcome>(parameters: ParameterValues, make: () => Promise<T>): Promise<T> {
    return this.#choicesBeside.runTogetherAsync(parameters, clock, make);
  }
}
