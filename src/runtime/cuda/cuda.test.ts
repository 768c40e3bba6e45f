import { describe, expect, it } from "vitest";
import { fail, ok } from "../../support/diagnostic.ts";
import { addressOf, copyFromAddress, type NativeLibrary, openLibrary } from "../ffi/library.ts";
import { CudaDevice } from "./device.ts";
import { CudaDriver, guardCuda } from "./driver.ts";
import { alignedCopy, CudaLaunch } from "./launch.ts";
import { findComplaint, loadModule } from "./module.ts";

type Answer = (...args: never[]) => number;

/** A driver that does what the tests say: calls without an answer succeed, handles count upwards. */
function fakeDriver(answers: Readonly<Record<string, Answer>> = {}) {
  const calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];
  let handle = 0n;
  const library: NativeLibrary = {
    bind: (name) => {
      if (name === "cuGetErrorName") return undefined;
      return (...args) => {
        calls.push({ name, args });
        const answer = answers[name];
        if (answer) return answer(...(args as never[]));
        for (const cell of args) if (cell instanceof BigUint64Array) cell[0] ||= ++handle;
        return 0;
      };
    },
  };
  const driver = CudaDriver.open("linux", () => ok(library));
  if (!driver.ok) throw new Error(driver.diagnostics[0]!.message);
  return { driver: driver.value, calls };
}

function openDevice(answers: Readonly<Record<string, Answer>> = {}, cap?: number) {
  const { driver, calls } = fakeDriver(answers);
  const device = CudaDevice.open(driver, 0, cap);
  if (!device.ok) throw new Error(device.diagnostics[0]!.message);
  return { device: device.value, calls };
}

const codeOf = (result: { ok: boolean; diagnostics?: readonly { code: string }[] }): string =>
  result.ok ? "ok" : result.diagnostics![0]!.code;

describe("native libraries", () => {
  it("are found by name, or it is said which were looked for (FFI001)", () => {
    const refused = openLibrary(["libwavetile-none.so.7"]);
    expect(refused).toMatchObject({ ok: false, diagnostics: [{ code: "FFI001" }] });
    const found = openLibrary([
      "libwavetile-none.so.7",
      "libc.so.6",
      "libSystem.B.dylib",
      "msvcrt.dll",
    ]);
    if (!found.ok) throw new Error(found.diagnostics[0]!.message);
    expect(found.value.bind("abs", "int", "int x")?.(-7)).toBe(7);
    expect(found.value.bind("wavetile_none", "int", "")).toBe(undefined);
  });

  it("give addresses that read back what lies there", () => {
    const bytes = Uint8Array.of(3, 1, 4, 1, 5);
    expect(copyFromAddress(addressOf(bytes), 5)).toEqual(bytes);
    for (const length of [1, 7, 128, 200]) {
      expect(addressOf(alignedCopy(new Uint8Array(length))) % 64n).toBe(0n);
    }
  });
});

describe("CudaDriver", () => {
  it("says that there is no driver (CUD001) for the system or on the machine", () => {
    expect(codeOf(CudaDriver.open("darwin"))).toBe("CUD001");
    const nothing = fail({ code: "FFI001", severity: "error", message: "", notes: ["x: no"] });
    expect(CudaDriver.open("linux", () => nothing)).toMatchObject({
      ok: false,
      diagnostics: [
        { code: "CUD001", notes: ["x: no"], message: "the CUDA driver cannot be loaded" },
      ],
    });
    const missing = "x: cannot open shared object file: No such file or directory";
    const absent = fail({ code: "FFI001", severity: "error", message: "", notes: [missing] });
    expect(CudaDriver.open("linux", () => absent)).toMatchObject({
      diagnostics: [{ code: "CUD001", message: "no CUDA driver is installed" }],
    });
  });

  it("reads every status (CUD002), and the cure of those that have one", () => {
    const { driver } = fakeDriver({ cuCtxSynchronize: () => 700 });
    expect(guardCuda(() => driver.call("cuCtxSynchronize"))).toMatchObject({
      ok: false,
      diagnostics: [{ code: "CUD002", message: "cuCtxSynchronize: error (700)" }],
    });
    const open = CudaDriver.open("linux", () => ok({ bind: () => () => 100 }));
    expect(open).toMatchObject({
      ok: false,
      diagnostics: [{ code: "CUD002", help: expect.stringContaining("nvidia-smi") }],
    });
    const old = CudaDriver.open("linux", () => ok({ bind: () => undefined }));
    expect(old).toMatchObject({
      ok: false,
      diagnostics: [{ message: expect.stringContaining("too old") }],
    });
  });
});

