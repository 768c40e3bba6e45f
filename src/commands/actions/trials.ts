/** The trial store from outside: list, show the trials of a key, merge other stores into it. */
import { openAppendLog } from "../../runtime/files/append-log.ts";
import { fileExists } from "../../runtime/files/files.ts";
import { folderOf } from "../../runtime/files/folders.ts";
import { join } from "../../runtime/files/paths.ts";
import { canonicalJson, type Trial } from "../../store/trial.ts";
import { incumbentsOf, TrialStore } from "../../store/trial-store.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action, CommandResult } from "../command.ts";
import { printTable } from "./table.ts";

interface TrialsArgs {
  readonly action: "list" | "show" | "merge";
  readonly key?: string | undefined;
  readonly from: readonly string[];
  readonly best: boolean;
  readonly store?: string | undefined;
}

/** Where trials are kept unless a path is given. */
export function defaultStorePath(): string {
  return join(folderOf("data"), "trials.jsonl");
}

export const trialsAction: Action<TrialsArgs> = async (args) => {
  const path = args.store ?? defaultStorePath();
  const store = new TrialStore(openAppendLog(path));
  const misused = misuse(args);
  if (misused) return fail(misused);
  return args.action === "merge" ? merge(args, store, path) : list(args, store, path);
};

function misuse({ action, key, from, best }: TrialsArgs): Diagnostic | undefined {
  const help = "see wavetile trials --help";
  if (action === "show" && key === undefined) {
    return diagnostic("CLI001", "show needs a key", { help: "wavetile trials list prints them" });
  }
  if (action === "merge" && from.length === 0) {
    return diagnostic("CLI001", "merge needs a store to merge from", { help: "--from FILE" });
  }
  if (action !== "merge" && from.length > 0) {
    return diagnostic("CLI001", `--from has no meaning for ${action}`, { help });
  }
  if (action !== "list" && best) {
    return diagnostic("CLI001", `--best has no meaning for ${action}`, { help });
  }
  return undefined;
}

function list(args: TrialsArgs, store: TrialStore, path: string): Result<CommandResult> {
  const content = store.read();
  if (!content.ok) return content;
  const { faults } = content.value;
  const all = args.best ? [...incumbentsOf(content.value.trials).values()] : content.value.trials;
  const trials = all.filter((t) => t.key.startsWith(args.key ?? ""));
  if (args.action === "show" && trials.length === 0) {
    return fail(
      diagnostic("CLI001", `no trial has a key that begins with ${args.key}`, {
        help: "wavetile trials list prints the keys",
      }),
    );
  }
  const text = args.action === "show" ? trials.map(canonicalJson).join("\n") : table(trials);
  return answer({ store: path, trials }, text, faults);
}

function merge(args: TrialsArgs, store: TrialStore, path: string): Result<CommandResult> {
  const faults: Diagnostic[] = [];
  const merged: { from: string; added: number }[] = [];
  for (const from of args.from) {
    if (!fileExists(from)) {
      return fail(diagnostic("CLI001", `there is no store ${from}`, { at: "--from" }));
    }
    const other = new TrialStore(openAppendLog(from)).read();
    if (!other.ok) return other;
    const added = store.merge(other.value.trials);
    if (!added.ok) return added;
    faults.push(...other.value.faults, ...added.warnings);
    merged.push({ from, added: added.value });
  }
  const text = merged.map((m) => `${m.from}: ${m.added} trials added to ${path}`).join("\n");
  return answer({ store: path, merged }, text, faults);
}

function answer(
  data: CommandResult["data"],
  text: string,
  faults: readonly Diagnostic[],
): Result<CommandResult> {
  const failed = faults.filter((d) => d.severity === "error");
  const warnings = faults.filter((d) => d.severity !== "error");
  return ok({ data, text, ...(failed.length > 0 && { failed }) }, warnings);
}

function table(trials: readonly Trial[]): string {
  return printTable(
    ["key", "region", "target", "threads", "verdict", "finding"],
    trials.map((t) => [
      t.key.slice(0, 12),
      t.region,
      t.subject.target,
      String(t.subject.threads),
      t.verdict.kind,
      findingOf(t.verdict),
    ]),
  );
}

function findingOf(verdict: Trial["verdict"]): string {
  switch (verdict.kind) {
    case "rejected":
      return verdict.reason;
    case "wrong":
      return `${verdict.wrong} of ${verdict.checked} elements`;
    case "estimated":
      return `estimate ${(verdict.estimate.highNs / 1e6).toFixed(3)} ms`;
    case "measured":
      return `${(verdict.timing.medianNs / 1e6).toFixed(3)} ms`;
  }
}
