/**
 * NativeSystem through koffi: mmap, mprotect and POSIX threads on Linux and macOS, VirtualAlloc and
 * CreateThread on Windows. The Linux part is what runs in tests; macOS and Windows are written from the
 * systems' manuals and have not been executed.
 */
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { NativeFunction, NativeSystem } from "./native-system.ts";

type Koffi = typeof import("koffi");
type Library = ReturnType<Koffi["load"]>;

let opened: Result<NativeSystem> | undefined;

/** The system of this process, or why there is none: another processor, or koffi is not installed. */
export function openNativeSystem(): Result<NativeSystem> {
  opened ??= openSystemOf(arch(), platform());
  return opened;
}

/** As openNativeSystem, of a processor and an operating system by Node's names. */
export function openSystemOf(processor: string, system: string): Result<NativeSystem> {
  if (processor !== "x64") {
    return fail(diagnostic("RUN050", `this process runs on ${processor}, not on x86-64`));
  }
  let koffi: Koffi;
  try {
    koffi = createRequire(import.meta.url)("koffi") as Koffi;
  } catch (error) {
    // Missing package, or no binary for this system: both are errors of `require` alone.
    const help = "npm install koffi; until then models run as WebAssembly";
    return fail(
      diagnostic("RUN050", `koffi cannot be loaded: ${(error as Error).message}`, { help }),
    );
  }
  switch (system) {
    case "linux":
      return ok(posixSystem(koffi, "linux"));
    case "darwin":
      return ok(posixSystem(koffi, "other"));
    case "win32":
      return ok(windowsSystem(koffi));
    default:
      return fail(diagnostic("RUN050", `machine code is not run on ${system}`));
  }
}

/** Calls and views, which are the same everywhere. */
function common(koffi: Koffi): Pick<NativeSystem, "view" | "addressOf" | "functionAt"> {
  const proto = koffi.proto("void", ["void *"]);
  return {
    view: (address, bytes) => koffi.view(address, bytes),
    addressOf: (data) => koffi.address(data),
    functionAt(address) {
      const native = koffi.decode(address, proto) as Native;
      const call = (argument: bigint): void => void native(argument);
      const onPool = (argument: bigint): Promise<void> =>
        new Promise((resolve, reject) => {
          native.async(argument, (error) => (error ? reject(error) : resolve()));
        });
      return Object.assign(call, { onPool }) satisfies NativeFunction;
    },
  };
}

interface Native {
  (argument: bigint): void;
  async(argument: bigint, done: (error: Error | null) => void): void;
}

const [readOnly, readWrite, readExecute, noAccess] = [1, 3, 5, 0];
/** MAP_PRIVATE, and MAP_FIXED: where we say. */
const [privateFile, fixedPlace] = [0x02, 0x10];
const privateAnonymous = { linux: 0x22, other: 0x1002 } as const;
/** The page that a whole entry of the second level of Linux's tables maps, and the advice to use it. */
const pageBytes = 4096;
const hugePageBytes = 2 ** 21;
const adviseHuge = 14;
/** Of pages of a file: they are read again when they are touched. */
const adviseForget = 4;

