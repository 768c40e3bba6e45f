/** Nests of the elementwise ops: one statement over the result, operands read at broadcast indices. */
import type { NodeOf } from "../../graph/graph.ts";
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
  buildElementwise(context, node, (operands) => apply(node.op, ...operands));
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
