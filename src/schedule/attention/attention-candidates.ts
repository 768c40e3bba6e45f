/**
 * Candidate tiles of attention as one kernel: rows of a block by its warps or warpgroups, columns of a step and
 * stages as far as shared memory and registers hold them. Deterministic; prices and the choice are elsewhere.
 */
import type { Region } from "../../region/nest.ts";
import type { Target } from "../../target/target.ts";
import type { AttendDirective } from "../directive.ts";
import { type AttentionForm, attentionForm, isOpenAttention } from "./attention-form.ts";
import {
  attendFault,
  attentionBytes,
  isOneStep,
  mayGather,
  problemsOf,
  stepsOfTile,
} from "./attention-limits.ts";

/** Rows of a warp, warps of a block, columns of a step. */
const warpRows = [16, 32] as const;
const warpCounts = [1, 2, 4, 8] as const;
const columnCounts = [32, 64, 128] as const;
const stageCounts = [1, 2, 3] as const;
/**
 * The same of warpgroups, 64 rows each; more columns leave less room to hide the softmax, and stages that are
 * no power of two cost divisions in every step (H200).
 */
const groupCounts = [1, 2, 3] as const;
const groupColumns = [32, 48, 64, 80, 96, 112, 128] as const;
const groupStages = [1, 2, 4] as const;
/** Parts of the columns, and blocks of them for each multiprocessor at most. */
const partCounts = [1, 2, 4, 8] as const;
/** Blocks of a multiprocessor where parts of the columns meet in memory. */
const splitBlocks = [1, 2, 3] as const;
const mostBlocks = 2;
const needed = ["cp.async", "mma", "ldmatrix"] as const;
/** Warps of a warpgroup. */
const groupWarps = 4;

/** Whether attention may be one kernel there. */
export function mayAttend({ blocks, capabilities }: Target): boolean {
  return blocks !== undefined && needed.every((name) => capabilities.has(name));
}

export function enumerateAttention(region: Region, target: Target): readonly AttendDirective[] {
  const limits = target.blocks;
  const has = (name: string): boolean => target.capabilities.has(name);
  if (!limits || !mayAttend(target) || region.statements.length < 3) return [];
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
          const d = { kind: "attend", statement, by: "mma", tile, warps, stages } as const;
          const plain = { ...d, gathered: false, splits: 1 };
          for (const parts of has("cluster") ? partsOf(tile[0], form, limits.cores) : [1])
            found.push({ ...plain, parts });
          const most = has("cluster") ? partCounts.at(-1)! : 1;
          for (const splits of splitsOf({ ...plain, parts: 1 }, form, { ...limits, most }))
            found.push({ ...plain, parts: 1, splits });
        }
      }
    }
  }
  if (has("wgmma")) found.push(...streamed(statement, form));
  return found.filter(
    (d) => d.stages > 1 !== isOneStep(d, form) && isPossible(d, form, limits.sharedBytesPerBlock),
  );
}

function streamed(statement: string, form: AttentionForm): readonly AttendDirective[] {
  const found: AttendDirective[] = [];
  for (const groups of groupCounts) {
    const warps = groupWarps * groups;
    if (16 * warps >= 2 * Math.max(64, form.rows)) continue;
    for (const columns of groupColumns) {
      if (columns >= 2 * Math.max(32, form.columns)) continue;
      for (const stages of groupStages) {
        if (stages > 2 && columns * stages > 2 * form.columns) continue;
        const tile = [16 * warps, columns] as const;
        const d = { kind: "attend", statement, by: "wgmma", tile, warps, stages } as const;
        const plain = { ...d, gathered: false, parts: 1, splits: 1 };
        found.push({ ...plain, gathered: mayGather(plain, form) });
      }
    }
  }
  return found;
}

/** Into how many parts columns are dealt out: more only where blocks are few. */
function partsOf(rows: number, form: AttentionForm, cores: number): readonly number[] {
  if (isOpenAttention(form)) return [1];
  const blocks = problemsOf(form) * Math.ceil(form.rows / rows);
  return partCounts.filter((parts) => parts === 1 || blocks * parts <= mostBlocks * cores);
}

/**
 * Into how many parts columns are dealt out that meet in memory: as many as give each multiprocessor some blocks,
 * where tiles are too few for clusters to do so.
 */
function splitsOf(
  d: AttendDirective,
  form: AttentionForm,
  { cores, most }: { readonly cores: number; readonly most: number },
): readonly number[] {
  if (isOpenAttention(form)) return [];
  const blocks = problemsOf(form) * Math.ceil(form.rows / d.tile[0]);
  if (2 * blocks > cores || blocks * most >= cores) return [];
  const steps = stepsOfTile(d, form);
  const counts = splitBlocks.map((each) => {
    const wished = Math.min(steps, Math.floor((each * cores) / blocks));
    if (form.reach) return wished;
    let splits = wished;
    while (steps % splits !== 0) splits--;
    return splits;
  });
  return [...new Set(counts)].filter((splits) => splits > 1);
}

function isPossible(d: AttendDirective, form: AttentionForm, most: number): boolean {
  return attendFault(d, form) === undefined && attentionBytes(d, form) <= most;
}
