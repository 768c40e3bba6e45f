/**
 * Sums of products of bytes, or of bf16, that an instruction adds four (or two) at a time: a vector loop over results and
 * one of as many trips over the depth. In: a statement. Out: which read is the data, contiguous along the depth,
 * which is the weight (signed bytes, numbers of 16 bits, bf16), or why there is no such form. The layout of the weights puts the four
 * elements of each result side by side, so that one register holds those of all lanes.
 */
import type { Access, Region, Statement } from "../../region/nest.ts";
import type { DType } from "../../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  splitLinear,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { LayoutMap } from "../../semantics/layout.ts";
import type { ScalarExpr } from "../../semantics/scalar-expr.ts";
import { byteProducts, type Target } from "../../target/target.ts";

/** What data of products may be: bytes, or numbers of 16 bits that were widened where they were stored. */
type DotData = "u8" | "i16" | "bf16";
/** What products are summed in. */
type DotSum = "i32" | "f32";

/** An instruction by the products that one of its lanes sums; bytes are widened for those of 16 bits. */
interface DotInstruction {
  readonly terms: number;
  readonly sum: DotSum;
  readonly name: string;
  readonly data: readonly DotData[];
  readonly weights: readonly DType[];
}

const dotInstructions: readonly DotInstruction[] = [
  { terms: 4, sum: "i32", name: "vpdpbusd", data: ["u8"], weights: ["i8"] },
  { terms: 2, sum: "i32", name: "vpdpwssd", data: ["u8", "i16"], weights: ["i8", "i16"] },
  { terms: 2, sum: "f32", name: "vdpbf16ps", data: ["bf16"], weights: ["bf16"] },
];

/** The instruction that sums so many products in each of some lanes; undefined: there is none. */
export function dotInstruction(sum: DType, terms: number, lanes: number): string | undefined {
  const found = dotInstructions.find((d) => d.terms === terms && d.sum === sum);
  return found && nameOf(found, lanes);
}

function nameOf({ name, sum }: DotInstruction, lanes: number): string {
  return `${name}.${sum}x${lanes}`;
}

/** Products that one lane of a target's instruction for bytes sums; undefined: it has none for whole vectors. */
export function dotTermsOf(target: Target): number | undefined {
  return byteInstructionsOf(target)[0]?.terms;
}

/** Whether a target sums products by weights of 16 bits. */
export function takesWideWeights(target: Target): boolean {
  return byteInstructionsOf(target).some((d) => d.weights.includes("i16"));
}

/** Whether a target sums products of pairs of bf16. */
export function multipliesHalfPairs(target: Target): boolean {
  return instructionsOf(target).some((d) => d.sum === "f32");
}

/** Products that one lane of the instruction for a statement sums; undefined: the target has none for it. */
export function dotTermsFor(
  target: Target,
  region: Pick<Region, "tensors">,
  statement: Statement,
): number | undefined {
  return instructionsOf(target).find((d) => dotForm(region, statement, d.terms))?.terms;
}

/** What data of convolutions and of contractions are multiplied as. */
interface DotDataChoice {
  readonly data: Exclude<DotData, "bf16"> | "bytes";
  readonly contracted?: Exclude<DotData, "bf16">;
}

/**
 * What a target's instruction is best given as data. Spreading a pair of bytes and widening it are two
 * instructions an operand, a pair of 16 bits is spread by its load. In code that an engine compiles, convolutions
 * gained nothing by it (ResNet-50 in bytes 0.94), and half the memory is kept; products of matrices did
 * (T5's encoder on 128 tokens 1.18, 512x512x128 alone 1.2 to 1.3). Matrix units take bytes of either sign.
 */
export function dotDataOf(target: Target): DotDataChoice | undefined {
  if (target.blocks) {
    const multiplies = matrixBytes.every((c) => target.capabilities.has(c));
    return multiplies ? { data: "bytes" } : undefined;
  }
  const taken = byteInstructionsOf(target)[0]?.data.filter((data) => data !== "bf16");
  const [first, widest] = [taken?.[0], taken?.at(-1)];
  if (first === undefined || widest === undefined) return undefined;
  return target.compiledByEngine ? { data: first, contracted: widest } : { data: widest };
}

/** What a machine of blocks needs to multiply bytes as matrices. */
const matrixBytes = ["mma", "ldmatrix", "int8"] as const;

/** Whether a machine's matrix units multiply floats of 8 bits. */
export function multipliesByteFloats({ blocks }: Target): boolean {
  return blocks !== undefined && "f8e4m3fn" in blocks.warpMatrixFlopsPerNs;
}

/** The one that sums most first. */
function instructionsOf({ capabilities, vectorBytes }: Target): readonly DotInstruction[] {
  const lanes = vectorBytes / 4;
  return dotInstructions.filter((d) => capabilities.has(nameOf(d, lanes)));
}

function byteInstructionsOf(target: Target): readonly DotInstruction[] {
  if (!target.capabilities.has(byteProducts)) return [];
  return instructionsOf(target).filter((d) => d.sum === "i32");
}

