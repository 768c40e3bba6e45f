/**
 * The placement problem: tasks with their inputs, a time on each device and memory that stays taken;
 * devices with their memory and what a transfer between each pair costs. A task runs on one device
 * without a break, a device runs one task at a time, and a task starts when its inputs have arrived.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { checkNumber } from "../number.ts";

export interface PlaceInput {
  /** Index of the task whose output it is. */
  readonly from: number;
  readonly bytes: number;
}

export interface PlaceTask {
  readonly name: string;
  readonly inputs: readonly PlaceInput[];
  /** By device; Infinity where it cannot run. */
  readonly timeNs: readonly number[];
  /** Weights and state, taken on the device from beginning to end. */
  readonly memoryBytes: number;
}

export interface PlaceTransfer {
  readonly latencyNs: number;
  /** GB/s. */
  readonly bytesPerNs: number;
}

export interface PlaceDevice {
  readonly name: string;
  readonly memoryBytes: number;
}

export interface PlaceProblem {
  /** In an order in which every task stands behind its inputs. */
  readonly tasks: readonly PlaceTask[];
  readonly devices: readonly PlaceDevice[];
  /** [from][to]; the diagonal is not read. */
  readonly transfers: readonly (readonly PlaceTransfer[])[];
}

/** Nanoseconds until `bytes` of a task's output are on another device. */
export function transferNs(problem: PlaceProblem, from: number, to: number, bytes: number): number {
  if (from === to) return 0;
  const { latencyNs, bytesPerNs } = problem.transfers[from]![to]!;
  return latencyNs + bytes / bytesPerNs;
}

const most = 1e18;

/** Everything about a problem that the solvers take for granted. */
export function checkProblem(problem: PlaceProblem): Result<PlaceProblem> {
  const lacking = checkForm(problem);
  if (lacking) return fail(lacking);
  const { tasks, devices } = problem;
  const faults: (Diagnostic | undefined)[] = [];
  if (tasks.length === 0) faults.push(empty("there is nothing to place", "give at least one task"));
  if (devices.length === 0) faults.push(empty("there is no device", "give at least one device"));
  const bytes = { least: 0, most };
  for (const d of devices) {
    faults.push(checkNumber("PLN001", `memory of ${d.name}`, d.memoryBytes, bytes));
  }
  tasks.forEach((task, i) => {
    faults.push(...checkTask(task, i, problem));
  });
  devices.forEach((from, i) => {
    devices.forEach((to, j) => {
      if (i === j) return;
      const link = problem.transfers[i]?.[j];
      const name = `the way from ${from.name} to ${to.name}`;
      faults.push(
        checkNumber("PLN001", `latency of ${name}`, link?.latencyNs ?? Number.NaN, bytes),
      );
      const rate = { least: 1e-9, most: 1e9 };
      faults.push(checkNumber("PLN001", `rate of ${name}`, link?.bytesPerNs ?? Number.NaN, rate));
    });
  });
  const found = faults.filter((f) => f !== undefined);
  return found.length > 0 ? fail(...found) : ok(problem);
}

/** For problems of programs that no compiler has checked: the first list or name that is not there. */
function checkForm(problem: PlaceProblem): Diagnostic | undefined {
  for (const key of ["tasks", "devices", "transfers"] as const) {
    if (!isRecord(problem) || !Array.isArray(problem[key])) return malformed(`it has no ${key}`);
  }
  const { tasks, devices, transfers } = problem;
  if (!transfers.every((row) => Array.isArray(row))) return malformed("transfers has no rows");
  const nameless = devices.findIndex((d) => !isRecord(d) || typeof d.name !== "string");
  if (nameless >= 0) return malformed(`devices[${nameless}] has no name`);
  for (const [i, task] of tasks.entries()) {
    if (!isRecord(task) || typeof task.name !== "string") {
      return malformed(`tasks[${i}] has no name`);
    }
    const { name, inputs, timeNs } = task;
    if (!Array.isArray(inputs) || !inputs.every(isRecord)) {
      return malformed(`${name} has no list of inputs`);
    }
    const times = Array.isArray(timeNs) ? timeNs.length : 0;
    if (times !== devices.length) {
      return malformed(`${name} has ${times} times, there are ${devices.length} devices`);
    }
  }
  return undefined;
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function malformed(why: string): Diagnostic {
  const help = "docs/planning.md, Placement, says what a problem has";
  return diagnostic("PLN008", `not a placement problem: ${why}`, { help });
}

function empty(message: string, help: string): Diagnostic {
  return diagnostic("PLN005", message, { help });
}

function checkTask(
  task: PlaceTask,
  index: number,
  { devices }: PlaceProblem,
): readonly (Diagnostic | undefined)[] {
  const bytes = { least: 0, most };
  const times = devices.map((d, i) => {
    const time = task.timeNs[i] ?? Number.NaN;
    if (time === Infinity) return undefined;
    return checkNumber("PLN001", `time of ${task.name} on ${d.name}`, time, bytes);
  });
  const nowhere = devices.every((_, i) => task.timeNs[i] === Infinity);
  return [
    ...times,
    checkNumber("PLN001", `memory of ${task.name}`, task.memoryBytes, bytes),
    ...task.inputs.map((input) =>
      input.from >= 0 && input.from < index && Number.isInteger(input.from)
        ? checkNumber("PLN001", `an input of ${task.name}`, input.bytes, bytes)
        : empty(`${task.name} needs a task that does not stand before it`, "break the circle"),
    ),
    nowhere && devices.length > 0
      ? empty(`${task.name} can run on no device`, "give it a time on one")
      : undefined,
  ];
}
