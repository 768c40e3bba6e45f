/**
 * Statements that synchronise: waits, signals, barriers, groups and tile intrinsics. Asynchronous
 * intrinsics become operations that the machine completes at its own pace; their accesses carry the
 * slot of a group or counter, so that only a wait on it orders what follows.
 */
import { findTileIntrinsic } from "../program/intrinsic-table.ts";
import type { TileIntrinsic } from "../program/intrinsics.ts";
import type { IntrinsicOperand, SyncStatement } from "../program/statement.ts";
import { dtypes } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { type Agent, advance, copyKnowledge, fence, joinAll } from "./program-clock.ts";
import type { Code, NameSlots, Steps } from "./program-compile.ts";
import { compileIndex } from "./program-expr.ts";
import { raise } from "./program-fault.ts";
import type { Runnable } from "./program-machine.ts";
import type { View } from "./program-memory.ts";
import type { AsyncOperation, Meeting, MonotoneCell, PhaseCell } from "./program-sync.ts";
import {
  type CounterArray,
  cellNumber,
  type GroupState,
  type Instance,
  type Thread,
} from "./program-thread.ts";
import {
  capturedPlace,
  fragmentPlace,
  memoryPlace,
  type Place,
  performTile,
  type TileSpan,
} from "./program-tile.ts";

export function compileSync(s: SyncStatement, names: NameSlots): Code {
  switch (s.kind) {
    case "intrinsic":
      return compileIntrinsic(s, names);
    case "commitGroup":
      return {
        run: (thread) => {
          groupOf(thread, s.group).committed++;
        },
      };
    case "waitGroup":
      return { run: (thread) => waitGroup(thread, s.group, s.pending) };
    case "wait":
      return compileWait(s, names);
    case "signal":
      return compileSignal(s, names);
    case "expect": {
      const cells = compileCells(s.counter, s.index, names);
      const bytes = compileIndex(s.bytes, names.int);
      return {
        run: (thread) => {
          const cell = phaseCell(cells(thread, thread.instance));
          cell.expect(bytes(thread.ints));
          arrive(thread, cell, 1);
        },
      };
    }
    case "barrier":
      return { steps: (thread) => meet(thread, thread.meetings[s.scope], `barrier ${s.scope}`) };
    case "fence":
      return {
        run: (thread) => {
          fence(thread.agent.knows, s.scope);
          advance(thread.agent);
        },
      };
    case "launchDependents":
      return { run: ({ instance }) => instance.launch.launchDependents(instance) };
    case "awaitPrerequisites":
      return { steps: awaitPrerequisites };
  }
}

function* awaitPrerequisites({ instance, agent }: Thread): Steps {
  yield { ...instance.launch.prerequisites, what: "end of earlier launches" };
  instance.launch.learn(agent.knows);
  advance(agent);
}

function groupOf(thread: Thread, name: string): GroupState {
  let group = thread.groups.get(name);
  if (!group) {
    group = { committed: 0, operations: [] };
    thread.groups.set(name, group);
  }
  return group;
}

function waitGroup(thread: Thread, name: string, pending: number): void {
  const group = groupOf(thread, name);
  const last = group.committed - pending;
  const { seen } = thread.agent.knows;
  for (const { batch, operation } of group.operations) {
    if (batch > last) continue;
    thread.machine.complete(operation);
    const { slot, clock } = operation.agent;
    seen.raise(slot, clock);
  }
  const left = group.operations.filter((o) => o.batch > last);
  group.operations.splice(0, group.operations.length, ...left);
}

type Cell = MonotoneCell<Runnable> | PhaseCell<Runnable>;
type CellCode = (thread: Thread, instance: Instance) => Cell;

/** Finds the cell in an instance; counters of scope memory are in every instance's map. */
function compileCells(counter: string, index: readonly IndexExpr[], names: NameSlots): CellCode {
  const codes = index.map((e) => compileIndex(e, names.int));
  return (thread, instance) => {
    const array = instance.counters.get(counter);
    invariant(array, () => `counter ${counter} is unknown`);
    const at = codes.map((code) => code(thread.ints));
    return cellAt(array, at);
  };
}

/** A cell of a counter array; outside is a fault. */
export function cellAt(array: CounterArray, at: readonly number[]): Cell {
  const number = cellNumber(array, at, () =>
    raise("outOfBounds", `counter ${array.name}[${at.join(", ")}]`),
  );
  const cell = array.monotone[number] ?? array.phase[number];
  invariant(cell, () => `counter ${array.name} has no cell ${number}`);
  return cell;
}

