import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { detectMachine, type Probe } from "./detect-machine.ts";
import {
  type CapturedMachine,
  capturedMachines,
} from "./fixtures/captured-machines.test-support.ts";
import { detected, type MachineReport } from "./machine-report.ts";
import { parseCpuinfo } from "./parse-cpuinfo.ts";
import { countCpuList, parseSize } from "./parse-fields.ts";
import { parseNvidiaSmiCsv, parseNvidiaSmiTable } from "./parse-nvidia-smi.ts";
import { parseRocminfo, parseSystemProfiler, parseVulkaninfo } from "./parse-other-gpus.ts";
import { parseSysctl } from "./parse-sysctl.ts";
import { readCaches, readLimits } from "./parse-system.ts";
import { recommendThreads } from "./recommend-threads.ts";

function probeOf({
  platform = "linux",
  files = {},
  commands = {},
}: Omit<CapturedMachine, "source">): Probe {
  return {
    platform,
    readText: (path) => files[path],
    run: (command, args) => {
      const query = args[0]?.startsWith("--query-gpu") ? " --query-gpu" : "";
      return commands[command + query];
    },
    logicalCpus: 1,
    memoryBytes: 2 ** 30,
    queryCpuid: () => ({ kind: "absent", why: "another machine" }),
    queryCuda: () => ({ kind: "absent", why: "no driver" }),
  };
}

const { graviton3, azureXeon8370c } = capturedMachines;
const host = { files: { "/proc/cpuinfo": graviton3.files["/proc/cpuinfo"] } };

async function report(machine: Omit<CapturedMachine, "source">): Promise<MachineReport> {
  const files = { ...host.files, ...machine.files };
  const found = detectMachine(probeOf({ ...machine, files }));
  if (!found.ok) throw new Error("not detected");
  return found.value;
}

