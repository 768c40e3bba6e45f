/**
 * Reading a JSON value by a table of rules: every key is known, present unless optional, and of its
 * type; every number is finite and within its limits. All faults are collected, each with the path of
 * its key, what was found and what to write there.
 */

import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import { type Extent, type Figure, type Origin, origins } from "./figure.ts";

/** Reads one value; undefined after a fault. */
export type Read<T> = (reader: FileReader, value: unknown, path: string) => T | undefined;

export interface Rule<T> {
  readonly read: Read<T>;
  readonly optional: boolean;
}

export function required<T>(read: Read<T>): Rule<T> {
  return { read, optional: false };
}

export function optional<T>(read: Read<T>): Rule<T> {
  return { read, optional: true };
}

/** One rule for each key of T, no more and no fewer. */
export type Rules<T> = {
  readonly [K in keyof T]-?: Rule<NonNullable<T[K]>>;
};

/** Which codes the faults of a file have: of its keys, and of its numbers. */
export interface FaultCodes {
  readonly key: DiagnosticCode;
  readonly number: DiagnosticCode;
}

export class FileReader {
  readonly faults: Diagnostic[] = [];
  readonly #codes: FaultCodes;

  constructor(codes: FaultCodes) {
    this.#codes = codes;
  }

  fault(kind: keyof FaultCodes, path: string, found: string, help: string): undefined {
    const message = `${path || "the file"}: ${found}`;
    this.faults.push(diagnostic(this.#codes[kind], message, { at: path, help }));
  }

  /** An object with exactly the keys of the table. */
  record<T>(value: unknown, path: string, rules: Rules<T>): T | undefined {
    if (!isRecord(value)) {
      const found = `${describe(value)} where an object is expected`;
      return this.fault("key", path, found, `give an object with ${keyList(rules)}`);
    }
    const before = this.faults.length;
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(rules, key)) {
        const help = `remove it; known keys are ${keyList(rules)}`;
        this.fault("key", join(path, key), "unknown key", help);
      }
    }
    const result: Record<string, unknown> = {};
    for (const [key, rule] of Object.entries<Rule<unknown>>(rules)) {
      const given = Object.hasOwn(value, key) ? value[key] : undefined;
      if (given !== undefined) result[key] = rule.read(this, given, join(path, key));
      else if (!rule.optional) {
        this.fault("key", join(path, key), "missing key", "add it, with its source");
      }
    }
    return this.faults.length === before ? (result as T) : undefined;
  }
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function keyList(rules: object): string {
  return Object.keys(rules).join(", ");
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as a message shows it: NaN and infinities by name, long ones cut. */
function describe(value: unknown): string {
  if (typeof value === "number") return String(value);
  return (JSON.stringify(value) ?? typeof value).slice(0, 60);
}

export const text: Read<string> = (reader, value, path) => {
  if (typeof value === "string" && value.trim() !== "") return value;
  return reader.fault("key", path, `${describe(value)} is no text`, "write a text in quotes");
};

export const flag: Read<boolean> = (reader, value, path) => {
  if (typeof value === "boolean") return value;
  return reader.fault("key", path, `${describe(value)} is no flag`, "write true or false");
};

export function oneOf<T extends string>(allowed: readonly T[]): Read<T> {
  return (reader, value, path) => {
    if (allowed.includes(value as T)) return value as T;
    const help = `use one of ${allowed.join(", ")}`;
    return reader.fault("key", path, `${describe(value)} is not known`, help);
  };
}

export function listOf<T>(item: Read<T>, atLeast = 0): Read<readonly T[]> {
  return (reader, value, path) => {
    if (!Array.isArray(value) || value.length < atLeast) {
      const help = `give a list of ${atLeast} or more`;
      return reader.fault("key", path, `${describe(value)} is no such list`, help);
    }
    const items = value.map((v, i) => item(reader, v, `${path}[${i}]`));
    return items.some((v) => v === undefined) ? undefined : (items as T[]);
  };
}

export function objectOf<T>(rules: Rules<T>): Read<T> {
  return (reader, value, path) => reader.record(value, path, rules);
}

/** Values that a number may take. */
export interface Limits {
  readonly integer?: boolean;
  readonly least: number;
  readonly most: number;
}

export function numberIn({ integer = false, least, most }: Limits): Read<number> {
  const allowed = `${integer ? "a whole number" : "a number"} from ${least} to ${most}`;
  return (reader, value, path) => {
    if (typeof value !== "number") {
      return reader.fault("number", path, `${describe(value)} is no number`, `write ${allowed}`);
    }
    const fits = value >= least && value <= most && (!integer || Number.isSafeInteger(value));
    if (fits) return value;
    const help = `write ${allowed}, as its source gives it`;
    return reader.fault("number", path, `${value} is not ${allowed}`, help);
  };
}

/** A figure counted per `per`. Its origin is `datasheet` and its extent the expected one unless said. */
export function figureOf<E extends Extent>(per: E, limits: Limits): Read<Figure<E>> {
  const rules = {
    value: required(numberIn(limits)),
    source: required(text),
    origin: optional(oneOf(origins)),
    per: optional(oneOf([per])),
  };
  return (reader, value, path) => {
    const read = reader.record<{ value: number; source: string; origin?: Origin; per?: E }>(
      value,
      path,
      rules,
    );
    if (!read) return undefined;
    return { value: read.value, per, origin: read.origin ?? "datasheet", source: read.source };
  };
}
