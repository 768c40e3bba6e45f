/**
 * Which numbers of a `multiply` a block can be given for a product: what its warps hold, what instructions and tensor
 * copies take, how results leave, what registers hold. In: a directive and a product's form. Out: nothing, or the
 * first fault with its cure.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import type { MultiplyDirective } from "../directive.ts";
import { apartFault, isByteFloat, sumsApart } from "./apart-sums.ts";
import { clusterFault, partsFault, productTiles } from "./product-blocks.ts";
import {
  heldRegisters,
  isNarrow,
  isOpen,
  type ProductForm,
  resultColumns,
  sumsOfThread,
} from "./product-form.ts";
import { isByte } from "./product-operands.ts";
import { foldFault } from "./result-folds.ts";
import { runFault } from "./result-runs.ts";
import { streamedDepth, streamedPanel, streamFault } from "./stream-operands.ts";
import { type TileFault, unfit } from "./tile-fault.ts";

/** Results of a warp that come together. */
const units = { fma: [16, 32], mma: [16, 16], wgmma: [16, 8] } as const;
/** Elements of a vector of a thread, and bytes of the depth that one matrix instruction takes. */
const [vectorDepth, instructionBytes] = [4, 32] as const;
/** Columns and depth of one instruction of four warps at most, and its warps. */
const groupWarps = 4;
const mostGroups = 3;
const groupColumns = 256;
/** Columns up to which any multiple of 8 is an instruction for integers. */
const fewColumns = 32;
const groupRows = 256;
/** Warps of a block. */
const mostWarps = 32;
/** Sums that a thread holds at most, and with those of a step beside them. */
const [mostSums, mostAndPartial] = [128, 192] as const;
/** Of these and what copies take; fragments and the rest of the kernel need the others of 255. */
const mostHeld = 160;
/** Sums of a thread that goes on to further tiles, beside what rounded functions of operands take. */
const fewSums = 64;
/** The same where it ends with its tile: more are spilled. */
const withFunctions = 96;
/** Registers of a block of NVIDIA's machines and of a thread, which has a multiple of eight. */
const [blockRegisters, mostRegisters, registerUnit] = [65536, 255, 8] as const;
/** Threads down and across of a warp of fma, and of a matrix instruction rows or columns and their registers. */
const [threadRows, threadColumns, fragmentLines, fragmentRegisters] = [4, 8, 16, 4] as const;
/** Beside sums and operands: places, counters (ptxas 13.0, blocks of 64 to 1,024 threads). */
const besideOperands = 16;
/** Beside the sums of one instruction: ptxas 13.0 asks for so many of what a block begins with (C7602). */
const besideInstruction = 26;
/** What ptxas 13.0 leaves to sums of a thread where three warpgroups are given 160 registers each. */
const mostOfThree = 144;

type Limit = (d: MultiplyDirective, form: ProductForm) => TileFault | undefined;

/** The first that is there is told. */
const limits: readonly Limit[] = [
  numbersFault,
  openFault,
  typeFault,
  warpsFault,
  (d, form) => (d.by === "wgmma" ? groupFault(d, form) : undefined),
  (d, form) => runFault(d.tile, form),
  foldFault,
  gatherFault,
  turnFault,
  partsFault,
  clusterFault,
  apartFault,
  aheadFault,
  stepFault,
  registersFault,
];

/** Why no block can be given such a tile, or undefined. */
export function multiplyFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  for (const limit of limits) {
    const fault = limit(d, form);
    if (fault) return fault;
  }
  return undefined;
}

function numbersFault(d: MultiplyDirective): TileFault | undefined {
  const { stages, group, teams, parts, cluster, results, blocks } = d;
  const numbers = [...d.tile, ...d.warps, stages, group, teams, parts, cluster];
  const all = [...numbers, results + 1, blocks + 1];
  return all.every((n) => Number.isSafeInteger(n) && n >= 1)
    ? undefined
    : unfit("not all are positive integers", "give whole numbers from 1 on");
}

