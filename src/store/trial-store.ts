/**
 * The store of trials: an append-only log of lines that several processes may write at once. Access to
 * the file is injected (runtime/files/append-log.ts is Node's). A last line without its end, as a
 * killed writer leaves it, is reported and passed over. Answers are in one order whatever the order of
 * the log, so that merged stores answer alike.
 */
import { type Diagnostic, diagnostic, ok, type Result } from "../support/diagnostic.ts";
import { parseTrial, printTrial, type Trial } from "./trial.ts";

/** The file behind a store. */
export interface TrialLog {
  /** For messages: the path. */
  readonly name: string;
  /** Everything written so far; empty when nothing was. */
  read(): Result<string>;
  /** Adds lines in one write that other writers cannot split. */
  append(lines: readonly string[]): Result<void>;
}

export interface StoreContent {
  /** Each trial once, sorted by key, then verdict, then text. */
  readonly trials: readonly Trial[];
  /** Lines that are no trials of this version (errors), and a torn last line (a warning). */
  readonly faults: readonly Diagnostic[];
}

export type MeasuredTrial = Trial & {
  readonly verdict: Extract<Trial["verdict"], { kind: "measured" }>;
};

/** What a log's text holds. */
export function readStore(text: string, name: string): StoreContent {
  const lines = text.split("\n");
  const torn = lines.pop() ?? "";
  const faults: Diagnostic[] = [];
  const trials: Trial[] = [];
  for (const [i, line] of lines.entries()) {
    if (line === "") continue;
    const trial = parseTrial(line, `${name} line ${i + 1}`);
    if (trial.ok) trials.push(trial.value);
    else faults.push(...trial.diagnostics);
  }
  if (torn !== "") faults.push(tornLine(name, lines.length + 1));
  return { trials: mergeTrials([trials]), faults };
}

function tornLine(name: string, line: number): Diagnostic {
  return diagnostic("STO003", "the last record is cut off and is passed over", {
    severity: "warning",
    at: `${name} line ${line}`,
    help: "a writer was stopped while it wrote; the next append starts a new line",
  });
}

/** The trials of several stores, each once, in the order of all answers. */
export function mergeTrials(stores: readonly (readonly Trial[])[]): readonly Trial[] {
  const byText = new Map(stores.flat().map((t) => [printTrial(t), t] as const));
  return [...byText]
    .map(([text, trial]) => ({ text, trial }))
    .sort((a, b) => compareTrials(a.trial, b.trial) || (a.text < b.text ? -1 : 1))
    .map(({ trial }) => trial);
}

const rank: Readonly<Record<Trial["verdict"]["kind"], number>> = {
  measured: 0,
  estimated: 1,
  wrong: 2,
  rejected: 3,
};

/** By key, then the better verdict first, then the shorter time. */
function compareTrials(a: Trial, b: Trial): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  const kinds = rank[a.verdict.kind] - rank[b.verdict.kind];
  if (kinds !== 0) return kinds;
  return isMeasured(a) && isMeasured(b) ? a.verdict.timing.medianNs - b.verdict.timing.medianNs : 0;
}

export function isMeasured(trial: Trial): trial is MeasuredTrial {
  return trial.verdict.kind === "measured";
}

/** The measured trial with the shortest median of each key, by key. */
export function incumbentsOf(trials: readonly Trial[]): ReadonlyMap<string, MeasuredTrial> {
  const best = new Map<string, MeasuredTrial>();
  for (const trial of mergeTrials([trials])) {
    if (isMeasured(trial) && !best.has(trial.key)) best.set(trial.key, trial);
  }
  return best;
}

/** A log as a store. */
export class TrialStore {
  readonly #log: TrialLog;

  constructor(log: TrialLog) {
    this.#log = log;
  }

  /** Fails only when the log cannot be read; what is wrong in it stands among the faults. */
  read(): Result<StoreContent> {
    const text = this.#log.read();
    return text.ok ? ok(readStore(text.value, this.#log.name)) : text;
  }

  record(trials: readonly Trial[]): Result<void> {
    return trials.length === 0 ? ok(undefined) : this.#log.append(trials.map(printTrial));
  }

  /** The best measured trial of a key. */
  incumbent(key: string): Result<MeasuredTrial | undefined> {
    const content = this.read();
    if (!content.ok) return content;
    return ok(incumbentsOf(content.value.trials).get(key), content.value.faults);
  }

  /** Adds the trials of another store that this one lacks; the number added. */
  merge(other: readonly Trial[]): Result<number> {
    const content = this.read();
    if (!content.ok) return content;
    const known = new Set(content.value.trials.map(printTrial));
    const added = mergeTrials([other]).filter((t) => !known.has(printTrial(t)));
    const recorded = this.record(added);
    return recorded.ok ? ok(added.length, content.value.faults) : recorded;
  }
}
