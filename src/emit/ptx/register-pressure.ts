/**
 * How many registers a thread of a kernel needs at once, estimated from its text: the most virtual registers
 * that hold a value still to be read (liveness: Aho, Lam, Sethi and Ullman 2006, section 9.2.5), in units of 32
 * bits, after places are computed late and loads are brought forward as an assembler does (late-places.ts,
 * loads-ahead.ts). It also computes values again, shares
 * pairs of halves and fills what it may have, so this is an estimate; the count is the driver's, where there is one.
 * `npm run campaign -- ptx` compares both.
 */
import { placesLate } from "./late-places.ts";
import { aheadOfTrips, basesOfCopies, loadsForward } from "./loads-ahead.ts";
import { type PtxFlow, type PtxInstruction, readFlow } from "./ptx-flow.ts";
import type { PtxKernel } from "./ptx-module.ts";

/** Units of 32 bits by the letter of a virtual register; predicates are in a file of their own. */
const units: Readonly<Record<string, number>> = { p: 0, h: 1, r: 1, d: 2 };

/**
 * What an assembler takes for each register of the text, and beside them: the middle of what ptxas 13.0 took of
 * the suite of `campaign -- ptx`.
 */
const [takenForOne, takenBeside] = [1.15, 6] as const;

/** The estimate for a kernel: at most what its text allows, which is what it gets where warps pass registers on. */
export function estimateRegisters({
  text,
  maxRegisters,
}: Pick<PtxKernel, "text" | "maxRegisters">): number {
  if (text.includes("setmaxnreg")) return maxRegisters;
  const flow = placesLate(readFlow(text));
  const forward = flow.blocks.map((b) => {
    return { ...b, instructions: loadsForward(b.instructions, flow.registers) };
  });
  const weights = weightsOf(flow);
  const ahead = flow.blocks.map((_, i) => aheadOfTrips(i, flow, weights) + basesOfCopies(i, flow));
  const live = Math.max(...pressures({ ...flow, blocks: forward }).map((n, i) => n + ahead[i]!));
  return Math.min(maxRegisters, Math.round(takenForOne * live + takenBeside));
}

/** The largest sum of units that are live at one place of the text. */
export function registerPressure(flow: PtxFlow): number {
  return Math.max(...pressures(flow));
}

/** The same by block. */
function pressures(flow: PtxFlow): readonly number[] {
  const weights = weightsOf(flow);
  const ends = liveAtEnds(flow);
  return flow.blocks.map((block, i) => {
    const live = new Set(ends[i]!);
    let held = 0;
    for (const register of live) held += weights[register]!;
    let most = held;
    for (const { reads, writes, keeps } of block.instructions.toReversed()) {
      // Results that nobody reads still need a place.
      const dead = writes.filter((w) => !live.has(w));
      most = Math.max(most, held + dead.reduce((sum, w) => sum + weights[w]!, 0));
      for (const w of keeps ? [] : writes) if (live.delete(w)) held -= weights[w]!;
      for (const r of reads) {
        if (live.has(r)) continue;
        live.add(r);
        held += weights[r]!;
      }
      most = Math.max(most, held);
    }
    return most;
  });
}

/** Immediates and parameters are operands of instructions: they take no register. */
function weightsOf({ registers, blocks }: PtxFlow): readonly number[] {
  const weights = registers.map((name) => units[name[1]!]!);
  const written = new Map<number, number>();
  const all = blocks.flatMap((b) => b.instructions);
  for (const { writes } of all) for (const w of writes) written.set(w, (written.get(w) ?? 0) + 1);
  for (const instruction of all) {
    const [result] = instruction.writes;
    if (result === undefined || written.get(result) !== 1 || !isFree(instruction)) continue;
    weights[result] = 0;
  }
  return weights;
}

function isFree({ opcode, reads, operands }: PtxInstruction): boolean {
  if (opcode.startsWith("ld.param")) return true;
  return opcode.startsWith("mov") && reads.length === 0 && !operands.includes("%");
}

/** By block, the registers that are read later on. */
function liveAtEnds({ blocks }: PtxFlow): readonly ReadonlySet<number>[] {
  const begins = blocks.map(() => new Set<number>());
  const ends = blocks.map(() => new Set<number>());
  for (let changed = true; changed; ) {
    changed = false;
    for (let i = blocks.length - 1; i >= 0; i--) {
      const { instructions, next } = blocks[i]!;
      const end = ends[i]!;
      for (const n of next) for (const register of begins[n]!) end.add(register);
      const live = new Set(end);
      for (const { reads, writes, keeps } of instructions.toReversed()) {
        if (!keeps) for (const w of writes) live.delete(w);
        for (const r of reads) live.add(r);
      }
      if (live.size === begins[i]!.size) continue;
      begins[i] = live;
      changed = true;
    }
  }
  return ends;
}