describe("captured machines", () => {
  it("are eight or more, each with its source", () => {
    expect(Object.keys(capturedMachines).length).toBeGreaterThanOrEqual(8);
    for (const { source } of Object.values(capturedMachines))
      expect(source).toMatch(/^(github|lore)\./);
  });

  it("Xeon Platinum 8370C: two cores of two threads, AVX-512", async () => {
    const { cpu, threads } = await report(azureXeon8370c);
    expect(cpu).toMatchObject({ vendor: "Intel", instructionSet: "x86-64" });
    expect([cpu.logicalCpus, cpu.cores, cpu.threadsPerCore].map((n) => n.value)).toEqual([4, 2, 2]);
    expect(cpu.extensions).toEqual(
      expect.arrayContaining(["avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512-vnni"]),
    );
    expect(threads).toEqual({
      threads: 2,
      reason: "2 cores; their 2 threads each share the vector units",
    });
  });

  it("Core i7-8565U: four cores of two threads, no AVX-512", async () => {
    const { cpu } = await report(capturedMachines.laptopI78565u);
    expect([cpu.logicalCpus.value, cpu.cores.value]).toEqual([8, 4]);
    expect(cpu.extensions).toContain("avx2");
    expect(cpu.extensions.some((e) => e.startsWith("avx512"))).toBe(false);
  });

  it("Xeon E5-4657L v2: AVX without FMA", async () => {
    const { cpu } = await report(capturedMachines.xeonE54657l);
    expect([cpu.logicalCpus.value, cpu.cores.value]).toEqual([24, 12]);
    expect(cpu.extensions).toContain("avx");
    expect(cpu.extensions).not.toContain("fma");
  });

  it("Graviton3: Neoverse V1 with SVE", async () => {
    const { cpu } = await report(graviton3);
    expect(cpu).toMatchObject({
      model: "Arm Neoverse V1",
      vendor: "Arm",
      instructionSet: "aarch64",
    });
    expect(cpu.extensions).toEqual(
      expect.arrayContaining(["neon", "sve", "dotprod", "i8mm", "bf16"]),
    );
  });

  it("M1 Pro: eight fast cores of ten", async () => {
    const { cpu, threads } = await report(capturedMachines.macbookM1Pro);
    expect(cpu).toMatchObject({
      vendor: "Apple",
      cores: { value: 10 },
      performanceCores: { value: 8 },
    });
    expect(cpu.caches.map((c) => [c.level, c.bytes.value, c.sharedBy])).toEqual([
      [1, 131072, undefined],
      [2, 12582912, 4],
    ]);
    expect(threads.threads).toBe(8);
  });

  it("M3 and iMac Pro through system_profiler", async () => {
    const m3 = await report({
      ...capturedMachines.macbookM1Pro,
      commands: {
        ...capturedMachines.macbookM1Pro.commands,
        ...capturedMachines.macbookM3.commands,
      },
    });
    expect(m3.gpus).toMatchObject([
      { name: "Apple M3", vendor: "Apple", unifiedMemory: true, multiprocessors: { value: 10 } },
    ]);
    expect(parseSystemProfiler(capturedMachines.imacPro.commands.system_profiler)).toMatchObject([
      {
        name: "Radeon Pro Vega 64",
        vendor: "AMD",
        unifiedMemory: false,
        memoryBytes: { value: 2 ** 34 },
      },
    ]);
  });

  it("DGX Spark: a GPU without a figure for its memory is still one", async () => {
    const { gpus, notes } = await report(capturedMachines.dgxSpark);
    expect(gpus).toMatchObject([{ name: "NVIDIA GB10", target: "dgx-spark", unifiedMemory: true }]);
    expect(gpus[0]).toMatchObject({ architecture: "sm_121a", computeCapability: "12.1" });
    expect(gpus[0]!.memoryBytes).toBeUndefined();
    expect(notes).toEqual(["no driver; read from nvidia-smi instead"]);
  });

  it("two RTX 5090 from the table, with what is free", async () => {
    const { gpus } = await report(capturedMachines.twoRtx5090);
    expect(gpus.map((g) => [g.index, g.name, g.target, g.driver])).toEqual([
      [0, "NVIDIA GeForce RTX 5090", "rtx-5090", "610.57.04"],
      [1, "NVIDIA GeForce RTX 5090", "rtx-5090", "610.57.04"],
    ]);
    expect(gpus[0]!.memoryBytes!.value).toBe(32607 * 2 ** 20);
    expect(gpus[1]!.freeBytes!.value).toBe((32607 - 30357) * 2 ** 20);
  });

  it("MI300X from rocminfo, its largest pool and no CPU agent", async () => {
    const { gpus } = await report(capturedMachines.mi300x);
    expect(gpus).toMatchObject([
      { name: "AMD Instinct MI300X", vendor: "AMD", architecture: "gfx942", target: "mi300x" },
    ]);
    expect(gpus[0]!.memoryBytes!.value).toBe(201310208 * 1024);
    expect(gpus[0]!.multiprocessors!.value).toBe(304);
  });

  it("RTX 3070 laptop from Vulkan, unless CUDA showed the vendor's GPUs", async () => {
    const { gpus } = await report(capturedMachines.laptopRtx3070);
    expect(gpus).toMatchObject([
      { name: "NVIDIA GeForce RTX 3070 Laptop GPU", vendor: "NVIDIA", seenBy: "vulkan" },
    ]);
    const commands = {
      ...capturedMachines.twoRtx5090.commands,
      ...capturedMachines.laptopRtx3070.commands,
    };
    expect((await report({ commands })).gpus.map((g) => g.seenBy)).toEqual([
      "nvidia-smi",
      "nvidia-smi",
    ]);
  });
});

describe("compute capabilities", () => {
  it("name the architecture of a GPU that no target lists", async () => {
    const csv =
      "name, compute_cap, memory.total [MiB]\nNVIDIA GeForce RTX 5060 Laptop GPU, 12.0, 8151 MiB\nNVIDIA H100 NVL, 9.0, 95830 MiB\n";
    const { gpus } = await report({ commands: { "nvidia-smi --query-gpu": csv } });
    expect(gpus.map((g) => [g.architecture, g.target])).toEqual([
      ["sm_120a", undefined],
      ["sm_90a", undefined],
    ]);
  });
  it("of a board with half the memory of the target's do not make it that target", async () => {
    const csv =
      "name, compute_cap, memory.total [MiB]\nNVIDIA GeForce RTX 3060, 8.6, 8192 MiB\nNVIDIA GeForce RTX 3060, 8.6, 12288 MiB\n";
    const { gpus } = await report({ commands: { "nvidia-smi --query-gpu": csv } });
    expect(gpus.map((g) => g.target)).toEqual([undefined, "rtx-3060"]);
  });
});