/** What needs to know the number of tiles, or of steps. */
function openFault(
  { blocks, parts, cluster }: MultiplyDirective,
  { rows, columns, batch, depth }: ProductForm,
): TileFault | undefined {
  if (![rows, columns, batch, depth].some(isOpen)) return undefined;
  const asked = blocks > 0 ? "blocks" : parts > 1 ? "parts" : cluster > 1 ? "cluster" : undefined;
  return (
    asked &&
    unfit(
      `${asked} of a product whose extents are open`,
      `leave \`${asked}\` out, or give the extents values (--shape)`,
    )
  );
}

function typeFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { dtype } = form;
  if (!isTaken(d.by, dtype)) {
    const others = (["fma", "mma", "wgmma"] as const).filter((by) => isTaken(by, dtype));
    return unfit(`${d.by} does not multiply ${dtype}`, `multiply by ${others.join(" or ")}`);
  }
  if (d.by === "mma" && dtypes[dtype].bits !== 16 && !isAlongDepth(form)) {
    return unfit(
      `operands of ${dtype} are read along the depth alone`,
      `store the operand so that its neighbours are multiplied together${dtype === "f32" ? ", or multiply by fma" : ""}`,
    );
  }
  if (d.by === "fma" && d.swizzle !== 0)
    return unfit("threads read vectors, which no swizzle parts", "say swizzle 0");
  return d.swapped && d.by !== "wgmma"
    ? unfit("only warpgroups take columns for rows", "leave `swapped` out")
    : undefined;
}

function warpsFault({ by, tile, warps }: MultiplyDirective): TileFault | undefined {
  const [rows, columns] = tile;
  const [down, across] = warps;
  const [tall, wide] = units[by];
  if (rows % (tall * down) !== 0) {
    const why = `${rows} rows for ${down} warps of a multiple of ${tall}`;
    return unfit(why, `choose a multiple of ${tall * down} rows, or other warps`);
  }
  if (columns % (wide * across) !== 0) {
    const why = `${columns} columns for ${across} warps of a multiple of ${wide}`;
    return unfit(why, `choose a multiple of ${wide * across} columns, or other warps`);
  }
  return down * across > mostWarps
    ? unfit(`${down * across} warps`, `choose at most ${mostWarps} warps`)
    : undefined;
}

/** Of warpgroups, and of the tensor copies that bring their operands. */
function groupFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { tile, swizzle } = d;
  const [rows, columns, depth] = tile;
  const [down, across] = d.warps;
  const deep = streamedDepth(form.dtype);
  const streamed = streamFault(form);
  if (streamed !== undefined) return unfit(streamed, byOthers(form));
  if (across !== 1 || down % groupWarps !== 0 || down > mostGroups * groupWarps) {
    const why = "multiplying warps stand below each other, 4, 8 or 12";
    return unfit(why, "say warps (4, 1), (8, 1) or (12, 1)");
  }
  if (rows % (16 * down) !== 0)
    return unfit(
      `${rows} rows for ${down / groupWarps} times 64`,
      `choose a multiple of ${16 * down}`,
    );
  if (rows > groupRows || columns > groupColumns) {
    const why = "a copy moves at most 256 rows";
    return unfit(why, `choose at most ${groupRows} rows and ${groupColumns} columns`);
  }
  if (form.sum === "i32" && columns > fewColumns && columns % 16 !== 0) {
    const why = `${columns} columns of integers are no multiple of 16`;
    return unfit(why, `choose a multiple of 16 columns, or at most ${fewColumns}`);
  }
  if (form.columns.line.along === "space" && streamedPanel(columns) === 0) {
    const why = `${columns} columns that are neighbours are no multiple of 16`;
    return unfit(why, "choose a multiple of 16 columns");
  }
  return depth !== deep || swizzle !== 128
    ? unfit(`a row of a stage is ${deep} elements, swizzle 128`, `say depth ${deep}, swizzle 128`)
    : undefined;
}

