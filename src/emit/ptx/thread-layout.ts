/**
 * Where the roles of a kernel stand among the threads of a block. Each copy of a role begins at a warp,
 * at a multiple of four warps where its threads work as a warpgroup; the threads that only fill a warp
 * end at once. Named barriers: one for the instance, one a role, one a copy, as far as they are used.
 */

import { findTileIntrinsic } from "../../program/intrinsic-table.ts";
import type { Kernel, Role } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { visitStatements } from "../../program/walk.ts";

export const warpThreads = 32;
export const warpgroupThreads = 128;

export interface RoleLayout {
  readonly role: Role;
  /** First thread of the first copy in the block. */
  readonly firstThread: number;
  /** Threads from one copy to the next. */
  readonly copyThreads: number;
  /** Number of the barrier of the role, and of the first copy. */
  readonly roleBarrier: number;
  readonly copyBarrier: number;
}

export interface ThreadLayout {
  readonly roles: readonly RoleLayout[];
  /** Threads of the block. */
  readonly threads: number;
  /** Threads that meet in a barrier of the instance: those of the warps that have a role. */
  readonly meeting: number;
  readonly barriers: number;
}

export const instanceBarrier = 0;

export function layOutThreads(kernel: Kernel): ThreadLayout {
  const groups = kernel.roles.map(worksInWarpgroups);
  let [next, barriers, meeting] = [0, 1, 0];
  const roles = kernel.roles.map((role, i): RoleLayout => {
    const unit = groups[i] ? warpgroupThreads : warpThreads;
    const copyThreads = roundUp(role.threads, unit);
    const firstThread = roundUp(next, unit);
    next = firstThread + copyThreads * role.copies;
    meeting += roundUp(role.threads, warpThreads) * role.copies;
    const uses = (scope: string): boolean => usesBarrier(role.body, scope);
    const alone = kernel.roles.length === 1;
    const take = (count: number): number => {
      barriers += count;
      return barriers - count;
    };
    const roleBarrier = alone || !uses("role") ? instanceBarrier : take(1);
    const isInstance = alone && role.copies === 1;
    const copyBarrier = isInstance || !uses("copy") ? instanceBarrier : take(role.copies);
    return { role, firstThread, copyThreads, roleBarrier, copyBarrier };
  });
  const threads = groups.some((g) => g) ? roundUp(next, warpgroupThreads) : next;
  return { roles, threads, meeting, barriers };
}

export function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

/** Whether the role issues instructions of four warps. */
function worksInWarpgroups(role: Role): boolean {
  let found = false;
  visitStatements(role.body, (s) => {
    if (s.kind !== "intrinsic") return;
    const row = findTileIntrinsic(s.intrinsic);
    if (row?.collective === "copy") found = true;
  });
  return found;
}

function usesBarrier(body: readonly Statement[], scope: string): boolean {
  let found = false;
  visitStatements(body, (s) => {
    if (s.kind === "barrier" && s.scope === scope) found = true;
  });
  return found;
}
