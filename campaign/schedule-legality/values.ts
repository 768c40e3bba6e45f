/**
 * What a nest computes, with arithmetic that tells orders apart: a new value is a hash of the values read,
 * an ordered update a hash of the old and the read ones, a free update and a scan a sum modulo 2^32. So
 * a value is right only if every read found the right one, and sums may be split.
 */
import {
  evaluateAffine,
  type Instance,
  instanceKey,
  type NestAccess,
  type NestStatement,
  type StorageDirective,
} from "../../src/affine/index.ts";

export type Memory = Map<string, number>;

/** Where an element of an array that matters outside lies after storage directives. */
export function homeOf(
  array: string,
  index: readonly number[],
  moves: readonly StorageDirective[],
): string {
  let [name, at] = [array, index];
  for (const d of moves) {
    if (d.array !== name) continue;
    if (d.kind === "overwrite") name = d.over;
    if (d.kind === "fold")
      at = at.with(d.axis, ((at[d.axis]! % d.modulus) + d.modulus) % d.modulus);
  }
  return `${name}[${at.join()}]`;
}

/** Runs the instances in their order; cells without a value hold zero when they collect, else rubbish. */
export function compute(
  statements: readonly NestStatement[],
  order: readonly Instance[],
  memory: Memory,
): void {
  const named = new Map(statements.map((s) => [s.name, s]));
  for (const instance of order) {
    const statement = named.get(instance.statement)!;
    const target = statement.accesses.find((a) => a.kind !== "read")!;
    const cell = cellOf(target, instance);
    const value = resultOf(statement, instance, (c) => memory.get(c) ?? rubbish(c));
    memory.set(cell, value >>> 0);
  }
}

/** Chunks of a split reduction start at the identity. */
function rubbish(cell: string): number {
  return cell.includes(".part[") ? 0 : 0x5eed;
}

function resultOf(
  statement: NestStatement,
  instance: Instance,
  load: (cell: string) => number,
): number {
  const { accesses, name } = statement;
  const target = accesses.find((a) => a.kind !== "read")!;
  const reads = accesses.filter((a) => a.kind === "read");
  const carried = reads.find((a) => a.reassociable !== undefined);
  const others = reads.filter((a) => a !== carried).map((a) => load(cellOf(a, instance)));
  const joins = name.endsWith(".sum") || name.endsWith(".carry");
  const own = joins ? others[0]! : hash(baseName(name), others);
  if (carried) return (isDone(carried, instance) ? load(cellOf(carried, instance)) : 0) + own;
  if (target.kind === "write") return own;
  const old = load(cellOf(target, instance));
  return target.reassociable ? old + own : hash(name, [old, own]);
}

function baseName(name: string): string {
  return name.replace(/(\.tile)+$/, "");
}

function isDone(access: NestAccess, { point }: Instance): boolean {
  return (access.where ?? []).every((c) => evaluateAffine(c.expression, point) >= 0);
}

/** The element; an index that is loaded takes a place in its range that depends on the instance. */
function cellOf(access: NestAccess, instance: Instance): string {
  const index = access.index.map((e) => {
    if (!("low" in e)) return evaluateAffine(e, instance.point);
    const [low, end] = [e.low, e.end].map((v) => evaluateAffine(v, instance.point)) as [
      number,
      number,
    ];
    return low + (hash(instanceKey(instance), []) % (end - low));
  });
  return `${access.array}[${index.join()}]`;
}

export function hash(text: string, values: readonly number[]): number {
  let h = 0x811c9dc5;
  const eat = (v: number): void => {
    h = Math.imul(h ^ v, 0x01000193);
    h ^= h >>> 15;
    h = Math.imul(h, 0x2c1b3c6d);
  };
  for (let i = 0; i < text.length; i++) eat(text.charCodeAt(i));
  for (const v of values) {
    eat(v & 0xffff);
    eat(v >>> 16);
  }
  return h >>> 0;
}
