/**
 * A rewrite rule over tensors as data: one identity, its numeric class, and by name what must hold and
 * what is computed. Patterns are those of egraph/pattern.ts, in which an elementwise operator has its
 * own name: `(add ?x ?y)`, and `(map[?f] ?x)` is any of one operand. The where-text is a list of
 *
 *   condition(arguments)            a row of conditions.ts
 *   name = function(arguments)      attributes for `[?name]` on the right: a row of attributes.ts
 *
 * A rule does not apply where its right side has no type or another type than the left: shapes with
 * symbols may leave that open. The proofs (prove/) ask for more: there it must never happen.
 */
import {
  type Build,
  type Match,
  type NodeId,
  type NodePattern,
  type Pattern,
  type Payload,
  parsePattern,
  printPattern,
  type Rule,
  type RuleText,
  readRules,
} from "../egraph/index.ts";
import type { AnyAttrs } from "../graph/attr-schema.ts";
import type { OpKind, TensorType } from "../graph/graph.ts";
import { isOpKind } from "../graph/op-table.ts";
import { sameType } from "../graph/tensor-type.ts";
import type { NumericClass } from "../semantics/numeric-class.ts";
import type { Tensor } from "../semantics/tensor.ts";
import { diagnostic, fail, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { attributeFunctions } from "./attributes.ts";
import { conditions } from "./conditions.ts";
import { type FactScope, type Facts, typeOfCall } from "./facts.ts";
import { Site } from "./site.ts";
import { attrsPayload, callOf, constantOp, constantPayload, isScalarOp, mapOp } from "./terms.ts";

export interface RuleRow {
  readonly name: string;
  readonly numerics: NumericClass;
  readonly left: string;
  /** A pattern, or what writes the right side. */
  readonly right: string | BuildRight;
  readonly where?: string;
  /** Further terms that a proof needs beside the left side, over the same variables. */
  readonly beside?: readonly string[];
  /** What a proof instantiates in place of the left side, where that alone rarely meets the conditions. */
  readonly sample?: string;
  /** Of a rule that approximates: the largest error of an element over the largest element, or over 1. */
  readonly errorBound?: number;
}

export type BuildRight = (site: Site) => NodeId | undefined;

/** Shorthand for the tables: one identity a line. */
export function row(
  name: string,
  numerics: NumericClass,
  left: string,
  right: string | BuildRight,
  where?: string,
): RuleRow {
  return { name, numerics, left, right, ...(where !== undefined && { where }) };
}

/** A row with a term to prove it on. */
export function sampled(rule: RuleRow, sample: string): RuleRow {
  return { ...rule, sample };
}

interface Clause {
  /** What it defines; absent for a condition. */
  readonly name?: string;
  readonly call: string;
  readonly args: readonly string[];
}

export interface RowOptions {
  /** Apply also where the right side has no type or another one: for proofs, which then fail. */
  readonly trusting?: boolean;
}

/** The rules of the engine; a row that is not well formed is EGR001 or EGR002. */
export function compileRows(
  rows: readonly RuleRow[],
  scope: FactScope,
  options: RowOptions = {},
): Result<Rule<Facts>[]> {
  const faults = rows.flatMap((r) => rowFaults(r));
  if (faults.length > 0) return fail(...faults);
  return readRules(rows.map((r) => compileRow(r, scope, options)));
}

function rowFaults({ name, where }: RuleRow) {
  return clausesOf(where).flatMap((clause) => {
    const table = clause.name === undefined ? conditions : attributeFunctions;
    if (Object.hasOwn(table, clause.call)) return [];
    const what = clause.name === undefined ? "condition" : "function";
    return [
      diagnostic("EGR001", `no ${what} is named "${clause.call}"`, {
        at: `rule "${name}"`,
        help: `there are ${Object.keys(table).join(", ")}`,
      }),
    ];
  });
}

const clauseForm = /^(?:(\w+)\s*=\s*)?(\w+)\(([^)]*)\)$/;

export function clausesOf(where: string | undefined): readonly Clause[] {
  const texts = (where ?? "").split(";").map((t) => t.trim());
  return texts
    .filter((t) => t !== "")
    .map((text) => {
      const match = clauseForm.exec(text);
      if (!match) return { call: text, args: [] };
      const [, name, call, args] = match;
      const list = args!.split(",").map((a) => a.trim());
      return {
        ...(name !== undefined && { name }),
        call: call!,
        args: list.filter((a) => a !== ""),
      };
    });
}

