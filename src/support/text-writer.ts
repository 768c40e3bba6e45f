/** An indenting line writer for the text forms (graph, nest, schedule, program). */
export class TextWriter {
  readonly #lines: string[] = [];
  #depth = 0;

  line(text: string): this {
    this.#lines.push(text === "" ? "" : "  ".repeat(this.#depth) + text);
    return this;
  }

  /** Writes `body`'s lines one level deeper. */
  indented(body: () => void): this {
    this.#depth++;
    body();
    this.#depth--;
    return this;
  }

  toString(): string {
    return this.#lines.length === 0 ? "" : `${this.#lines.join("\n")}\n`;
  }
}
