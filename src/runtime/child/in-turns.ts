/** One child for several who ask at once: each request waits for those before it. */
import type { CandidateRunner, ChildOutcome } from "./child-runner.ts";
import type { ChildRequest } from "./protocol.ts";

export class InTurns implements CandidateRunner {
  readonly #runner: CandidateRunner;
  #last: Promise<unknown> = Promise.resolve();

  constructor(runner: CandidateRunner) {
    this.#runner = runner;
  }

  get generation(): number {
    return this.#runner.generation;
  }

  request(request: ChildRequest, deadlineMs: number): Promise<ChildOutcome> {
    const answer = this.#last.then(() => this.#runner.request(request, deadlineMs));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  dispose(): Promise<void> {
    return this.#runner.dispose();
  }
}
