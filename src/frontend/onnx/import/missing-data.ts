/** Data files that cannot be read: one diagnostic for each, however many tensors need it. */
import { type Diagnostic, diagnostic } from "../../../support/diagnostic.ts";

/** Tensors that a note names. */
const mostNamed = 3;

export class MissingData {
  readonly #diagnostics: Diagnostic[];
  readonly #files = new Map<string, { told: Diagnostic[]; readonly tensors: string[] }>();

  /** Diagnostics are added to, and replaced in, `diagnostics`. */
  constructor(diagnostics: Diagnostic[]) {
    this.#diagnostics = diagnostics;
  }

  /** A tensor (`at`) whose data are in a file that answered with `why`; the first answer is told. */
  add(location: string, at: string, why: readonly Diagnostic[]): void {
    const known = this.#files.get(location);
    if (!known) {
      const told = why.map((d) => noted(d, [at]));
      this.#files.set(location, { told, tensors: [at] });
      this.#diagnostics.push(...told);
      return;
    }
    known.tensors.push(at);
    known.told = known.told.map((old) => {
      const place = this.#diagnostics.indexOf(old);
      const now = noted({ ...old, notes: old.notes.slice(0, -1) }, known.tensors);
      if (place >= 0) this.#diagnostics[place] = now;
      return now;
    });
  }
}

/** A diagnostic with a note of the tensors that are read from the file it is about. */
export function noted(d: Diagnostic, tensors: readonly string[]): Diagnostic {
  const [only] = tensors;
  const named = tensors.slice(0, mostNamed).join(", ") + (tensors.length > mostNamed ? ", …" : "");
  const note =
    tensors.length === 1
      ? `${only} is read from it`
      : `${tensors.length} tensors are read from it: ${named}`;
  return { ...d, notes: [...d.notes, note] };
}

/** Of external data where only the bytes of the model are known. */
export function unreadable(location: string): Diagnostic {
  return diagnostic(
    "ONX016",
    `the weights are in ${JSON.stringify(location)}, which cannot be read`,
    { help: "open the model by its path, so that the files beside it can be read" },
  );
}