function phaseCell(cell: Cell): PhaseCell<Runnable> {
  invariant("completed" in cell, () => `${cell.label} is not of protocol phase`);
  return cell;
}

function arrive(thread: Thread, cell: PhaseCell<Runnable>, amount: number): void {
  cell.arrive(amount, thread.agent.knows);
  advance(thread.agent);
  thread.machine.wake(cell.queue);
}

function compileWait(s: Extract<SyncStatement, { kind: "wait" }>, names: NameSlots): Code {
  const cells = compileCells(s.counter, s.index, names);
  const value = compileIndex(s.value, names.int);
  return {
    *steps(thread): Steps {
      const cell = cells(thread, thread.instance);
      const wanted = value(thread.ints);
      const what = `wait ${cell.label} for ${wanted}`;
      if ("completed" in cell) {
        const parity = Math.abs(wanted % 2);
        yield { queue: cell.queue, isReady: () => cell.hasCompleted(parity), what };
        cell.acquire(thread.agent.knows);
      } else {
        yield { queue: cell.queue, isReady: () => cell.value >= wanted, what };
        cell.acquire(wanted, thread.agent.knows);
      }
    },
  };
}

function compileSignal(s: Extract<SyncStatement, { kind: "signal" }>, names: NameSlots): Code {
  const cells = compileCells(s.counter, s.index, names);
  const amount = compileIndex(s.amount, names.int);
  return {
    run: (thread) => {
      const targets = s.scope === "cluster" ? thread.instance.cluster : [thread.instance];
      for (const target of targets) {
        const cell = cells(thread, target);
        if ("completed" in cell) arrive(thread, cell, amount(thread.ints));
        else {
          cell.signal(amount(thread.ints), thread.agent.knows);
          advance(thread.agent);
          thread.machine.wake(cell.queue);
        }
      }
    },
  };
}

/** Meets the others; each leaves with what all know. The last one runs `action` with everybody. */
function* meet(
  thread: Thread,
  meeting: Meeting<Thread>,
  purpose: string,
  action: (all: readonly Thread[]) => void = () => {},
): Steps {
  const round = meeting.round;
  const all = meeting.arrive(thread, purpose);
  if (!all) {
    yield { queue: meeting.queue, isReady: () => meeting.round > round, what: purpose };
    return;
  }
  joinAll(all.map((other) => other.agent.knows));
  for (const other of all) advance(other.agent);
  action(all);
  thread.machine.wake(meeting.queue);
}

type Issue = Extract<SyncStatement, { kind: "intrinsic" }>;
type SpanCode = (thread: Thread) => TileSpan;

/** A statement with its row and everything resolved. */
interface Prepared {
  readonly statement: Issue;
  readonly row: TileIntrinsic;
  readonly spans: readonly SpanCode[];
  /** Buffer of each operand in another instance of the cluster, for multicast. */
  readonly buffers: readonly string[];
  readonly cells: CellCode | undefined;
  readonly targets: (leader: Thread) => readonly Instance[];
}

function compileIntrinsic(s: Issue, names: NameSlots): Code {
  const row = findTileIntrinsic(s.intrinsic);
  invariant(row, () => `unknown intrinsic ${s.intrinsic}`);
  const { completion } = s;
  const cells =
    completion.kind === "signals"
      ? compileCells(completion.counter, completion.index, names)
      : undefined;
  const spans = s.operands.map((o) => compileSpan(o, names));
  const buffers = s.operands.map((o) => (o.kind === "tile" ? o.buffer : ""));
  const targets = compileTargets(s, names);
  const prepared: Prepared = { statement: s, row, spans, buffers, cells, targets };
  if (row.collective === "thread") return { run: (thread) => issueFor(prepared, [thread]) };
  const unit = row.collective;
  return {
    steps: (thread) =>
      meet(thread, thread.meetings[unit], row.name, (all) =>
        issueFor(
          prepared,
          [...all].sort((a, b) => a.number - b.number),
        ),
      ),
  };
}

function compileSpan(operand: IntrinsicOperand, names: NameSlots): SpanCode {
  invariant(operand.kind === "tile", () => "value operand of a tile intrinsic");
  const slot = names.buffer(operand.buffer);
  const codes = operand.index.map((e) => compileIndex(e, names.int));
  return (thread) => ({
    view: thread.views[slot]!,
    at: codes.map((code) => code(thread.ints)),
    extents: operand.extents,
  });
}

