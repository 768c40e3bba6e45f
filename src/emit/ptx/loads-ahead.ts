/**
 * What an assembler makes of a block of text before it gives out registers: loads whose places are known are brought
 * forward, so that they are on the way together, short loops are copied out and their trips' loads brought forward too,
 * and places of asynchronous copies are computed in front of all of them (ptxas 13.0; unrolling.ts says which loops it
 * may not copy). In: a block without branches. Out: its instructions in such an order, and the registers that loads of
 * later trips and bases of copies hold beside them. An estimate for people, like what it is made from. The numbers here
 * are what ptxas 13.0 took of loops of loads and multiply-adds, and of rows of copies, for sm_90a.
 */
import { functionsTogether } from "./functions-together.ts";
import type { PtxBlock, PtxFlow, PtxInstruction } from "./ptx-flow.ts";

/** No load is moved over these. */
const fences =
  /^(bra|ret|bar|barrier|fence|membar|mbarrier|cp\.async|wgmma|setmaxnreg|griddepcontrol|atom|red|shfl|nanosleep|pmevent)/;
/** Threads see each other's writes by these: they stay where they are. */
const ordered = /^ld\.(volatile|relaxed|acquire|shared|local)/;
const copies = /^cp\.async\.c[ag]/;
/** Instructions that a load is brought forward over: what hides its latency; and registers that such loads fill. */
const [hidingLatency, mostOnTheWay] = [200, 80] as const;
/** Instructions of a loop of unknown trips that is copied out four times, and of one of known trips that is at all. */
const [mostOfUnknown, mostOfTrip] = [32, 64] as const;
/** Instructions of all copies of a trip of a long loop. */
const mostCopied = 256;
/** What copies of a place further away from its register need: a base for each such stretch, in so many bytes. */
const copyReach = 4096;
/** Registers of such bases in a loop, where they are made again in every trip; elsewhere all are made in front. */
const basesInLoop = 14;

/** The same instructions, those in front that nothing keeps from it. */
export function loadsForward(
  instructions: readonly PtxInstruction[],
  registers: readonly string[],
): readonly PtxInstruction[] {
  const [places, others] = placesOfCopies(instructions, registers);
  const moved: PtxInstruction[] = [...places];
  let part: PtxInstruction[] = [];
  for (const instruction of others) {
    if (!fences.test(instruction.opcode)) {
      part.push(instruction);
      continue;
    }
    moved.push(...functionsTogether(forwardIn(part)), instruction);
    part = [];
  }
  return [...moved, ...functionsTogether(forwardIn(part))];
}

/** Instructions that compute places of asynchronous copies from what is known where the block begins; and the others. */
function placesOfCopies(
  instructions: readonly PtxInstruction[],
  registers: readonly string[],
): readonly [readonly PtxInstruction[], readonly PtxInstruction[]] {
  const writers = new Map<number, number>();
  for (const { writes } of instructions)
    for (const w of writes) writers.set(w, (writers.get(w) ?? 0) + 1);
  const makers = new Map<number, PtxInstruction>();
  const late = new Set<number>();
  const early = new Set<PtxInstruction>();
  const bring = (r: number): void => {
    const maker = makers.get(r);
    if (maker === undefined || early.has(maker)) return;
    early.add(maker);
    maker.reads.forEach(bring);
  };
  for (const instruction of instructions) {
    const { opcode, reads, writes, keeps, operands } = instruction;
    if (copies.test(opcode)) reads.filter((r) => isPlace(operands, registers[r]!)).forEach(bring);
    const isKnown =
      !(keeps || opcode.startsWith("ld.") || opcode.startsWith("st.") || fences.test(opcode)) &&
      writes.every((w) => writers.get(w) === 1) &&
      reads.every((r) => !late.has(r));
    for (const w of writes) {
      if (isKnown) makers.set(w, instruction);
      else late.add(w);
    }
  }
  return [instructions.filter((i) => early.has(i)), instructions.filter((i) => !early.has(i))];
}

/** Whether it stands in brackets: what else a copy reads decides how much of it is zeros. */
function isPlace(operands: string, register: string): boolean {
  return operands.includes(`[${register}]`) || operands.includes(`[${register}+`);
}

