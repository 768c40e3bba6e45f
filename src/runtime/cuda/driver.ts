/**
 * The CUDA driver library (libcuda, nvcuda.dll) as typed calls: every status is read, and one that is not
 * zero becomes a CudaFault with the driver's own name of it. Only versioned symbols are bound: some
 * unversioned ones have 32-bit ABIs (cuda.h, CUDA 13.0). Nothing of the toolkit is needed.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { type NativeFunction, type NativeLibrary, openLibrary } from "../ffi/library.ts";
import { driverBuild } from "./driver-build.ts";

/** Names of the driver library, by operating system. */
export const cudaLibraries: Readonly<Record<string, readonly string[]>> = {
  linux: ["libcuda.so.1", "libcuda.so"],
  win32: ["nvcuda.dll"],
};

/** Parameters of the calls in C; pointers to results are `void *`, device addresses are 64-bit numbers. */
const prototypes = {
  cuInit: "uint flags",
  cuDriverGetVersion: "void *version",
  cuGetErrorName: "int status, void *text",
  cuDeviceGetCount: "void *count",
  cuDeviceGet: "void *device, int ordinal",
  cuDeviceGetName: "void *name, int length, int device",
  cuDeviceTotalMem_v2: "void *bytes, int device",
  cuDeviceGetAttribute: "void *value, int attribute, int device",
  cuDevicePrimaryCtxRetain: "void *context, int device",
  cuDevicePrimaryCtxRelease_v2: "int device",
  cuCtxSetCurrent: "uint64_t context",
  cuCtxSynchronize: "",
  cuMemGetInfo_v2: "void *free, void *total",
  cuMemAlloc_v2: "void *address, size_t bytes",
  cuMemFree_v2: "uint64_t address",
  cuMemcpyHtoD_v2: "uint64_t to, const void *from, size_t bytes",
  cuMemcpyDtoH_v2: "void *to, uint64_t from, size_t bytes",
  cuDeviceCanAccessPeer: "void *answer, int device, int peer",
  cuCtxEnablePeerAccess: "uint64_t peer, uint flags",
  cuMemcpyPeer:
    "uint64_t to, uint64_t toContext, uint64_t from, uint64_t fromContext, size_t bytes",
  cuMemcpyDtoD_v2: "uint64_t to, uint64_t from, size_t bytes",
  cuMemcpyDtoDAsync_v2: "uint64_t to, uint64_t from, size_t bytes, uint64_t stream",
  cuMemHostAlloc: "void *address, size_t bytes, uint flags",
  cuMemFreeHost: "uint64_t address",
  cuMemcpyHtoDAsync_v2: "uint64_t to, uint64_t from, size_t bytes, uint64_t stream",
  cuMemcpyDtoHAsync_v2: "uint64_t to, uint64_t from, size_t bytes, uint64_t stream",
  cuMemsetD32Async: "uint64_t at, uint value, size_t count, uint64_t stream",
  cuMemsetD8_v2: "uint64_t at, uint8_t value, size_t count",
  cuModuleLoadData: "void *module, const void *image",
  cuModuleLoadDataEx: "void *module, const void *image, uint count, void *options, void *values",
  cuModuleUnload: "uint64_t module",
  cuModuleGetFunction: "void *kernel, uint64_t module, const char *name",
  cuFuncGetAttribute: "void *value, int attribute, uint64_t kernel",
  cuFuncSetAttribute: "uint64_t kernel, int attribute, int value",
  cuOccupancyMaxActiveBlocksPerMultiprocessor:
    "void *blocks, uint64_t kernel, int blockThreads, size_t sharedBytes",
  cuOccupancyMaxActiveClusters: "void *clusters, uint64_t kernel, void *config",
  cuLinkCreate_v2: "uint count, void *options, void *values, void *state",
  cuLinkAddData_v2:
    "uint64_t state, int type, const void *data, size_t bytes, const char *name, uint count, void *options, void *values",
  cuLinkComplete: "uint64_t state, void *cubin, void *bytes",
  cuLinkDestroy: "uint64_t state",
  cuLaunchKernelEx:
    "const void *config, uint64_t kernel, const void *parameters, const void *extra",
  cuStreamCreate: "void *stream, uint flags",
  cuStreamDestroy_v2: "uint64_t stream",
  cuStreamSynchronize: "uint64_t stream",
  cuStreamQuery: "uint64_t stream",
  cuStreamBeginCapture_v2: "uint64_t stream, int mode",
  cuStreamEndCapture: "uint64_t stream, void *graph",
  cuEventCreate: "void *event, uint flags",
  cuEventDestroy_v2: "uint64_t event",
  cuEventRecord: "uint64_t event, uint64_t stream",
  cuEventSynchronize: "uint64_t event",
  cuEventElapsedTime: "void *milliseconds, uint64_t start, uint64_t end",
  cuGraphInstantiateWithFlags: "void *executable, uint64_t graph, uint64_t flags",
  cuGraphLaunch: "uint64_t executable, uint64_t stream",
  cuGraphExecDestroy: "uint64_t executable",
  cuGraphDestroy: "uint64_t graph",
  cuTensorMapEncodeTiled:
    "void *map, int dtype, uint rank, uint64_t address, const void *dims, const void *strides, const void *box, const void *elementStrides, int interleave, int swizzle, int l2Promotion, int outOfBounds",
} as const satisfies Record<string, string>;

