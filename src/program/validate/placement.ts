/**
 * Placements: inside their arena, aligned to their elements, and never two buffers in the same bytes
 * while both are alive. A buffer lives from its first to its last launch (outputs to the end, inputs
 * from the start, weights and states always); one that is used inside a repeat or while lives through
 * all of it, unless every trip begins with a launch that writes it completely. Sizes are capacities;
 * a capacity must hold the shape for all parameters.
 */
import { dtypes } from "../../semantics/dtype.ts";
import { add, ceilDiv, type IndexExpr, mul } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Buffer, Program } from "../program.ts";
import type { Facts } from "./facts.ts";
import { parameterFacts, rootOf } from "./launch-view.ts";
import type { Report } from "./report.ts";
import { usesCounters } from "./task-order.ts";
import type { TaskRecords } from "./tasks.ts";

interface Life {
  from: number;
  to: number;
}

export function checkPlacements(program: Program, records: TaskRecords, report: Report): void {
  const facts = parameterFacts(program);
  for (const buffer of program.buffers) {
    checkCapacity(buffer, facts, report);
    if (buffer.viewOf !== undefined) checkView(program, buffer, { facts, report });
  }
  for (const kernel of program.kernels) {
    for (const buffer of kernel.buffers) {
      if (buffer.viewOf !== undefined)
        checkView(program, buffer, { facts, report }, kernel.buffers);
    }
  }
  const lives = livesOf(program, records);
  const placed = program.buffers.filter((b) => b.placement !== undefined);
  for (const b of placed) checkAlignment(b, facts, report);
  const spans = placed.map((buffer) => spanOf(buffer, lives.get(buffer.name), facts));
  spans.sort((a, b) => a.life.from - b.life.from);
  for (const [i, a] of spans.entries()) {
    for (let j = i + 1; j < spans.length; j++) {
      const b = spans[j]!;
      if (b.life.from > a.life.to) break;
      checkApart(a, b, { facts, report, records });
    }
  }
}

interface Span {
  readonly buffer: Buffer;
  readonly life: Life;
  readonly from: IndexExpr;
  readonly to: IndexExpr;
  readonly least: number;
  readonly most: number;
}

function spanOf(buffer: Buffer, life: Life | undefined, facts: Facts): Span {
  const from = buffer.placement!.byteOffset;
  const to = add(from, bytesOf(buffer, buffer.capacity ?? buffer.shape));
  const least = rangeOf(from, facts.ranges).min;
  const most = rangeOf(to, facts.ranges).max;
  return { buffer, life: life ?? { from: 0, to: -1 }, from, to, least, most };
}

function checkApart(
  a: Span,
  b: Span,
  at: { readonly facts: Facts; readonly report: Report; readonly records: TaskRecords },
): void {
  const { facts, report, records } = at;
  if (a.buffer.placement!.arena !== b.buffer.placement!.arena || b.life.to < b.life.from) return;
  if (a.most <= b.least || b.most <= a.least) return;
  if (facts.atLeast(b.from, a.to) || facts.atLeast(a.from, b.to)) return;
  if (takesOver(a, b, records) || takesOver(b, a, records)) return;
  report.add(
    "PRG050",
    `${a.buffer.name} and ${b.buffer.name} in arena ${a.buffer.placement!.arena}`,
    {
      notes: [a, b].map(
        (s) =>
          `${s.buffer.name}: bytes ${s.from.key} to ${s.to.key}, alive from launch ${s.life.from} to ${s.life.to}`,
      ),
      help: "place them apart, or let one end before the other begins",
    },
  );
}

/** b is written in place of a, in the launch that reads a for the last time. */
function takesOver(a: Span, b: Span, records: TaskRecords): boolean {
  if (a.from.key !== b.from.key || a.life.to !== b.life.from) return false;
  const { footprint } = records.launches[a.life.to]!;
  return footprint.mayOverwrite?.(a.buffer.name, b.buffer.name) ?? false;
}

