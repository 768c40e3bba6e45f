import { arch, platform } from "node:os";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ok } from "../../support/diagnostic.ts";
import type { NativeLibrary } from "../ffi/library.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { type MachineCapture, parseCapture, recordProbe, replayProbe } from "./capture.ts";
import { leafKey, queryCpuid } from "./cpuid-leaves.ts";
import { cudaAttributes, queryCudaDriver } from "./cuda-driver.ts";
import { decodeCpuid } from "./decode-cpuid.ts";
import { detectMachine } from "./detect-machine.ts";
import h200Host from "./fixtures/h200-host.json" with { type: "json" };
import type { MachineReport } from "./machine-report.ts";
import { nodeProbe } from "./node-probe.ts";
import { parseCpuinfo } from "./parse-cpuinfo.ts";
import { readThreads } from "./read-host.ts";

const read = parseCapture(JSON.stringify(h200Host), "h200-host.json");
if (!read.ok) throw new Error(read.diagnostics[0]!.message);
const h200 = read.value;
if (h200.cpuid.kind !== "leaves" || h200.cuda.kind !== "devices") throw new Error("incomplete");
const { cpuid, cuda } = h200;

function report(change: Partial<MachineCapture> = {}): MachineReport {
  const found = detectMachine(replayProbe({ ...h200, ...change }));
  if (!found.ok) throw new Error(found.diagnostics[0]!.message);
  return found.value;
}

const native = platform() === "linux" && arch() === "x64";

describe("cpuid", () => {
  it.skipIf(!native)("of this machine lists what /proc/cpuinfo lists", () => {
    const answer = queryCpuid();
    if (answer.kind !== "leaves") throw new Error(answer.why);
    const facts = decodeCpuid(answer);
    const listed = parseCpuinfo(nodeProbe.readText("/proc/cpuinfo") ?? "")!;
    expect([...facts.extensions].sort()).toEqual([...listed.extensions].sort());
    expect(facts.vendor).toBe(listed.vendor);
    expect(facts.model).toBe(listed.model.replace(/\s+/g, " "));
    expect(facts.caches.map((c) => c.level)).toEqual(
      facts.caches.map((c) => c.level).sort((a, b) => a - b),
    );
  });

  it("of an H200's host: Emerald Rapids under a hypervisor, with AMX", () => {
    const { cpu, notes } = report();
    expect(cpu.cpuid).toEqual({
      model: "Intel(R) Xeon(R) Processor",
      family: 6,
      modelNumber: 0xcf,
      stepping: 2,
      virtual: true,
      agreed: 21,
      onlyCpuid: [],
      onlySystem: [],
    });
    expect(cpu.extensions).toEqual(
      expect.arrayContaining(["avx512-fp16", "amx-tile", "amx-int8", "amx-bf16", "avx-vnni"]),
    );
    expect(notes).toEqual([]);
  });

  it("counts no extension whose registers the system does not save", () => {
    const only = (savedStates: number) => decodeCpuid({ ...cpuid, savedStates }).extensions;
    const wide = only(cpuid.savedStates);
    expect(wide).toContain("amx-tile");
    expect(only(0b11100110)).toEqual(wide.filter((e) => !e.startsWith("amx")));
    expect(only(0b110).filter((e) => e.startsWith("avx512"))).toEqual([]);
    expect(only(0b110)).toContain("avx2");
    expect(only(0)).toEqual(["sse4.2", "movbe", "lzcnt", "bmi1", "bmi2"]);
  });

  it("counts only extensions that the system lists too, and says which differ", () => {
    const text = h200.files["/proc/cpuinfo"]!;
    const masked = { ...h200.files, "/proc/cpuinfo": text.replaceAll(" avx512f ", " ") };
    const hidden = report({ files: masked });
    expect(hidden.cpu.extensions).not.toContain("avx512f");
    expect(hidden.notes).toEqual(["not counted: cpuid alone lists avx512f"]);
    const { [leafKey(0x80000001)]: _, ...leaves } = cpuid.leaves;
    const lost = report({ cpuid: { ...cpuid, leaves } });
    expect(lost.cpu.cpuid).toMatchObject({ agreed: 20, onlySystem: ["lzcnt"] });
    expect(lost.notes).toEqual(["not counted: the system alone lists lzcnt"]);
  });

  it("knows the caches and the threads that /sys and /proc tell", () => {
    const facts = decodeCpuid(cpuid);
    const bytes = (caches: MachineReport["cpu"]["caches"]) =>
      caches.map((c) => [c.level, c.kind, c.bytes.value]);
    const { cpu } = report();
    expect(bytes(facts.caches)).toEqual(bytes(cpu.caches));
    expect(facts.threadsPerCore).toBe(cpu.threadsPerCore.value);
    const noSys = Object.entries(h200.files).filter(([path]) => !path.startsWith("/sys/devices"));
    const bare = report({ files: Object.fromEntries(noSys) }).cpu.caches;
    expect(bytes(bare)).toEqual(bytes(cpu.caches));
    expect(bare.map((c) => c.bytes.source)).toEqual(["cpuid", "cpuid", "cpuid"]);
  });

  it("tells the whole processor where the system lists nothing", () => {
    const windows = { platform: "win32", files: {}, commands: {}, logicalCpus: 16 };
    const { cpu, memory, threads } = report(windows);
    expect(cpu).toMatchObject({ vendor: "Intel", instructionSet: "x86-64", cores: { value: 16 } });
    expect(cpu.extensions).toHaveLength(21);
    expect(memory.totalBytes!.value).toBe(h200.memoryBytes);
    expect(threads.threads).toBe(16);
  });
});

