/**
 * Opens models for the demo. With a candidate runtime every model is opened in both runtimes and
 * each run is compared; the reference alone is used as it is. Fetch problems end the demo with their
 * diagnostics.
 */
import { fetchModel } from "../bench/models/fetch.ts";
import { hintsFor } from "../bench/models/random-inputs.ts";
import { roundingOf } from "../bench/models/rounding.ts";
import { findModel, type ModelRow } from "../bench/models/table.ts";
import type { RegionRow, Runtime, Session } from "../bench/sessions/session.ts";
import { DiagnosticError } from "../src/support/diagnostic.ts";
import { invariant } from "../src/support/invariant.ts";
import { type Agreement, type PairedSession, pairSessions } from "./agreement.ts";

/** Where the time of one model went. */
export interface ModelRegions {
  readonly model: string;
  readonly regions: readonly RegionRow[];
}

export class Stage {
  readonly #reference: Runtime;
  readonly #candidate: Runtime | undefined;
  readonly #opened: Session[] = [];
  readonly #references = new Map<string, Session>();
  readonly #pairs: { readonly model: string; readonly session: PairedSession }[] = [];

  constructor(reference: Runtime, candidate?: Runtime) {
    this.#reference = reference;
    this.#candidate = candidate;
  }

  /** The runtime whose outputs are shown. */
  get shown(): Runtime {
    return this.#candidate ?? this.#reference;
  }

  async open(name: ModelRow["name"]): Promise<Session> {
    const row = findModel(name);
    invariant(row !== undefined, () => `no model ${name} in the table`);
    const bytes = readModelFile(row);
    const session = await this.#openSession(row, bytes);
    this.#opened.push(session);
    return session;
  }

  async #openSession(row: ModelRow, bytes: Uint8Array): Promise<Session> {
    const reference = await this.#reference.open(bytes);
    this.#references.set(row.name, reference);
    if (this.#candidate === undefined) return reference;
    const rounding = roundingOf(bytes);
    if (!rounding.ok) throw new DiagnosticError(rounding.diagnostics);
    const tolerated = { name: row.name, ...rounding.value };
    const session = pairSessions(
      tolerated,
      await this.#candidate.open(bytes, hintsFor(row)),
      reference,
    );
    this.#pairs.push({ model: row.name, session });
    return session;
  }

  /** Whether there is a candidate to compare with the reference. */
  get compares(): boolean {
    return this.#candidate !== undefined;
  }

  /** The reference's own session of an opened model. */
  referenceOf(name: ModelRow["name"]): Session {
    const session = this.#references.get(name);
    invariant(session !== undefined, () => `model ${name} is not open`);
    return session;
  }

  agreements(): Agreement[] {
    return this.#pairs.map(({ session }) => session.agreement());
  }

  regions(): ModelRegions[] {
    return this.#pairs.map(({ model, session }) => ({ model, regions: session.regions() }));
  }

  async close(): Promise<void> {
    for (const session of this.#opened) await session.release();
  }
}

/** A file of the model table; throws DiagnosticError when it cannot be had. */
export function readModelFile(row: Pick<ModelRow, "name" | "source" | "file">): Uint8Array {
  const result = fetchModel(row);
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}
