/**
 * PTX text to kernels on a device. The driver's linker assembles the text; its log is read, and code that
 * the assembler serialised, or that spills to local memory, is refused (CUD004): such a kernel would be
 * right and several times slower than its schedule says. The resulting cubin is kept under a key of text,
 * driver and compute capability, so that the next process loads it in well under a millisecond.
 *
 * The linker treats text as one of several units and then ignores setmaxnreg (C7504): text with that
 * instruction is loaded as a whole program, whose cubin only the driver's own cache keeps.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { sha256Text } from "../../support/hash.ts";
import { addressOf, copyFromAddress } from "../ffi/library.ts";
import type { CudaDevice } from "./device.ts";
import { guardCuda, takeHandle } from "./driver.ts";

/** Where cubins are kept between processes. */
export interface CubinStore {
  read(key: string): Uint8Array | undefined;
  write(key: string, cubin: Uint8Array): void;
}

export interface CudaKernel {
  readonly name: string;
  readonly handle: bigint;
  readonly registers: number;
  readonly sharedBytes: number;
  /** Bytes of local memory of a thread: spills and arrays that are indexed. */
  readonly localBytes: number;
  readonly maxThreads: number;
}

export interface CudaModule {
  readonly kernels: ReadonlyMap<string, CudaKernel>;
  /** What the assembler said; empty when the cubin was kept. */
  readonly log: string;
  readonly unload: () => void;
}

export interface ModuleOptions {
  readonly kernels: readonly string[];
  readonly store?: CubinStore;
  /** Dynamic shared memory that kernels may ask for at launch, by name. */
  readonly sharedBytes?: Readonly<Record<string, number>>;
  /** Kernels that index arrays of local memory on purpose. */
  readonly mayUseLocal?: (kernel: string) => boolean;
}

/** CUjit_option of cuda.h. */
const jitOptions = { infoLog: 3, infoBytes: 4, errorLog: 5, errorBytes: 6, verbose: 12 } as const;
const logBytes = 1 << 16;
const ptxInput = 1;
/** CUfunction_attribute of cuda.h. */
const functionAttributes = { maxThreads: 0, sharedBytes: 1, localBytes: 3, registers: 4 } as const;
export const maxDynamicShared = 8;

export function loadModule(
  device: CudaDevice,
  ptx: string,
  options: ModuleOptions,
): Result<CudaModule> {
  device.makeCurrent();
  if (ptx.includes("setmaxnreg")) return judged(loadWhole(device, ptx, options), options);
  const { version, build } = device.driver;
  const key = sha256Text(`${version} ${build}\n${device.computeCapability}\n${ptx}`);
  const kept = options.store?.read(key);
  const built = kept ? ok({ cubin: kept, log: "" }) : assemble(device, ptx);
  if (!built.ok) return built;
  const { cubin, log } = built.value;
  const complaint = findComplaint(log);
  if (complaint !== undefined) return fail(slowCode(complaint, log));
  const load = (cell: BigUint64Array): unknown =>
    device.driver.call("cuModuleLoadData", cell, cubin);
  const loaded = judged(
    guardCuda(() => takeModule(device, load, log, options)),
    options,
  );
  if (loaded.ok && !kept) options.store?.write(key, cubin);
  return loaded;
}

/** The module, unless one of its kernels spills. */
function judged(loaded: Result<CudaModule>, options: ModuleOptions): Result<CudaModule> {
  if (!loaded.ok) return loaded;
  const { kernels, log, unload } = loaded.value;
  const spilling = [...kernels.values()].find(
    (k) => k.localBytes > 0 && !options.mayUseLocal?.(k.name),
  );
  if (!spilling) return loaded;
  unload();
  return fail(slowCode(`${spilling.name} uses ${spilling.localBytes} bytes of local memory`, log));
}

/** The line of the log that says that the code is not what was meant, if there is one. */
export function findComplaint(log: string): string | undefined {
  return log
    .split("\n")
    .find((line) => /C75\d\d.*(Performance Loss|ignored|serializ)/i.test(line))
    ?.trim();
}

function slowCode(complaint: string, log: string) {
  return diagnostic(
    "CUD004",
    `the assembler did not take the kernel as it was meant: ${complaint}`,
    {
      notes: log.split("\n").filter((line) => line.trim() !== ""),
      help: "choose a schedule with fewer registers, or with the waits where the accumulators are read",
    },
  );
}