/** Runs a sync intrinsic now, or hands an asynchronous one to the machine. */
function issueFor(prepared: Prepared, all: readonly Thread[]): void {
  const { statement, row } = prepared;
  const leader = all[0]!;
  const { completion } = statement;
  if (completion.kind === "sync") {
    const places = placesOf(prepared, all, leader.instance);
    performTile(row, places, { ...leader.agent, label: row.name, proxy: row.proxy });
  } else if (completion.kind === "group") issueInGroup(prepared, all, completion.group);
  else for (const target of prepared.targets(leader)) issueSignalling(prepared, leader, target);
}

function placesOf(prepared: Prepared, all: readonly Thread[], target: Instance): readonly Place[] {
  const leader = all[0]!;
  return prepared.row.operands.map((operand, o) => {
    const span = prepared.spans[o]!;
    if (operand.layout === "fragment") {
      const owners =
        prepared.statement.completion.kind === "sync" ? all.map((t) => t.agent) : undefined;
      return fragmentPlace(operand, all.map(span), owners);
    }
    const own = span(leader);
    const elsewhere = target === leader.instance ? undefined : sharedOf(prepared, o, target);
    const view: View = operand.access === "read" ? own.view : (elsewhere ?? own.view);
    return memoryPlace(operand, { ...own, view });
  });
}

function sharedOf(prepared: Prepared, operand: number, target: Instance): View | undefined {
  return target.shared.get(prepared.buffers[operand]!);
}

function asyncAgent(row: TileIntrinsic, thread: Thread, slot: number, clock: number): Agent {
  const label = `${row.name} of ${thread.agent.label}`;
  return { label, slot, clock, knows: copyKnowledge(thread.agent.knows), proxy: row.proxy };
}

function issueInGroup(prepared: Prepared, all: readonly Thread[], name: string): void {
  const { row } = prepared;
  const leader = all[0]!;
  const batch = groupOf(leader, name).committed + 1;
  const key = `${row.collective} ${name} of ${leader.agent.label}`;
  const slot = leader.groupSlots.get(key) ?? leader.machine.newSlot();
  leader.groupSlots.set(key, slot);
  const agent = asyncAgent(row, leader, slot, batch);
  const places = placesOf(prepared, all, leader.instance);
  const perform = (): void => performTile(row, places, agent);
  const previous = groupOf(leader, name).operations.at(-1)?.operation;
  const ordered = row.operands.some((o) => o.layout === "fragment") ? previous : undefined;
  const operation: AsyncOperation = {
    agent,
    perform,
    ...(ordered && { after: ordered }),
    done: false,
  };
  for (const thread of all) {
    const group = groupOf(thread, name);
    if (group.committed + 1 !== batch) raise("divergence", `${row.name}: groups out of step`);
    group.operations.push({ batch, operation });
  }
  leader.machine.issue(operation);
}

/** The instances in which a signalling intrinsic lands. */
function compileTargets({ completion }: Issue, names: NameSlots): Prepared["targets"] {
  if (completion.kind !== "signals") return () => [];
  const { scope, peer } = completion;
  if (peer === undefined) {
    return ({ instance }) => (scope === "cluster" ? instance.cluster : [instance]);
  }
  const rank = compileIndex(peer, names.int);
  return ({ instance: { cluster }, ints }) => {
    const target = cluster[rank(ints)];
    if (!target) raise("outOfBounds", `peer ${rank(ints)} of a cluster of ${cluster.length}`);
    return [target];
  };
}

function issueSignalling(prepared: Prepared, leader: Thread, target: Instance): void {
  const { row } = prepared;
  const cell = phaseCell(prepared.cells!(leader, target));
  // Registers are operands like any instruction's: what is sent is what they hold now (PTX ISA, "st.async").
  const issuing = { ...leader.agent, label: row.name, proxy: row.proxy };
  const places = placesOf(prepared, [leader], target).map((place, o) =>
    row.operands[o]!.layout === "fragment" ? capturedPlace(place, issuing) : place,
  );
  const agent = asyncAgent(row, leader, cell.slot, 0);
  const bytes = bytesOf(prepared, leader);
  const perform = (): void => {
    agent.clock = cell.completed + 1;
    performTile(row, places, agent);
    cell.land(bytes);
    leader.machine.wake(cell.queue);
  };
  leader.machine.issue({ agent, perform, done: false });
}

/** What the copy counts: the whole box, the part outside included. */
function bytesOf(prepared: Prepared, thread: Thread): number {
  const { view, extents } = prepared.spans[0]!(thread);
  return (extents.reduce((a, b) => a * b, 1) * dtypes[view.dtype].bits) / 8;
}
