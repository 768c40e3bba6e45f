/**
 * Operands that are loaded again where registers are short. In straight code that uses more vectors than there
 * are registers, an operand that came from memory as it is needs no place on the stack: the one whose next use
 * is furthest away (Belady, "A study of replacement algorithms", 1966) is dropped and loaded from where it came
 * from before that use. In: the code of a function with what each instruction reads and writes. Out: where to
 * load again, and which uses have the new register.
 */
import type { PlacedInstruction } from "./function-code.ts";
import { type Access, type Block, liveBlocks } from "./liveness.ts";
import type { Register } from "./operand.ts";

/** A load that is repeated before an instruction; from there on another register stands for the first one. */
export interface Reload {
  /** Index of the instruction that it precedes. */
  readonly at: number;
  readonly register: Register;
  readonly recipe: Recipe;
}

/** A load, and what widens it: each instruction makes what the next one takes. */
export type Recipe = readonly PlacedInstruction[];

/**
 * Reloads in the order of the code; each holds up to the next one of the same register.
 *
 * @param accesses of each instruction
 * @param registerCount ids of the virtual registers are below
 * @param registers vectors that the machine has
 */
export function reloadsOf(
  body: readonly PlacedInstruction[],
  accesses: readonly Access[],
  { registerCount, registers }: { readonly registerCount: number; readonly registers: number },
): readonly Reload[] {
  const found: Reload[] = [];
  for (const block of liveBlocks(body, accesses, registerCount)) {
    const code = new StraightCode(body, accesses, block);
    if (code.mostAlive() > registers) found.push(...code.reloads(registers));
  }
  return found;
}

/** What a block says of one of its vector registers. */
interface Vector {
  readonly register: Register;
  /** Instructions that read it, in order, and how many of them are past. */
  readonly reads: number[];
  past: number;
  /** It is alive behind the block. */
  readonly stays: boolean;
  /** How memory makes it, where nothing else does, and since when. */
  source?: { readonly at: number; readonly recipe: Recipe };
}

/** Instructions that copy a whole register. */
const copies = new Set(["vmovaps", "vmovups"]);
/** A second instruction costs what a place on the stack does. */
const mostSteps = 1;

class StraightCode {
  readonly #body: readonly PlacedInstruction[];
  readonly #accesses: readonly Access[];
  readonly #block: Block;
  readonly #vectors = new Map<number, Vector>();
  /** Instructions that write each general register, and those that write memory or may. */
  readonly #moves = new Map<number, number[]>();
  readonly #stores: number[] = [];

  constructor(body: readonly PlacedInstruction[], accesses: readonly Access[], block: Block) {
    this.#body = body;
    this.#accesses = accesses;
    this.#block = block;
    for (let i = block.first; i < block.end; i++) {
      const { reads, writes } = accesses[i]!;
      for (const r of reads) if (r.class === "vec") this.#vector(r).reads.push(i);
      for (const r of writes) this.#noteWrite(r, i);
      const { operands, calls } = body[i]!;
      if (calls || operands[0]?.kind === "memory") this.#stores.push(i);
    }
  }

  #vector(register: Register): Vector {
    const { id } = register;
    const known = this.#vectors.get(id);
    if (known) return known;
    const stays = this.#block.liveOut.has(id);
    const made: Vector = { register, reads: [], past: 0, stays };
    this.#vectors.set(id, made);
    return made;
  }

  #noteWrite(r: Register, at: number): void {
    if (r.class !== "vec") {
      const moves = this.#moves.get(r.id) ?? [];
      moves.push(at);
      this.#moves.set(r.id, moves);
      return;
    }
    const isFirst = !this.#vectors.has(r.id) && !this.#block.liveIn.has(r.id);
    const vector = this.#vector(r);
    const source = isFirst && !vector.stays ? this.#sourceOf(at) : undefined;
    if (source) vector.source = source;
    else delete vector.source;
  }

  #sourceOf(at: number): Vector["source"] {
    const instruction = this.#body[at]!;
    const { op, operands, mask, calls } = instruction;
    const [to, from] = operands;
    if (mask || calls || operands.length !== 2 || to?.kind !== "register") return undefined;
    if (from?.kind === "memory") return { at, recipe: [instruction] };
    const before = from?.kind === "register" ? this.#vectors.get(from.id)?.source : undefined;
    if (!before) return undefined;
    if (copies.has(op)) return before;
    return before.recipe.length < mostSteps
      ? { at: before.at, recipe: [...before.recipe, instruction] }
      : undefined;
  }

  /** Vectors of the block that are alive at once. */
  mostAlive(): number {
    const alive = this.#aliveAtStart();
    let most = alive.size;
    for (let i = this.#block.first; i < this.#block.end; i++) {
      this.#leave(i, alive);
      for (const r of this.#accesses[i]!.writes) if (r.class === "vec") alive.add(r.id);
      most = Math.max(most, alive.size);
    }
    for (const vector of this.#vectors.values()) vector.past = 0;
    return most;
  }

  #aliveAtStart(): Set<number> {
    return new Set([...this.#vectors.keys()].filter((id) => this.#block.liveIn.has(id)));
  }

  /** Takes out what an instruction reads for the last time. */
  #leave(at: number, alive: Set<number>): void {
    for (const r of this.#accesses[at]!.reads) {
      if (r.class !== "vec") continue;
      const vector = this.#vectors.get(r.id)!;
      while (vector.past < vector.reads.length && vector.reads[vector.past]! <= at) vector.past++;
      if (vector.past === vector.reads.length && !vector.stays) alive.delete(r.id);
    }
  }

  reloads(registers: number): readonly Reload[] {
    const alive = this.#aliveAtStart();
    const dropped = new Set<number>();
    const found: Reload[] = [];
    for (let at = this.#block.first; at < this.#block.end; at++) {
      const { reads, writes } = this.#accesses[at]!;
      for (const register of reads) {
        if (!dropped.delete(register.id)) continue;
        found.push({ at, register, recipe: this.#vectors.get(register.id)!.source!.recipe });
        alive.add(register.id);
      }
      this.#makeRoom(at, registers, { alive, dropped, needed: reads });
      this.#leave(at, alive);
      for (const r of writes) if (r.class === "vec") alive.add(r.id);
      this.#makeRoom(at, registers, { alive, dropped, needed: writes });
    }
    return found;
  }

  /** Drops operands whose next use is furthest away until the others fit. */
  #makeRoom(
    at: number,
    registers: number,
    by: {
      readonly alive: Set<number>;
      readonly dropped: Set<number>;
      readonly needed: readonly Register[];
    },
  ): void {
    while (by.alive.size > registers) {
      let victim: number | undefined;
      let furthest = at;
      for (const id of by.alive) {
        const vector = this.#vectors.get(id)!;
        const next = vector.reads.find((read) => read > at);
        if (next === undefined || next <= furthest || by.needed.some((r) => r.id === id)) continue;
        if (!this.#isRepeatable(vector, next)) continue;
        victim = id;
        furthest = next;
      }
      // What is left goes to the stack, or does not: the allocator looks at all blocks.
      if (victim === undefined) return;
      by.alive.delete(victim);
      by.dropped.add(victim);
    }
  }

  /** Whether the load means the same before an instruction as where it stands. */
  #isRepeatable({ source }: Vector, before: number): boolean {
    if (!source) return false;
    const isBetween = (at: number): boolean => at > source.at && at < before;
    if (this.#stores.some(isBetween)) return false;
    const { reads } = this.#accesses[source.at]!;
    return reads.every(({ id }) => !this.#moves.get(id)?.some(isBetween));
  }
}