describe("a host without executable memory", () => {
  const refusing = (change: Partial<NativeSystem>): NativeSystem => ({
    kind: "linux",
    pageBytes: 4096,
    map: () => 4096n,
    unmap: () => undefined,
    seal: () => false,
    close: () => true,
    view: (_, bytes) => new ArrayBuffer(bytes),
    addressOf: () => 0n,
    functionAt: () => {
      throw new Error("called");
    },
    symbol: () => undefined,
    startThread: () => undefined,
    joinThread: () => undefined,
    ...change,
  });

  it("is reported as one, and detection goes on", () => {
    const sealed = queryCpuid(ok(refusing({})));
    expect(sealed).toEqual({
      kind: "absent",
      why: "this host forbids memory that is executable",
    });
    expect(queryCpuid(ok(refusing({ map: () => undefined })))).toMatchObject({ kind: "absent" });
    const { cpu, notes } = report({ cpuid: sealed });
    expect(cpu.cpuid).toBeUndefined();
    expect(cpu.extensions).toHaveLength(21);
    expect(notes).toEqual(["cpuid was not asked: this host forbids memory that is executable"]);
  });
});

describe("the CUDA driver", () => {
  /** A driver that answers as the one of the capture did. */
  const library: NativeLibrary = {
    bind: (name) => {
      const [device] = cuda.devices;
      const numbers = new Map(
        Object.entries(cudaAttributes).map(([key, number]) => [
          number as number,
          device!.attributes[key as keyof typeof cudaAttributes],
        ]),
      );
      const answers: Readonly<Record<string, (...args: never[]) => void>> = {
        cuDriverGetVersion: (cell: Int32Array) => cell.set([cuda.version]),
        cuDeviceGetCount: (cell: Int32Array) => cell.set([1]),
        cuDeviceGetName: (cell: Uint8Array) => cell.set(new TextEncoder().encode(device!.name)),
        cuDeviceTotalMem_v2: (cell: BigUint64Array) => cell.set([BigInt(device!.bytes)]),
        cuDeviceGetAttribute: (cell: Int32Array, number: number) =>
          cell.set([numbers.get(number)!]),
      };
      return (...args) => {
        answers[name]?.(...(args as never[]));
        return 0;
      };
    },
  };

  it("is asked for each device's name, memory and attributes", () => {
    expect(queryCudaDriver("linux", () => ok(library))).toEqual(cuda);
  });

  it("of an H200 agrees with its data sheet", () => {
    const { gpus } = report();
    expect(gpus).toMatchObject([
      {
        name: "NVIDIA H200",
        target: "h200",
        architecture: "sm_90a",
        computeCapability: "9.0",
        multiprocessors: { value: 132 },
        l2Bytes: { value: 60 * 2 ** 20 },
        sharedBytesPerBlock: { value: 227 * 1024 },
        sharedBytesPerSm: { value: 228 * 1024 },
      },
    ]);
    expect(gpus[0]!.memoryBytesPerNs!.value / 4800).toBeCloseTo(1, 2);
  });

  it("that is missing leaves nvidia-smi, which says the same", () => {
    const driver = report().gpus[0]!;
    const { gpus, notes } = report({ cuda: { kind: "absent", why: "no CUDA driver" } });
    expect(gpus[0]).toMatchObject({ name: driver.name, target: "h200", seenBy: "nvidia-smi" });
    expect(gpus[0]!.memoryBytes!.value / driver.memoryBytes!.value).toBeCloseTo(1, 2);
    expect(notes).toEqual(["no CUDA driver; read from nvidia-smi instead"]);
    expect(queryCudaDriver("darwin")).toMatchObject({ kind: "absent" });
  });
});

describe("captures", () => {
  it("give the same report as the machine did, through JSON", () => {
    const recorded = recordProbe(replayProbe(h200));
    const first = detectMachine(recorded.probe);
    const again = parseCapture(JSON.stringify(recorded.capture()), "again.json");
    if (!again.ok) throw new Error(again.diagnostics[0]!.message);
    expect(detectMachine(replayProbe(again.value))).toEqual(first);
  });

  it("that are damaged are refused (RUN061), never thrown at", () => {
    expect(parseCapture("{", "x.json")).toMatchObject({ diagnostics: [{ code: "RUN061" }] });
    const keys = Object.keys(h200) as (keyof MachineCapture)[];
    const wrong = fc.oneof(fc.constant(null), fc.integer({ max: -1 }), fc.constant([1]));
    fc.assert(
      fc.property(fc.constantFrom(...keys), wrong, (key, value) => {
        const damaged = parseCapture(JSON.stringify({ ...h200, [key]: value }), "x.json");
        expect(damaged).toMatchObject({ ok: false, diagnostics: [{ code: "RUN061" }] });
      }),
    );
    for (const leaf of [
      [1, 2, 3],
      [1, 2, 3, 4, 5],
      [1, 2, 3, 2 ** 32],
    ]) {
      const cut = { ...cpuid, leaves: { "1.0": leaf } };
      expect(parseCapture(JSON.stringify({ ...h200, cpuid: cut }), "x")).toMatchObject({
        diagnostics: [{ code: "RUN061" }],
      });
    }
  });
});

describe("threads", () => {
  it("are advised without asking the processor, and by its count where nothing is known", () => {
    const asking = {
      ...replayProbe(h200),
      queryCpuid: () => {
        throw new Error("asked");
      },
    };
    expect(readThreads(asking)).toEqual(report().threads);
    const unknown = { ...h200, platform: "win32", files: {}, cpuid: cudaless };
    expect(readThreads(replayProbe(unknown)).threads).toBe(16);
  });
  const cudaless = { kind: "absent", why: "no koffi" } as const;
});
