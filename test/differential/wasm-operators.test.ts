/**
 * Every scalar operator and conversion as WebAssembly runs it, alone and in lanes, against the meaning
 * in semantics/scalar-meaning.ts: exact but for transcendental functions, which may differ by the ulp
 * that their row states (2 where Math computes them).
 */
import { describe, expect, it } from "vitest";
import { mathRows } from "../../src/emit/wasm/math-rows.ts";
import { applyExpr, castExpr, forLoop, loadExpr, storeTo } from "../../src/program/expr.ts";
import type { Program } from "../../src/program/program.ts";
import type { Expr } from "../../src/program/statement.ts";
import { createWasmInstance } from "../../src/runtime/wasm/wasm-instance.ts";
import { type DType, dtypes } from "../../src/semantics/dtype.ts";
import * as ix from "../../src/semantics/index-expr.ts";
import { integerRange } from "../../src/semantics/integer.ts";
import {
  apply,
  argument,
  cast,
  type ScalarOp,
  scalarOps,
} from "../../src/semantics/scalar-expr.ts";
import {
  castScalar,
  evaluateScalar,
  type ScalarValue,
} from "../../src/semantics/scalar-meaning.ts";
import {
  fromRef,
  refTensor,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

const computed: readonly DType[] = [
  ...(["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16"] as const),
  ...(["i32", "u32", "i64", "u64", "bool"] as const),
];
const count = 256;

/** Special values first, then random ones, on the dtype's grid. */
function sample(rng: Rng, dtype: DType): ScalarValue[] {
  const { kind, bits } = dtypes[dtype];
  const specials: (number | bigint)[] =
    kind === "float"
      ? [
          0,
          -0,
          1,
          -1,
          0.5,
          2.5,
          -2.5,
          1e-40,
          3e38,
          -3e38,
          Infinity,
          -Infinity,
          NaN,
          127.5,
          255.7,
          4e9,
        ]
      : [0, 1, 2, 3, 7, 31, 32, 33, 63, 64];
  if (kind === "int" || kind === "uint") {
    const { min, max } = integerRange(dtype);
    specials.push(min, max, max - 1n, max / 2n, kind === "int" ? -1n : 5n, min / 2n);
  }
  const draw = (): number | bigint => {
    if (kind === "bool") return rng.integer(0, 1);
    if (kind !== "float")
      return BigInt.asUintN(bits, (BigInt(rng.bits()) << 32n) | BigInt(rng.bits()));
    return rng.normal() * rng.pick([1, 1, 10, 100, 1e5, 1e-3]);
  };
  return Array.from({ length: count }, (_, i) => {
    const raw = i < specials.length ? specials[i]! : draw();
    return castScalar(raw, dtype, false);
  });
}

/** y[i] = expr over x0, x1, … in vectors of `lanes`, run; the values of y. */
function run(
  operands: readonly (readonly [DType, readonly ScalarValue[]])[],
  lanes: number,
  make: (loads: readonly Expr[]) => Expr,
): ArrayLike<ScalarValue> | undefined {
  const i = ix.mul(lanes, ix.variable("i"));
  const loads = operands.map(([dtype], n) => loadExpr(`x${n}`, [i], { dtype, lanes }));
  const value = make(loads);
  const buffer = (name: string, kind: "input" | "output", dtype: DType) => {
    return { name, kind, scope: "memory", dtype, lanes: 1, shape: [ix.constant(count)] } as const;
  };
  const body = [forLoop("i", count / lanes, [storeTo("y", [i], value)])];
  const program: Program = {
    name: "op",
    target: "wasm",
    parameters: [],
    requires: [],
    buffers: [
      ...operands.map(([dtype], n) => buffer(`x${n}`, "input", dtype)),
      buffer("y", "output", value.dtype),
    ],
    counters: [],
    kernels: [
      {
        name: "k",
        grid: {
          unit: "threads",
          axes: [{ name: "t", extent: ix.constant(1) }],
          clusterSize: 1,
          resident: false,
        },
        buffers: [],
        counters: [],
        roles: [{ name: "main", copies: 1, threads: 1, body }],
        region: "k",
      },
    ],
    tasks: [
      { kind: "launch", kernel: "k", after: "previous", bindings: [], waits: [], signals: [] },
    ],
    states: [],
  };
  const made = createWasmInstance(program, { relaxedFma: false });
  if (!made.ok) {
    expect(made.diagnostics[0]!.code).toBe("EMT001");
    return undefined;
  }
  operands.forEach(([dtype, values], n) => {
    const tensor = fromRef(refTensor(dtype, [count], values as number[]));
    made.value.bytes(`x${n}`).set(tensorBytes(tensor));
  });
  expect(made.value.runSync({})).toMatchObject({ ok: true });
  return toRef(tensorFromBytes(value.dtype, [count], made.value.bytes("y"))).data;
}

const maxUlp = new Map(mathRows.map((r) => [r.name.split(".")[0]!, r.maxUlp]));
const transcendental = new Set<string>([
  ...maxUlp.keys(),
  ...["tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "pow", "atan2"],
]);

/** Distance in units of the last place of the dtype at `b`; 0 for equal, infinite across kinds. */
function distance(a: ScalarValue, b: ScalarValue, dtype: DType): number {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return 0;
  if (typeof a === "bigint" || typeof b === "bigint") return Infinity;
  const { format, max } = dtypes[dtype];
  if (!format) return Infinity;
  // An overflow is one step beyond the largest value.
  const [x, y] = [a, b].map((v) => (Math.abs(v) === Infinity ? Math.sign(v) * max * 1.0000001 : v));
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(y!) || 1e-300)), 1 - format.bias);
  return Math.abs(x! - y!) / 2 ** (exponent - format.mantissaBits);
}

