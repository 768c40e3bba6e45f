/** Control flow: a branch that is decided at import is inlined. */
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

function branch(node: NodeView): readonly Operand[] {
  const taken = node.numbers(0, "the condition of If")[0] !== 0;
  const [thenBranch, elseBranch] = [
    node.attributes.graph("then_branch"),
    node.attributes.graph("else_branch"),
  ];
  if (!thenBranch || !elseBranch)
    node.refuse("an If without both branches", "then_branch and else_branch");
  return node.subgraphs.inline(taken ? thenBranch : elseBranch);
}

export const controlRows = {
  If: { since: [1, 11, 13, 16, 19, 21, 23, 24, 25], convert: branch },
} satisfies OperatorTable;
