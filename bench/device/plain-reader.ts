/** A kernel that reads memory and does nothing else: what kernels bound by reading are measured against. */
import type { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { CudaLaunch } from "../../src/runtime/cuda/launch.ts";
import { loadModule } from "../../src/runtime/cuda/module.ts";
import { take } from "./ptx-launch.ts";

/** Every thread reads 16 vectors of 16 bytes; what it makes of them is stored never. */
const [vectors, threads] = [16, 256];
const blockBytes = 16 * vectors * threads;
const loaded = Array.from({ length: 4 * vectors }, (_, i) => `%r${i + 4}`);
const readerText = `.version 8.0
.target sm_80
.address_size 64
.visible .entry reader(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<${4 * vectors + 4}>;
  .reg .b64 %d<6>;
  .reg .pred %p;
  ld.param.u64 %d0, [from];
  ld.param.u64 %d4, [to];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d1, %r0, ${blockBytes};
  mul.wide.u32 %d2, %r1, 16;
  add.s64 %d3, %d0, %d1;
  add.s64 %d3, %d3, %d2;
${Array.from({ length: vectors }, (_, i) => `  ld.global.nc.v4.b32 {${loaded.slice(4 * i, 4 * i + 4).join(", ")}}, [%d3+${16 * threads * i}];`).join("\n")}
  mov.b32 %r2, 0;
${loaded.map((r) => `  xor.b32 %r2, %r2, ${r};`).join("\n")}
  setp.eq.s32 %p, %r2, 0x9e3779b9;
  @%p st.global.b32 [%d4], %r2;
  ret;
}
`;

export class PlainReader {
  readonly #device: CudaDevice;
  readonly #module;
  readonly #sink;

  constructor(device: CudaDevice) {
    this.#device = device;
    this.#module = take(loadModule(device, readerText, { kernels: ["reader"] }));
    this.#sink = take(device.allocate(256));
  }

  /** Reads whole blocks of 64 KB from an address on; what is left at the end is not read. */
  launchOf(from: bigint, bytes: number): CudaLaunch {
    const grid = [Math.floor(bytes / blockBytes), 1, 1] as const;
    const config = { grid, block: [threads, 1, 1] as const, sharedBytes: 0 };
    return new CudaLaunch(this.#device, this.#module.kernels.get("reader")!, config, [
      { kind: "u64", value: from },
      { kind: "u64", value: this.#sink.address },
    ]);
  }

  free(): void {
    this.#device.free(this.#sink);
  }
}
