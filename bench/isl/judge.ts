/**
 * Puts one question to both libraries and compares. Results that are sets or maps are compared by
 * both: isl decides whether its own result equals ours as printed, ours whether its own equals isl's
 * as parsed. An answer of ours that is "unknown" is counted apart and is no pass.
 */

import type { IslDriver } from "../../bench/isl/isl-driver.ts";
import { formatSet, type IntegerMap, type IntegerSet, isEqual } from "../../src/affine/index.ts";
import { type Question, type Reply, readMap, readSet } from "./questions.ts";

/** How one question ended. "skipped": isl has no answer; "unknown": ours has none. */
export type Judgement =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

/** Work units for comparing results, which may be larger than any question's operands. */
const comparisonWork = 8_000_000;

const passed: Judgement = { kind: "passed" };

export async function judge(
  driver: IslDriver,
  question: Question,
  operands: readonly string[],
): Promise<Judgement> {
  const asked = `${question.name} ${operands.join(" | ")}`;
  const reply = question.prepare(operands)();
  const isl = await driver.ask(question.name, ...operands);
  const open = whyUnknown(reply);
  if (isl.kind === "unbounded" && open === "unbounded") return passed;
  if (open) return { kind: "unknown", reason: `unknown to us (${open}): ${question.name}` };
  if (isl.kind !== "ok") return { kind: "skipped", reason: `${isl.kind} to isl: ${question.name}` };
  const difference = await compare(driver, reply, { text: isl.text, operand: operands[0]! });
  if (difference === undefined) return passed;
  if (difference === "unknown") {
    return { kind: "unknown", reason: `unknown to us: comparison after ${question.name}` };
  }
  return { kind: "failed", reason: `${asked}\n  isl:  ${isl.text}\n  ${difference}` };
}

/** The reason of an answer that is no answer. */
function whyUnknown({ value }: Reply): string | undefined {
  if (typeof value === "string") return value === "unknown" ? "budget" : undefined;
  return value.kind === "unknown" ? value.reason : undefined;
}

interface IslSide {
  /** Its result. */
  readonly text: string;
  readonly operand: string;
}

/** undefined when both agree. */
async function compare(driver: IslDriver, reply: Reply, isl: IslSide): Promise<string | undefined> {
  if (reply.kind === "truth") return reply.value === isl.text ? undefined : `ours: ${reply.value}`;
  if (reply.value.kind === "unknown") return "unknown";
  switch (reply.kind) {
    case "number":
    case "text":
      return String(reply.value.value) === isl.text ? undefined : `ours: ${reply.value.value}`;
    case "member":
      return checkMember(driver, reply.value.value, isl);
    case "hull":
      return checkHull(driver, reply.value.value, isl);
    case "tight hull":
      return checkTightHull(driver, reply.value.value, isl);
    default:
      return comparePoints(driver, reply.value.value, isl.text);
  }
}

/** Both have a point, ours is in the set; or neither has. */
async function checkMember(
  driver: IslDriver,
  value: IntegerSet,
  isl: IslSide,
): Promise<string | undefined> {
  const ours = formatSet(value);
  const both = (value.pieces.length === 0) === (readSet(isl.text).pieces.length === 0);
  return both && (await isSubset(driver, ours, isl.operand)) ? undefined : `ours: ${ours}`;
}

async function checkHull(
  driver: IslDriver,
  value: IntegerSet,
  isl: IslSide,
): Promise<string | undefined> {
  const ours = formatSet(value);
  const convex = await isSubset(driver, isl.text, isl.operand);
  const tight = !convex || (await isSubset(driver, ours, isl.text));
  return tight && (await isSubset(driver, isl.operand, ours)) ? undefined : `ours: ${ours}`;
}

/** isl rounds some hulls less, so that ours may be smaller. */
async function checkTightHull(
  driver: IslDriver,
  value: IntegerSet,
  isl: IslSide,
): Promise<string | undefined> {
  const ours = formatSet(value);
  const tight = await isSubset(driver, ours, isl.text);
  return tight && (await isSubset(driver, isl.operand, ours)) ? undefined : `ours: ${ours}`;
}

async function isSubset(driver: IslDriver, inner: string, outer: string): Promise<boolean> {
  const found = await driver.ask("s_subset", inner, outer);
  return found.kind === "ok" && found.text === "yes";
}

async function comparePoints(
  driver: IslDriver,
  value: IntegerSet | IntegerMap,
  isl: string,
): Promise<string | undefined> {
  const ours = formatSet(value);
  const operation = value.kind === "set" ? "s_equal" : "m_equal";
  const theirs = await driver.ask(operation, ours, isl);
  if (theirs.kind === "ok" && theirs.text !== "yes") return `ours: ${ours} (isl: not equal)`;
  const equal =
    value.kind === "set"
      ? isEqual(value, readSet(isl), comparisonWork)
      : isEqual(value, readMap(isl), comparisonWork);
  if (equal === "unknown") return "unknown";
  return equal === "yes" ? undefined : `ours: ${ours} (ours: not equal)`;
}
