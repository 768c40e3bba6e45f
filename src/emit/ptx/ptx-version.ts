/**
 * Which `.version` of PTX a text states, and with it which drivers take it: the lowest that has all instructions of
 * the program and knows the architecture, since a driver refuses texts of versions that are later than its own.
 */
import type { Program } from "../../program/program.ts";
import { visitStatements } from "../../program/walk.ts";
import type { GpuArchitecture } from "../../target/machine.ts";

/** Lowest version whose instructions are used; architectures may ask for a later one. */
const leastVersion = "8.1";

/** Intrinsics that texts have since a later version (PTX ISA, "wgmma.mma_async" and "mma", PTX ISA Notes). */
const laterIntrinsics = [
  {
    name: /^wgmma\..*\.i32\.(u8\.i8|i8\.u8)$/,
    version: "8.4",
    what: "products of signed and unsigned bytes by warpgroups",
  },
  { name: /^mma\..*\.f8e[45]m[23]/, version: "8.4", what: "products of 8-bit floats by warps" },
] as const;

/** The version of a program's text for an architecture. */
export function ptxVersionOf({ kernels }: Program, architecture: GpuArchitecture): string {
  let version = ptxVersions(architecture).least;
  const bodies = kernels.flatMap((k) => k.roles.flatMap((r) => r.body));
  visitStatements(bodies, (s) => {
    if (s.kind !== "intrinsic") return;
    const later = laterIntrinsics.find(({ name }) => name.test(s.intrinsic));
    if (later) version = laterVersion(version, later.version);
  });
  return version;
}

/** The versions of all texts for an architecture. */
export interface PtxVersions {
  /** Of texts without later instructions, and of those with all. */
  readonly least: string;
  readonly most: string;
  /** What those that are later than the least are for. */
  readonly later: readonly string[];
}

export function ptxVersions({ ptxVersion }: GpuArchitecture): PtxVersions {
  const least = laterVersion(leastVersion, ptxVersion ?? leastVersion);
  const later = laterIntrinsics.filter(({ version }) => laterVersion(version, least) !== least);
  const most = later.reduce((v, { version }) => laterVersion(v, version), least);
  return { least, most, later: later.map((l) => l.what) };
}

/**
 * The first CUDA whose driver takes texts of a version, as the driver tells its own (12010 stands for CUDA 12.1), and
 * the first branch of drivers with it (PTX ISA, "Release Notes", table "PTX Release History"; CUDA Toolkit Release
 * Notes, table "CUDA Toolkit and Corresponding Driver Versions").
 */
const drivers: Readonly<Record<string, PtxDriver>> = {
  "8.1": { cuda: 12_010, branch: 530 },
  "8.2": { cuda: 12_020, branch: 535 },
  "8.3": { cuda: 12_030, branch: 545 },
  "8.4": { cuda: 12_040, branch: 550 },
  "8.5": { cuda: 12_050, branch: 555 },
  "8.6": { cuda: 12_070, branch: 565 },
  "8.7": { cuda: 12_080, branch: 570 },
  "8.8": { cuda: 12_090, branch: 575 },
  "9.0": { cuda: 13_000, branch: 580 },
};

export interface PtxDriver {
  /** What `cuDriverGetVersion` says of it, at least. */
  readonly cuda: number;
  /** The number before the point of the driver's own version. */
  readonly branch: number;
}

/** The least driver for a version of PTX; undefined: nothing is known of that version. */
export function driverFor(version: string): PtxDriver | undefined {
  return drivers[version];
}

function laterVersion(a: string, b: string): string {
  const [x, y] = [a, b].map((v) => v.split(".").map(Number)) as [number[], number[]];
  return x[0]! > y[0]! || (x[0] === y[0] && x[1]! >= y[1]!) ? a : b;
}
