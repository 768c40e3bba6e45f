/**
 * Scans along a line: statements that combine each element with their own result one step back, as
 * `y[i] = y[i - 1] + x[i]`. In: a statement with one scan loop. Out: what it combines and how, as the fold of
 * all elements up to each one, which may be grouped in any way that a fold may; or why it has no such form.
 */
import type { Access, Loop, Statement } from "../../region/nest.ts";
import { substituteConditions, substituteVariables } from "../../region/statement.ts";
import { printCondition } from "../../semantics/condition.ts";
import type { ReduceKind } from "../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { add, splitLinear, sub, substitute, variable } from "../../semantics/index-expr.ts";
import { identityElement, simpleMonoid } from "../../semantics/monoids.ts";
import {
  argument,
  cast,
  mapScalar,
  type ScalarExpr,
  type ScalarOp,
  scalarOperands,
} from "../../semantics/scalar-expr.ts";

export interface ScanForm {
  /**
   * The statement as a fold: `reduction` combines the elements up to the one that is written, `body` is an
   * element, and `finish` rounds what was combined. Its result is not among the reads.
   */
  readonly fold: Statement;
  readonly loop: Loop;
  /** Whether the line runs against its places in memory; `fold` then counts the loop from the other end. */
  readonly reversed: boolean;
  /** The read of the result one step back. */
  readonly before: Access;
}

const kinds: Partial<Record<ScalarOp, ReduceKind>> = {
  add: "sum",
  mul: "prod",
  max: "max",
  min: "min",
};

/** The type in which elements are combined: a whole word at least, and exact where elements are integers. */
export function scannedAs(dtype: DType): DType {
  const { bits, kind } = dtypes[dtype];
  if (bits >= 32) return dtype;
  if (isFloatDType(dtype)) return "f32";
  return kind === "uint" ? "u32" : "i32";
}

export function scanForm(source: Statement): ScanForm | string {
  const { name, loops, guard, reads, body, writes, reduction, finish, finishReads } = source;
  const scans = loops.filter((l) => l.kind === "scan");
  const [write, ...otherWrites] = writes;
  const [loop, ...otherLoops] = scans;
  if (!loop || !write || otherLoops.length + otherWrites.length > 0 || body.length !== 1)
    return `${name} is no scan of one value along one loop`;
  if (reduction || finish || finishReads.length > 0) return `${name} changes what it scanned`;
  const own = reads.flatMap((a, at) => (a.tensor === write.tensor ? [at] : []));
  const [at] = own;
  if (own.length !== 1 || at === undefined) return `${name} does not read itself once`;
  const before = reads[at]!;
  const step = new Map([[loop.name, add(variable(loop.name), -1)]]);
  const [first, ...rest] = before.guard.map(printCondition);
  const isThere = substituteConditions(guard, step).map(printCondition);
  const isBefore =
    before.index.every((e, i) => e.key === substitute(write.index[i]!, step).key) &&
    first === printCondition({ kind: "nonNegative", expr: add(variable(loop.name), -1) }) &&
    // Where the step before is none of the statement's, it reads nothing.
    rest.every((c) => isThere.includes(c));
  if (!isBefore) return `${name} reads itself elsewhere than one step back`;
  const value = body[0]!;
  const kind = value.kind === "apply" ? kinds[value.op] : undefined;
  const operands = scalarOperands(value);
  const isOwn = (e: ScalarExpr | undefined): boolean => e?.kind === "argument" && e.index === at;
  const element = isOwn(operands[0]) ? operands[1] : operands[0];
  if (!kind || !element || !operands.some(isOwn) || mentions(element, at))
    return `${name} is no sum, product or extreme of itself and an element`;
  if (before.fill !== identityElement(kind, value.dtype)) return `${name} begins elsewhere`;
  const dtype = scannedAs(value.dtype);
  const monoid = simpleMonoid(kind, dtype);
  const steps = write.index.map((e) => splitLinear(e, loop.name)?.coefficient);
  const reversed = steps.every((c) => c === 0 || c === -1);
  const others = mapScalar(element, (leaf) =>
    leaf.kind === "argument" && leaf.index > at ? argument(leaf.index - 1, leaf.dtype) : leaf,
  );
  const fold: Statement = {
    ...source,
    reads: reads.filter((a) => a !== before),
    body: [cast(others, dtype, false)],
    reduction: { monoid, numericClass: monoid.exact ? "exact" : "reassociates" },
    finish: [cast(argument(0, dtype), value.dtype, false)],
  };
  const back = new Map([[loop.name, sub(sub(loop.extent, 1), variable(loop.name))]]);
  return { fold: reversed ? substituteVariables(fold, back) : fold, loop, reversed, before };
}

function mentions(e: ScalarExpr, argumentAt: number): boolean {
  if (e.kind === "argument") return e.index === argumentAt;
  return scalarOperands(e).some((o) => mentions(o, argumentAt));
}