export type CudaCall = keyof typeof prototypes;

/** A driver call that answered with something else than success. */
export class CudaFault extends Error {
  readonly call: CudaCall;
  readonly status: number;
  constructor(call: CudaCall, status: number, name: string) {
    super(`${call}: ${name} (${status})`);
    this.name = "CudaFault";
    this.call = call;
    this.status = status;
  }
}

/** What loaders say of a file that is not there (glibc, musl, Windows). */
const missingFile = /no such file|not found|could not be found/i;

/** A driver that is not there, or one that is and cannot be loaded (a damaged file, another architecture, no bridge). */
function notLoaded(said: readonly Diagnostic[]): Diagnostic {
  const notes = said.flatMap((d) => d.notes);
  return notes.every((note) => missingFile.test(note))
    ? diagnostic("CUD001", "no CUDA driver is installed", {
        notes,
        help: "install NVIDIA's driver, or use another target",
      })
    : diagnostic("CUD001", "the CUDA driver cannot be loaded", {
        notes,
        help: "mend what the notes say (install NVIDIA's driver again), or use another target",
      });
}

export class CudaDriver {
  /** 13000 stands for CUDA 13.0. */
  readonly version: number;
  /** Tells drivers of one version apart; empty where nothing does. */
  readonly build: string;
  readonly #library: NativeLibrary;
  readonly #bound = new Map<CudaCall, NativeFunction>();

  /** Loads and initialises the driver; what is missing is CUD001. */
  static open(platform: string, load = openLibrary): Result<CudaDriver> {
    const names = cudaLibraries[platform];
    if (!names) {
      return fail(
        diagnostic("CUD001", `there is no CUDA driver for ${platform}`, {
          help: "use a Linux or Windows machine with an NVIDIA GPU, or another target",
        }),
      );
    }
    const library = load(names);
    if (!library.ok) return fail(notLoaded(library.diagnostics));
    return guardCuda(() => new CudaDriver(library.value, platform));
  }

  private constructor(library: NativeLibrary, platform: string) {
    this.#library = library;
    this.call("cuInit", 0);
    this.build = driverBuild(platform);
    const version = new Int32Array(1);
    this.call("cuDriverGetVersion", version);
    this.version = version[0]!;
  }

  /** Calls the driver; throws CudaFault for any status but success. */
  call(name: CudaCall, ...args: readonly unknown[]): void {
    const status = Number(this.#function(name)(...args));
    if (status !== 0) throw new CudaFault(name, status, this.#nameOf(status));
  }

  /** The status, for calls whose refusal is an answer. */
  ask(name: CudaCall, ...args: readonly unknown[]): number {
    return Number(this.#function(name)(...args));
  }

  #function(name: CudaCall): NativeFunction {
    const known = this.#bound.get(name);
    if (known) return known;
    const made = this.#library.bind(name, "int", prototypes[name]);
    if (!made) throw new CudaFault(name, -1, "the driver is too old: it has no such call");
    this.#bound.set(name, made);
    return made;
  }

  #nameOf(status: number): string {
    const describe = this.#library.bind(
      "cuGetErrorName",
      "int",
      "int status, _Out_ const char **text",
    );
    if (!describe) return "error";
    const text: (string | null)[] = [null];
    describe(status, text);
    return text[0] ?? "unknown error";
  }
}

/** Runs `body`; a refusal of the driver becomes CUD002. */
export function guardCuda<T>(body: () => T): Result<T> {
  try {
    return ok(body());
  } catch (error) {
    if (!(error instanceof CudaFault)) throw error;
    return fail(diagnostic("CUD002", error.message, { help: helpOf(error.status) }));
  }
}

/** Cures of the statuses that users meet (cuda.h, CUresult). */
const cures: Readonly<Record<number, string>> = {
  [-1]: "update NVIDIA's driver: CUDA 12 is the oldest that has all calls",
  2: "the GPU's memory is full: free some, lower the cap of other programs, or use a smaller batch",
  100: "there is no GPU that CUDA can use: check nvidia-smi and CUDA_VISIBLE_DEVICES",
  221: "the driver's JIT compiler (libnvidia-ptxjitcompiler) is not installed beside libcuda",
  222: "the driver is older than the PTX version of the program: update the driver",
  700: "a kernel read or wrote outside its buffers: the context is lost, start a new process",
  719: "a kernel failed: the context is lost, start a new process",
  803: "the kernel module and libcuda are of different versions: restart after the driver's update",
};

function helpOf(status: number): string {
  return (
    cures[status] ?? "see the CUDA driver API's CUresult; wavetile doctor shows driver and GPU"
  );
}

/** A handle or address that a call wrote. */
export function takeHandle(cell: BigUint64Array): bigint {
  const value = cell[0]!;
  invariant(value !== 0n, () => "the driver answered success and no handle");
  return value;
}