function posixSystem(koffi: Koffi, kind: "linux" | "other"): NativeSystem {
  const names = kind === "linux" ? ["libc.so.6", "libm.so.6"] : ["/usr/lib/libSystem.B.dylib"];
  const libraries = names.map((name) => koffi.load(name));
  const c = libraries[0]!;
  const mmap = c.func(
    "void *mmap(void *at, size_t n, int prot, int flags, int fd, int64_t offset)",
  );
  const munmap = c.func("int munmap(void *at, size_t n)");
  const mprotect = c.func("int mprotect(void *at, size_t n, int prot)");
  const create = c.func(
    "int pthread_create(void *thread, void *attr, void *start, void *argument)",
  );
  const join = c.func("int pthread_join(uintptr_t thread, void *result)");
  const accepted = (at: unknown): bigint | undefined =>
    at === null || BigInt.asIntN(64, at as bigint) === -1n ? undefined : (at as bigint);
  const mapped = (bytes: number): bigint | undefined =>
    accepted(mmap(null, bytes, readWrite, privateAnonymous[kind], -1, 0));
  const madvise = kind === "linux" && c.func("int madvise(void *at, size_t n, int advice)");
  /** At a multiple of the size of huge pages: what lies before the first and behind the last goes. */
  const mappedHuge = (bytes: number): bigint | undefined => {
    const found = mapped(bytes + hugePageBytes);
    if (found === undefined) return undefined;
    const at =
      BigInt(hugePageBytes) * ((found + BigInt(hugePageBytes - 1)) / BigInt(hugePageBytes));
    const before = Number(at - found);
    if (before > 0) munmap(found, before);
    if (before < hugePageBytes) munmap(at + BigInt(bytes), hugePageBytes - before);
    return at;
  };
  return {
    ...common(koffi),
    kind,
    pageBytes,
    map(bytes) {
      if (!madvise || bytes < hugePageBytes) return mapped(bytes);
      const at = mappedHuge(bytes);
      if (at === undefined) return mapped(bytes);
      // Without them the pages are small, which is slower and nothing else.
      madvise(at, bytes, adviseHuge);
      return at;
    },
    mapFile(file, bytes) {
      // The system's copy of a file has huge pages too, at multiples of their size in the file.
      const whole = Math.ceil(bytes / pageBytes) * pageBytes;
      const at = madvise && whole >= hugePageBytes ? mappedHuge(whole) : undefined;
      const flags = privateFile | (at === undefined ? 0 : fixedPlace);
      const found = accepted(mmap(at ?? null, bytes, readOnly, flags, file, 0));
      if (found === undefined && at !== undefined) munmap(at, whole);
      return found;
    },
    ...(madvise && {
      forgetFile: (address, bytes) => void madvise(address, bytes, adviseForget),
    }),
    unmap: (address, bytes) => void munmap(address, bytes),
    seal: (address, bytes) => mprotect(address, bytes, readExecute) === 0,
    close: (address, bytes) => mprotect(address, bytes, noAccess) === 0,
    symbol: (name) => findSymbol(libraries, name),
    startThread(address, argument) {
      const thread = new BigUint64Array(1);
      return create(thread, null, address, argument) === 0 ? thread[0] : undefined;
    },
    joinThread: (thread) => void join(thread, null),
  };
}

function findSymbol(libraries: readonly Library[], name: string): bigint | undefined {
  for (const library of libraries) {
    try {
      return library.symbol(name) as bigint;
    } catch {
      // koffi throws where the library has no such symbol; the next one may.
    }
  }
  return undefined;
}

const memory = { commitReserve: 0x3000, release: 0x8000 } as const;
const protection = { readWrite: 0x04, executeRead: 0x20, noAccess: 0x01 } as const;
const infinite = 0xffffffff;

function windowsSystem(koffi: Koffi): NativeSystem {
  const kernel = koffi.load("kernel32.dll");
  const libraries = [koffi.load("ucrtbase.dll"), kernel];
  const allocate = kernel.func(
    "void *VirtualAlloc(void *at, size_t n, uint32_t type, uint32_t prot)",
  );
  const free = kernel.func("int VirtualFree(void *at, size_t n, uint32_t type)");
  const protect = kernel.func("int VirtualProtect(void *at, size_t n, uint32_t prot, void *old)");
  const create = kernel.func(
    "uintptr_t CreateThread(void *a, size_t stack, void *start, void *argument, uint32_t f, void *id)",
  );
  const wait = kernel.func("uint32_t WaitForSingleObject(uintptr_t handle, uint32_t ms)");
  const close = kernel.func("int CloseHandle(uintptr_t handle)");
  const change = (address: bigint, bytes: number, prot: number): boolean =>
    protect(address, bytes, prot, new Uint32Array(1)) !== 0;
  return {
    ...common(koffi),
    kind: "windows",
    pageBytes: 65536,
    map: (bytes) =>
      (allocate(null, bytes, memory.commitReserve, protection.readWrite) as bigint | null) ??
      undefined,
    unmap: (address) => void free(address, 0, memory.release),
    seal: (address, bytes) => change(address, bytes, protection.executeRead),
    close: (address, bytes) => change(address, bytes, protection.noAccess),
    symbol: (name) => findSymbol(libraries, name),
    startThread: (address, argument) =>
      BigInt(create(null, 0, address, argument, 0, null)) || undefined,
    joinThread(thread) {
      wait(thread, infinite);
      close(thread);
    },
  };
}