function bytesOf(buffer: Buffer, shape: readonly IndexExpr[]): IndexExpr {
  return ceilDiv(mul(buffer.lanes * dtypes[buffer.dtype].bits, ...shape), 8);
}

function checkCapacity(buffer: Buffer, facts: Facts, report: Report): void {
  for (const extent of [...buffer.shape, ...(buffer.capacity ?? [])]) {
    if (facts.atLeast(extent, 0)) continue;
    report.add("PRG051", `extent ${extent.key} of ${buffer.name} may be negative`);
  }
  if (!buffer.capacity) return;
  const enough = facts.atLeast(bytesOf(buffer, buffer.capacity), bytesOf(buffer, buffer.shape));
  const each = buffer.shape.every((e, axis) => facts.atLeast(buffer.capacity![axis]!, e));
  if (enough || each) return;
  report.add("PRG051", `capacity of ${buffer.name} may be less than its shape`);
}

function checkView(
  program: Program,
  buffer: Buffer,
  { facts, report }: { readonly facts: Facts; readonly report: Report },
  siblings: readonly Buffer[] = program.buffers,
): void {
  const base = siblings.find((b) => b.name === buffer.viewOf)!;
  if (facts.equal(bytesOf(buffer, buffer.shape), bytesOf(base, base.shape))) return;
  report.add("PRG051", `view ${buffer.name} has not the bytes of ${base.name}`);
}

function checkAlignment(buffer: Buffer, facts: Facts, report: Report): void {
  const offset = buffer.placement!.byteOffset;
  const bytes = Math.max(1, dtypes[buffer.dtype].bits / 8);
  const aligned = [offset.constant, ...offset.terms.map((t) => t.coefficient)];
  if (aligned.some((n) => n % bytes !== 0)) {
    report.add("PRG051", `${buffer.name} at ${offset.key} is not aligned to ${bytes} bytes`);
  }
  if (!facts.atLeast(offset, 0)) {
    report.add("PRG051", `${buffer.name} at ${offset.key} may begin before its arena`);
  }
}

function livesOf(program: Program, records: TaskRecords): ReadonlyMap<string, Life> {
  const lives = new Map<string, Life>();
  const extend = (root: string, position: number): void => {
    const life = lives.get(root);
    if (!life) lives.set(root, { from: position, to: position });
    else {
      life.from = Math.min(life.from, position);
      life.to = Math.max(life.to, position);
    }
  };
  for (const { position, footprint } of records.launches) {
    for (const root of [...footprint.reads, ...footprint.writes]) extend(root, position);
  }
  for (const { root, position } of records.conditions) extend(root, position);
  extendOverLoops(lives, records);
  const end = records.launches.length;
  // Launches that wait for counters run in no order of the text: every life is the whole program's.
  if (usesCounters(program.tasks)) {
    for (const root of lives.keys()) {
      extend(root, 0);
      extend(root, end);
    }
  }
  for (const b of program.buffers) {
    const root = rootOf(program.buffers, b.name);
    if (b.kind === "input" || b.kind === "weight" || b.kind === "state") extend(root, 0);
    if (b.kind === "output" || b.kind === "weight" || b.kind === "state") extend(root, end);
  }
  return lives;
}

/** A buffer in a loop lives through all trips, unless each trip begins by writing it completely. */
function extendOverLoops(lives: ReadonlyMap<string, Life>, records: TaskRecords): void {
  const inner = [...records.loops].sort((a, b) => a.to - a.from - (b.to - b.from));
  for (const { from, to } of inner) {
    for (const [root, life] of lives) {
      if (life.to < from || life.from >= to) continue;
      const inside = life.from >= from && life.to < to;
      const first = records.launches[life.from];
      if (inside && first?.completes.has(root) && !first.footprint.reads.has(root)) continue;
      life.from = Math.min(life.from, from);
      life.to = Math.max(life.to, to - 1);
    }
  }
}