/** What multiplies what tensor copies cannot bring. */
function byOthers({ dtype }: ProductForm): string {
  return `multiply by ${dtype === "f32" ? "fma" : "mma"}, or store the operand as a matrix whose rows are multiples of 16 bytes`;
}

/** Of the steps along the depth and their stages. */
function stepFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const depth = d.tile[2];
  const deep = leastDepthOf(d.by, form.dtype);
  if (depth % deep !== 0) {
    const why = `a depth of ${depth}, not a multiple of ${deep}`;
    return unfit(why, `choose a depth that is a multiple of ${deep}`);
  }
  if (passesRegisters(form) && d.stages > 2)
    return unfit("what passes through registers is one stage ahead", "say stages 2");
  return d.stages < 2
    ? unfit("one stage: copies would wait for what they overwrite", "choose 2 stages or more")
    : undefined;
}

function registersFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const sums = sumsOfThread(d);
  const fewer = "choose fewer rows or columns, or more warps";
  if (sums > mostSums) return unfit(`more than ${mostSums} sums in a thread`, fewer);
  const crowded = d.by === "wgmma" ? crowdedGroups(d, form) : crowdedThreads(d);
  if (crowded !== undefined) return crowded;
  const held = d.by === "wgmma" ? 0 : heldRegisters(d, form);
  if (sums + held > mostHeld) {
    const why = `${sums} sums and ${held} registers for copies in a thread, of at most ${mostHeld}`;
    return unfit(why, `${fewer}, or a smaller depth`);
  }
  return d.by === "wgmma" && sumsApart(form) && sums + d.tile[1] / 2 > mostAndPartial
    ? unfit(`more than ${mostAndPartial} sums and parts of sums in a thread`, fewer)
    : undefined;
}

/** Registers of a thread where a block of so many threads is the only one. */
function registersOf(threads: number): number {
  return Math.min(
    mostRegisters,
    Math.floor(blockRegisters / threads / registerUnit) * registerUnit,
  );
}

/** Why threads that hold operands in registers as well have too few, or undefined. */
function crowdedThreads(d: MultiplyDirective): TileFault | undefined {
  const { by, tile, warps } = d;
  const [tall, wide] = [tile[0] / warps[0], tile[1] / warps[1]];
  const operands =
    by === "fma"
      ? vectorDepth * (tall / threadRows + wide / threadColumns)
      : (fragmentRegisters * (tall + wide)) / fragmentLines;
  const sums = sumsOfThread(d);
  const threads = 32 * warps[0] * warps[1];
  const all = sums + operands + besideOperands;
  if (all <= registersOf(threads)) return undefined;
  const why = `${sums} sums, ${operands} registers for operands and ${besideOperands} others in a thread, of ${registersOf(threads)} that one of ${threads} has`;
  return unfit(why, "choose fewer rows or columns, or warps whose tiles are nearer to squares");
}

/** Why warpgroups have too few: of three beside the one that copies. */
function crowdedGroups(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const groups = (d.teams * d.warps[0]) / groupWarps;
  const threads = 32 * groupWarps * (1 + groups);
  const begins = registersOf(threads);
  const own = d.tile[1] / 2;
  const cure = "choose fewer columns, or warps (8, 1)";
  if (own + besideInstruction > begins) {
    const why = `${own} sums of an instruction and ${besideInstruction} registers beside them in a thread, of ${begins} that one of ${threads} begins with`;
    return unfit(why, cure);
  }
  if (groups < mostGroups) return undefined;
  // Beside its sums a thread holds those of a step, and what other blocks of the cluster bring.
  const sums = sumsOfThread(d);
  const held = sums * (d.parts > 1 ? 2 : 1) + (sumsApart(form) ? own : 0);
  const why = `${held} sums, parts of sums and sums of other blocks in a thread of ${groups} warpgroups, of at most ${mostOfThree}`;
  return held > mostOfThree ? unfit(why, cure) : undefined;
}

