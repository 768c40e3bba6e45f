/** A device to plan for: its memory, its rates and its ways to other devices, each with its source. */
import { diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { predicted, type Sourced } from "../target/figure.ts";
import type { Link, NumberType } from "../target/machine.ts";
import type { Target } from "../target/target.ts";

export interface PlanDevice {
  readonly name: string;
  /** The target that it is one of, and its place among the plan's devices of that target. */
  readonly target: string;
  readonly ordinal: number;
  readonly kind: "gpu" | "cpu";
  /** CPU and GPU share the memory, and the system runs in it. */
  readonly unifiedMemory: boolean;
  readonly memoryBytes: Sourced;
  /** GB/s. */
  readonly memoryBytesPerNs: Sourced;
  /** GFLOP/s of dense operations by the type that is multiplied. */
  readonly flopsPerNs: Readonly<Partial<Record<NumberType, Sourced>>>;
  readonly features: readonly string[];
  readonly links: readonly Link[];
}

/** What is known of a machine at hand and goes before its data sheet. */
export interface DeviceOverrides {
  readonly memoryBytes?: Sourced;
  readonly memoryBytesPerNs?: Sourced;
}

export function deviceOfTarget(target: Target, known: DeviceOverrides = {}): Result<PlanDevice> {
  const { machine, name } = target;
  const memoryBytes = known.memoryBytes ?? machine?.memoryBytes;
  const rate = known.memoryBytesPerNs ?? machine?.memoryBytesPerNs;
  if (!machine || !memoryBytes || !rate) {
    const missing = machine
      ? "memory size and bandwidth differ between its machines"
      : "no data sheet";
    return fail(
      diagnostic("PLN002", `target ${name} cannot be planned for: ${missing}`, {
        at: name,
        help: "choose a machine with a data sheet (wavetile targets), or give a target file with memoryBytes and memoryBytesPerNs",
      }),
    );
  }
  const common = {
    name,
    target: name,
    ordinal: 0,
    memoryBytes,
    memoryBytesPerNs: rate,
    links: machine.links,
  };
  if (machine.kind === "gpu") {
    const flopsPerNs = teraops({ ...machine.vectorTeraops, ...machine.matrixTeraops });
    const { unifiedMemory } = machine;
    const { features } = machine.architecture;
    return ok({ ...common, kind: "gpu", unifiedMemory, flopsPerNs, features });
  }
  const cores = machine.cores?.value ?? 1;
  const flops = predicted(
    target.f32FlopsPerNsPerCore.value * cores,
    `${cores} cores x ${target.f32FlopsPerNsPerCore.source}`,
  );
  const matrix = machine.matrixExtensions.map((m) => [
    m.operands,
    predicted(
      (m.operationsPerCycle.value * cores * machine.clockMhz.value) / 1000,
      `${cores} cores x ${m.operationsPerCycle.value} operations a cycle (${m.name})`,
    ),
  ]);
  const flopsPerNs = { f32: flops, ...Object.fromEntries(matrix) };
  return ok({
    ...common,
    kind: "cpu",
    unifiedMemory: true,
    flopsPerNs,
    features: machine.extensions,
  });
}

function teraops(rates: Readonly<Record<string, Sourced>>): PlanDevice["flopsPerNs"] {
  return Object.fromEntries(
    Object.entries(rates).map(([type, rate]) => [type, { ...rate, value: rate.value * 1000 }]),
  );
}

/** GFLOP/s for a type: its own, else the fastest that holds it. */
export function rateFor(device: PlanDevice, type: NumberType): Sourced {
  const wider: readonly NumberType[] = [type, "f16", "bf16", "tf32", "f32"];
  const found = wider.find((t) => device.flopsPerNs[t]);
  invariant(found, () => `${device.name} has no f32 rate`);
  return device.flopsPerNs[found]!;
}

/** PCI Express 3.0 x16, for devices that state no link in common. */
const assumedRate = predicted(15.75, "no link in common: PCI Express 3.0 x16 is assumed");

/** GB/s one way between two devices: the slower end of the fastest link that joins them. */
export function linkBetween(a: PlanDevice, b: PlanDevice): Sourced {
  let best: Sourced | undefined;
  for (const x of a.links) {
    for (const y of b.links) {
      if (x.kind !== y.kind || !isJoined([a, x], [b, y])) continue;
      const slower = x.bytesPerNsEachWay.value <= y.bytesPerNsEachWay.value ? x : y;
      const rate = slower.bytesPerNsEachWay;
      if (!best || rate.value > best.value) best = { ...rate, source: `${x.kind}: ${rate.source}` };
    }
  }
  return best ?? assumedRate;
}

type End = readonly [device: PlanDevice, link: Link];

/** Buses and networks join whoever has them; the rest is built for certain pairs. */
function isJoined([a, x]: End, [b, y]: End): boolean {
  switch (x.kind) {
    case "pcie":
    case "ethernet":
      return true;
    case "nvlink":
    case "infinity-fabric": {
      // A fabric is part of a board, and joins as many of its devices as there are places.
      const places = x.joins?.value ?? Infinity;
      return (
        a.target === b.target &&
        (places === Infinity || Math.floor(a.ordinal / places) === Math.floor(b.ordinal / places))
      );
    }
    case "nvlink-c2c":
      // Between a processor and the GPU beside it: two halves of one product.
      return a.kind !== b.kind && x.bytesPerNsEachWay.value === y.bytesPerNsEachWay.value;
    case "on-package":
      return false;
  }
}
