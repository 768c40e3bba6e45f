/** One candidate in the child: requests with what can go wrong turned into the rejection that it is. */
import { printProgram } from "../program/program-text.ts";
import type { ChildOutcome } from "../runtime/child/child-runner.ts";
import type { ChildReply, ChildRequest, TensorFill } from "../runtime/child/protocol.ts";
import type { SamplingProtocol } from "../runtime/measure/sampling.ts";
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import { invariant } from "../support/invariant.ts";
import type { Bench, Candidate } from "./candidate.ts";
import type { Rejected, RejectReason } from "./verdict.ts";

export type Step<T> = { readonly kind: "done"; readonly value: T } | Rejected;

/** Reasons that a child gives by itself; every other refusal means that the program is not valid. */
const reasons: Readonly<Partial<Record<DiagnosticCode, RejectReason>>> = {
  RUN001: "resources",
  RUN002: "resources",
  CUD003: "resources",
  CUD004: "resources",
  RUN003: "crashed",
  RUN005: "hung",
};

export function rejected(reason: RejectReason, diagnostics: readonly Diagnostic[]): Rejected {
  const rows = diagnostics.map(({ code, message, at, notes, help }) => ({
    code,
    message,
    notes: [...notes],
    ...(at !== undefined && { at }),
    ...(help !== undefined && { help }),
  }));
  return { kind: "rejected", reason, diagnostics: rows };
}

/** What a session needs of a candidate; a probe has no more. */
export type Loadable = Pick<Candidate, "program" | "schedule"> & {
  readonly region: { readonly name: string };
};

/** Numbers of programs in children, whichever candidate they are of. */
let lastId = 0;

export class CandidateSession {
  readonly #candidate: Loadable;
  readonly #bench: Bench;
  readonly id = ++lastId;
  #generation = -1;

  constructor(candidate: Loadable, bench: Bench) {
    this.#candidate = candidate;
    this.#bench = bench;
  }

  async load(): Promise<Step<void>> {
    const program = printProgram(this.#candidate.program);
    const { threads } = this.#bench;
    const loading = this.#ask({ kind: "load", program, id: this.id, threads });
    // Of the child that was asked; what is asked behind it is refused there if this is.
    this.#generation = this.#bench.runner.generation;
    const loaded = await loading;
    if (loaded.kind !== "done") this.#generation = -1;
    return loaded.kind === "done" ? { kind: "done", value: undefined } : loaded;
  }

  async run(
    parameters: Readonly<Record<string, number>>,
    fills: readonly TensorFill[],
  ): Promise<Step<void>> {
    const ran = await this.#ask({ kind: "run", id: this.id, parameters, fills });
    return ran.kind === "done" ? { kind: "done", value: undefined } : ran;
  }

  async read(
    buffer: string,
    offsets?: Uint32Array,
  ): Promise<Step<{ readonly bytes: Uint8Array; readonly unwritten?: number }>> {
    const request = { kind: "read", id: this.id, buffer, ...(offsets && { offsets }) } as const;
    const answer = await this.#ask(request);
    if (answer.kind !== "done") return answer;
    invariant(answer.value.kind === "bytes", () => `a read answered ${answer.value.kind}`);
    return { kind: "done", value: answer.value };
  }

  /** Times this candidate, in turns with others that have run in the same child. */
  async time(
    protocol: SamplingProtocol,
    deadlineMs: number,
    rivals: readonly CandidateSession[] = [],
  ): Promise<Step<readonly Float64Array[]>> {
    const ids = [this.id, ...rivals.map((r) => r.id)];
    const answer = await this.#ask({ kind: "time", ids, protocol }, deadlineMs);
    if (answer.kind !== "done") return answer;
    invariant(answer.value.kind === "samples", () => `a timing answered ${answer.value.kind}`);
    return { kind: "done", value: answer.value.samples };
  }

  /** Whether the child that was asked to load the program is still there. */
  get isLoaded(): boolean {
    return this.#generation === this.#bench.runner.generation;
  }

  async unload(): Promise<void> {
    if (!this.isLoaded) return;
    this.#generation = -1;
    await this.#ask({ kind: "unload", id: this.id });
  }

  async #ask(
    request: ChildRequest,
    deadlineMs = this.#bench.deadlineMs,
  ): Promise<Step<Exclude<ChildReply, { kind: "failed" }>>> {
    const outcome = await this.#bench.runner.request(request, deadlineMs);
    if (outcome.kind === "answered") return { kind: "done", value: outcome.reply };
    return this.#reject(outcome);
  }

  #reject(outcome: Exclude<ChildOutcome, { kind: "answered" }>): Rejected {
    const { region, schedule } = this.#candidate;
    const detail = { at: `region ${region.name}`, notes: schedule.trimEnd().split("\n") };
    switch (outcome.kind) {
      case "refused": {
        const reason = reasons[outcome.diagnostics[0]!.code] ?? "invalid";
        return rejected(
          reason,
          outcome.diagnostics.map((d) => ({ ...d, ...detail })),
        );
      }
      case "outOfMemory": {
        const message = `the process was ended (${outcome.how})`;
        return rejected("resources", [diagnostic("VER007", message, detail)]);
      }
      case "crashed": {
        const message = `the process ended with ${outcome.how}`;
        return rejected("crashed", [diagnostic("VER001", message, detail)]);
      }
      case "hung": {
        const message = `no answer after ${outcome.afterMs} ms`;
        return rejected("hung", [diagnostic("VER002", message, detail)]);
      }
      case "garbled":
        return rejected("garbled", [diagnostic("VER003", outcome.what, detail)]);
    }
  }
}
