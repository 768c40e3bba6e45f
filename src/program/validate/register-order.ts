/**
 * Private buffers that asynchronous instructions of a role read or write (registers of wgmma): nobody touches
 * an element between the issue and the wait for its batch (PTX ISA, "wgmma.mma_async", "wgmma.wait_group").
 * They are one thread's, and batches complete in order, so that one walk in program order decides it: what is
 * on its way is kept by how many batches lie behind it. Where ways meet, what is on its way on any of them is;
 * a loop is walked until its start finds nothing new.
 *
 * Multiplications of one group may add to the same sums, but not multiply what one of them still writes.
 */
import type { IndexExpr } from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Buffer, Role } from "../program.ts";
import type { Statement } from "../statement.ts";
import { ownExprs, visitExpr, visitStatements } from "../walk.ts";
import { type LaunchView, rootOf } from "./launch-view.ts";
import { privateElements } from "./registers.ts";
import type { Report } from "./report.ts";

export function checkRegisterOrder(view: LaunchView, role: Role, report: Report): void {
  let isNeeded = false;
  visitStatements(role.body, (s) => {
    if (s.kind === "intrinsic" && s.completion.kind === "group") isNeeded = true;
  });
  if (isNeeded) new OrderWalk(view, role, report).list(role.body, new Map());
}

/** Elements of one batch. */
interface Batch {
  readonly reads: Set<string>;
  readonly writes: Set<string>;
}

/** By group: the open batch, then those on their way, the newest first. */
type Pending = Map<string, Batch[]>;

/** Batches behind which all are as one. */
const mostBatches = 8;
/** Walks of a loop after which its start has to be known. */
const mostWalks = 12;

class OrderWalk {
  readonly #private: ReadonlyMap<string, Buffer>;
  readonly #buffers: readonly Buffer[];
  readonly #report: Report;
  readonly #at: string;

  constructor({ kernel }: LaunchView, role: Role, report: Report) {
    const own = kernel.buffers.filter((b) => b.scope === "register" || b.scope === "local");
    this.#private = new Map(own.map((b) => [b.name, b]));
    this.#buffers = kernel.buffers;
    this.#report = report;
    this.#at = `kernel ${kernel.name} role ${role.name}`;
  }

  list(body: readonly Statement[], pending: Pending): void {
    for (const s of body) if (this.#report.isClean) this.#statement(s, pending);
  }

  #statement(s: Statement, pending: Pending): void {
    for (const value of ownExprs(s)) {
      visitExpr(value, (e) => {
        if (e.kind === "load") this.#touch(e, e.lanes, "read", pending);
      });
    }
    switch (s.kind) {
      case "for":
        this.#loop(s.body, pending);
        return;
      case "if":
      case "when": {
        const other = copyOf(pending);
        this.list(s.then, pending);
        this.list(s.else, other);
        merge(pending, other);
        return;
      }
      case "store":
        this.#touch(s, s.value.lanes, "write", pending);
        return;
      case "intrinsic":
        this.#intrinsic(s, pending);
        return;
      case "commitGroup": {
        const batches = batchesOf(pending, s.group);
        batches.unshift(noBatch());
        if (batches.length > mostBatches) join(batches.at(-2)!, batches.pop()!);
        return;
      }
      case "waitGroup":
        batchesOf(pending, s.group).splice(1 + s.pending);
    }
  }

  #loop(body: readonly Statement[], pending: Pending): void {
    for (let walk = 0; walk < mostWalks && this.#report.isClean; walk++) {
      const before = keyOf(pending);
      const inside = copyOf(pending);
      this.list(body, inside);
      merge(pending, inside);
      if (keyOf(pending) === before) return;
    }
    if (!this.#report.isClean) return;
    this.#report.add("PRG060", "what is on its way at the start of a loop", { at: this.#at });
  }

  #intrinsic(s: Extract<Statement, { kind: "intrinsic" }>, pending: Pending): void {
    const { operands } = findTileIntrinsic(s.intrinsic)!;
    const group = s.completion.kind === "group" ? s.completion.group : undefined;
    const issued = noBatch();
    s.operands.forEach((o, i) => {
      if (o.kind !== "tile") return;
      const lanes = o.extents.reduce((a, b) => a * b, 1);
      const way = operands[i]!.access === "read" ? "read" : "write";
      for (const key of this.#touch(o, lanes, way, pending, group))
        (way === "read" ? issued.reads : issued.writes).add(key);
    });
    if (group !== undefined) join(batchesOf(pending, group)[0]!, issued);
  }

  /** The elements, after a report of the first that is on its way; `group`: to whose sums it adds. */
  #touch(
    place: { readonly buffer: string; readonly index: readonly IndexExpr[] },
    lanes: number,
    way: "read" | "write",
    pending: Pending,
    group?: string,
  ): readonly string[] {
    const buffer = this.#private.get(place.buffer);
    if (!buffer) return [];
    const name = rootOf(this.#buffers, place.buffer);
    const keys = (privateElements(buffer, place.index, lanes) ?? []).map((at) => `${name}:${at}`);
    for (const [other, batches] of pending) {
      for (const { reads, writes } of batches) {
        const adds = way === "write" && other === group;
        const busy = keys.find(
          (key) => (!adds && writes.has(key)) || (way === "write" && reads.has(key)),
        );
        if (busy === undefined) continue;
        const what = `element ${busy} is touched before group ${other} is awaited`;
        this.#report.add("PRG031", what, { at: this.#at });
        return keys;
      }
    }
    return keys;
  }
}

function noBatch(): Batch {
  return { reads: new Set(), writes: new Set() };
}

function batchesOf(pending: Pending, group: string): Batch[] {
  const known = pending.get(group) ?? [noBatch()];
  pending.set(group, known);
  return known;
}

function join(into: Batch, from: Batch): void {
  for (const key of from.reads) into.reads.add(key);
  for (const key of from.writes) into.writes.add(key);
}

function copyOf(pending: Pending): Pending {
  return new Map(
    [...pending].map(([group, batches]) => [
      group,
      batches.map((b) => ({ reads: new Set(b.reads), writes: new Set(b.writes) })),
    ]),
  );
}

/** Adds what is on its way in the other. */
function merge(pending: Pending, other: Pending): void {
  for (const [group, batches] of other) {
    const own = batchesOf(pending, group);
    for (const [age, batch] of batches.entries()) {
      own[age] ??= noBatch();
      join(own[age], batch);
    }
  }
}

function keyOf(pending: Pending): string {
  const parts = [...pending].map(([group, batches]) => {
    const texts = batches.map(({ reads, writes }) =>
      [reads, writes].map((s) => [...s].sort().join()).join("|"),
    );
    while (texts.at(-1) === "|") texts.pop();
    return `${group} ${texts.join(";")}`;
  });
  return parts.sort().join("\n");
}
