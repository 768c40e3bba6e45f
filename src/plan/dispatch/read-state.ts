/**
 * Requests that are on devices now, from a JSON file: what migration is suggested for. Devices in bytes
 * and speeds, requests by name with their device, work and memory; each fault with the path of its key.
 */
import { ok, type Result } from "../../support/diagnostic.ts";
import {
  flag,
  listOf,
  numberIn,
  objectOf,
  optional,
  type Rules,
  required,
  text,
} from "../../target/file-reader.ts";
import { PlanFile } from "../read-plan-file.ts";
import type { Accelerator } from "./fleet.ts";
import type { Assignment } from "./migrate.ts";

export interface FleetState {
  readonly devices: readonly Accelerator[];
  readonly assigned: readonly Assignment[];
  /** Names of the requests, by the number of their job. */
  readonly names: readonly string[];
}

interface FileDevice {
  readonly name: string;
  readonly memoryBytes: number;
  /** Against the device that works are stated for. */
  readonly speed?: number;
  /** Requests that may wait behind the running one. */
  readonly queue?: number;
}

interface FileRequest {
  readonly name: string;
  readonly device: string;
  readonly workMs: number;
  readonly memoryBytes: number;
  /** Stays where it is. */
  readonly pinned?: boolean;
}

interface StateFile {
  readonly devices: readonly FileDevice[];
  readonly requests: readonly FileRequest[];
}

const bytes = numberIn({ least: 0, most: 1e18 });
const deviceRules: Rules<FileDevice> = {
  name: required(text),
  memoryBytes: required(bytes),
  speed: optional(numberIn({ least: 1e-9, most: 1e9 })),
  queue: optional(numberIn({ integer: true, least: 0, most: 1e6 })),
};
const requestRules: Rules<FileRequest> = {
  name: required(text),
  device: required(text),
  workMs: required(numberIn({ least: 0, most: 1e12 })),
  memoryBytes: required(bytes),
  pinned: optional(flag),
};
const fileRules: Rules<StateFile> = {
  devices: required(listOf(objectOf(deviceRules), 1)),
  requests: required(listOf(objectOf(requestRules))),
};

/** As many requests as moves can be weighed for while someone waits. */
const mostRequests = 20_000;

export function parseFleetState(json: string): Result<FleetState> {
  const file = stateFile.parse(json, fileRules);
  return file.ok ? stateOf(file.value) : file;
}

const stateFile = new PlanFile("Migration");

function stateOf({ devices, requests }: StateFile): Result<FleetState> {
  if (requests.length > mostRequests) {
    return stateFile.refuse(
      `${requests.length} requests are more than ${mostRequests}`,
      "requests",
    );
  }
  const names = stateFile.checkNames(devices, requests);
  if (!names.ok) return names;
  const index = new Map(devices.map((d, i) => [d.name, i]));
  const free = devices.map((d) => d.memoryBytes);
  const assigned: Assignment[] = [];
  for (const [id, request] of requests.entries()) {
    const device = index.get(request.device);
    if (device === undefined) {
      return stateFile.refuse(`there is no device ${JSON.stringify(request.device)}`, request.name);
    }
    free[device]! -= request.memoryBytes;
    const { workMs, memoryBytes, pinned } = request;
    const preferred = pinned ? { preferred: device } : {};
    const job = { id, work: workMs * 1e6, memoryBytes, priority: 0, ...preferred };
    assigned.push({ job, device });
  }
  const full = free.findIndex((bytes) => bytes < 0);
  if (full >= 0) {
    const { name } = devices[full]!;
    return stateFile.refuse(
      `the requests on ${name} need ${-free[full]!} bytes more than it has`,
      name,
    );
  }
  return ok({
    devices: devices.map(({ name, memoryBytes, speed = 1, queue = 1e6 }) => ({
      ...{ name, memoryBytes, speed },
      queueDepth: queue,
    })),
    assigned,
    names: requests.map((r) => r.name),
  });
}
