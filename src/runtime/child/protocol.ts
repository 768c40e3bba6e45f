/**
 * What a process that runs candidates is asked and answers: plain data, cloned over the channel. A
 * program travels as text and is emitted on the other side for its target, so that one protocol serves
 * every kind of code. Inputs travel as recipes (fill.ts), outputs as the bytes that are asked for.
 */
import type { Diagnostic } from "../../support/diagnostic.ts";
import type { SamplingProtocol } from "../measure/sampling.ts";
import type { Fill } from "./fill.ts";

/** Contents of a tensor before a run: of its buffer, and of every buffer that holds it packed. */
export interface TensorFill {
  readonly tensor: string;
  readonly shape: readonly number[];
  readonly fill: Fill;
}

export type ChildRequest =
  | {
      readonly kind: "load";
      readonly program: string;
      /** The number that later requests name the program by. */
      readonly id: number;
      readonly threads: number;
    }
  /** Poisons the outputs, fills the inputs, runs once. */
  | {
      readonly kind: "run";
      readonly id: number;
      readonly parameters: Readonly<Record<string, number>>;
      readonly fills: readonly TensorFill[];
    }
  /** Elements at offsets (types of a byte or more), or all bytes in use. */
  | {
      readonly kind: "read";
      readonly id: number;
      readonly buffer: string;
      readonly offsets?: Uint32Array;
    }
  /** Runs the programs in turns with what their last `run` was given. */
  | { readonly kind: "time"; readonly ids: readonly number[]; readonly protocol: SamplingProtocol }
  | { readonly kind: "unload"; readonly id: number };

export type ChildReply =
  | { readonly kind: "done" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly unwritten?: number }
  /** Nanoseconds of one run, by program and round. */
  | { readonly kind: "samples"; readonly samples: readonly Float64Array[] }
  | { readonly kind: "failed"; readonly diagnostics: readonly Diagnostic[] };

export interface Envelope<T> {
  readonly sequence: number;
  readonly body: T;
}

const answers: Readonly<Record<ChildRequest["kind"], ChildReply["kind"]>> = {
  load: "done",
  run: "done",
  read: "bytes",
  time: "samples",
  unload: "done",
};

/** The reply to a request, or undefined for anything that is none: nothing the child says is trusted. */
export function readReply(
  message: unknown,
  sequence: number,
  request: ChildRequest,
): ChildReply | undefined {
  if (!isRecord(message) || message.sequence !== sequence || !isRecord(message.body)) {
    return undefined;
  }
  const { body } = message;
  switch (body.kind) {
    case "failed": {
      const { diagnostics } = body;
      const sound = Array.isArray(diagnostics) && diagnostics.length > 0;
      return sound && diagnostics.every(isDiagnostic) ? { kind: "failed", diagnostics } : undefined;
    }
    case answers[request.kind]:
      return readAnswer(body, request);
    default:
      return undefined;
  }
}

function readAnswer(
  body: Readonly<Record<string, unknown>>,
  request: ChildRequest,
): ChildReply | undefined {
  if (request.kind === "read") {
    const { bytes, unwritten } = body;
    if (!(bytes instanceof Uint8Array)) return undefined;
    if (unwritten === undefined) return { kind: "bytes", bytes };
    return Number.isInteger(unwritten)
      ? { kind: "bytes", bytes, unwritten: unwritten as number }
      : undefined;
  }
  if (request.kind === "time") {
    const { samples } = body;
    const { ids, protocol } = request;
    const sound =
      Array.isArray(samples) &&
      samples.length === ids.length &&
      samples.every((s) => s instanceof Float64Array && s.length === protocol.rounds) &&
      (samples as Float64Array[]).every((s) => s.every((ns) => ns > 0 && Number.isFinite(ns)));
    return sound ? { kind: "samples", samples: samples as Float64Array[] } : undefined;
  }
  return { kind: "done" };
}

function isRecord(x: unknown): x is Readonly<Record<string, unknown>> {
  return typeof x === "object" && x !== null;
}

function isDiagnostic(x: unknown): x is Diagnostic {
  if (!isRecord(x)) return false;
  return typeof x.code === "string" && typeof x.message === "string" && Array.isArray(x.notes);
}