interface Logs {
  readonly info: Uint8Array;
  readonly error: Uint8Array;
  readonly names: Int32Array;
  readonly values: BigUint64Array;
}

/** Buffers for what the assembler says; integers stand in the pointer's place, buffers as addresses. */
function makeLogs(): Logs {
  const [info, error] = [new Uint8Array(logBytes), new Uint8Array(logBytes)];
  const names = Int32Array.from(Object.values(jitOptions));
  const bytes = BigInt(logBytes);
  const values = BigUint64Array.of(addressOf(info), bytes, addressOf(error), bytes, 1n);
  return { info, error, names, values };
}

/** A failure with the assembler's words as notes. */
function withWords<T>(result: Result<T>, { error }: Logs): Result<T> {
  if (result.ok) return result;
  const said = textOf(error)
    .split("\n")
    .filter((line) => line !== "");
  return fail(...result.diagnostics.map((d) => ({ ...d, notes: [...d.notes, ...said] })));
}

function loadWhole(device: CudaDevice, ptx: string, options: ModuleOptions): Result<CudaModule> {
  const logs = makeLogs();
  const text = new TextEncoder().encode(`${ptx}\0`);
  const loaded = guardCuda(() => {
    const cell = new BigUint64Array(1);
    const { names, values } = logs;
    device.driver.call("cuModuleLoadDataEx", cell, text, names.length, names, values);
    return cell;
  });
  if (!loaded.ok) return withWords(loaded, logs);
  const log = textOf(logs.info);
  const complaint = findComplaint(log);
  if (complaint !== undefined) {
    device.driver.call("cuModuleUnload", takeHandle(loaded.value));
    return fail(slowCode(complaint, log));
  }
  const place = (cell: BigUint64Array): unknown => cell.set(loaded.value);
  return guardCuda(() => takeModule(device, place, log, options));
}

function assemble(
  device: CudaDevice,
  ptx: string,
): Result<{ readonly cubin: Uint8Array; readonly log: string }> {
  const { driver } = device;
  const logs = makeLogs();
  const { info, names, values } = logs;
  const state = new BigUint64Array(1);
  const text = new TextEncoder().encode(`${ptx}\0`);
  const result = guardCuda(() => {
    driver.call("cuLinkCreate_v2", names.length, names, values, state);
    const linker = takeHandle(state);
    try {
      const none = null;
      driver.call(
        "cuLinkAddData_v2",
        linker,
        ptxInput,
        text,
        text.length,
        "program",
        0,
        none,
        none,
      );
      const [place, size] = [new BigUint64Array(1), new BigUint64Array(1)];
      driver.call("cuLinkComplete", linker, place, size);
      return { cubin: copyFromAddress(place[0]!, Number(size[0])), log: textOf(info) };
    } finally {
      driver.call("cuLinkDestroy", linker);
    }
  });
  return withWords(result, logs);
}

function textOf(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end));
}

function takeModule(
  device: CudaDevice,
  load: (cell: BigUint64Array) => unknown,
  log: string,
  { kernels, sharedBytes = {} }: ModuleOptions,
): CudaModule {
  const { driver } = device;
  const cell = new BigUint64Array(1);
  load(cell);
  const module = takeHandle(cell);
  const unload = device.own(() => driver.call("cuModuleUnload", module));
  const found = kernels.map((name) => {
    const kernel = new BigUint64Array(1);
    driver.call("cuModuleGetFunction", kernel, module, name);
    const handle = takeHandle(kernel);
    const wanted = sharedBytes[name];
    if (wanted !== undefined) driver.call("cuFuncSetAttribute", handle, maxDynamicShared, wanted);
    const value = new Int32Array(1);
    const read = (attribute: keyof typeof functionAttributes): number => {
      driver.call("cuFuncGetAttribute", value, functionAttributes[attribute], handle);
      return value[0]!;
    };
    const row: CudaKernel = {
      name,
      handle,
      registers: read("registers"),
      sharedBytes: read("sharedBytes"),
      localBytes: read("localBytes"),
      maxThreads: read("maxThreads"),
    };
    return [name, row] as const;
  });
  return { kernels: new Map(found), log, unload };
}
