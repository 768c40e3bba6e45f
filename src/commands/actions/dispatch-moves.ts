/** Migration: which requests of a fleet's state to move where, and the loads before and after. */
import { loadsOf, type Move, suggestMoves } from "../../plan/dispatch/migrate.ts";
import { type FleetState, parseFleetState } from "../../plan/dispatch/read-state.ts";
import { checkNumber } from "../../plan/number.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";
import type { CommandResult } from "../command.ts";
import { formatBytes, formatTime } from "./format.ts";
import { printTable } from "./table.ts";

export function suggestFor(path: string, aboveMs: number | undefined): Result<CommandResult> {
  const bytes = readWhole(path);
  if (!bytes.ok) return bytes;
  const state = parseFleetState(new TextDecoder().decode(bytes.value));
  if (!state.ok) return state;
  const fault =
    aboveMs !== undefined && checkNumber("PLN001", "--above", aboveMs, { least: 0, most: 1e12 });
  if (fault) return fail(fault);
  const { devices, assigned } = state.value;
  const before = loadsOf(devices, assigned);
  const mean = before.reduce((a, b) => a + b, 0) / before.length;
  const thresholdNs = aboveMs === undefined ? mean : aboveMs * 1e6;
  const moves = suggestMoves(devices, assigned, thresholdNs);
  const moved = new Map(moves.map((m) => [m.job, m.to]));
  const now = assigned.map((a) => ({ ...a, device: moved.get(a.job.id) ?? a.device }));
  const after = loadsOf(devices, now);
  const data = {
    thresholdNs,
    devices: devices.map((d, i) => ({
      ...{ name: d.name, beforeNs: before[i]!, afterNs: after[i]! },
      freeBytes: freeOf(state.value, now, i),
    })),
    moves: moves.map(({ job, from, to, fromNs, toNs }) => ({
      ...{ request: state.value.names[job]!, from: devices[from]!.name, to: devices[to]!.name },
      ...{ fromNs, toNs },
    })),
    mostBeforeNs: Math.max(...before),
    mostAfterNs: Math.max(...after),
    origins: {
      thresholdNs: aboveMs === undefined ? "computed: the mean load" : "given: --above",
      devices: "computed: work over speed and free memory, of the file",
      moves: "computed: loads of both devices after the move",
      mostBeforeNs: "computed: the largest load of the file",
      mostAfterNs: "computed: the largest load after all moves",
    },
  };
  return ok({ data, text: describe(state.value, moves, data) });
}

function freeOf({ devices }: FleetState, now: FleetState["assigned"], device: number): number {
  const used = now.filter((a) => a.device === device).map((a) => a.job.memoryBytes);
  return devices[device]!.memoryBytes - used.reduce((a, b) => a + b, 0);
}

interface Outcome {
  readonly thresholdNs: number;
  readonly devices: readonly {
    readonly name: string;
    readonly beforeNs: number;
    readonly afterNs: number;
    readonly freeBytes: number;
  }[];
}

function describe(state: FleetState, moves: readonly Move[], outcome: Outcome): string {
  const { devices, names } = state;
  const rows = moves.map((m) => [
    names[m.job]!,
    devices[m.from]!.name,
    devices[m.to]!.name,
    formatTime(m.fromNs),
    formatTime(m.toNs),
  ]);
  const loads = outcome.devices.map((d) => [
    d.name,
    formatTime(d.beforeNs),
    formatTime(d.afterNs),
    formatBytes(d.freeBytes),
  ]);
  const threshold = `devices with more than ${formatTime(outcome.thresholdNs)} of work give away`;
  return [
    moves.length > 0
      ? printTable(["move", "from", "to", "left there", "load here"], rows, [3, 4])
      : "no move makes the busier of two devices less busy within the memory that is free",
    "",
    printTable(["device", "before", "after", "free then"], loads),
    threshold,
  ].join("\n");
}
