/**
 * Fusion of a producer into a consumer: each read of the producer's tensor is replaced by the
 * producer's body with its own reads at the composed place. Guards are conjoined: where the
 * consumer's guard fails its fill must come out, so either the producer only moves data, or its body
 * gives that fill when everything it reads is 0 (relu of a padded operand).
 */

import type { DType } from "../semantics/dtype.ts";
import {
  constantValue,
  type IndexExpr,
  indexEquals,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import {
  argument,
  bindArguments,
  type ScalarExpr,
  scalarOperands,
} from "../semantics/scalar-expr.ts";
import { evaluateScalar, type ScalarValue } from "../semantics/scalar-meaning.ts";
import { AccessList, type Composition, largestBody, loopOf, refused } from "./compose-epilogue.ts";
import type { Access, Indirect, NestProgram, Statement } from "./nest.ts";
import {
  accessKey,
  numberAs,
  pruneConditions,
  scalarSize,
  statementRanges,
  substituteAccess,
  substituteIndirect,
  substituteScalar,
} from "./statement.ts";

type Program = Pick<NestProgram, "tensors" | "symbols">;

/** The consumer with every read of the producer's tensor replaced by the producer's computation. */
export function inlineProducer(
  program: Program,
  consumer: Statement,
  producer: Statement,
): Composition {
  const axes = producerAxes(program, producer);
  if (typeof axes === "string") return refused(axes);
  const tensor = producer.writes[0]!.tensor;
  const asIndex = consumer.indirects.filter((v) => v.access.tensor === tensor);
  if (asIndex.length > 0 && !movesWhole(producer)) {
    return refused(`${consumer.name} reads indices from ${tensor}`);
  }
  const inFinish = consumer.finishReads.some((a) => a.tensor === tensor);
  if (inFinish && consumer.reduction && producer.indirects.length > 0) {
    return refused(`${consumer.name} loads indices for what it folds, not for what it makes of it`);
  }
  const reader = new Inliner(program, consumer, { producer, axes });
  const guarded = asIndex.find((v) => v.access.guard.length > 0);
  if (guarded) return refused(`${consumer.name} reads indices from ${tensor} under a guard`);
  const body = reader.replace(consumer.reads, consumer.body, 0);
  const finish = reader.replace(consumer.finishReads, consumer.finish ?? [], consumer.body.length);
  if (typeof body === "string") return refused(body);
  if (typeof finish === "string") return refused(finish);
  const size = [...body.exprs, ...finish.exprs].reduce((sum, e) => sum + scalarSize(e), 0);
  if (size > largestBody) return refused(`the composed body would have ${size} operators`);
  const statement = {
    ...consumer,
    indirects: [...consumer.indirects.map((v) => reader.moved(v)), ...reader.indirects],
    reads: body.accesses,
    body: body.exprs,
    finishReads: finish.accesses,
    ...(consumer.finish ? { finish: finish.exprs } : {}),
  };
  return { kind: "composed", statement };
}

/** Whether each element is one that is read as it is. */
export function movesWhole({ body, reads, indirects }: Statement): boolean {
  const isMove = body.length === 1 && body[0]!.kind === "argument";
  return isMove && indirects.length === 0 && reads.every((r) => r.guard.length === 0);
}

/** The producer's loop on each axis of what it writes (undefined on axes of extent 1); or why not. */
function producerAxes(
  program: Program,
  producer: Statement,
): readonly (string | undefined)[] | string {
  const { name, writes, loops, guard, finish, reduction } = producer;
  if (reduction || finish) return `${name} is a reduction`;
  if (loops.some((l) => l.kind !== "space")) return `${name} is a scan`;
  if (guard.length > 0) return `${name} covers a part of its domain`;
  const [write, ...others] = writes;
  if (!write || others.length > 0) return `${name} writes several tensors`;
  if (write.combine !== "overwrite") return `${name} updates in place`;
  const extents = new Map(loops.map((l) => [l.name, l.extent]));
  const { shape } = program.tensors.get(write.tensor)!;
  const seen = new Set<string>();
  const axes: (string | undefined)[] = [];
  for (const [axis, at] of write.index.entries()) {
    const isUnit = constantValue(at) === 0 && constantValue(shape[axis]!) === 1;
    const loop = loopOf(at, extents);
    const whole = loop !== undefined && indexEquals(extents.get(loop)!, shape[axis]!);
    if (!isUnit && (!whole || seen.has(loop))) return `${name} writes a part of ${write.tensor}`;
    if (!isUnit) seen.add(loop!);
    axes.push(isUnit ? undefined : loop);
  }
  return axes;
}

/** One producer being put into one consumer. */
class Inliner {
  readonly indirects: Indirect[] = [];
  readonly #program: Program;
  readonly #consumer: Statement;
  readonly #producer: Statement;
  readonly #axes: readonly (string | undefined)[];

  constructor(
    program: Program,
    consumer: Statement,
    { producer, axes }: { producer: Statement; axes: readonly (string | undefined)[] },
  ) {
    this.#program = program;
    this.#consumer = consumer;
    this.#producer = producer;
    this.#axes = axes;
  }

  /** New accesses and expressions; `first` is the number of the first access as an argument. */
  replace(
    accesses: readonly Access[],
    exprs: readonly ScalarExpr[],
    first: number,
  ): { accesses: readonly Access[]; exprs: readonly ScalarExpr[] } | string {
    const list = new AccessList();
    const values = new Map<number, ScalarExpr | undefined>();
    const tensor = this.#producer.writes[0]!.tensor;
    for (const [i, access] of accesses.entries()) {
      if (access.tensor !== tensor) {
        const at = list.add(access);
        const { dtype } = this.#program.tensors.get(access.tensor)!;
        values.set(first + i, argument(first + at, dtype));
        continue;
      }
      const value = this.#inlineAt(access, list, first);
      if (typeof value === "string") return value;
      values.set(first + i, value);
    }
    const count = first + accesses.length;
    const types = this.#consumer.body.map((e) => e.dtype);
    const all = Array.from({ length: count }, (_, i) => values.get(i) ?? argument(i, types[i]!));
    return { accesses: list.items, exprs: exprs.map((e) => bindArguments(e, all)) };
  }

  /** An index that the consumer loads, from where the producer would move it. */
  moved(indirect: Indirect): Indirect {
    const { tensor } = this.#producer.writes[0]!;
    if (indirect.access.tensor !== tensor) return indirect;
    const [read] = this.#producer.reads;
    return { ...indirect, access: substituteAccess(read!, this.#at(indirect.access)) };
  }

  /** The producer's loops at an access of the consumer. */
  #at(access: Access): Map<string, IndexExpr> {
    const bindings = new Map<string, IndexExpr>();
    for (const [axis, loop] of this.#axes.entries()) {
      if (loop !== undefined) bindings.set(loop, access.index[axis]!);
    }
    return bindings;
  }

  #inlineAt(access: Access, list: AccessList, first: number): ScalarExpr | string {
    const { reads, body, indirects } = this.#producer;
    const bindings = this.#at(access);
    if (access.guard.length > 0 && !this.#givesFill(access.fill)) {
      return `${this.#producer.name} does not give ${access.fill} where ${access.tensor} is padded`;
    }
    for (const indirect of indirects) {
      const moved = substituteIndirect(indirect, bindings);
      const own = variablesOf(...moved.access.index);
      // Where other places alone decide, the index is that of places inside as well.
      const guard = access.guard.filter((c) => [...variablesOf(c.expr)].some((v) => own.has(v)));
      const guarded = this.#guarded(moved.access, guard, 0);
      if (typeof guarded === "string") return guarded;
      const whole = { ...moved, access: guarded };
      const known = [...this.#consumer.indirects, ...this.indirects].find((v) => isSame(v, whole));
      const name = known?.name ?? this.#freshName();
      if (!known) this.indirects.push({ ...whole, name });
      bindings.set(indirect.name, variable(name));
    }
    const operands: ScalarExpr[] = [];
    for (const read of reads) {
      const fill = this.#isMove() ? access.fill : 0;
      const guarded = this.#guarded(substituteAccess(read, bindings), access.guard, fill);
      if (typeof guarded === "string") return guarded;
      operands.push(argument(first + list.add(guarded), this.#typeOf(read.tensor)));
    }
    return bindArguments(substituteScalar(body[0]!, bindings), operands);
  }

  #typeOf(tensor: string): DType {
    return this.#program.tensors.get(tensor)!.dtype;
  }

  #isMove(): boolean {
    return this.#producer.body[0]!.kind === "argument";
  }

  /** Whether the producer gives `fill` when all its reads are filled. */
  #givesFill(fill: number | bigint): boolean {
    const { body, reads, indirects } = this.#producer;
    // An index that is not read is 0, which is one where there are any.
    if (this.#isMove()) return indirects.every((v) => (constantValue(v.extent) ?? 0) > 0);
    if (hasIndexValue(body[0]!)) return false;
    const zeros: ScalarValue[] = reads.map((r) => numberAs(this.#typeOf(r.tensor), 0));
    return Object.is(evaluateScalar(body[0]!, zeros), fill);
  }

  /** The access under a further guard; both guards must fill with the same value. */
  #guarded(access: Access, guard: Access["guard"], fill: number | bigint): Access | string {
    const ranges = statementRanges(this.#consumer, this.#program.symbols);
    for (const v of this.indirects) ranges.set(v.name, { min: 0, max: Infinity });
    const { loops } = this.#consumer;
    const own = pruneConditions(access.guard, ranges, loops);
    const none = numberAs(this.#typeOf(access.tensor), 0);
    if (guard.length === 0) {
      return { ...access, guard: own, fill: own.length === 0 ? none : access.fill };
    }
    const outer = fill === 0 || fill === 0n ? none : fill;
    if (own.length > 0 && !Object.is(access.fill, outer)) {
      return `${access.tensor} would need two fill values`;
    }
    const both = pruneConditions([...own, ...guard], ranges, loops);
    return { ...access, guard: both, fill: both.length === 0 ? none : outer };
  }

  #freshName(): string {
    const taken = new Set([
      ...this.#consumer.loops.map((l) => l.name),
      ...[...this.#consumer.indirects, ...this.indirects].map((v) => v.name),
      ...this.#program.symbols.map((s) => s.name),
    ]);
    let n = 0;
    while (taken.has(`v${n}`)) n++;
    return `v${n}`;
  }
}

/** Whether two indices are one number. */
function isSame(a: Indirect, b: Indirect): boolean {
  const key = ({ access, extent, wraps, range }: Indirect): string =>
    `${accessKey(access)} < ${extent.key} ${wraps} ${range}`;
  return key(a) === key(b);
}

function hasIndexValue(expr: ScalarExpr): boolean {
  return expr.kind === "index" || scalarOperands(expr).some(hasIndexValue);
}
