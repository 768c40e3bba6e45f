/**
 * Files of plans: JSON, read by a table of rules, names that stand once. What is wrong is a diagnostic
 * that names the key, and the page that shows a right file.
 */
import { diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { FileReader, type Rules } from "../target/file-reader.ts";

/** Refusals of one kind of file. */
export class PlanFile {
  readonly #help: string;

  /** @param section of docs/planning.md that shows such a file */
  constructor(section: string) {
    this.#help = `docs/planning.md, ${section}, shows one`;
  }

  refuse(message: string, at?: string): Result<never> {
    const help = this.#help;
    return fail(diagnostic("PLN007", message, { help, ...(at !== undefined && { at }) }));
  }

  parse<T>(json: string, rules: Rules<T>): Result<T> {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.refuse(`a plan file is JSON, and this is not: ${error.message}`);
    }
    const reader = new FileReader({ key: "PLN007", number: "PLN001" });
    const file = reader.record(value, "", rules);
    return file ? ok(file) : fail(...reader.faults);
  }

  /** Each list's names stand once. */
  checkNames(...lists: readonly (readonly { readonly name: string }[])[]): Result<void> {
    for (const list of lists) {
      const seen = new Set<string>();
      for (const { name } of list) {
        if (seen.has(name)) {
          return this.refuse(`the name ${JSON.stringify(name)} stands twice`, name);
        }
        seen.add(name);
      }
    }
    return ok(undefined);
  }
}
