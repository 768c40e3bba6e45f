/**
 * A reporter of vitest for the campaign of planted faults: as JSON into the file OUTCOME_FILE, how many tests failed
 * and whether a worker ended among tests that it had begun (out of memory, a crash), which no reporter of vitest's own
 * tells from tests that never came to run.
 */
import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  readonly failedTests: number;
  readonly crashed: boolean;
}

export default class OutcomeReporter implements Reporter {
  readonly #collected = new Set<string>();
  #failedTests = 0;

  onInit(): void {
    this.#write(false);
  }

  onTestModuleCollected(module: TestModule): void {
    const hasTests = !module.children.allTests().next().done;
    if (hasTests && module.errors().length === 0) this.#collected.add(module.moduleId);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    for (const module of modules)
      this.#failedTests += [...module.children.allTests("failed")].length;
    const begun = modules.filter((m) => this.#collected.has(m.moduleId));
    this.#write(unhandled.length > 0 && begun.some((m) => m.state() === "pending"));
  }

  #write(crashed: boolean): void {
    const outcome: Outcome = { failedTests: this.#failedTests, crashed };
    writeFileSync(process.env.OUTCOME_FILE!, JSON.stringify(outcome));
  }
}