/** A load with what makes its place, by number of the instruction. */
interface Brought {
  readonly at: number;
  readonly with: readonly number[];
  readonly words: number;
}

function forwardIn(part: readonly PtxInstruction[]): readonly PtxInstruction[] {
  const loads = broughtLoads(part);
  const order: PtxInstruction[] = [];
  const early = new Set(loads.flatMap((l) => [l.at, ...l.with]));
  let [next, onTheWay] = [0, 0];
  let arrived = 0;
  for (const [i, instruction] of part.entries()) {
    while (arrived < next && loads[arrived]!.at <= i) onTheWay -= loads[arrived++]!.words;
    while (next < loads.length && loads[next]!.at <= i + hidingLatency) {
      const { at, words, with: makers } = loads[next]!;
      if (at > i && onTheWay + words > mostOnTheWay) break;
      order.push(...[...makers, at].map((n) => part[n]!));
      onTheWay += words;
      next++;
    }
    if (!early.has(i)) order.push(instruction);
  }
  return order;
}

function broughtLoads(part: readonly PtxInstruction[]): readonly Brought[] {
  const moves = part.map(isMove);
  const writers = new Map<number, number>();
  for (const [i, { writes }] of part.entries()) {
    if (!moves[i]) for (const w of writes) writers.set(w, (writers.get(w) ?? 0) + 1);
  }
  /** Registers that are known late, and instructions that make places of loads. */
  const late = new Set<number>();
  const makers = new Map<number, number>();
  const early = new Set<number>();
  const bring = (at: number): number[] => {
    if (early.has(at)) return [];
    early.add(at);
    const before = part[at]!.reads.map((r) => makers.get(r)).filter((m) => m !== undefined);
    return [...before.flatMap(bring), at];
  };
  const loads: Brought[] = [];
  let isStored = false;
  for (const [i, { opcode, reads, writes, keeps }] of part.entries()) {
    // A place that moves by a number is that number more: loads say it themselves.
    if (moves[i]) continue;
    isStored ||= opcode.startsWith("st.");
    const isLoad = opcode.startsWith("ld.global");
    const isFree =
      !keeps &&
      !opcode.startsWith("st.") &&
      !ordered.test(opcode) &&
      !(isLoad && isStored && !opcode.includes(".nc")) &&
      writes.every((w) => writers.get(w) === 1) &&
      reads.every((r) => !late.has(r));
    if (isFree && isLoad) {
      const words = writes.length * (opcode.endsWith("64") ? 2 : 1);
      loads.push({ at: i, with: bring(i).slice(0, -1), words });
    }
    for (const w of writes) {
      if (isFree && !isLoad) makers.set(w, i);
      else late.add(w);
    }
  }
  return loads;
}

/** A register plus a number in its own place. */
function isMove({ opcode, reads, writes, operands }: PtxInstruction): boolean {
  const [own, ...others] = writes;
  return (
    opcode.startsWith("add.") &&
    others.length === 0 &&
    reads.length === 1 &&
    reads[0] === own &&
    /^%\w+,\s*-?\d+$/.test(operands.trim())
  );
}

/**
 * Registers that loads of later trips fill while a trip of the block runs; 0: it is no loop that is copied out. Of a
 * loop that is copied out whole the loops around it are too, where all of that is short.
 */
export function aheadOfTrips(number: number, flow: PtxFlow, weights: readonly number[]): number {
  const { blocks } = flow;
  const block = blocks[number]!;
  if (!block.next.includes(number) || !isCopied([block])) return 0;
  const loads = block.instructions.filter((i) => i.opcode.startsWith("ld.global"));
  const words = loads.flatMap((i) => i.writes).reduce((sum, w) => sum + weights[w]!, 0);
  const size = sizeOf(block);
  let trips = tripsOf(block, flow);
  let copies = copiesOf(size, trips);
  let [all, length] = [copies, size * copies];
  let own: Stretch = { from: number, to: number };
  while (copies === trips) {
    const around = loopAround(own, blocks);
    if (!around) break;
    const others = [
      ...blocks.slice(around.from, own.from),
      ...blocks.slice(own.to + 1, around.to + 1),
    ];
    if (!isCopied(others)) break;
    const whole = length + others.reduce((sum, b) => sum + sizeOf(b), 0);
    trips = tripsOf(blocks[around.to]!, flow);
    copies = copiesOf(whole, trips);
    [all, length, own] = [all * copies, whole * copies, around];
  }
  const onTheWay = Math.min(mostOnTheWay, Math.floor(hidingLatency / size) * words);
  return Math.min((all - 1) * words, Math.max(0, onTheWay - words));
}

