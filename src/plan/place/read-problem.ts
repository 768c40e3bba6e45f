/**
 * A placement problem from a JSON file: tasks by name with their inputs, times by device, and devices
 * that hang on one another like a tree (a GPU on its host): the way between two of them is the path, its
 * rate the slowest link and its latency their sum.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import {
  isRecord,
  listOf,
  numberIn,
  objectOf,
  optional,
  type Read,
  type Rules,
  required,
  text,
} from "../../target/file-reader.ts";
import { PlanFile } from "../read-plan-file.ts";
import { checkProblem, type PlaceProblem, type PlaceTask, type PlaceTransfer } from "./problem.ts";

interface FileInput {
  readonly from: string;
  readonly bytes: number;
}

interface FileTask {
  readonly name: string;
  readonly inputs: readonly FileInput[];
  readonly timeNs: Readonly<Record<string, number>>;
  readonly memoryBytes: number;
}

interface FileDevice {
  readonly name: string;
  readonly memoryBytes: number;
  /** The device that it hangs on, with the link to it. */
  readonly attachedTo?: string;
  readonly latencyNs?: number;
  readonly bytesPerNs?: number;
}

interface ProblemFile {
  readonly tasks: readonly FileTask[];
  readonly devices: readonly FileDevice[];
}

const amount = numberIn({ least: 0, most: 1e18 });

const times: Read<Readonly<Record<string, number>>> = (reader, value, path) => {
  if (!isRecord(value)) {
    return reader.fault("key", path, "no object", 'write the times by device: {"gpu": 5}');
  }
  const entries = Object.entries(value).map(
    ([device, time]) => [device, amount(reader, time, `${path}.${device}`) ?? 0] as const,
  );
  return Object.fromEntries(entries);
};

const inputRules: Rules<FileInput> = { from: required(text), bytes: required(amount) };
const taskRules: Rules<FileTask> = {
  name: required(text),
  inputs: required(listOf(objectOf(inputRules))),
  timeNs: required(times),
  memoryBytes: required(amount),
};
const deviceRules: Rules<FileDevice> = {
  name: required(text),
  memoryBytes: required(amount),
  attachedTo: optional(text),
  latencyNs: optional(amount),
  bytesPerNs: optional(numberIn({ least: 1e-9, most: 1e9 })),
};
const fileRules: Rules<ProblemFile> = {
  tasks: required(listOf(objectOf(taskRules))),
  devices: required(listOf(objectOf(deviceRules))),
};

export function parsePlaceProblem(json: string): Result<PlaceProblem> {
  const file = problemFile.parse(json, fileRules);
  return file.ok ? problemOf(file.value) : file;
}

const problemFile = new PlanFile("Placement files");

function problemOf({ tasks, devices }: ProblemFile): Result<PlaceProblem> {
  const names = problemFile.checkNames(tasks, devices);
  if (!names.ok) return names;
  const transfers = transfersOf(devices);
  if (!transfers.ok) return transfers;
  const order = sortTasks(tasks);
  if (!order.ok) return order;
  const position = new Map(order.value.map((t, i) => [t.name, i]));
  const placed: PlaceTask[] = [];
  for (const task of order.value) {
    const unknown = Object.keys(task.timeNs).find((n) => !devices.some((d) => d.name === n));
    if (unknown !== undefined)
      return problemFile.refuse(`there is no device ${JSON.stringify(unknown)}`, task.name);
    placed.push({
      name: task.name,
      inputs: task.inputs.map((i) => ({ from: position.get(i.from)!, bytes: i.bytes })),
      timeNs: devices.map((d) => task.timeNs[d.name] ?? Infinity),
      memoryBytes: task.memoryBytes,
    });
  }
  return checkProblem({
    tasks: placed,
    devices: devices.map(({ name, memoryBytes }) => ({ name, memoryBytes })),
    transfers: transfers.value,
  });
}

/** Tasks behind their inputs; those on a circle have no such place. */
function sortTasks(tasks: readonly FileTask[]): Result<readonly FileTask[]> {
  const byName = new Map(tasks.map((t) => [t.name, t]));
  const state = new Map<string, "open" | "done">();
  const sorted: FileTask[] = [];
  for (const root of tasks) {
    const stack: { readonly task: FileTask; at: number }[] = [{ task: root, at: 0 }];
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const { name, inputs } = top.task;
      if (state.get(name) === "done") {
        stack.pop();
        continue;
      }
      state.set(name, "open");
      const input = inputs[top.at++];
      if (input === undefined) {
        state.set(name, "done");
        sorted.push(top.task);
        stack.pop();
        continue;
      }
      const next = byName.get(input.from);
      if (!next) return problemFile.refuse(`there is no task ${JSON.stringify(input.from)}`, name);
      if (state.get(next.name) === "open") {
        return fail(
          diagnostic("PLN005", `task ${next.name} needs its own result, through ${name}`, {
            at: name,
            help: "break the circle",
          }),
        );
      }
      stack.push({ task: next, at: 0 });
    }
  }
  return ok(sorted);
}

interface Hop {
  readonly device: number;
  readonly latencyNs: number;
  readonly bytesPerNs: number;
}

function transfersOf(
  devices: readonly FileDevice[],
): Result<readonly (readonly PlaceTransfer[])[]> {
  const index = new Map(devices.map((d, i) => [d.name, i]));
  const chains: (readonly Hop[])[] = [];
  for (const [i, device] of devices.entries()) {
    const chain: Hop[] = [{ device: i, latencyNs: 0, bytesPerNs: Infinity }];
    for (let at = device; at.attachedTo !== undefined; ) {
      const up = index.get(at.attachedTo);
      if (up === undefined)
        return problemFile.refuse(`there is no device ${at.attachedTo}`, at.name);
      if (chain.some((hop) => hop.device === up)) {
        return problemFile.refuse(
          `device ${at.name} hangs on itself, through ${at.attachedTo}`,
          at.name,
        );
      }
      if (at.latencyNs === undefined || at.bytesPerNs === undefined) {
        return problemFile.refuse(`the link of ${at.name} needs latencyNs and bytesPerNs`, at.name);
      }
      const last = chain.at(-1)!;
      chain.push({
        device: up,
        latencyNs: last.latencyNs + at.latencyNs,
        bytesPerNs: Math.min(last.bytesPerNs, at.bytesPerNs),
      });
      at = devices[up]!;
    }
    chains.push(chain);
  }
  const rows: PlaceTransfer[][] = [];
  for (const [i, from] of chains.entries()) {
    const row: PlaceTransfer[] = [];
    for (const [j, to] of chains.entries()) {
      const meeting = from.find((hop) => to.some((other) => other.device === hop.device));
      if (!meeting) {
        return problemFile.refuse(
          `there is no way from ${devices[i]!.name} to ${devices[j]!.name}`,
        );
      }
      const other = to.find((hop) => hop.device === meeting.device)!;
      const latencyNs = meeting.latencyNs + other.latencyNs;
      row.push({ latencyNs, bytesPerNs: Math.min(meeting.bytesPerNs, other.bytesPerNs, 1e9) });
    }
    rows.push(row);
  }
  return ok(rows);
}
