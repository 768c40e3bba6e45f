/** Any x86-64 CPU of level v4: AVX-512 F, BW, CD, DQ, VL (Skylake-SP, Zen 4 and later). */
import { perCore, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { levelSource, v4Extensions } from "./x86-levels.ts";

const opt =
  "Intel 64 and IA-32 Architectures Optimization Reference Manual, Skylake Server; Zen 4 starts half as many";
const assumed = "assumed: a server core of the level under sustained vector work";

export const x8664v4: MachineFile = {
  name: "x86-64-v4",
  summary: "any x86-64 CPU with AVX-512 (F, BW, CD, DQ, VL)",
  emitter: "x64",
  machine: {
    kind: "cpu",
    vendor: "any",
    instructionSet: "x86-64",
    extensions: v4Extensions,
    vectorBits: perCore(512, levelSource),
    vectorRegisters: perCore(32, levelSource),
    fmaPerCycle: perCore(
      1,
      "the lowest of the level: Zen 4 (Software Optimization Guide 57647) starts one 512-bit multiply-add a cycle",
    ),
    fmaLatencyCycles: perCore(4, opt),
    loadBytesPerCycle: perCore(
      64,
      "the lowest of the level: Zen 4 loads one 512-bit register a cycle (Software Optimization Guide 57647)",
    ),
    clockMhz: perCore(3000, assumed, "predicted"),
    matrixExtensions: [],
    caches: [
      { level: 1, kind: "data", bytes: perCore(32 * 1024, opt) },
      { level: 2, kind: "unified", bytes: perCore(1024 * 1024, opt) },
      {
        level: 3,
        kind: "unified",
        bytes: perSocket(16 * 2 ** 20, "assumed: 2 MiB a core of an eight-core part", "predicted"),
      },
    ],
    links: [],
  },
};
