import { describe, expect, it } from "vitest";
import type { Program } from "../../program/program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { type NativeLibrary, openLibrary } from "../ffi/library.ts";
import { ModelSession } from "../model-session.ts";
import { createCudaInstance } from "./cuda-instance.ts";
import { CudaDevice } from "./device.ts";
import { CudaDriver } from "./driver.ts";
import { driversNeededBy } from "./driver-version.ts";
import { probeDriver, targetsOf } from "./features.ts";
import { copiesFor } from "./rotating-runs.ts";

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

const library = value(openLibrary(["libc.so.6", "libSystem.B.dylib", "msvcrt.dll"]));
const allocate = library.bind("calloc", "uint64_t", "size_t count, size_t bytes")!;

/**
 * A driver whose device memory is a map of what was written where; kernels do nothing, but what they were
 * launched with is kept.
 */
function fakeDevice(answers: Readonly<Record<string, (...args: never[]) => number>> = {}) {
  const names: string[] = [];
  const written = new Map<bigint, Uint8Array>();
  let next = 4096n;
  const own: Record<string, (...args: never[]) => number> = {
    cuMemHostAlloc: (cell: BigUint64Array, bytes: number) => {
      cell[0] = BigInt(allocate(1, bytes) as number);
      return 0;
    },
    cuMemAlloc_v2: (cell: BigUint64Array, bytes: number) => {
      cell[0] = next;
      next += BigInt(Math.ceil(bytes / 4096) * 4096);
      return 0;
    },
    cuMemcpyHtoD_v2: (to: bigint, from: Uint8Array) => {
      written.set(to, Uint8Array.from(from));
      return 0;
    },
    cuDriverGetVersion: (cell: Int32Array) => {
      cell[0] = 13_000;
      return 0;
    },
    cuDeviceGetCount: (cell: Int32Array) => {
      cell[0] = 1;
      return 0;
    },
    cuDeviceGetAttribute: (cell: Int32Array, attribute: number) => {
      cell[0] = attribute === 75 ? 9 : attribute === 76 ? 0 : 1;
      return 0;
    },
    ...answers,
  };
  const fake: NativeLibrary = {
    bind: (name) => {
      if (name === "cuGetErrorName") return undefined;
      return (...args) => {
        names.push(name);
        const answer = own[name];
        if (answer) return answer(...(args as never[]));
        for (const cell of args) if (cell instanceof BigUint64Array) cell[0] ||= 7n;
        return 0;
      };
    },
  };
  const driver = value(CudaDriver.open("linux", () => ok(fake)));
  const count = (name: string): number => names.filter((n) => n === name).length;
  return { driver, device: value(CudaDevice.open(driver, 0)), names, written, count };
}

/** y = x + w for N elements, M launches by a repeat; `tasks` may be replaced. */
function programOf(tasks = "launch add after previous"): Program {
  return value(
    parseProgram(`program p for "h200" {
  parameter N in 1 to 100
  buffer x : input memory f32 [N] source "x"
  buffer w : weight memory f32 [100] source "w"
  buffer y : output memory f32 [N] source "y"
  kernel add region "r" {
    grid blocks (b < floorDiv(N + 31, 32))
    role main copies 1 threads 32 as t {
      if N - 32*b - t - 1 >= 0 {
        store y[32*b + t] = add(load.f32 x[32*b + t], load.f32 w[32*b + t])
      }
    }
  }
  tasks {
    ${tasks}
  }
}
`),
  );
}

/** The fake driver assembles nothing. */
const store = { read: () => Uint8Array.of(1), write: () => {} };
const gpu = targets.get("h200")!;
const weight = { dtype: "f32", shape: [100], data: new Float32Array(100).fill(2) } as const;
const feed = (n: number) => ({
  x: { dtype: "f32", shape: [n], data: new Float32Array(n).fill(1) } as const,
});

