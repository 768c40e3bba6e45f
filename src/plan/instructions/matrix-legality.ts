/**
 * Whether a matrix instruction exists: type, shape, accumulator and architecture against the table, with
 * the reason where it does not.
 */
import {
  type AccumulatorType,
  type Availability,
  type MatrixRow,
  matrixRows,
  type OperandType,
  type PtxTarget,
  type TensorMemoryRow,
  tensorMemoryRows,
} from "./matrix-table.ts";

export interface MatrixRequest {
  readonly family: MatrixRow["family"];
  readonly a: OperandType;
  readonly b: OperandType;
  readonly accumulator: AccumulatorType;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly modifier?: MatrixRow["modifier"];
}

export interface TensorMemoryRequest {
  readonly kind: string;
  /** Blocks that work together: 1 or 2. */
  readonly blocks: number;
  readonly scaleVector?: string;
  /** Of the result tile; absent: only the text is judged. */
  readonly shape?: { readonly m: number; readonly n: number; readonly k: number };
}

export type Legality = { readonly legal: true } | { readonly legal: false; readonly why: string };

const legal: Legality = { legal: true };
const illegal = (why: string): Legality => ({ legal: false, why });

export function isAvailable(on: Availability, target: PtxTarget): boolean {
  if (typeof on !== "number") return on.includes(target);
  // Numbers, not texts: 9.0 comes before 10.0.
  return Number.parseInt(target, 10) >= on;
}

export function checkMatrix(request: MatrixRequest, target: PtxTarget): Legality {
  const { family, a, b, accumulator, m, n, k, modifier } = request;
  const byType = matrixRows.filter(
    (r) => r.family === family && r.modifier === modifier && r.a.includes(a) && r.b.includes(b),
  );
  if (byType.length === 0) return illegal(`${family} does not multiply ${a} by ${b}`);
  const byResult = byType.filter((r) => r.accumulators.includes(accumulator));
  if (byResult.length === 0)
    return illegal(`${family} of ${a} and ${b} has no ${accumulator} sums`);
  const byShape = byResult.filter((r) => r.m.includes(m) && r.n.includes(n) && r.k.includes(k));
  if (byShape.length === 0)
    return illegal(`${family} of ${a} and ${b} has no shape m${m}n${n}k${k}`);
  return byShape.some((r) => isAvailable(r.on, target))
    ? legal
    : illegal(`sm_${target} has no ${family}.m${m}n${n}k${k} of ${a} and ${b}`);
}

export function checkTensorMemory(request: TensorMemoryRequest, target: PtxTarget): Legality {
  const { kind, blocks, scaleVector, shape } = request;
  const row = tensorMemoryRows.find((r) => r.kind === kind);
  if (!row) return illegal(`tcgen05.mma has no kind ${kind}`);
  if (blocks !== 1 && blocks !== 2) return illegal(`${blocks} blocks cannot work together`);
  const scales = row.scaleVectors as readonly string[] | undefined;
  if (scaleVector === undefined ? scales !== undefined : !scales?.includes(scaleVector)) {
    return illegal(`kind ${kind} takes ${scales?.join(" or ") ?? "no"} scale vectors`);
  }
  if (!row.on.includes(target)) return illegal(`sm_${target} has no tcgen05.mma of kind ${kind}`);
  return shape ? checkTensorMemoryShape(row, blocks, shape) : legal;
}

/** PTX ISA 9.0, 9.7.16.2.1: shapes of tcgen05.mma by kind and group of blocks. */
function checkTensorMemoryShape(
  { kind, k: depth }: TensorMemoryRow,
  blocks: number,
  { m, n, k }: { readonly m: number; readonly n: number; readonly k: number },
): Legality {
  const scaled = kind.startsWith("mx");
  const rows = blocks === 2 ? (scaled ? [256] : [128, 256]) : scaled ? [128] : [64, 128];
  if (!rows.includes(m)) return illegal(`M of ${kind} is ${rows.join(" or ")}, not ${m}`);
  const step = columnStep(kind, blocks, m);
  if (n % step !== 0 || n < step || n > 256) {
    return illegal(`N of ${kind} with M ${m} is a multiple of ${step} up to 256, not ${n}`);
  }
  if (kind === "i8" && n > 32 && n % 16 !== 0) {
    return illegal(`N of i8 above 32 is a multiple of 16, not ${n}`);
  }
  return k === depth ? legal : illegal(`K of ${kind} is ${depth}, not ${k}`);
}

function columnStep(kind: string, blocks: number, m: number): number {
  if (kind.startsWith("mx")) return blocks === 2 ? 16 : 8;
  if (blocks === 2) return 16;
  return m === 64 ? 8 : 16;
}
