/**
 * Registers that warps hand over (PTX ISA, "setmaxnreg"): who asks for more waits until the block's own registers
 * have so many left, so that roles that take more than others gave back wait for ever. A block begins with as many
 * a thread as its entry promises; each role changes its number once, before anything else depends on it.
 */
import type { Kernel } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { visitStatements } from "../../program/walk.ts";
import { reject } from "../../support/diagnostic.ts";
import type { ThreadLayout } from "./thread-layout.ts";

/** The registers that a thread has behind a statement that changes their number. */
function changeOf(s: Statement): number | undefined {
  if (s.kind !== "intrinsic") return undefined;
  const found = /^setmaxnreg\.(?:dec|inc)\.(\d+)$/.exec(s.intrinsic);
  return found ? Number(found[1]) : undefined;
}

/** All of a role, those in loops and branches too. */
function changesIn(body: readonly Statement[]): readonly number[] {
  const found: number[] = [];
  visitStatements(body, (s) => {
    const change = changeOf(s);
    if (change !== undefined) found.push(change);
  });
  return found;
}

/**
 * @param begins registers of a thread at the entry, at most: the assembler decides how many
 * @throws EMT001 where a thread would wait for registers that nobody gives back
 */
export function checkRegisterShares(
  kernel: Kernel,
  { roles, threads }: Pick<ThreadLayout, "roles" | "threads">,
  begins: number,
): void {
  const refuse = (what: string, help: string): never =>
    reject("EMT001", `registers that warps hand over: ${what}`, {
      at: `kernel ${kernel.name}`,
      help,
    });
  const all = roles.map(({ role, copyThreads }) => ({
    ...{ role, own: copyThreads * role.copies },
    changes: changesIn(role.body),
  }));
  if (all.every(({ changes }) => changes.length === 0)) return;
  // Threads without a role keep what they begin with.
  let held = begins * (threads - all.reduce((sum, { own }) => sum + own, 0));
  for (const { role, own, changes } of all) {
    const [change, ...more] = changes;
    if (
      more.length > 0 ||
      (change !== undefined && !role.body.some((s) => changeOf(s) !== undefined))
    )
      refuse(`role ${role.name} changes its number more than once, or not always`, onceHelp);
    held += own * (change ?? begins);
  }
  if (held > threads * begins)
    refuse(`${held} are asked for, the block has ${threads * begins}`, sumHelp);
}

const onceHelp = "issue setmaxnreg once, at the begin of the role";
const sumHelp = "let the roles that copy keep fewer, or those that multiply ask for fewer";
