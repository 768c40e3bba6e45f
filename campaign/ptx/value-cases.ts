/**
 * A kernel for every scalar operator and conversion of the program form, in every dtype that emitters
 * compute with and in vectors: what the campaign assembles and bench/device/ptx-values.ts runs. A thread takes
 * one vector; the last vectors are read under a guard that fails.
 */
import { maxUlp } from "../../src/emit/ptx/math-rows.ts";
import { type DType, dtypes } from "../../src/semantics/dtype.ts";
import { wrapBig } from "../../src/semantics/integer.ts";
import { resultType, type ScalarOp, scalarOps } from "../../src/semantics/scalar-expr.ts";
import {
  bigMeaningOf,
  castScalar,
  numberMeaningOf,
  roundNumber,
  type ScalarValue,
} from "../../src/semantics/scalar-meaning.ts";

export const valueCount = 4096;
const plainTypes: readonly DType[] = [
  ...(["f32", "f64", "f16", "bf16", "i32", "u32", "i64", "u64"] as const),
  ...(["i16", "u16", "i8", "u8", "bool", "f8e4m3fn", "f8e5m2"] as const),
];
/** Moved, computed with and converted to and from plain ones. */
const rareTypes: readonly DType[] = [
  ...(["i4", "u4", "i2", "u2", "f8e4m3fnuz", "f8e5m2fnuz", "f4e2m1", "e8m0"] as const),
];
export const valueTypes: readonly DType[] = [...plainTypes, ...rareTypes];
const lanes = [1, 2, 3, 4, 8, 16];

export interface ValueCase {
  readonly name: string;
  /** Types of what is read and of the result. */
  readonly inputs: readonly DType[];
  readonly output: DType;
  readonly lanes: number;
  /** The value over loads a0, a1, … */
  readonly value: string;
  readonly meaning: (...x: readonly ScalarValue[]) => ScalarValue;
  readonly ulp: number;
  /** Subnormal results may be zero. */
  readonly flushes: boolean;
  readonly limit?: number;
}

/** Floats of at most 8 bits are moved and converted, and some are added. */
const isTiny = (d: DType): boolean => d === "e8m0" || (isFloat(d) && dtypes[d].bits <= 8);
const tinyOps: readonly ScalarOp[] = ["add", "less"];

const isFloat = (d: DType): boolean => dtypes[d].kind === "float";
const exactOps = new Set<ScalarOp>([
  ...([
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sqrt",
    "reciprocal",
    "relu",
  ] as const),
  ...([
    "not",
    "bitNot",
    "isNan",
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "floorMod",
    "min",
    "max",
  ] as const),
  ...(["equal", "less", "lessEqual", "and", "or", "xor", "bitAnd", "bitOr", "bitXor"] as const),
  ...(["shiftLeft", "shiftRight", "pow"] as const),
]);
const logical = new Set<ScalarOp>(["and", "or", "xor"]);
const bitwise = new Set<ScalarOp>([
  "bitNot",
  "bitAnd",
  "bitOr",
  "bitXor",
  "shiftLeft",
  "shiftRight",
]);

/** Whether the operator has a meaning on the dtype. */
function applies(op: ScalarOp, dtype: DType): boolean {
  const { kind } = dtypes[dtype];
  if (op === "select") return false;
  if (op === "orderKey") return dtype === "f32";
  if (isTiny(dtype)) return tinyOps.includes(op);
  if (kind === "bool") {
    return (
      logical.has(op) ||
      ["not", "equal", "less", "lessEqual", "min", "max", "add", "mul"].includes(op)
    );
  }
  if (logical.has(op)) return false;
  if (isFloat(dtype)) return !bitwise.has(op);
  return exactOps.has(op) && op !== "sqrt" && op !== "not";
}

