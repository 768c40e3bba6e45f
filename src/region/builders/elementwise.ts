/** Nests of the elementwise ops: one statement over the result, operands read at broadcast indices. */
import type { NodeOf } from "../../graph/graph.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  apply,
  cast,
  literal,
  type ScalarExpr,
  type ScalarOp,
} from "../../semantics/scalar-expr.ts";
import type { NestContext } from "./context.ts";

/** Any node whose result element is a function of one element of each operand. */
type ElementwiseNode = NodeOf<ScalarOp> | NodeOf<"cast"> | NodeOf<"isInf">;

function buildElementwise(
  context: NestContext,
  node: ElementwiseNode,
  scalar: (operands: readonly ScalarExpr[]) => ScalarExpr,
): void {
  const output = node.outputs[0]!;
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(output).shape);
  const operands = node.inputs.map((v) => draft.readBroadcast(v, at));
  draft.finishStatement([scalar(operands)], [{ tensor: context.name(output), index: at }]);
}

export function buildScalarOp(context: NestContext, node: NodeOf<ScalarOp>): void {
  buildElementwise(
    context,
    node,
    (operands) => squared(node.op, operands) ?? apply(node.op, ...operands),
  );
}

/** Squares and cubes are products: a product rounds as well as a power does, at a fraction of its cost. */
function squared(op: ScalarOp, [x, exponent]: readonly ScalarExpr[]): ScalarExpr | undefined {
  if (op !== "pow" || exponent?.kind !== "literal") return undefined;
  const { dtype } = x!;
  if (dtypes[dtype].kind !== "float") return undefined;
  const square = apply("mul", x!, x!);
  if (exponent.value === 2) return square;
  // In a narrow type the square would be rounded to it before it is multiplied.
  const isWide = dtype === "f32" || dtype === "f64";
  return exponent.value === 3 && isWide ? apply("mul", square, x!) : undefined;
}

export function buildCast(context: NestContext, node: NodeOf<"cast">): void {
  const { to, saturate } = node.attrs;
  if (context.type(node.inputs[0]!).dtype === to) context.alias(node, node.inputs[0]!);
  else buildElementwise(context, node, ([x]) => cast(x!, to, saturate));
}

export function buildIsInf(context: NestContext, node: NodeOf<"isInf">): void {
  const { detectNegative, detectPositive } = node.attrs;
  const wanted = [...(detectPositive ? [Infinity] : []), ...(detectNegative ? [-Infinity] : [])];
  buildElementwise(context, node, ([x]) =>
    wanted
      .map((value) => apply("equal", x!, literal(value, x!.dtype)))
      .reduce((a, b) => apply("or", a, b), literal(0, "bool")),
  );
}