describe("limits", () => {
  const limits = (files: Readonly<Record<string, string>>) => readLimits((path) => files[path]);

  it("of control groups, version 2: the tightest on the way up", () => {
    const files = {
      "/proc/self/cgroup": "0::/kubepods/pod1/app\n",
      "/sys/fs/cgroup/kubepods/pod1/app/cpu.max": "max 100000\n",
      "/sys/fs/cgroup/kubepods/pod1/cpu.max": "250000 100000\n",
      "/sys/fs/cgroup/kubepods/cpu.max": "800000 100000\n",
      "/sys/fs/cgroup/kubepods/pod1/app/memory.max": "2147483648\n",
      "/sys/fs/cgroup/memory.max": "max\n",
    };
    expect(limits(files)).toEqual({
      cores: detected(2.5, "/sys/fs/cgroup/kubepods/pod1/cpu.max"),
      memoryBytes: detected(2 ** 31, "/sys/fs/cgroup/kubepods/pod1/app/memory.max"),
    });
  });

  it("of control groups, version 1: a quota of -1 and a limit near 2^63 are none", () => {
    const files = {
      "/proc/self/cgroup": "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n",
      "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
    };
    expect(limits(files)).toEqual({ cores: detected(1.5, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us") });
  });

  it("are what the threads are advised by", () => {
    const cpu = { ...parseCpuinfo(azureXeon8370c.files["/proc/cpuinfo"])!, caches: [] };
    const quota = detected(1.5, "cpu.max");
    expect(recommendThreads(cpu, { cores: quota })).toEqual({
      threads: 1,
      reason: "a quota of 1.5 cores (cpu.max)",
    });
    expect(recommendThreads(cpu, { allowedCpus: detected(2, "status") }).threads).toBe(1);
    expect(recommendThreads(cpu, { cores: detected(0.2, "cpu.max") }).threads).toBe(1);
    expect(recommendThreads(cpu, { cores: detected(64, "cpu.max") }).threads).toBe(2);
  });
});

/** Processors as cpuinfo lists them, with the core that each is a thread of. */
function cpuinfoOf(cores: readonly number[]): string {
  const count = new Set(cores).size;
  return cores
    .map(
      (core, id) =>
        `processor\t: ${id}\nvendor_id\t: GenuineIntel\nphysical id\t: 0\nsiblings\t: ${cores.length}\ncore id\t\t: ${core}\ncpu cores\t: ${count}\nflags\t\t: lm\n`,
    )
    .join("\n");
}

describe("cores behind logical CPUs", () => {
  const allowed = (list: string) => ({ "/proc/self/status": `Cpus_allowed_list:\t${list}\n` });

  it("are told apart by their numbers: CPUs 0 to 3 of a server are four cores, not two", async () => {
    const cpuinfo = {
      "/proc/cpuinfo": cpuinfoOf([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]),
    };
    const of = async (list: string) =>
      (await report({ files: { ...cpuinfo, ...allowed(list) } })).threads;
    expect(await of("0-3")).toEqual({
      threads: 4,
      reason: "this process may run on 4 logical CPUs, which are 4 cores",
    });
    expect((await of("0-1,8-9")).threads).toBe(2);
    expect((await of("8")).threads).toBe(1);
    expect((await of("0-15")).threads).toBe(8);
  });
  it("are of two kinds on Intel's mixed processors", async () => {
    // Eight fast cores of two threads, eight slow ones of one.
    const cores = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    const mixed = {
      "/proc/cpuinfo": cpuinfoOf(cores),
      "/sys/devices/cpu_core/cpus": "0-15\n",
      "/sys/devices/cpu_atom/cpus": "16-23\n",
    };
    const { cpu, threads } = await report({ files: mixed });
    expect(cpu).toMatchObject({ cores: { value: 16 }, performanceCores: { value: 8 } });
    expect(threads).toEqual({
      threads: 8,
      reason: "8 fast cores; the slow ones would be waited for",
    });
    const slow = await report({ files: { ...mixed, ...allowed("16-19") } });
    expect(slow.threads.threads).toBe(4);
    const both = await report({ files: { ...mixed, ...allowed("0-3,16-19") } });
    expect(both.threads.threads).toBe(2);
  });
  it("are of two kinds where Arm kernels give capacities", async () => {
    const arm = Array.from(
      { length: 20 },
      (_, id) => `processor\t: ${id}\nFeatures\t: asimd\nCPU architecture: 8\n`,
    );
    const capacities = (at: (cpu: number) => number) =>
      Object.fromEntries(
        arm.map((_, i) => [`/sys/devices/system/cpu/cpu${i}/cpu_capacity`, `${at(i)}\n`]),
      );
    const files = { "/proc/cpuinfo": arm.join("\n") };
    const mixed = await report({
      files: { ...files, ...capacities((i) => (i < 10 ? 700 : 1000 + i)) },
    });
    expect(mixed.threads.threads).toBe(10);
    const even = await report({ files: { ...files, ...capacities(() => 1024) } });
    expect(even.cpu.performanceCores).toBeUndefined();
    expect(even.threads.threads).toBe(20);
  });
});

describe("two sockets", () => {
  it("count each socket's cores once", () => {
    const block = (id: number, socket: number, core: number) =>
      `processor\t: ${id}\nvendor_id\t: AuthenticAMD\nphysical id\t: ${socket}\nsiblings\t: 4\ncore id\t\t: ${core}\ncpu cores\t: 2\nflags\t\t: lm\n`;
    const text = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => block(i, i >> 2, i & 1)).join("\n");
    const cpu = parseCpuinfo(text)!;
    expect([
      cpu.logicalCpus.value,
      cpu.cores.value,
      cpu.sockets.value,
      cpu.threadsPerCore.value,
    ]).toEqual([8, 4, 2, 2]);
  });
});

describe("caches", () => {
  it("are read from /sys without the instruction cache", () => {
    const rows = [
      ["1", "Data", "48K", "0-1"],
      ["1", "Instruction", "32K", "0-1"],
      ["2", "Unified", "2048K", "0-1"],
      ["3", "Unified", "107520K", "0-111"],
    ];
    const files = Object.fromEntries(
      rows.flatMap(([level, type, size, shared], i) => {
        const folder = `/sys/devices/system/cpu/cpu0/cache/index${i}`;
        return [
          [`${folder}/level`, `${level}\n`],
          [`${folder}/type`, `${type}\n`],
          [`${folder}/size`, `${size}\n`],
          [`${folder}/shared_cpu_list`, `${shared}\n`],
        ];
      }),
    );
    const caches = readCaches((path) => files[path]);
    expect(caches.map((c) => [c.level, c.bytes.value, c.sharedBy])).toEqual([
      [1, 49152, 2],
      [2, 2 ** 21, 2],
      [3, 107520 * 1024, 112],
    ]);
  });
});

describe("texts", () => {
  it("without a processor are refused (RUN060)", async () => {
    for (const platform of ["linux", "darwin", "win32"]) {
      expect(detectMachine(probeOf({ platform }))).toMatchObject({
        ok: false,
        diagnostics: [{ code: "RUN060" }],
      });
    }
  });
  it("of any kind are read or refused, never thrown at", () => {
    const whole = Object.values(capturedMachines as Record<string, CapturedMachine>).flatMap(
      (m) => [...Object.values(m.files ?? {}), ...Object.values(m.commands ?? {})],
    );
    const parsers = [
      parseCpuinfo,
      parseSysctl,
      parseNvidiaSmiCsv,
      parseNvidiaSmiTable,
      parseRocminfo,
      parseSystemProfiler,
      parseVulkaninfo,
    ];
    const damaged = fc
      .tuple(fc.constantFrom(...whole), fc.nat(), fc.nat(200), fc.string())
      .map(([text, at, length, junk]) => {
        const from = at % text.length;
        return text.slice(0, from) + junk + text.slice(from + length);
      });
    fc.assert(
      fc.property(fc.oneof(fc.string(), damaged), (text) => {
        for (const parse of parsers) {
          const numbers = JSON.stringify(parse(text) ?? null).match(/"value":(null|-)/g);
          expect(numbers).toBeNull();
        }
      }),
      { numRuns: 300 },
    );
  });
  it("of sizes and lists keep their units", () => {
    expect(["32K", "1024 KB", "24684096 kB", "16 GB", "12", "4 furlongs"].map(parseSize)).toEqual([
      32768,
      2 ** 20,
      24684096 * 1024,
      2 ** 34,
      12,
      undefined,
    ]);
    expect(["0", "0-3,8", "", "a-b"].map(countCpuList)).toEqual([1, 5, undefined, undefined]);
  });
});