describe("CudaDevice", () => {
  it("keeps a ledger of its memory, holds to its cap (CUD003) and says what leaked", () => {
    const { device, calls } = openDevice({}, 1100);
    const [a, b] = [device.allocate(60), device.allocate(30)];
    if (!a.ok || !b.ok) throw new Error("refused");
    expect(codeOf(device.allocate(20))).toBe("CUD003");
    device.free(a.value);
    device.free(a.value);
    expect(device.usedBytes).toBe(30);
    // What was given back serves the next of its size, without the driver.
    expect(codeOf(device.allocate(20))).toBe("ok");
    expect(calls.filter((c) => c.name === "cuMemAlloc_v2")).toHaveLength(2);
    const closed: string[] = [];
    const close = device.own(() => closed.push("one"));
    device.own(() => closed.push("two"));
    close();
    expect(device.close()).toBe(50);
    expect(closed).toEqual(["one", "two"]);
    expect(calls.filter((c) => c.name === "cuMemFree_v2")).toHaveLength(2);
    expect(calls.at(-1)!.name).toBe("cuDevicePrimaryCtxRelease_v2");
  });

  it("gives back what is at hand before it says that the device has no room (CUD003)", () => {
    let room = 3;
    const { device } = openDevice({
      cuMemAlloc_v2: (cell: BigUint64Array) => {
        if (room === 0) return 2;
        cell[0] = BigInt(512 * room--);
        return 0;
      },
      cuMemFree_v2: () => {
        room++;
        return 0;
      },
    });
    const all = [600, 1200, 2400].map((bytes) => device.allocate(bytes));
    for (const memory of all.slice(0, 2)) if (memory.ok) device.free(memory.value);
    expect(codeOf(device.allocate(5000))).toBe("ok");
    expect(codeOf(device.allocate(6000))).toBe("ok");
    expect(device.allocate(7000)).toMatchObject({
      diagnostics: [{ code: "CUD003", message: expect.stringContaining("do not fit on") }],
    });
    expect(device.close()).toBe(13_400);
  });

  it("waits for what the driver leaves under way before a stream of its own begins", () => {
    const { device, calls } = openDevice();
    device.fill(512n, 255, 8);
    device.upload(512n, new Uint8Array(8));
    device.copy(512n, 1024n, 8);
    const names = calls.map((c) => c.name).filter((n) => /Memcpy|Memset|Synchronize/.test(n));
    const settled = ["cuMemsetD8_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2"];
    expect(names).toEqual(settled.flatMap((name) => [name, "cuStreamSynchronize"]));
  });

  it("asks nothing back piece by piece of a context that a kernel's fault has lost", () => {
    const { device, calls } = openDevice({ cuCtxSynchronize: () => 700, cuMemFree_v2: () => 700 });
    const memory = device.allocate(64);
    if (!memory.ok) throw new Error("refused");
    device.own(() => device.driver.call("cuMemFree_v2", 1n));
    expect(device.isLost()).toBe(true);
    expect(device.close()).toBe(64);
    expect(calls.at(-1)!.name).toBe("cuDevicePrimaryCtxRelease_v2");
  });
});

describe("loadModule", () => {
  const options = { kernels: ["k"] };
  const local: Answer = (value: Int32Array, attribute: number) => {
    value[0] = attribute === 3 ? 16 : 8;
    return 0;
  };
  const cubin = Uint8Array.of(1, 2, 3);
  const store = { read: () => cubin, write: () => {} };

  it("refuses kernels that spill (CUD004) unless they may", () => {
    const { device, calls } = openDevice({ cuFuncGetAttribute: local });
    expect(codeOf(loadModule(device, "", { ...options, store }))).toBe("CUD004");
    expect(calls.at(-1)!.name).toBe("cuModuleUnload");
    const allowed = loadModule(device, "", { ...options, store, mayUseLocal: () => true });
    expect(codeOf(allowed)).toBe("ok");
  });

  it("finds what the assembler complains of", () => {
    expect(findComplaint("info : 0 bytes gmem")).toBe(undefined);
    const log =
      "x\n (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized";
    expect(findComplaint(log)).toContain("C7514");
    expect(findComplaint("(C7508) setmaxnreg ignored to maintain minimum")).toContain("C7508");
  });

  it("passes on what the assembler says of text that is none", () => {
    const { device } = openDevice({ cuLinkAddData_v2: () => 218 });
    const refused = loadModule(device, "nonsense", options);
    expect(refused).toMatchObject({ ok: false, diagnostics: [{ code: "CUD002" }] });
  });
});

