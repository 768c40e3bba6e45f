/** Elementwise ops: the scalar operators over broadcast operands, conversion, tests for infinity. */
import type { DType } from "../../semantics/dtype.ts";
import { resultType, type ScalarOp, scalarOps } from "../../semantics/scalar-expr.ts";
import { boolean, dtype, optional } from "../attr-schema.ts";
import { broadcastShapes, checkDType, commonDType, type DTypeClass } from "../inference.ts";
import type { OpInfo, OpRows, OpTraits } from "../op-info.ts";
import { elementsOf } from "../tensor-type.ts";

/** Which element types an operator takes; absent: every numeric type. */
const operandClass: Partial<Record<ScalarOp, DTypeClass | DType>> = {
  orderKey: "f32",
  floor: "float",
  ceil: "float",
  round: "float",
  trunc: "float",
  exp: "float",
  log: "float",
  sqrt: "float",
  reciprocal: "float",
  sin: "float",
  cos: "float",
  tan: "float",
  asin: "float",
  acos: "float",
  atan: "float",
  sinh: "float",
  cosh: "float",
  tanh: "float",
  asinh: "float",
  acosh: "float",
  atanh: "float",
  erf: "float",
  sigmoid: "float",
  isNan: "float",
  atan2: "float",
  neg: "signed",
  not: "bool",
  and: "bool",
  or: "bool",
  xor: "bool",
  bitNot: "integer",
  bitAnd: "integer",
  bitOr: "integer",
  bitXor: "integer",
  shiftLeft: "integer",
  shiftRight: "integer",
  equal: "any",
  select: "any",
};

const jointlyLinear: readonly ScalarOp[] = ["neg", "add", "sub"];
/** Selections and tests do no arithmetic. */
const free: readonly ScalarOp[] = ["select", "not", "and", "or", "xor", "isNan"];

function elementwise(op: ScalarOp): OpInfo<ScalarOp> {
  const info: (typeof scalarOps)[ScalarOp] & { readonly commutative?: true } = scalarOps[op];
  const traits: OpTraits = {
    elementwise: op,
    ...(info.commutative ? { commutative: true } : {}),
    ...(jointlyLinear.includes(op) ? { linear: "jointly" } : {}),
    ...(op === "mul" ? { linear: "each" } : {}),
  };
  const row: OpInfo<ScalarOp> = {
    arity: [info.arity, info.arity],
    schema: {},
    traits,
    infer: (inputs, _attrs, ctx) => {
      const valued = info.typing === "select" ? inputs.slice(1) : inputs;
      if (info.typing === "select") checkDType(ctx, inputs[0]!, "bool", "the condition");
      const common = commonDType(ctx, valued);
      checkDType(ctx, valued[0]!, operandClass[op] ?? "numeric", `the operand of ${op}`);
      const shape = broadcastShapes(
        ctx,
        inputs.map((t) => t.shape),
      );
      return [{ dtype: resultType(op, common), shape }];
    },
  };
  return free.includes(op) ? row : { ...row, flops: (call) => elementsOf(call.outputs[0]!) };
}

const scalarRows = Object.fromEntries(
  (Object.keys(scalarOps) as ScalarOp[]).map((op) => [op, elementwise(op)]),
) as unknown as OpRows<ScalarOp>;

export const elementwiseOps = {
  ...scalarRows,
  cast: {
    arity: [1, 1],
    schema: { to: dtype, saturate: boolean, rounds: optional(boolean) },
    traits: { conversion: true },
    infer: ([x], { to }) => [{ dtype: to, shape: x!.shape }],
  },
  isInf: {
    arity: [1, 1],
    schema: { detectNegative: boolean, detectPositive: boolean },
    traits: {},
    infer: ([x], _attrs, ctx) => {
      checkDType(ctx, x!, "float", "the operand");
      return [{ dtype: "bool", shape: x!.shape }];
    },
  },
} satisfies OpRows<ScalarOp | "cast" | "isInf">;