/** Blocks behind each other, the first and the last one. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** The next loop around a stretch, where nothing else of it is a loop. */
function loopAround({ from, to }: Stretch, blocks: readonly PtxBlock[]): Stretch | undefined {
  for (let end = to + 1; end < blocks.length; end++) {
    const back = blocks[end]!.next.filter((n) => n <= end);
    if (back.length === 0) continue;
    const [begin, ...others] = back;
    if (others.length > 0 || begin! > from) return undefined;
    const before = blocks.slice(begin, from).some((b, i) => b.next.some((n) => n <= begin! + i));
    return before ? undefined : { from: begin!, to: end };
  }
  return undefined;
}

/** Whether nothing keeps an assembler from copying blocks out. */
function isCopied(blocks: readonly PtxBlock[]): boolean {
  const keeps = ({ opcode }: PtxInstruction): boolean =>
    fences.test(opcode) && !opcode.startsWith("bra");
  return blocks.every(({ instructions, isRolled }) => !(isRolled || instructions.some(keeps)));
}

function sizeOf({ instructions }: PtxBlock): number {
  return instructions.filter((i) => !(isFree(i) || isMove(i))).length;
}

/** What a loop has by itself: its counter, its test and its branch, and copies from register to register. */
function isFree({ opcode }: PtxInstruction): boolean {
  return /^(mov|setp|bra)/.test(opcode);
}

/** Copies of a trip that stand behind each other. */
function copiesOf(size: number, trips: number | undefined): number {
  if (trips === undefined) return size <= mostOfUnknown ? 4 : 1;
  if (trips * size <= Math.max(350, 100 * Math.sqrt(trips))) return trips;
  return size <= mostOfTrip ? Math.max(4, Math.floor(mostCopied / size)) : 1;
}

/** Registers of bases that copies of the block make beside their places. */
export function basesOfCopies(number: number, { blocks }: PtxFlow): number {
  const bases = new Set<string>();
  for (const { opcode, operands } of blocks[number]!.instructions) {
    const [, base, offset] = /\[(%d\d+)([+-]\d+)\]/.exec(operands) ?? [];
    if (!copies.test(opcode) || base === undefined) continue;
    const stretch = Math.round(Number(offset) / copyReach);
    if (stretch !== 0) bases.add(`${base} ${stretch}`);
  }
  const registers = 2 * bases.size;
  return isInLoop(number, blocks) ? Math.min(basesInLoop, registers) : registers;
}

function isInLoop(number: number, blocks: readonly PtxBlock[]): boolean {
  const seen = new Set<number>();
  const open = [...blocks[number]!.next];
  for (let b = open.pop(); b !== undefined; b = open.pop()) {
    if (seen.has(b)) continue;
    seen.add(b);
    open.push(...blocks[b]!.next);
  }
  return seen.has(number);
}

/** Trips of a loop whose counter goes up by one to a number. */
function tripsOf({ instructions }: PtxBlock, { blocks }: PtxFlow): number | undefined {
  const test = instructions.findLast((i) => i.opcode.startsWith("setp.lt.s"));
  const end = /^%\w+,\s*(\d+)$/.exec(test?.operands.trim() ?? "")?.[1];
  const counter = test?.reads[0];
  if (end === undefined || counter === undefined) return undefined;
  const starts = blocks.flatMap((b) =>
    b.instructions.filter((i) => i.opcode.startsWith("mov") && i.writes[0] === counter),
  );
  const [start, ...others] = starts.map((i) => Number(i.operands));
  if (start === undefined || others.length > 0 || !Number.isSafeInteger(start)) return undefined;
  return Math.max(1, Number(end) - start);
}
