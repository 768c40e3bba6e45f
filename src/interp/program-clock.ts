/**
 * Vector clocks (Mattern 1988; used for race detection as in FastTrack, Flanagan and Freund 2009).
 * A slot is a thread of the run or a source of asynchronous effects (a group of a thread, a counter);
 * an access carries (slot, clock) and is ordered before whoever knows at least that clock of the slot.
 *
 * `seen` is what an agent knows; `fenced` is the part of it that lies before a proxy fence on the way,
 * per memory scope: what asynchronous accesses may rely on.
 */
export type Clock = number[];

export interface Knowledge {
  readonly seen: Clock;
  readonly fencedShared: Clock;
  readonly fencedMemory: Clock;
}

export function emptyKnowledge(): Knowledge {
  return { seen: [], fencedShared: [], fencedMemory: [] };
}

export function copyKnowledge(from: Knowledge): Knowledge {
  return {
    seen: from.seen.slice(),
    fencedShared: from.fencedShared.slice(),
    fencedMemory: from.fencedMemory.slice(),
  };
}

function joinClock(into: Clock, from: Clock): void {
  for (let slot = 0; slot < from.length; slot++) {
    const clock = from[slot] ?? 0;
    if (clock > (into[slot] ?? 0)) into[slot] = clock;
  }
}

/** Learns all that `from` knows. */
export function join(into: Knowledge, from: Knowledge): void {
  joinClock(into.seen, from.seen);
  joinClock(into.fencedShared, from.fencedShared);
  joinClock(into.fencedMemory, from.fencedMemory);
}

/** A proxy fence: all that is known now may be relied on by asynchronous accesses. */
export function fence(knowledge: Knowledge, scope: "shared" | "memory"): void {
  const fenced = scope === "shared" ? knowledge.fencedShared : knowledge.fencedMemory;
  joinClock(fenced, knowledge.seen);
}

/** Both fences: what the end of a launch does. */
export function fenceAll(knowledge: Knowledge): void {
  fence(knowledge, "shared");
  fence(knowledge, "memory");
}

/** Who accesses memory: an ordinary thread, or an asynchronous operation with what its issuer knew. */
export interface Agent {
  readonly label: string;
  slot: number;
  clock: number;
  readonly knows: Knowledge;
  readonly proxy: "ordinary" | "async";
}

/** Starts a new interval: what the agent does from here on is not covered by earlier releases. */
export function advance(agent: Agent): void {
  agent.clock++;
  agent.knows.seen[agent.slot] = agent.clock;
}
