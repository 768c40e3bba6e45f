/**
 * Vector clocks of a run with all threads (protocol-run.ts): for each slot, a thread or a source of
 * asynchronous effects, how far it is known to have come. They grow as slots are met.
 */

/** Clock by slot; behind the end it is 0. */
export type Clocks = Int32Array;

/**
 * What a thread, or whoever it met, knows; `fenced` is what asynchronous accesses may rely on. `causal` is
 * what has happened before in time: it also comes with the bytes of a copy, whose issue came before
 * them. That orders phases, but no accesses to memory.
 */
export interface Known {
  seen: Clocks;
  causal: Clocks;
  readonly fenced: { shared: Clocks; memory: Clocks };
}

export function emptyKnown(): Known {
  const none = new Int32Array(0);
  return { seen: none, causal: none, fenced: { shared: none, memory: none } };
}

/** By how many slots clocks grow. */
const slotsTogether = 64;

/** Clocks with room for so many slots, the same ones where there is. */
function withRoom(clocks: Clocks, length: number): Clocks {
  if (length <= clocks.length) return clocks;
  const wider = new Int32Array(Math.ceil(length / slotsTogether) * slotsTogether);
  wider.set(clocks);
  return wider;
}

/** What either knows, in the place of the first where it has room. */
export function joinClocks(own: Clocks, from: Clocks): Clocks {
  const into = withRoom(own, from.length);
  for (let slot = 0; slot < from.length; slot++) {
    const clock = from[slot]!;
    if (clock > into[slot]!) into[slot] = clock;
  }
  return into;
}

export function join(into: Known, from: Known): void {
  into.seen = joinClocks(into.seen, from.seen);
  into.causal = joinClocks(into.causal, from.causal);
  into.fenced.shared = joinClocks(into.fenced.shared, from.fenced.shared);
  into.fenced.memory = joinClocks(into.fenced.memory, from.fenced.memory);
}

/** Takes over what is known to someone who knows no less. */
export function takeOver(into: Known, from: Known): void {
  const over = (own: Clocks, all: Clocks): Clocks => {
    const room = withRoom(own, all.length);
    room.set(all);
    return room;
  };
  into.seen = over(into.seen, from.seen);
  into.causal = over(into.causal, from.causal);
  into.fenced.shared = over(into.fenced.shared, from.fenced.shared);
  into.fenced.memory = over(into.fenced.memory, from.fenced.memory);
}

/** Learns that the slot has come to a clock. */
export function learn(known: Known, slot: number, clock: number): void {
  known.seen = withRoom(known.seen, slot + 1);
  known.causal = withRoom(known.causal, slot + 1);
  for (const clocks of [known.seen, known.causal]) {
    if (clock > clocks[slot]!) clocks[slot] = clock;
  }
}
