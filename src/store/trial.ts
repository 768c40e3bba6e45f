/**
 * A trial: what was tried, on what, and what came of it, as one line of JSON. The subject says
 * everything that may change a time; its hash is the key under which trials are compared. A time
 * exists only in a `measured` verdict. Unknown fields and other versions are refused: a record is read
 * as what was written or not at all.
 */
import { z } from "zod";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { sha256Text } from "../support/hash.ts";

export const trialSchema = "wavetile/trial/1";

/** What a time depends on. Two trials with equal subjects answer the same question. */
const subjectRow = z.strictObject({
  /** Hash of what the region computes, whatever its names. */
  semantic: z.string(),
  /** Values of the symbols that the trial ran with. */
  shapes: z.record(z.string(), z.number().int()),
  /** Element types of the region's tensors, inputs first. */
  dtypes: z.array(z.string()),
  target: z.string(),
  /** Machine that ran it: processor, cores, memory, system. */
  device: z.string(),
  /** What ran the code on the device: the WebAssembly engine, the GPU driver. */
  driver: z.string(),
  threads: z.number().int().min(1),
  /** Version of the code generator. */
  codegen: z.string(),
  /** Name and parameters of the measurement protocol. */
  protocol: z.string(),
});

/** How far the candidate agreed with the oracle; values are texts, so that NaN and 2^63 stay exact. */
const agreementRow = z.strictObject({
  /** Elements that were compared. */
  checked: z.number().int().min(0),
  /** Largest |found - expected| / tolerance over them. */
  worst: z.number(),
  /** The same in units in the last place of the expected value; exact types count as 0 or infinite. */
  worstUlp: z.number(),
  /** What the tolerance was derived from: `f32, folds of 768`. */
  tolerance: z.string(),
  seed: z.number().int(),
});

const mismatchRow = z.strictObject({
  tensor: z.string(),
  index: z.array(z.number().int()),
  found: z.string(),
  expected: z.string(),
  tolerance: z.number(),
});

const diagnosticRow = z.strictObject({
  code: z.string(),
  message: z.string(),
  at: z.string().optional(),
  notes: z.array(z.string()),
  help: z.string().optional(),
});

const timingRow = z.strictObject({
  medianNs: z.number().positive(),
  /** Quartiles of the samples. */
  lowNs: z.number().positive(),
  highNs: z.number().positive(),
  n: z.number().int().positive(),
  /** What no correct run can stay below on this device. */
  boundNs: z.number().nonnegative(),
  /** Interleaved with the best schedule so far: its median over this one's, with a 95 % interval. */
  paired: z
    .strictObject({ schedule: z.string(), ratio: z.number(), low: z.number(), high: z.number() })
    .optional(),
});

const verdictRow = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("rejected"),
    reason: z.enum([
      "illegal",
      "invalid",
      "resources",
      "crashed",
      "hung",
      "garbled",
      "implausible",
    ]),
    diagnostics: z.array(diagnosticRow),
  }),
  z.strictObject({
    kind: z.literal("wrong"),
    checked: z.number().int().min(0),
    wrong: z.number().int().min(1),
    first: mismatchRow,
    worst: mismatchRow,
    seed: z.number().int(),
  }),
  z.strictObject({
    kind: z.literal("estimated"),
    /** Present when the code ran and agreed; it was not timed. */
    agreement: agreementRow.optional(),
    estimate: z.strictObject({ lowNs: z.number(), highNs: z.number(), model: z.string() }),
  }),
  z.strictObject({ kind: z.literal("measured"), agreement: agreementRow, timing: timingRow }),
]);

/** For want of registers: values on the stack, the vectors among them, operands loaded again. */
const kernelRow = z.strictObject({
  kernel: z.string(),
  spills: z.number().int().min(0),
  vectorSpills: z.number().int().min(0),
  reloads: z.number().int().min(0),
});

const trialRow = z.strictObject({
  schema: z.literal(trialSchema),
  key: z.string(),
  subject: subjectRow,
  /** Name of the region in its model, for people. */
  region: z.string(),
  /** The schedule in the schedule language. */
  schedule: z.string(),
  /** Hash of the program's text. */
  program: z.string(),
  /** What the emitter of machine code counted of each kernel; absent in older records and where nobody counted. */
  emitted: z.array(kernelRow).optional(),
  verdict: verdictRow,
});

export type TrialSubject = Readonly<z.infer<typeof subjectRow>>;
export type StoredAgreement = Readonly<z.infer<typeof agreementRow>>;
export type StoredTiming = Readonly<z.infer<typeof timingRow>>;
export type StoredVerdict = Readonly<z.infer<typeof verdictRow>>;
export type Trial = Readonly<z.infer<typeof trialRow>>;
export type VerdictKind = StoredVerdict["kind"];

/** JSON with sorted keys: equal values give equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, x: unknown) =>
    x !== null && typeof x === "object" && !Array.isArray(x)
      ? Object.fromEntries(Object.entries(x).sort(([a], [b]) => (a < b ? -1 : 1)))
      : x,
  );
}

/** 64 hexadecimal digits. */
export function keyOf(subject: TrialSubject): string {
  return sha256Text(canonicalJson(subject));
}

/** A trial of a subject, with its key. */
export function makeTrial(trial: Omit<Trial, "schema" | "key">): Trial {
  return { schema: trialSchema, key: keyOf(trial.subject), ...trial };
}

/** The trial as a line, without the newline. */
export function printTrial(trial: Trial): string {
  return canonicalJson(trial);
}

/** Reads a line; STO001 for what is no trial, STO002 for one of another version. */
export function parseTrial(line: string, at: string): Result<Trial> {
  const parsed = parseJson(line);
  if (parsed === undefined) return fail(malformed(at, "it is not JSON"));
  const version = (parsed as { schema?: unknown } | null)?.schema;
  if (typeof version === "string" && version !== trialSchema)
    return fail(otherVersion(at, version));
  const row = trialRow.safeParse(parsed);
  if (!row.success) {
    const [issue] = row.error.issues;
    return fail(malformed(at, `${issue!.path.join(".") || "record"}: ${issue!.message}`));
  }
  if (row.data.key !== keyOf(row.data.subject)) {
    return fail(malformed(at, "its key is not the hash of its subject"));
  }
  return ok(row.data);
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function malformed(at: string, why: string): Diagnostic {
  return diagnostic("STO001", `not a trial record: ${why}`, {
    at,
    help: "remove the line; the other records are read without it",
  });
}

function otherVersion(at: string, found: string): Diagnostic {
  return diagnostic("STO002", `record of version ${found}, this program reads ${trialSchema}`, {
    at,
    help: "read it with the version of Wavetile that wrote it, or give another store with --store",
  });
}