describe("a program on a device", () => {
  it("captures a graph for each set of parameters once, weights uploaded once", () => {
    const { device, written, count } = fakeDevice();
    const program = programOf();
    const instance = value(createCudaInstance(program, gpu, { device, store }));
    const session = new ModelSession(program, instance, { weight: () => weight });
    const at = instance.memory.addressOf("w");
    expect(new Float32Array(written.get(at)!.buffer)[99]).toBe(2);
    for (const n of [40, 40, 41, 40]) expect(session.run(feed(n)).ok).toBe(true);
    expect(count("cuStreamBeginCapture_v2")).toBe(2);
    expect(count("cuGraphLaunch")).toBe(4);
    expect(count("cuLaunchKernelEx")).toBe(2);
    expect(count("cuMemcpyHtoD_v2")).toBe(1);
    instance.dispose();
    expect(device.usedBytes).toBe(0);
    expect(count("cuMemFree_v2")).toBe(count("cuMemAlloc_v2"));
    expect(count("cuMemFreeHost")).toBe(count("cuMemHostAlloc"));
  });

  it("runs repeats through, and decides conditions on parameters", () => {
    const { device, count } = fakeDevice();
    const tasks = `repeat i < 3 { launch add after previous }
    if (N - 50 >= 0) { launch add after previous } else { }`;
    const program = programOf(tasks);
    const session = new ModelSession(
      program,
      value(createCudaInstance(program, gpu, { device, store })),
      {
        weight: () => weight,
      },
    );
    session.run(feed(10));
    expect(count("cuLaunchKernelEx")).toBe(3);
    session.run(feed(60));
    expect(count("cuLaunchKernelEx")).toBe(7);
  });

  it("times runs on as many copies of its memory as the cache is smaller than", () => {
    const l2Bytes = 2048;
    const { device, count } = fakeDevice({
      cuDeviceGetAttribute: (cell: Int32Array, attribute: number) => {
        cell[0] = ({ 75: 9, 76: 0, 38: l2Bytes } as Record<number, number>)[attribute] ?? 1;
        return 0;
      },
      cuMemGetInfo_v2: (free: BigUint64Array) => {
        free[0] = 1n << 20n;
        return 0;
      },
      cuEventElapsedTime: (cell: Float32Array) => {
        cell[0] = 0.012;
        return 0;
      },
    });
    const instance = value(createCudaInstance(programOf(), gpu, { device, store }));
    const used = device.usedBytes;
    const runs = value(instance.rotate({ N: 8 }));
    // Three times 2048 bytes in buffers of 1200.
    expect(runs.copies).toBe(6);
    expect(count("cuLaunchKernelEx")).toBe(6);
    expect(runs.time(7)).toBeCloseTo(12_000 / 12);
    expect(count("cuGraphLaunch")).toBe(2);
    runs.close();
    expect(device.usedBytes).toBe(used);
    instance.dispose();
  });

  it("makes no more copies than half of the free memory holds, and one of what is larger than the cache", () => {
    expect(copiesFor(1 << 30, { l2Bytes: 60 << 20, freeBytes: 1 << 30 })).toBe(1);
    expect(copiesFor(1 << 20, { l2Bytes: 60 << 20, freeBytes: 16 << 20 })).toBe(9);
    expect(copiesFor(100, { l2Bytes: 60 << 20, freeBytes: 1 << 30 })).toBe(256);
  });

  it("answers a fault of the driver, and gives everything back when it cannot begin", () => {
    const lost = fakeDevice({
      cuStreamSynchronize: (stream: bigint) => (stream === 0n ? 0 : 700),
    });
    const program = programOf();
    const instance = value(createCudaInstance(program, gpu, { device: lost.device, store }));
    const session = new ModelSession(program, instance, { weight: () => weight });
    expect(session.run(feed(8))).toMatchObject({ ok: false, diagnostics: [{ code: "CUD002" }] });
    const full = fakeDevice({ cuMemAlloc_v2: () => 2 });
    const refused = createCudaInstance(program, gpu, { device: full.device, store });
    expect(refused).toMatchObject({ ok: false, diagnostics: [{ code: "CUD003" }] });
    expect(full.names.at(-1)).toBe("cuDevicePrimaryCtxRelease_v2");
  });

  it("refuses blocks that wait for each other and are not held at once as assembled (PRG042)", () => {
    const { device } = fakeDevice({
      cuOccupancyMaxActiveBlocksPerMultiprocessor: (cell: Int32Array) => {
        cell[0] = 3;
        return 0;
      },
    });
    const [plain] = programOf().kernels;
    const kernel = { ...plain!, grid: { ...plain!.grid, resident: true } };
    const program = { ...programOf(), kernels: [kernel] };
    const instance = value(createCudaInstance(program, gpu, { device, store }));
    expect(instance.runSync({ N: 96 })).toEqual(ok(undefined));
    expect(instance.runSync({ N: 97 })).toMatchObject({ diagnostics: [{ code: "PRG042" }] });
  });

  it("refuses parameters out of their range (RUN008)", () => {
    const { device } = fakeDevice();
    const instance = value(createCudaInstance(programOf(), gpu, { device, store }));
    expect(instance.runSync({ N: 0 })).toMatchObject({ diagnostics: [{ code: "RUN008" }] });
  });
});

