/**
 * Candidate tiles of attention as one kernel: rows of a block by its warps, columns of a step and stages as
 * far as shared memory and registers hold them. Deterministic; prices and the choice are elsewhere.
 */
import type { Region } from "../../region/nest.ts";
import type { Target } from "../../target/target.ts";
import type { AttendDirective } from "../directive.ts";
import { type AttentionForm, attentionForm } from "./attention-form.ts";
import { attendFault, attentionBytes } from "./attention-limits.ts";

/** Rows of a warp, warps of a block, columns of a step. */
const warpRows = [16, 32] as const;
const warpCounts = [1, 2, 4, 8] as const;
const columnCounts = [32, 64, 128] as const;
const stageCounts = [2, 3] as const;

export function enumerateAttention(region: Region, target: Target): readonly AttendDirective[] {
  const limits = target.blocks;
  const has = (name: string): boolean => target.capabilities.has(name);
  if (!limits || region.statements.length < 3) return [];
  if (!["cp.async", "mma", "ldmatrix"].every(has)) return [];
  const form = attentionForm(region);
  if (typeof form === "string") return [];
  const statement = region.statements.at(-1)!.name;
  const found: AttendDirective[] = [];
  for (const tall of warpRows) {
    for (const warps of warpCounts) {
      if (tall * warps >= 2 * Math.max(16, form.rows)) continue;
      for (const columns of columnCounts) {
        if (columns >= 2 * Math.max(32, form.columns)) continue;
        for (const stages of stageCounts) {
          if (stages > 2 && columns * stages > 2 * form.columns) continue;
          const tile = [tall * warps, columns] as const;
          found.push({ kind: "attend", statement, by: "mma", tile, warps, stages });
        }
      }
    }
  }
  return found.filter((d) => isPossible(d, form, limits.sharedBytesPerBlock));
}

function isPossible(d: AttendDirective, form: AttentionForm, most: number): boolean {
  return attendFault(d, form) === undefined && attentionBytes(d, form) <= most;
}
