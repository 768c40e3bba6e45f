/**
 * Text form of schedule trees, for `inspect --schedule` and tests: one node a line, children indented.
 * tree-parse.ts reads it back.
 *
 *     domain "{ S0[i, j] : … }"
 *       mark grid
 *         band permutable [i0: S0 floor(i/4), coincident]
 */
import { TextWriter } from "../../support/text-writer.ts";
import { formatAffine } from "../expression.ts";
import type { BandMember, ScheduleTree, TreeMark } from "./tree.ts";

export function printTree(tree: ScheduleTree): string {
  const out = new TextWriter();
  printNode(tree, out);
  return out.toString();
}

function printNode(tree: ScheduleTree, out: TextWriter): void {
  out.line(lineOf(tree));
  if (tree.kind === "leaf") return;
  const children = "children" in tree ? tree.children : [tree.child];
  for (const child of children) out.indented(() => printNode(child, out));
}

function lineOf(tree: ScheduleTree): string {
  switch (tree.kind) {
    case "domain":
    case "context":
      return `${tree.kind} ${JSON.stringify(tree.text)}`;
    case "extension":
      return `extension ${tree.statement} ${JSON.stringify(tree.text)}`;
    case "filter":
      return `filter ${tree.statements.join(" ")}`;
    case "band":
      return `band${tree.permutable ? " permutable" : ""} [${tree.members.map(printMember).join("; ")}]`;
    case "mark":
      return `mark ${printMark(tree.mark)}`;
    default:
      return tree.kind;
  }
}

function printMember({ loop, values, coincident }: BandMember): string {
  const each = [...values].map(([statement, value]) => `${statement} ${formatAffine(value)}`);
  return `${loop}: ${each.join(", ")}${coincident ? ", coincident" : ""}`;
}

function printMark(mark: TreeMark): string {
  if (mark.kind === "role") return `role ${JSON.stringify(mark.role)}`;
  if (mark.kind !== "placed" && mark.kind !== "staged") return mark.kind;
  return `${mark.kind} ${JSON.stringify(mark.tensor)} in ${mark.scope}`;
}