describe("targets of a device", () => {
  it("are those of its compute capability, its own first", () => {
    expect(targetsOf("NVIDIA H200", "9.0")[0]).toBe("h200");
    expect(targetsOf("NVIDIA H800", "9.0")).toContain("h100");
    expect(targetsOf("GeForce 256", "1.0")).toEqual([]);
    const two = fakeDevice({
      cuDeviceGetCount: (cell: Int32Array) => {
        cell[0] = 2;
        return 0;
      },
    });
    const features = value(probeDriver(ok(two.driver)));
    expect(features.targets).toContain("h200");
    expect(features.open({ ordinal: 1 }).ok).toBe(true);
    expect(features.open({ ordinal: 2 })).toMatchObject({ diagnostics: [{ code: "CUD001" }] });
    const capped = value(features.open({ capBytes: 1024 }));
    expect(capped.allocate(2048)).toMatchObject({ diagnostics: [{ code: "CUD003" }] });
    // The second one is an RTX 3090 (compute capability 8.6: attributes 75 and 76).
    const mixed = fakeDevice({
      cuDeviceGetCount: (cell: Int32Array) => {
        cell[0] = 2;
        return 0;
      },
      cuDeviceGet: (cell: Int32Array, ordinal: number) => {
        cell[0] = ordinal;
        return 0;
      },
      cuDeviceGetAttribute: (cell: Int32Array, which: number, device: number) => {
        const capability = new Map(
          [75, 76].map((n, i) => [
            n,
            [
              [9, 0],
              [8, 6],
            ][device]![i]!,
          ]),
        );
        cell[0] = capability.get(which) ?? 1024;
        return 0;
      },
    });
    const of = (ordinal: number) => value(probeDriver(ok(mixed.driver), ordinal)).targets;
    expect(of(0)).toContain("h200");
    expect(of(1)).toContain("rtx-3090");
    expect(probeDriver(ok(mixed.driver), 2)).toMatchObject({ diagnostics: [{ code: "CUD001" }] });
    const old = fakeDevice({ cuDeviceGetAttribute: () => 0 });
    expect(probeDriver(ok(old.driver))).toMatchObject({ diagnostics: [{ code: "CUD001" }] });
    const none = fakeDevice({ cuDeviceGetCount: () => 0 });
    const message = "the NVIDIA driver shows no GPU";
    expect(probeDriver(ok(none.driver))).toMatchObject({ diagnostics: [{ message }] });
  });

  it("are none with a driver that takes no PTX that is written for them (CUD001)", () => {
    const probed = (driverVersion: number) =>
      probeDriver(
        ok(
          fakeDevice({
            cuDriverGetVersion: (cell: Int32Array) => {
              cell[0] = driverVersion;
              return 0;
            },
          }).driver,
        ),
      );
    expect(probed(12_000)).toMatchObject({
      ok: false,
      diagnostics: [
        {
          code: "CUD001",
          message: expect.stringContaining("the driver has CUDA 12.0, kernels for "),
          help: expect.stringContaining("driver to 530 or later"),
        },
      ],
    });
    // Enough for most programs: those with the latest instructions are told of.
    expect(probed(12_020)).toMatchObject({
      ok: true,
      value: { driverVersion: 12_020 },
      warnings: [
        {
          severity: "warning",
          message: expect.stringContaining("need CUDA 12.4"),
          help: expect.stringContaining("driver to 550 or later"),
        },
      ],
    });
    expect(probed(12_040)).toMatchObject({ ok: true, warnings: [] });
  });

  it("know a driver for every architecture that has code", () => {
    for (const { machine, emitter } of targets.values()) {
      if (emitter !== "ptx" || machine?.kind !== "gpu") continue;
      if (Number(machine.architecture.computeCapability) < 8) continue;
      const { least, most } = driversNeededBy(machine.architecture);
      expect(least.cuda).toBeGreaterThanOrEqual(12_010);
      expect(most.cuda).toBeGreaterThanOrEqual(least.cuda);
    }
  });
});
