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
  const difference = await compare(driver, reply, isl.text);
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

/** undefined when both agree. */
async function compare(driver: IslDriver, reply: Reply, isl: string): Promise<string | undefined> {
  if (reply.kind === "truth") return reply.value === isl ? undefined : `ours: ${reply.value}`;
  if (reply.value.kind === "unknown") return "unknown";
  if (reply.kind === "number") {
    return String(reply.value.value) === isl ? undefined : `ours: ${reply.value.value}`;
  }
  return comparePoints(driver, reply.value.value, isl);
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
  const equal = value.kind === "set" ? isEqual(value, readSet(isl)) : isEqual(value, readMap(isl));
  if (equal === "unknown") return "unknown";
  return equal === "yes" ? undefined : `ours: ${ours} (ours: not equal)`;
}