/** Whether something becomes of both operands on their way. */
function passesRegisters({ rows, columns }: ProductForm): boolean {
  return rows.prologue !== undefined && columns.prologue !== undefined;
}

function isTaken(by: MultiplyDirective["by"], dtype: DType): boolean {
  if (by === "fma" || dtype === "f32") return dtype === "f32";
  return isNarrow(dtype) || isByte(dtype) || isByteFloat(dtype);
}

/** Matrix loads turn elements of 16 bits alone. */
function isAlongDepth({ rows, columns }: ProductForm): boolean {
  return rows.line.along === "depth" && columns.line.along === "depth";
}

function leastDepthOf(by: MultiplyDirective["by"], dtype: DType): number {
  if (by === "fma") return vectorDepth;
  return by === "wgmma" ? streamedDepth(dtype) : (8 * instructionBytes) / dtypes[dtype].bits;
}

/** Why blocks cannot go on from tile to tile, or warps not take turns with others. */
function turnFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { by, warps, blocks, teams } = d;
  if (blocks === 0) {
    const why = "teams take turns where blocks go on to further tiles";
    return teams > 1 ? unfit(why, "say teams 1, or how many blocks there are") : undefined;
  }
  const alone = "leave `blocks` out: each has one tile";
  if (by !== "wgmma") return unfit("only warpgroups go on from tile to tile", alone);
  if (form.picks.length > 0) return unfit("data says for each tile what its operand is", alone);
  const tiles = productTiles(d, form);
  if (blocks > tiles) return unfit(`${blocks} blocks for ${tiles} tiles`, `say at most ${tiles}`);
  return teams * warps[0] > mostGroups * groupWarps
    ? unfit(
        `${teams} teams of ${warps[0]} warps`,
        `choose at most ${mostGroups * groupWarps} warps in all teams`,
      )
    : undefined;
}

/** Why what the epilogue reads cannot be loaded before the products. */
function aheadFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const why = d.ahead ? whyNotAhead(d, form) : undefined;
  return why === undefined ? undefined : unfit(why, "leave `ahead` out");
}

function whyNotAhead(d: MultiplyDirective, form: ProductForm): string | undefined {
  const { by, tile, results, parts } = d;
  if (parts > 1) return "blocks that exchange sums need the registers";
  if (by !== "wgmma" || results === 0) return "only warpgroups that gather results load ahead";
  if (form.operandBits === 0) return "the epilogue reads nothing for each result";
  if (form.roundsFunctions) return "functions and what they are rounded to need the registers";
  const sums = sumsOfThread(d);
  const held = (sums * form.operandBits) / 32 + (sumsApart(form) ? tile[1] / 2 : 0);
  return sums + held > mostAndPartial ? "registers do not hold the operands" : undefined;
}

/** Why results cannot go through shared memory. */
function gatherFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { by, tile, results, blocks, parts } = d;
  if (results === 0) return undefined;
  const apart = "leave `results` out: threads store them";
  if (by !== "wgmma") return unfit("only warpgroups gather results", apart);
  const sums = sumsOfThread(d);
  const most = blocks > 0 ? fewSums : withFunctions;
  if (form.operandBits > 0 && form.roundsFunctions && sums > most) {
    const why = `${sums} sums in a thread beside rounded functions of operands, of at most ${most}`;
    return unfit(why, `choose fewer columns or more warps, or ${apart}`);
  }
  if (resultColumns({ tile, parts }, form) === 0) {
    const why = `${tile[1]} columns, or heads of them, are no multiple of ${16 * parts}`;
    return unfit(why, `choose a multiple of ${16 * parts} columns, or ${apart}`);
  }
  return form.unwritable === undefined ? undefined : unfit(form.unwritable, apart);
}
