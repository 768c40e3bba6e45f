/**
 * A machine on file: everything that detection read from it, so that the same detection runs elsewhere.
 * `recordProbe` notes what passes through a probe, `replayProbe` answers from the notes, `parseCapture`
 * reads them from JSON. Fixtures and bug reports are such files.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import {
  FileReader,
  isRecord,
  listOf,
  numberIn,
  objectOf,
  oneOf,
  type Read,
  type Rules,
  required,
  text,
} from "../../target/file-reader.ts";
import type { Leaf } from "../native/cpuid.ts";
import type { CpuidAnswer } from "./cpuid-leaves.ts";
import { type CudaAnswer, type CudaDeviceFacts, cudaAttributes } from "./cuda-driver.ts";
import type { Probe } from "./detect-machine.ts";

export interface MachineCapture {
  readonly platform: string;
  readonly logicalCpus: number;
  readonly memoryBytes: number;
  /** Contents by path. */
  readonly files: Readonly<Record<string, string>>;
  /** What commands printed, by the whole command line. */
  readonly commands: Readonly<Record<string, string>>;
  readonly cpuid: CpuidAnswer;
  readonly cuda: CudaAnswer;
}

const notAsked = { kind: "absent", why: "not asked" } as const;

export function recordProbe(probe: Probe): { readonly probe: Probe; capture(): MachineCapture } {
  const files: Record<string, string> = {};
  const commands: Record<string, string> = {};
  const { platform, logicalCpus, memoryBytes } = probe;
  let cpuid: CpuidAnswer = notAsked;
  let cuda: CudaAnswer = notAsked;
  const note = (notes: Record<string, string>, key: string, text: string | undefined) => {
    if (text !== undefined) notes[key] = text;
    return text;
  };
  return {
    probe: {
      platform,
      logicalCpus,
      memoryBytes,
      readText: (path) => note(files, path, probe.readText(path)),
      run: (command, args) =>
        note(commands, [command, ...args].join(" "), probe.run(command, args)),
      queryCpuid: () => {
        cpuid = probe.queryCpuid();
        return cpuid;
      },
      queryCuda: () => {
        cuda = probe.queryCuda();
        return cuda;
      },
    },
    capture: () => ({ platform, logicalCpus, memoryBytes, files, commands, cpuid, cuda }),
  };
}

export function replayProbe(capture: MachineCapture): Probe {
  const { platform, logicalCpus, memoryBytes, files, commands } = capture;
  return {
    platform,
    logicalCpus,
    memoryBytes,
    readText: (path) => files[path],
    run: (command, args) => commands[[command, ...args].join(" ")],
    queryCpuid: () => capture.cpuid,
    queryCuda: () => capture.cuda,
  };
}

const word = numberIn({ integer: true, least: 0, most: 2 ** 32 - 1 });
const size = numberIn({ integer: true, least: 0, most: 1e18 });

function mapOf<T>(item: Read<T>): Read<Readonly<Record<string, T>>> {
  return (reader, value, path) => {
    if (!isRecord(value)) return reader.fault("key", path, "no object", "give texts by name");
    const rows = Object.entries(value).map(([k, v]) => [k, item(reader, v, `${path}.${k}`)]);
    return Object.fromEntries(rows);
  };
}

const anyText: Read<string> = (reader, value, path) =>
  typeof value === "string" ? value : reader.fault("key", path, "no text", "write a text");

const leaf: Read<Leaf> = (reader, value, path) => {
  const words = listOf(word)(reader, value, path);
  if (words === undefined || words.length === 4) return words as Leaf | undefined;
  return reader.fault("key", path, `${words.length} registers`, "give eax, ebx, ecx and edx");
};

const attributes = Object.fromEntries(
  Object.keys(cudaAttributes).map((name) => [name, required(size)]),
) as Rules<CudaDeviceFacts["attributes"]>;
const device = objectOf<CudaDeviceFacts>({
  name: required(text),
  bytes: required(size),
  attributes: required(objectOf(attributes)),
});

const absent = { kind: required(oneOf(["absent"] as const)), why: required(text) };

function answerOf<T extends { readonly kind: string }>(present: Rules<T>) {
  return (reader: FileReader, value: unknown, path: string) =>
    isRecord(value) && value.kind === "absent"
      ? reader.record<{ kind: "absent"; why: string }>(value, path, absent)
      : reader.record<T>(value, path, present);
}

const captureRules: Rules<MachineCapture> = {
  platform: required(text),
  logicalCpus: required(size),
  memoryBytes: required(size),
  files: required(mapOf(anyText)),
  commands: required(mapOf(anyText)),
  cpuid: required(
    answerOf<Extract<CpuidAnswer, { kind: "leaves" }>>({
      kind: required(oneOf(["leaves"])),
      leaves: required(mapOf(leaf)),
      savedStates: required(word),
    }),
  ),
  cuda: required(
    answerOf<Extract<CudaAnswer, { kind: "devices" }>>({
      kind: required(oneOf(["devices"])),
      version: required(size),
      devices: required(listOf(device)),
    }),
  ),
};

export function parseCapture(json: string, path: string): Result<MachineCapture> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const help = "give a file that `wavetile detect --capture FILE` wrote";
    return fail(diagnostic("RUN061", `${path} is no JSON: ${error.message}`, { at: path, help }));
  }
  const reader = new FileReader({ key: "RUN061", number: "RUN061" });
  const capture = reader.record<MachineCapture>(value, "", captureRules);
  return capture && reader.faults.length === 0 ? ok(capture) : fail(...reader.faults);
}
