/**
 * What is wrong with a rule as it is written, before it is compiled: patterns that do not parse, operators
 * and functions that nobody knows, operands too few or too many, attributes of another operator, names
 * that nothing binds. Every fault names its rule (EGR001); what the engine itself refuses is not repeated.
 */
import {
  classNames,
  type NodePattern,
  type Pattern,
  parsePattern,
  payloadNames,
} from "../egraph/index.ts";
import { infoOf, isOpKind, schemaOf } from "../graph/op-table.ts";
import { attempt, type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import { attributeFunctions } from "./attributes.ts";
import { conditions } from "./conditions.ts";
import { type Clause, clausesOf, type RuleRow } from "./rule-row.ts";
import { constantOp, isScalarOp, mapOp } from "./terms.ts";

/** Arguments of conditions and functions that are neither numbers nor names of the pattern. */
const words: ReadonlySet<string> = new Set(["sum", "max", "min", "tanh", "none"]);

const page = "docs/adding-a-rule.md describes how a rule is written";

export function faultsOf(row: RuleRow): readonly Diagnostic[] {
  const fault = (message: string, help = page): Diagnostic =>
    diagnostic("EGR001", message, { at: `rule "${row.name}"`, help });
  const left = attempt(() => parsePattern(row.left));
  const right =
    typeof row.right === "string" ? attempt(() => parsePattern(row.right as string)) : undefined;
  const unread = [left, ...(right ? [right] : [])].flatMap((r) => (r.ok ? [] : r.diagnostics));
  if (unread.length > 0)
    return unread.map((d) => fault(`no pattern: ${d.message}`, d.help ?? page));
  const sides = [left, right].flatMap((r) => (r?.ok ? [r.value] : []));
  const [from, to] = sides as [Pattern, Pattern?];
  const clauses = clausesOf(row.where);
  const found = [
    ...sides.flatMap((side) => nodesOf(side).flatMap(termFaults)),
    ...(to ? attributeFaults(from, to, clauses) : []),
    ...clauses.flatMap((clause) => clauseFaults(clause, from, to)),
  ];
  if (row.numerics === "approximates" && row.errorBound === undefined) {
    found.push("a rule that approximates has no errorBound");
  }
  return [...new Set(found)].map((message) => fault(message));
}

function nodesOf(pattern: Pattern): readonly NodePattern[] {
  return pattern.kind === "variable" ? [] : [pattern, ...pattern.children.flatMap(nodesOf)];
}

function termFaults({ op, children, open }: NodePattern): readonly string[] {
  const arity = arityOf(op);
  if (!arity) return [`no operator is named "${op}"`];
  const [least, most] = arity;
  const count = children.length;
  if (count <= most && (count >= least || open)) return [];
  return [
    `${op} of ${count} operands, which has ${least === most ? least : `${least} to ${most}`}`,
  ];
}

/** A concatenation is nested in terms; a constant has none. */
function arityOf(op: string): readonly [number, number] | undefined {
  if (op === constantOp) return [0, 0];
  if (op === mapOp) return [1, 3];
  if (op === "concat") return [2, 2];
  return isScalarOp(op) || isOpKind(op) ? infoOf(op).arity : undefined;
}

/** Operators with attributes take them from a variable, of the same operator or computed. */
function attributeFaults(
  left: Pattern,
  right: Pattern,
  clauses: readonly Clause[],
): readonly string[] {
  const computed = new Set(clauses.flatMap((c) => (c.name === undefined ? [] : [c.name])));
  const bound = new Map<string, string>();
  for (const { op, payload } of nodesOf(left)) {
    if (payload.kind === "variable") bound.set(payload.name, op);
  }
  return nodesOf(right).flatMap(({ op, payload }) => {
    if (payload.kind === "variable") {
      const of = bound.get(payload.name);
      if (of === undefined || of === op || computed.has(payload.name)) return [];
      return [`?${payload.name} has the attributes of ${of}, and ${op} takes its own`];
    }
    return needsAttributes(op) ? [`${op} on the right has no attributes: write ${op}[?a]`] : [];
  });
}

function needsAttributes(op: string): boolean {
  if (op === constantOp || op === mapOp) return true;
  return isOpKind(op) && Object.keys(schemaOf(op)).length > 0;
}

function clauseFaults(
  { name, call, args }: Clause,
  left: Pattern,
  right: Pattern | undefined,
): readonly string[] {
  const isCondition = name === undefined;
  if (!Object.hasOwn(isCondition ? conditions : attributeFunctions, call)) {
    return [`no ${isCondition ? "condition" : "function"} is named "${call}"`];
  }
  const bound = new Set([...classNames([left]), ...payloadNames([left]), ...words]);
  const unbound = args.filter((arg) => !bound.has(arg) && Number.isNaN(Number(arg)));
  const unused = !isCondition && right && !payloadNames([right]).includes(name);
  return [
    ...unbound.map((arg) => `${call}(${args.join(", ")}): ?${arg} is not on the left`),
    ...(unused ? [`?${name} is computed and not on the right`] : []),
  ];
}