export interface DotForm {
  /** Numbers of the reads. */
  readonly data: number;
  readonly weights: number;
}

/** The two reads of a sum of products that an instruction takes so many terms of; undefined: it is none. */
export function dotForm(
  region: Pick<Region, "tensors">,
  statement: Statement,
  terms: number,
): DotForm | undefined {
  const { reduction, body, reads, indirects } = statement;
  const [root] = body;
  if (reduction?.monoid.name !== "sum" || body.length !== 1 || indirects.length > 0)
    return undefined;
  if (root!.kind !== "apply" || root!.op !== "mul") return undefined;
  const [a, b] = root!.operands.map(widened);
  if (a === undefined || b === undefined || reads.length !== 2) return undefined;
  const known = dotInstructions.find((d) => d.terms === terms && d.sum === root!.dtype);
  const isForm = ({ data, weights }: DotForm): boolean => {
    const [x, w] = [data, weights].map((read) => region.tensors.get(reads[read]!.tensor)!);
    if (!known?.data.some((dtype) => dtype === x!.dtype)) return false;
    return known.weights.includes(w!.dtype) && (w!.dtype === "i8" || w!.role === "weight");
  };
  return [
    { data: a, weights: b },
    { data: b, weights: a },
  ].find(isForm);
}

function widened(e: ScalarExpr): number | undefined {
  return e.kind === "cast" && e.operand.kind === "argument" ? e.operand.index : undefined;
}

/** Axes of the weights along which a result's lanes and the depth lie; undefined: the loops do not fit. */
export function dotAxes(
  region: Region,
  statement: Statement,
  loops: { readonly lane: string; readonly depth: string; readonly terms: number },
): { readonly tensor: string; readonly lane: number; readonly depth: number } | undefined {
  const form = dotForm(region, statement, loops.terms);
  if (!form) return undefined;
  const data = statement.reads[form.data]!;
  const weights = statement.reads[form.weights]!;
  const extent = statement.loops.find((l) => l.name === loops.depth)?.extent;
  const depth = extent && constantValue(extent);
  if (depth === undefined || depth % loops.terms !== 0) return undefined;
  if (!isContiguous(data, loops.depth) || mentions(data, loops.lane)) return undefined;
  if (region.tensors.get(weights.tensor)!.role !== "weight" || weights.guard.length > 0) {
    return undefined;
  }
  if (variablesOf(...statement.guard.map((c) => c.expr)).has(loops.depth)) return undefined;
  const [lane, over] = [loops.lane, loops.depth].map((name) => axisOf(weights, name));
  if (lane === undefined || over === undefined) return undefined;
  return { tensor: weights.tensor, lane, depth: over };
}

/** Neighbours along the last axis, and read or filled together. */
function isContiguous({ index, guard }: Access, loop: string): boolean {
  const steps = index.map((e) => splitLinear(e, loop)?.coefficient);
  const near = steps.at(-1) === 1 && steps.slice(0, -1).every((step) => step === 0);
  return near && !variablesOf(...guard.map((c) => c.expr)).has(loop);
}

function mentions({ index, guard }: Access, loop: string): boolean {
  return variablesOf(...index, ...guard.map((c) => c.expr)).has(loop);
}

/** The one axis whose index is the loop itself. */
function axisOf({ index }: Access, loop: string): number | undefined {
  const axes = index.flatMap((e, axis) => (variablesOf(e).has(loop) ? [axis] : []));
  const [axis] = axes;
  return axes.length === 1 && index[axis!]!.key === loop ? axis : undefined;
}

/** [lane / width, …the rest, depth in fours…, width x 4]: the fours (or pairs) of a block's lanes innermost. */
export function dotLayout(
  shape: readonly IndexExpr[],
  axes: { readonly lane: number; readonly depth: number; readonly terms: number },
  width: number,
): LayoutMap {
  const { terms } = axes;
  const rest = shape.flatMap((_, i) => (i === axes.lane ? [] : [i]));
  const last = variable(`p${rest.length + 1}`);
  const logical = shape.map((_, i) => {
    if (i === axes.lane) return add(mul(width, variable("p0")), floorDiv(last, terms));
    const at = variable(`p${1 + rest.indexOf(i)}`);
    return i === axes.depth ? add(mul(terms, at), mod(last, terms)) : at;
  });
  const [lane, depth] = [variable(`l${axes.lane}`), variable(`l${axes.depth}`)];
  return {
    shape: [
      ceilDiv(shape[axes.lane]!, width),
      ...rest.map((i) => (i === axes.depth ? ceilDiv(shape[i]!, terms) : shape[i]!)),
      add(terms * width),
    ],
    logical,
    stored: [
      floorDiv(lane, width),
      ...rest.map((i) => (i === axes.depth ? floorDiv(depth, terms) : variable(`l${i}`))),
      add(mul(terms, mod(lane, width)), mod(depth, terms)),
    ],
  };
}
