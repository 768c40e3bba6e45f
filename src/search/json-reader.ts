/**
 * Reads parsed JSON with a path: every fault becomes a diagnostic that names the place, what was found
 * and what is allowed. Faults are collected; a faulty part gives undefined and reading goes on.
 */

import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

const mostFaults = 20;

export class JsonReader {
  readonly faults: Diagnostic[] = [];

  fault(code: DiagnosticCode, at: string, message: string, help?: string): undefined {
    if (this.faults.length < mostFaults) {
      this.faults.push(diagnostic(code, message, help === undefined ? { at } : { at, help }));
    }
    return undefined;
  }

  /** An object with all of `required` and nothing beside `required` and `optional`. */
  object(
    value: Json | undefined,
    at: string,
    keys: { readonly required: readonly string[]; readonly optional?: readonly string[] },
  ): JsonObject | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return this.fault("PRB002", at, `expected an object, found ${describe(value)}`);
    }
    const object = value as JsonObject;
    const known = [...keys.required, ...(keys.optional ?? [])];
    for (const key of Object.keys(object)) {
      if (known.includes(key)) continue;
      this.fault("PRB002", at, `unknown key "${key}"`, `use ${known.join(", ")}`);
    }
    const missing = keys.required.filter((key) => !(key in object));
    for (const key of missing) this.fault("PRB002", at, `key "${key}" is missing`);
    return missing.length > 0 ? undefined : object;
  }

  list(value: Json | undefined, at: string): readonly Json[] | undefined {
    if (Array.isArray(value)) return value as readonly Json[];
    return this.fault("PRB002", at, `expected a list, found ${describe(value)}`);
  }

  text(value: Json | undefined, at: string): string | undefined {
    if (typeof value === "string" && value !== "") return value;
    return this.fault("PRB002", at, `expected a name, found ${describe(value)}`);
  }

  flag(value: Json | undefined, at: string): boolean | undefined {
    if (typeof value === "boolean") return value;
    return this.fault("PRB002", at, `expected true or false, found ${describe(value)}`);
  }

  texts(value: Json | undefined, at: string): readonly string[] | undefined {
    const list = this.list(value, at);
    const texts = list?.map((item, i) => this.text(item, `${at}[${i}]`));
    return texts?.every((t) => t !== undefined) ? (texts as string[]) : undefined;
  }

  /** A finite number of at least `least`. */
  number(value: Json | undefined, at: string, least = -Infinity): number | undefined {
    if (typeof value === "number" && Number.isFinite(value) && value >= least) return value;
    const allowed = least === -Infinity ? "a finite number" : `a number of at least ${least}`;
    return this.fault("PRB003", at, `expected ${allowed}, found ${describe(value)}`);
  }

  integer(value: Json | undefined, at: string, least: number): number | undefined {
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
    const found = describe(value);
    return this.fault("PRB003", at, `expected an integer of at least ${least}, found ${found}`);
  }

  /** Integers, null for Infinity where `infinite`. */
  prices(value: Json | undefined, at: string, infinite: boolean): Float64Array | undefined {
    const list = this.list(value, at);
    if (list === undefined) return undefined;
    const out = new Float64Array(list.length);
    for (let i = 0; i < list.length; i++) {
      const item = list[i]!;
      if (infinite && item === null) out[i] = Infinity;
      else if (typeof item === "number" && Number.isSafeInteger(item)) out[i] = item;
      else {
        const allowed = infinite ? "an integer, or null for what is forbidden" : "an integer";
        return this.fault("PRB003", `${at}[${i}]`, `expected ${allowed}, found ${describe(item)}`);
      }
    }
    return out;
  }
}

export function describe(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Parses text as JSON; NaN and Infinity, which JSON has no words for, are named as such. */
export function parseJson(text: string, reader: JsonReader): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const number = /[:[,]\s*(-?(?:NaN|Infinity))/.exec(text)?.[1];
    if (number !== undefined) {
      const line = text.slice(0, text.indexOf(number)).split("\n").length;
      return reader.fault("PRB003", `line ${line}`, `${number} is not a price or amount`);
    }
    return reader.fault("PRB001", "the file", error.message, "give one JSON document");
  }
}