function compileRow(source: RuleRow, scope: FactScope, options: RowOptions): RuleText<Facts> {
  const clauses = clausesOf(source.where);
  const tests = clauses.filter((c) => c.name === undefined);
  const definitions = clauses.filter((c) => c.name !== undefined);
  const left = encodePattern(parsePattern(source.left));
  const holds = (site: Site) => tests.every((t) => conditions[t.call]!.holds(site, t.args));
  const common = { name: source.name, left: printPattern(left) };
  const { right } = source;
  if (typeof right !== "string") {
    const build: Build<Facts> = (match, builder) => right(new Site(match, scope, builder));
    return { ...common, right: build, when: (match) => holds(new Site(match, scope)) };
  }
  const pattern = encodePattern(parsePattern(right));
  const compute = Object.fromEntries(
    definitions.map(({ name, call, args }) => {
      const op = opOfPayload(pattern, name!);
      invariant(op !== undefined, () => `rule "${source.name}": ?${name} is not on the right`);
      return [
        name!,
        (match: Match<Facts>) => payloadOf(op, call, args, new Site(match, scope)),
      ] as const;
    }),
  );
  const when = (match: Match<Facts>): boolean => {
    const site = new Site(match, scope);
    if (!holds(site)) return false;
    return options.trusting === true || rightTypes(pattern, site, compute);
  };
  return { ...common, right: printPattern(pattern), when, compute };
}

function payloadOf(
  op: string,
  call: string,
  args: readonly string[],
  site: Site,
): Payload | undefined {
  const value = attributeFunctions[call]!(site, args);
  if (value === undefined) return undefined;
  if (op === constantOp) return constantPayload(value as Tensor);
  return attrsPayload(op as OpKind, value as AnyAttrs);
}

/** Elementwise operators become `map` with the operator as payload. */
function encodePattern(pattern: Pattern): Pattern {
  if (pattern.kind === "variable") return pattern;
  const children = pattern.children.map(encodePattern);
  if (!isScalarOp(pattern.op)) return { ...pattern, children };
  return { ...pattern, op: mapOp, payload: { kind: "key", key: pattern.op }, children };
}

function opOfPayload(pattern: Pattern, name: string): string | undefined {
  if (pattern.kind === "variable") return undefined;
  if (pattern.payload.kind === "variable" && pattern.payload.name === name) return pattern.op;
  for (const child of pattern.children) {
    const found = opOfPayload(child, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

type Computes = Readonly<Record<string, (match: Match<Facts>) => Payload | undefined>>;

/** Whether the right side has the type of what it replaces. */
function rightTypes(pattern: Pattern, site: Site, compute: Computes): boolean {
  const type = rightType(pattern, site, compute);
  return type !== undefined && sameType(type, site.rootType());
}

function rightType(pattern: Pattern, site: Site, compute: Computes): TensorType | undefined {
  if (pattern.kind === "variable") return site.facts(pattern.name).type;
  const payload = rightPayload(pattern, site, compute);
  if (!payload) return undefined;
  if (pattern.op === constantOp) return typeOfTensor(payload.value as Tensor);
  const inputs = pattern.children.map((child) => rightType(child, site, compute));
  if (inputs.some((t) => t === undefined)) return undefined;
  const call = callOf(pattern.op, payload.key, payload.value);
  if (!call || !isOpKind(call.op)) return undefined;
  const found = typeOfCall(site.scope, call.op, inputs as readonly TensorType[], {
    attrs: call.attrs,
    key: payload.key,
  });
  return typeof found === "string" ? undefined : found;
}

function rightPayload(pattern: NodePattern, site: Site, compute: Computes): Payload | undefined {
  const { payload } = pattern;
  if (payload.kind === "key") return { key: payload.key };
  invariant(payload.kind === "variable", () => "a right side has no open payload");
  const own = compute[payload.name];
  return own
    ? own(site.match)
    : { key: site.key(payload.name), value: site.match.value(payload.name) };
}

function typeOfTensor({ dtype, shape }: Tensor): TensorType {
  return { dtype, shape: shape.map((n) => Site.extent(n)) };
}