describe("CudaLaunch", () => {
  it("packs configuration, attributes and arguments as cuda.h lays them out", () => {
    const { device, calls } = openDevice();
    const kernel = {
      name: "k",
      handle: 9n,
      registers: 1,
      sharedBytes: 0,
      localBytes: 0,
      maxThreads: 1024,
    };
    const map = Uint8Array.from({ length: 128 }, (_, i) => i);
    const launch = new CudaLaunch(
      device,
      kernel,
      {
        grid: [2, 3, 4],
        block: [32, 1, 1],
        sharedBytes: 1000,
        cluster: [2, 1, 1],
        dependent: true,
      },
      [
        { kind: "u64", value: 0x1234567890n },
        { kind: "u32", value: 77 },
        { kind: "f32", value: 0.5 },
        { kind: "bytes", value: map },
      ],
    );
    launch.launch(5n);
    const [config, handle, pointers] = calls.at(-1)!.args as [Uint8Array, bigint, BigUint64Array];
    expect(handle).toBe(9n);
    const view = new DataView(config.buffer);
    const words = Array.from({ length: 7 }, (_, i) => view.getUint32(4 * i, true));
    expect(words).toEqual([2, 3, 4, 32, 1, 1, 1000]);
    expect(view.getBigUint64(32, true)).toBe(5n);
    expect(view.getUint32(48, true)).toBe(2);
    const attributes = new DataView(copyFromAddress(view.getBigUint64(40, true), 144).buffer);
    expect([0, 8, 12, 16, 72, 80].map((at) => attributes.getUint32(at, true))).toEqual([
      4, 2, 1, 1, 6, 1,
    ]);
    const argument = (i: number, bytes: number) => copyFromAddress(pointers[i]!, bytes);
    expect(new DataView(argument(0, 8).buffer).getBigUint64(0, true)).toBe(0x1234567890n);
    expect(new DataView(argument(1, 4).buffer).getUint32(0, true)).toBe(77);
    expect(new DataView(argument(2, 4).buffer).getFloat32(0, true)).toBe(0.5);
    expect(argument(3, 128)).toEqual(map);
    expect(pointers[3]! % 64n).toBe(0n);
  });

  it("asks the driver how many clusters it holds where their blocks wait for each other (PRG042)", () => {
    const { device } = openDevice({
      cuDeviceGetAttribute: (cell: Int32Array) => {
        cell[0] = 132;
        return 0;
      },
      cuOccupancyMaxActiveClusters: (cell: Int32Array) => {
        cell[0] = 32;
        return 0;
      },
    });
    const kernel = { name: "k", handle: 9n, registers: 1, sharedBytes: 0, localBytes: 0 };
    const launch = (blocks: number) => () =>
      new CudaLaunch(
        device,
        { ...kernel, maxThreads: 1024 },
        {
          ...{ grid: [blocks, 1, 1], block: [128, 1, 1], cluster: [4, 1, 1] },
          cooperative: true,
        },
        [],
      );
    expect(launch(128)).not.toThrow();
    expect(launch(132)).toThrow(/the 132 blocks of k wait for each other/);
  });

  it("spreads blocks that begin beside an earlier kernel evenly by the shared memory they ask for", () => {
    // 132 multiprocessors of 233,472 bytes, 1,024 of each block kept back, blocks of up to 232,448.
    const machine: Readonly<Record<number, number>> = {
      16: 132,
      81: 233472,
      97: 232448,
      111: 1024,
    };
    const own = 40000;
    const { device, calls } = openDevice({
      cuDeviceGetAttribute: (cell: Int32Array, attribute: number) => {
        cell[0] = machine[attribute] ?? 0;
        return 0;
      },
      cuOccupancyMaxActiveBlocksPerMultiprocessor: (cell: Int32Array) => {
        cell[0] = 5;
        return 0;
      },
    });
    const kernel = { name: "k", handle: 9n, registers: 1, sharedBytes: 16, localBytes: 0 };
    const asked = (blocks: number, how: object): number => {
      const config = {
        grid: [blocks, 1, 1],
        block: [128, 1, 1],
        sharedBytes: own,
        ...how,
      } as const;
      new CudaLaunch(device, { ...kernel, maxThreads: 1024 }, config, []).launch(5n);
      const [packed] = calls.at(-1)!.args as [Uint8Array];
      return new DataView(packed.buffer).getUint32(24, true);
    };
    for (const [blocks, share] of [
      [100, 1],
      [132, 1],
      [133, 2],
      [392, 3],
    ] as const) {
      const each = asked(blocks, { dependent: true }) + kernel.sharedBytes + machine[111]!;
      expect(Math.floor(machine[81]! / each)).toBe(share);
      expect(each % 128).toBe(0);
    }
    expect(calls.filter((c) => c.name === "cuFuncSetAttribute").map((c) => c.args)).toContainEqual([
      9n,
      8,
      machine[97]! - kernel.sharedBytes,
    ]);
    const alone = [asked(392, {}), asked(5 * 132, { dependent: true })];
    const cluster = asked(392, { dependent: true, cluster: [2, 1, 1] });
    expect([...alone, cluster, asked(392, { dependent: true, sharedBytes: 0 })]).toEqual([
      own,
      own,
      own,
      0,
    ]);
  });
});
