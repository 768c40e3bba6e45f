/**
 * Rows of rules as rules of the engine: patterns with elementwise operators as `map`, conditions and
 * computed attributes as functions of the match. A rule is let be where its right side has no type or
 * another one than the left.
 */
import {
  type Build,
  type Match,
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
import type { Tensor } from "../semantics/tensor.ts";
import { fail, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { attributeFunctions } from "./attributes.ts";
import { conditions } from "./conditions.ts";
import { type FactScope, type Facts, typeOfCall } from "./facts.ts";
import { faultsOf } from "./rule-faults.ts";
import { clausesOf, type RuleRow } from "./rule-row.ts";
import { Site } from "./site.ts";
import { attrsPayload, callOf, constantOp, constantPayload, isScalarOp, mapOp } from "./terms.ts";

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
  const faults = rows.flatMap(faultsOf);
  if (faults.length > 0) return fail(...faults);
  return readRules(rows.map((r) => compileRow(r, scope, options)));
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