function compare(
  got: ArrayLike<ScalarValue>,
  wanted: readonly ScalarValue[],
  limit: { readonly dtype: DType; readonly ulp: number; readonly inputs: readonly ScalarValue[][] },
): void {
  const wrong = wanted.flatMap((w, i) => {
    const ulp = distance(got[i]!, w, limit.dtype);
    const fits = ulp <= limit.ulp;
    return fits ? [] : [{ inputs: limit.inputs.map((v) => v[i]), wanted: w, got: got[i], ulp }];
  });
  expect(wrong.slice(0, 5)).toEqual([]);
}

/** A count from a little below zero to a little above the width. */
function boundedShift(value: ScalarValue, dtype: DType): ScalarValue {
  const count = Number(BigInt.asUintN(32, BigInt(value)) % 70n) - (dtype.startsWith("i") ? 3 : 0);
  return castScalar(count, dtype, false);
}

describe("operators", () => {
  const spelled: string[] = [];
  const cases = (Object.keys(scalarOps) as ScalarOp[]).flatMap((op) =>
    computed.map((dtype) => ({ op, dtype })),
  );

  it.each(cases)("$op of $dtype", ({ op, dtype }) => {
    const rng = new Rng(11);
    const { arity } = scalarOps[op];
    const types = Array.from({ length: arity }, (_, n) =>
      op === "select" && n === 0 ? ("bool" as const) : dtype,
    );
    const inputs = types.map((t) => sample(rng, t));
    // So that special values meet ordinary ones.
    inputs.forEach((values, n) => {
      if (n > 0) values.sort(() => rng.uniform() - 0.5);
    });
    if (op.startsWith("shift") && dtypes[dtype].format) return;
    if (op.startsWith("shift")) inputs[1] = inputs[1]!.map((v) => boundedShift(v, dtype));
    const scalar = apply(op, ...types.map((t, n) => argument(n, t)));
    let wanted: ScalarValue[];
    try {
      wanted = inputs[0]!.map((_, i) =>
        evaluateScalar(
          scalar,
          inputs.map((v) => v[i]!),
        ),
      );
    } catch {
      return;
    }
    for (const lanes of [1, 4, 16]) {
      const operands = types.map((t, n) => [t, inputs[n]!] as const);
      const got = run(operands, lanes, (loads) => applyExpr(op, ...loads));
      if (!got) return;
      const ulp = transcendental.has(op) ? (maxUlp.get(op) ?? 2) : 0;
      compare(got, wanted, { dtype: scalar.dtype, ulp, inputs });
      spelled.push(`${op} ${dtype}`);
    }
  });

  it("spells all operators of f32, i32 and i64 that have a meaning", () => {
    const arithmetic: ScalarOp[] = ["add", "mul", "div", "max", "less", "select", "abs", "relu"];
    for (const op of arithmetic) {
      for (const dtype of ["f32", "i32", "i64"]) expect(spelled).toContain(`${op} ${dtype}`);
    }
    for (const op of transcendental) expect(spelled).toContain(`${op} f32`);
  });
});

describe("conversions", () => {
  const cases = computed.flatMap((from) =>
    computed.flatMap((to) => [false, true].map((saturate) => ({ from, to, saturate }))),
  );

  it.each(cases)("$from to $to (saturating: $saturate)", ({ from, to, saturate }) => {
    if (from === to) return;
    const values = sample(new Rng(3), from);
    const scalar = cast(argument(0, from), to, saturate);
    const wanted = values.map((v) => evaluateScalar(scalar, [v]));
    for (const lanes of [1, 4, 16]) {
      const got = run([[from, values]], lanes, ([x]) => castExpr(x!, to, saturate));
      expect(got).toBeDefined();
      compare(got!, wanted, { dtype: to, ulp: 0, inputs: [values] });
    }
  });
});