function opCase(op: ScalarOp, dtype: DType, width: number): ValueCase {
  const { arity } = scalarOps[op];
  const output = resultType(op, dtype);
  const inputs = new Array<DType>(arity).fill(dtype);
  const big = dtype === "i64" || dtype === "u64";
  const meaning = (...x: readonly ScalarValue[]): ScalarValue => {
    if (big) {
      const value = bigMeaningOf(op, dtype)(x[0] as bigint, (x[1] ?? 0n) as bigint, 0n);
      return output === "bool" ? Number(value) : wrapBig(dtype, value);
    }
    const raw = numberMeaningOf(op, dtype)(x[0] as number, (x[1] ?? 0) as number, 0);
    return roundNumber(output, raw);
  };
  const stated = maxUlp[op];
  // A sum of powers of two is one of f32, of which what f32 drops is no longer rounded up.
  const dropped = dtype === "e8m0" && op === "add" ? 1 : 0;
  const ulp =
    !isFloat(dtype) || !stated
      ? dropped
      : dtype === "f64"
        ? stated.f64
        : dtype === "f32"
          ? stated.f32
          : 1;
  const args = inputs.map((_, i) => `a${i}`).join(", ");
  const periodic = op === "sin" || op === "cos" || op === "tan";
  // Beyond it the float64 meaning underflows in its denominator.
  const bounded = periodic ? { limit: 1e5 } : op === "sigmoid" ? { limit: 700 } : {};
  return {
    name: `${op}.${dtype}x${width}`,
    inputs,
    output,
    lanes: width,
    value: `${op}(${args})`,
    meaning,
    ulp,
    flushes: op === "exp" || op === "sigmoid",
    ...bounded,
  };
}

function castCase(from: DType, to: DType, saturate: boolean, width: number): ValueCase {
  return {
    name: `cast${saturate ? ".saturate" : ""}.${from}.${to}x${width}`,
    inputs: [from],
    output: to,
    lanes: width,
    value: `cast.${to}${saturate ? ".saturate" : ""}(a0)`,
    meaning: (x) => castScalar(x, to, saturate),
    ulp: 0,
    flushes: false,
  };
}

function type(dtype: DType, width: number): string {
  return width === 1 ? dtype : `${dtype}x${width}`;
}

/** One kernel a case: a thread takes one vector; the last ones read under a guard that fails. */
function kernelText(c: ValueCase, number: number): string {
  const vectors = Math.floor(valueCount / c.lanes);
  const loads = c.inputs.map((d, i) => {
    const guard = i === 0 ? ` where {${vectors - 8} - 128*b - t >= 0} else 1` : "";
    return `let a${i} = load.${type(d, c.lanes)} x${i}.${d}[${128 * c.lanes}*b + ${c.lanes}*t]${guard}`;
  });
  return `  kernel c${number} region ${JSON.stringify(c.name)} {
    grid blocks (b < ${Math.ceil(vectors / 128)})
    role all copies 1 threads 128 as t {
      if ${vectors - 1} - 128*b - t >= 0 {
        ${loads.join("\n        ")}
        store y.${c.output}[${128 * c.lanes}*b + ${c.lanes}*t] = ${c.value}
      }
    }
  }`;
}

export function programText(cases: readonly ValueCase[]): string {
  const buffers = valueTypes.flatMap((d) => [
    `  buffer x0.${d} : input memory ${d} [${valueCount}] source "x0.${d}"`,
    `  buffer x1.${d} : input memory ${d} [${valueCount}] source "x1.${d}"`,
    `  buffer y.${d} : output memory ${d} [${valueCount}] source "y.${d}"`,
  ]);
  const kernels = cases.map(kernelText);
  const tasks = cases.map((_, i) => `    launch c${i} after previous`);
  return [
    'program values for "cuda" {',
    ...buffers,
    ...kernels,
    "  tasks {",
    ...tasks,
    "  }",
    "}",
    "",
  ].join("\n");
}

export function casesOf(dtype: DType): readonly ValueCase[] {
  const ops = (Object.keys(scalarOps) as ScalarOp[]).filter((op) => applies(op, dtype));
  const several: readonly ScalarOp[] = dtype === "bool" ? ["and"] : ["add", "less"];
  const wide = isTiny(dtype) ? [] : several;
  return [
    ...ops.map((op) => opCase(op, dtype, 1)),
    ...lanes.slice(1).flatMap((n) => wide.map((op) => opCase(op, dtype, n))),
    ...valueTypes
      .filter((to) => to !== dtype && !(isRare(dtype) && isRare(to)))
      .flatMap((to) => [
        ...[false, true].map((s) => castCase(dtype, to, s, 1)),
        ...(isRare(dtype) || isRare(to) ? [8] : [2, 4, 8]).map((n) =>
          castCase(dtype, to, false, n),
        ),
      ]),
  ];
}

function isRare(dtype: DType): boolean {
  return rareTypes.includes(dtype);
}
