/**
 * Requests that are on devices now, from a JSON file: what migration is suggested for. Devices in bytes
 * and speeds, requests by name with their device, work and memory; each fault with the path of its key.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import {
  FileReader,
  flag,
  listOf,
  numberIn,
  objectOf,
  optional,
  type Rules,
  required,
  text,
} from "../../target/file-reader.ts";
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
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refuse(`a plan file is JSON, and this is not: ${error.message}`);
  }
  const reader = new FileReader({ key: "PLN007", number: "PLN001" });
  const file = reader.record(value, "", fileRules);
  return file ? stateOf(file) : fail(...reader.faults);
}

function refuse(message: string, at?: string): Result<never> {
  const help = "docs/planning.md, Migration, shows one";
  return fail(diagnostic("PLN007", message, { help, ...(at !== undefined && { at }) }));
}

function stateOf({ devices, requests }: StateFile): Result<FleetState> {
  if (requests.length > mostRequests) {
    return refuse(`${requests.length} requests are more than ${mostRequests}`, "requests");
  }
  for (const list of [devices, requests]) {
    const seen = new Set<string>();
    for (const { name } of list) {
      if (seen.has(name)) return refuse(`the name ${JSON.stringify(name)} stands twice`, name);
      seen.add(name);
    }
  }
  const index = new Map(devices.map((d, i) => [d.name, i]));
  const free = devices.map((d) => d.memoryBytes);
  const assigned: Assignment[] = [];
  for (const [id, request] of requests.entries()) {
    const device = index.get(request.device);
    if (device === undefined) {
      return refuse(`there is no device ${JSON.stringify(request.device)}`, request.name);
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
    return refuse(`the requests on ${name} need ${-free[full]!} bytes more than it has`, name);
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
