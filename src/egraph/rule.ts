/**
 * Rewrite rules. A rule has one or more left patterns that share variables, and as many right sides:
 * each left root is united with its right side, a pattern or what `build` makes. `when` is the side
 * condition, `compute` gives payloads that the left side does not bind. Conditions see the match and
 * the classes' data (match.ts). `readRules` checks rules and says what is wrong (EGR001, EGR002).
 */
import { attempt, diagnostic, fail, ok, type Result, reject } from "../support/diagnostic.ts";
import type { Builder, Match } from "./match.ts";
import type { NodeId } from "./node-store.ts";
import {
  classNames,
  type Pattern,
  parsePattern,
  payloadNames,
  printPattern,
  requireBuildable,
} from "./pattern.ts";
import type { Payload } from "./vocabulary.ts";

/** Gives a node for each left root, or undefined to let the match be. */
export type Build<D> = (match: Match<D>, build: Builder) => NodeId | readonly NodeId[] | undefined;

/** A rule as it is written. Texts are parsed by pattern.ts. */
export interface RuleText<D = undefined> {
  readonly name: string;
  readonly left: string | readonly string[];
  readonly right: string | readonly string[] | Build<D>;
  readonly when?: (match: Match<D>) => boolean;
  /** Payload variables of the right side; undefined lets the match be. */
  readonly compute?: Readonly<Record<string, (match: Match<D>) => Payload | string | undefined>>;
}

/** A rule that was read and found well formed. */
export interface Rule<D = undefined> {
  readonly name: string;
  readonly left: readonly Pattern[];
  /** Absent when `build` makes the right sides. */
  readonly right?: readonly Pattern[];
  readonly build?: Build<D>;
  readonly when?: (match: Match<D>) => boolean;
  readonly compute: Readonly<Record<string, (match: Match<D>) => Payload | string | undefined>>;
}

/** Reads rules; every fault names its rule. Names must differ. */
export function readRules<D = undefined>(texts: readonly RuleText<D>[]): Result<Rule<D>[]> {
  const results = texts.map((text) => attempt(() => readRule(text)));
  const faults = results.flatMap((r) => (r.ok ? [] : r.diagnostics));
  const seen = new Set<string>();
  for (const { name } of texts) {
    if (seen.has(name)) {
      faults.push(diagnostic("EGR001", `two rules are named "${name}"`, { help: "rename one" }));
    }
    seen.add(name);
  }
  if (faults.length > 0) return fail(...faults);
  return ok(results.flatMap((r) => (r.ok ? [r.value] : [])));
}

/** The two directions of an equation, named `name` and `name-back`. */
export function bothWays(name: string, left: string, right: string): RuleText<never>[] {
  return [
    { name, left, right },
    { name: `${name}-back`, left: right, right: left },
  ];
}

function readRule<D>(text: RuleText<D>): Rule<D> {
  requireShape(text);
  const { name, when, compute = {} } = text;
  const left = listOf(text.left).map((side) => readSide(side, name));
  for (const pattern of left) {
    if (pattern.kind === "variable" && left.length > 1) {
      reject("EGR001", "a bare variable matches every class", {
        at: `rule "${name}"`,
        help: "use it as the only left side, or match a node",
      });
    }
  }
  const common = { name, left, compute, ...(when ? { when } : {}) };
  if (typeof text.right === "function") return { ...common, build: text.right };
  const right = listOf(text.right).map((side) => readSide(side, name));
  if (right.length !== left.length) {
    reject("EGR001", `${left.length} left and ${right.length} right sides`, {
      at: `rule "${name}"`,
      help: "give every left side its right side",
    });
  }
  for (const pattern of right) requireBuildable(pattern, name);
  requireBound(name, left, right, Object.keys(compute));
  return { ...common, right };
}

/** Rules come from files too, where no type has looked at them. */
function requireShape<D>({ name, left, right }: RuleText<D>): void {
  const refuse = (why: string, help: string): never =>
    reject("EGR001", why, { at: `rule "${String(name)}"`, help });
  if (typeof name !== "string" || name === "") refuse("a rule has no name", "name it");
  const isSide = (side: unknown): boolean =>
    typeof side === "string" || (Array.isArray(side) && side.length > 0 && side.every(isText));
  if (!isSide(left)) refuse("the left side is no pattern", "write one, or a list of some");
  if (typeof right !== "function" && !isSide(right))
    refuse("the right side is no pattern", "write one, a list of some, or what builds them");
}

const isText = (side: unknown): boolean => typeof side === "string";

function listOf(side: string | readonly string[]): readonly string[] {
  return typeof side === "string" ? [side] : side;
}

function readSide(text: string, rule: string): Pattern {
  const result = attempt(() => parsePattern(text));
  if (result.ok) return result.value;
  const why = result.diagnostics.map((d) => d.message).join("; ");
  return reject("EGR001", `"${text}" is not a pattern: ${why}`, { at: `rule "${rule}"` });
}

function requireBound(
  rule: string,
  left: readonly Pattern[],
  right: readonly Pattern[],
  computed: readonly string[],
): void {
  const classes = new Set(classNames(left));
  const payloads = new Set([...payloadNames(left), ...computed]);
  const free = [
    ...classNames(right).filter((name) => !classes.has(name)),
    ...payloadNames(right).filter((name) => !payloads.has(name)),
  ];
  if (free.length === 0) return;
  reject("EGR002", `?${free[0]} is on the right of "${printPattern(right[0]!)}" alone`, {
    at: `rule "${rule}"`,
    help: "bind it on the left, or compute it when it is a payload",
  });
}
