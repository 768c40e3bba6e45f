/** Any x86-64 CPU of level v3: AVX2 and FMA (Haswell, Zen 1 and later). Nothing that differs between them. */
import { perCore, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { levelSource, v3Extensions } from "./x86-levels.ts";

const opt =
  "Intel 64 and IA-32 Architectures Optimization Reference Manual, Haswell; the lowest of the level's cores";
const assumed = "assumed: a server core of the level under sustained vector work";

export const x8664v3: MachineFile = {
  name: "x86-64-v3",
  summary: "any x86-64 CPU with AVX2 and FMA",
  emitter: "x64",
  machine: {
    kind: "cpu",
    vendor: "any",
    instructionSet: "x86-64",
    extensions: v3Extensions,
    vectorBits: perCore(256, levelSource),
    vectorRegisters: perCore(16, levelSource),
    fmaPerCycle: perCore(2, opt),
    fmaLatencyCycles: perCore(5, opt),
    loadBytesPerCycle: perCore(64, opt),
    clockMhz: perCore(3000, assumed, "predicted"),
    matrixExtensions: [],
    caches: [
      { level: 1, kind: "data", bytes: perCore(32 * 1024, opt) },
      { level: 2, kind: "unified", bytes: perCore(256 * 1024, opt) },
      {
        level: 3,
        kind: "unified",
        bytes: perSocket(8 * 2 ** 20, "assumed: 2 MiB a core of a four-core part", "predicted"),
      },
    ],
    links: [],
  },
};
