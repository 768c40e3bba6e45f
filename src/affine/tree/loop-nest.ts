/**
 * Loops made of a schedule tree (generate-loops.ts): their form, their text, and an interpreter that
 * gives the instances in the order in which the loops visit them.
 *
 *     for i = 0 .. N - 1
 *       if 2 <= i
 *         for j = max(0, i - 4) .. min(i, 9) step 2 from i
 *           S[i, j]
 */
import { TextWriter } from "../../support/text-writer.ts";
import type { Constraint } from "../build.ts";
import { type Affine, evaluateAffine, formatAffine } from "../expression.ts";
import { modulo } from "../row.ts";
import type { Instance, RunOptions } from "./run.ts";
import { isUnordered, type TreeMark } from "./tree.ts";

export type LoopNode =
  /** One after another, or in any order. */
  | { readonly kind: "block"; readonly ordered: boolean; readonly children: readonly LoopNode[] }
  | ForNode
  /** A loop with one iteration. */
  | {
      readonly kind: "let";
      readonly loop: string;
      readonly value: Affine;
      readonly body: LoopNode;
    }
  | { readonly kind: "if"; readonly where: readonly Constraint[]; readonly body: LoopNode }
  | { readonly kind: "mark"; readonly mark: TreeMark; readonly body: LoopNode }
  | RunNode;

export interface ForNode {
  readonly kind: "for";
  readonly loop: string;
  readonly marks: readonly TreeMark[];
  /** Both inclusive. */
  readonly low: Bound;
  readonly high: Bound;
  /** Only values that differ from it by a multiple of `step`. */
  readonly stride?: { readonly step: number; readonly from: Affine };
  readonly body: LoopNode;
}

export interface RunNode {
  readonly kind: "run";
  readonly statement: string;
  readonly dims: readonly string[];
  /** Of each dimension, over the loops and parameters. */
  readonly values: readonly Affine[];
}

export type Bound = Affine | { readonly kind: "min" | "max"; readonly parts: readonly Bound[] };

type Numbers = Readonly<Record<string, number>>;

/** The instances that the loops visit at given parameters. */
export function runLoops(
  node: LoopNode,
  params: Numbers,
  { permute }: Pick<RunOptions, "permute"> = {},
): readonly Instance[] {
  const shuffled = <T>(parts: readonly T[]): readonly T[] =>
    permute ? permute(parts.length).map((i) => parts[i]!) : parts;
  const run = (one: LoopNode, at: Numbers): readonly Instance[] => {
    switch (one.kind) {
      case "block": {
        const children = one.ordered ? one.children : shuffled(one.children);
        return children.flatMap((c) => run(c, at));
      }
      case "for": {
        const values = trips(one, at);
        const order = one.marks.some(isUnordered) ? shuffled(values) : values;
        return order.flatMap((v) => run(one.body, { ...at, [one.loop]: v }));
      }
      case "let":
        return run(one.body, { ...at, [one.loop]: evaluateAffine(one.value, at) });
      case "if":
        return one.where.every((c) => holds(c, at)) ? run(one.body, at) : [];
      case "mark":
        return run(one.body, at);
      case "run": {
        const values = one.values.map((v) => evaluateAffine(v, at));
        const point = Object.fromEntries(one.dims.map((d, i) => [d, values[i]!]));
        return [{ statement: one.statement, point }];
      }
    }
  };
  return run(node, params);
}

function trips({ low, high, stride }: ForNode, at: Numbers): readonly number[] {
  const first = valueOfBound(low, at);
  const last = valueOfBound(high, at);
  const skip = stride ? modulo(evaluateAffine(stride.from, at) - first, stride.step) : 0;
  const values: number[] = [];
  for (let v = first + skip; v <= last; v += stride?.step ?? 1) values.push(v);
  return values;
}

function valueOfBound(bound: Bound, at: Numbers): number {
  if (!("kind" in bound)) return evaluateAffine(bound, at);
  const values = bound.parts.map((p) => valueOfBound(p, at));
  return bound.kind === "min" ? Math.min(...values) : Math.max(...values);
}

function holds({ kind, expression }: Constraint, at: Numbers): boolean {
  const value = evaluateAffine(expression, at);
  return kind === "equality" ? value === 0 : value >= 0;
}

/** All guards in the loops, for who counts them. */
export function guardsOf(node: LoopNode): readonly Constraint[] {
  const own = node.kind === "if" ? node.where : [];
  return [...own, ...bodiesOf(node).flatMap(guardsOf)];
}

export function bodiesOf(node: LoopNode): readonly LoopNode[] {
  if (node.kind === "block") return node.children;
  return node.kind === "run" ? [] : [node.body];
}

export function printLoops(node: LoopNode): string {
  const out = new TextWriter();
  print(node, out);
  return out.toString();
}

function print(node: LoopNode, out: TextWriter): void {
  const line = lineOf(node);
  if (line === undefined) {
    for (const child of bodiesOf(node)) print(child, out);
    return;
  }
  out.line(line);
  for (const body of bodiesOf(node)) out.indented(() => print(body, out));
}

/** Undefined for a sequence, whose children stand one below the other. */
function lineOf(node: LoopNode): string | undefined {
  switch (node.kind) {
    case "block":
      return node.ordered ? undefined : "in any order";
    case "for": {
      const { loop, low, high, stride, marks } = node;
      const step = stride ? ` step ${stride.step} from ${formatAffine(stride.from)}` : "";
      const marked = marks.length > 0 ? ` ${marks.map((m) => m.kind).join(" ")}` : "";
      return `for ${loop} = ${spellBound(low)} .. ${spellBound(high)}${step}${marked}`;
    }
    case "let":
      return `let ${node.loop} = ${formatAffine(node.value)}`;
    case "if":
      return `if ${node.where.map(spellGuard).join(" and ")}`;
    case "mark":
      return `mark ${spellMark(node.mark)}`;
    case "run":
      return `${node.statement}[${node.values.map(formatAffine).join(", ")}]`;
  }
}

function spellMark(mark: TreeMark): string {
  if (mark.kind === "role") return `role ${JSON.stringify(mark.role)}`;
  if (mark.kind !== "placed" && mark.kind !== "staged") return mark.kind;
  return `${mark.kind} ${JSON.stringify(mark.tensor)} in ${mark.scope}`;
}

function spellBound(bound: Bound): string {
  if (!("kind" in bound)) return formatAffine(bound);
  return `${bound.kind}(${bound.parts.map(spellBound).join(", ")})`;
}

/** Positive terms on the left, negative ones on the right. */
function spellGuard({ kind, expression }: Constraint): string {
  const side = (sign: number): Affine => ({
    constant: Math.max(0, sign * expression.constant),
    terms: expression.terms
      .filter((t) => Math.sign(t.coefficient) === sign)
      .map((t) => ({ ...t, coefficient: Math.abs(t.coefficient) })),
  });
  const operator = kind === "equality" ? "=" : ">=";
  return `${formatAffine(side(1))} ${operator} ${formatAffine(side(-1))}`;
}
