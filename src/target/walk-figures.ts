/** Every figure of a target with its path, in the order of its file: for tables and for checks. */
import { isRecord } from "./file-reader.ts";
import type { Target } from "./target.ts";

export interface FigureRow {
  readonly path: string;
  readonly value: number;
  /** What it counts for: `sm`, `device`, …; empty for rates of one core. */
  readonly per: string;
  readonly origin: string;
  readonly source: string;
}

export function figuresOf(target: Target): readonly FigureRow[] {
  const rows: FigureRow[] = [];
  visit(target, "", rows);
  return rows;
}

/** Levels of memory are told apart by their names. */
function labelOf(item: unknown): string | undefined {
  if (!isRecord(item) || item.bytesPerNsPerCore === undefined) return undefined;
  return typeof item.name === "string" ? item.name : undefined;
}

function visit(value: unknown, path: string, rows: FigureRow[]): void {
  if (Array.isArray(value)) {
    value.forEach((item, i) => {
      visit(item, `${path}[${labelOf(item) ?? i}]`, rows);
    });
    return;
  }
  if (!isRecord(value)) return;
  const { value: number, source, origin, per } = value;
  if (typeof number === "number" && typeof source === "string") {
    rows.push({
      path,
      value: number,
      per: String(per ?? ""),
      origin: String(origin),
      source,
    });
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    visit(item, path === "" ? key : `${path}.${key}`, rows);
  }
}
