/**
 * Places that an assembler computes where they are used: the emitter writes the addresses of all copies of a body in
 * front, ptxas (13.0) makes each in the branch that alone reads it, out of what is there for the others as well, unless
 * something that no instruction passes (a barrier, a wait for earlier launches) stands in between. Kernels that call
 * functions, as correctly rounded quotients and roots are, have them in front. In: a kernel's flow. Out: the same
 * with such instructions moved to their readers. An estimate for people, like what is made from it.
 */
import type { PtxFlow, PtxInstruction } from "./ptx-flow.ts";

/** Sums of integers, and what they are made of. */
const plain = /^(add|sub|mul|mad|neg|shl|cvt|mov|ld\.param)\b/;
const ofIntegers = /\.(s32|u32|b32|s64|u64|b64)$/;
/** No value is computed behind these that stands in front of them. */
const fences =
  /^(bar|barrier|fence|membar|mbarrier|cp\.async|wgmma|setmaxnreg|griddepcontrol|atom|red|shfl|nanosleep|pmevent)/;

const calls = /^(div|sqrt|rcp)\.rn\b/;

/** Where an instruction stands: its block, and how many fences come before it in the text. */
interface Place {
  readonly block: number;
  readonly fences: number;
}

export function placesLate(flow: PtxFlow): PtxFlow {
  const { blocks } = flow;
  if (blocks.some((b) => b.instructions.some((i) => calls.test(i.opcode)))) return flow;
  const placeOf = new Map<PtxInstruction, Place>();
  const writers = new Map<number, number>();
  const readers = new Map<number, Set<PtxInstruction>>();
  let passed = 0;
  for (const [block, { instructions }] of blocks.entries()) {
    for (const instruction of instructions) {
      placeOf.set(instruction, { block, fences: passed });
      if (fences.test(instruction.opcode)) passed++;
      for (const w of instruction.writes) writers.set(w, (writers.get(w) ?? 0) + 1);
      for (const r of instruction.reads) {
        const known = readers.get(r) ?? new Set();
        readers.set(r, known.add(instruction));
      }
    }
  }
  const loops = loopsOf(flow);
  const bodies = blocks.map((b) => [...b.instructions]);
  for (const instruction of blocks.flatMap((b) => b.instructions).reverse()) {
    const own = placeOf.get(instruction)!;
    const [result] = instruction.writes;
    if (result === undefined || writers.get(result) !== 1 || !isPlace(instruction)) continue;
    const places = [...(readers.get(result) ?? [])].map((r) => placeOf.get(r)!);
    const [to] = places;
    const isOne = to && places.every((p) => p.block === to.block && p.fences === own.fences);
    if (!isOne || to.block === own.block || loops[to.block] !== loops[own.block]) continue;
    const from = bodies[own.block]!;
    from.splice(from.indexOf(instruction), 1);
    const body = bodies[to.block]!;
    const first = body.findIndex((i) => i.reads.includes(result));
    body.splice(first, 0, instruction);
    placeOf.set(instruction, to);
  }
  return { ...flow, blocks: blocks.map((b, i) => ({ ...b, instructions: bodies[i]! })) };
}

function isPlace({ opcode, keeps, writes }: PtxInstruction): boolean {
  return !keeps && writes.length === 1 && plain.test(opcode) && ofIntegers.test(opcode);
}

/** By block, the loops that it is in, as one name. */
function loopsOf({ blocks }: PtxFlow): readonly string[] {
  const found = blocks.flatMap(({ next }, end) =>
    next.filter((begin) => begin <= end).map((begin) => [begin, end] as const),
  );
  return blocks.map((_, i) =>
    found
      .filter(([begin, end]) => begin <= i && i <= end)
      .map(([begin, end]) => `${begin} ${end}`)
      .join(),
  );
}
