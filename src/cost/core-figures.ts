/**
 * What the analytical model knows of one core: rates, latencies and what an instruction mix costs, each a
 * positive number with a meaning of its own, so that calibration can scale each within bounds. In: a
 * target. Out: defaults by first principles; nothing here is fitted to a workload.
 */
import type { Target } from "../target/target.ts";
import type { LevelTraffic } from "./traffic.ts";

export interface CoreFigures {
  /** Instructions of any kind per nanosecond. */
  readonly issuePerNs: number;
  /** Vector arithmetic instructions per nanosecond. */
  readonly arithmeticPerNs: number;
  /** Loads per nanosecond that hit the nearest cache. */
  readonly loadsPerNs: number;
  readonly storesPerNs: number;
  /** From the operands of a multiply-add (or the multiply and the add) to its result. */
  readonly latencyNs: number;
  /** The same of an addition by itself. */
  readonly additionNs: number;
  /** Issue slots of an instruction of loop control: a counter, a pointer that moves. */
  readonly loopInstructions: number;
  /** Instructions to set up pointers and bounds where a loop begins, per access that moves. */
  readonly setupInstructions: number;
  /** Time lost where a loop of unknown length ends: a branch that is guessed wrongly. */
  readonly loopEndNs: number;
  /** Instructions to bring a lane that lies apart into its place. */
  readonly gatherInstructions: number;
  /** Instructions to spread one element over the lanes, beside its load. */
  readonly splatInstructions: number;
  /** Instructions of a condition that is tested. */
  readonly guardInstructions: number;
  /** Instructions for a value that does not fit the registers: stored and loaded again. */
  readonly spillInstructions: number;
  /** From a sum that is put away to where it is there again: a store, and a load that waits for it. */
  readonly reloadNs: number;
  /** Share of a body's loads that a code generator has in registers at once. */
  readonly loadsAhead: number;
  /** How much longer functions evaluated by series take than their count of multiply-adds. */
  readonly callFactor: number;
  /** Share of the slower of two resources' time that the other does not hide. */
  readonly overlapLoss: number;
  /** What lines in short runs lying apart take beyond others, as a share of their time. */
  readonly scatterFactor: number;
  /** Instructions that a core has in flight: shorter chains run beside each other. */
  readonly windowInstructions: number;
  /** Nanoseconds per byte from each level of memory into the one before, by its position. */
  readonly nsPerByte1: number;
  readonly nsPerByte2: number;
  readonly nsPerByte3: number;
  /** Nanoseconds of waiting per byte in short runs lying apart, from each level, which nothing hides. */
  readonly stallNsPerByte1: number;
  readonly stallNsPerByte2: number;
  readonly stallNsPerByte3: number;
  /** Nanoseconds until a line of each level is there that lies far from the one before. */
  readonly latencyNs2: number;
  readonly latencyNs3: number;
}

export type CoreFigure = keyof CoreFigures;

/** Nanoseconds of moving bytes out of each level, beside the arithmetic, and of waiting for those that lie apart. */
export interface TrafficNs {
  readonly levels: readonly number[];
  readonly stall: number;
  /** By level, runs that begin far from the one before. */
  readonly jumps: readonly number[];
}

/** What all of a kernel's traffic takes. */
export function trafficNs(levels: readonly LevelTraffic[], c: CoreFigures): TrafficNs {
  const rates = [c.nsPerByte1, c.nsPerByte2, c.nsPerByte3];
  const stalls = [c.stallNsPerByte1, c.stallNsPerByte2, c.stallNsPerByte3];
  const factor = c.scatterFactor;
  return {
    jumps: levels.map((level) => level.jumps),
    levels: levels.map(({ bytes, scattered }, i) => (bytes + factor * scattered) * (rates[i] ?? 0)),
    stall: levels.reduce((ns, { scattered }, i) => ns + scattered * (stalls[i] ?? 0), 0),
  };
}

/** Lines that a core waits for at once. */
const linesAtOnce = 10;

/** Arithmetic and streams run beside each other, most of the shorter hidden by the longer; waiting comes on top. */
export function together(coreNs: number, traffic: TrafficNs, c: CoreFigures): number {
  const { levels, stall } = traffic;
  const slowest = levels.reduce((a, b) => Math.max(a, b), 0);
  const hidden = Math.min(coreNs, slowest);
  const waits = stall + jumpsNs(coreNs, traffic, c);
  return Math.max(coreNs, slowest) + c.overlapLoss * hidden + waits;
}

/**
 * Waiting for runs that lie far from the one before. One run ahead is asked for, by those prefetchers that follow steps of
 * any length, while the core is at the run before; where runs are short, as many as its window of instructions
 * reaches are waited for at once.
 */
function jumpsNs(coreNs: number, { jumps }: TrafficNs, c: CoreFigures): number {
  const visits = jumps[0] ?? 0;
  if (visits === 0) return 0;
  const gapNs = coreNs / visits;
  const windowNs = c.windowInstructions / c.issuePerNs;
  const atOnce = Math.max(1, Math.min(linesAtOnce, windowNs / gapNs));
  const waitNs = (latencyNs: number): number => Math.max(0, latencyNs / atOnce - gapNs);
  return (jumps[1] ?? 0) * waitNs(c.latencyNs2) + (jumps[2] ?? 0) * waitNs(c.latencyNs3);
}

/** Trips up to which branch prediction knows where a loop ends. */
export const foreseenTrips = 32;

/** Registers that a core has for vectors, those of a tile and those of its operands. */
export function vectorRegisterCount(target: Target): number {
  return target.vectorRegisters > 16 ? 32 : 16;
}

/** Machine code runs fast enough to wait for lines that no prefetcher brings; measured waits are figures of their own. */
function scatterFactorOf({ compiledByEngine, memory }: Target): number {
  if (memory.some((level) => level.stallNsPerByte)) return 0;
  return compiledByEngine ? 0.5 : 2;
}

/** The addition's share of the latencies of a multiplication and an addition. */
const additionShare = 0.52;

export function coreFigures(target: Target): CoreFigures {
  // All that a core issues in a nanosecond, three of them vector arithmetic or memory at most.
  const vector = target.vectorOpsPerNsPerCore.value;
  const flopsPerInstruction = (target.capabilities.has("fma") ? 2 : 1) * (target.vectorBytes / 4);
  const multiplyAdds = target.f32FlopsPerNsPerCore.value / flopsPerInstruction;
  const level = (i: number): number => {
    const found = target.memory[Math.min(i, target.memory.length - 1)]!;
    return 1 / found.bytesPerNsPerCore.value;
  };
  const stall = (i: number): number => target.memory[i]?.stallNsPerByte?.value ?? 0;
  const latency = (i: number): number => target.memory[i]?.latencyNs?.value ?? 0;
  const engine = target.compiledByEngine === true;
  const rates = target.coreRates;
  const scalar = rates?.scalarSlots?.value ?? 1;
  const fused = target.capabilities.has("fma");
  return {
    issuePerNs: rates?.issuePerNs.value ?? vector * (engine ? 1.5 : 0.75),
    // An engine's multiplies and adds are instructions of their own, which a core issues side by side.
    arithmeticPerNs: engine ? multiplyAdds : Math.min(multiplyAdds, vector * 0.6),
    loadsPerNs: rates?.loadsPerNs.value ?? vector * (engine ? 0.6 : 0.32),
    storesPerNs: rates?.storesPerNs.value ?? vector * 0.22,
    // Without a fused instruction only the addition is part of the chain.
    latencyNs: target.multiplyAddLatencyNs.value * (fused ? 1 : additionShare),
    additionNs:
      target.additionLatencyNs?.value ??
      target.multiplyAddLatencyNs.value * (fused ? 1 : additionShare),
    loopInstructions: (engine ? 0.6 : 0.4) * scalar,
    setupInstructions: 1.5 * scalar,
    loopEndNs: 0.5,
    // Our own emitter inserts it into a register, an engine loads it into one.
    gatherInstructions: engine ? 1.8 : 2,
    // Engines load and spread an element by one instruction.
    splatInstructions: engine ? 0.1 : 0.5,
    guardInstructions: engine ? 2 : 0.6 * scalar,
    // Our own allocator loads an operand again; an engine stores it first.
    spillInstructions: engine ? 3.5 : 1.2,
    // An allocator of our own puts away what is not part of a chain.
    reloadNs: engine ? 0.25 : 0,
    loadsAhead: engine ? 1 : 0,
    callFactor: engine ? 6.5 : 2,
    overlapLoss: rates?.overlapLoss.value ?? 0.4,
    scatterFactor: scatterFactorOf(target),
    windowInstructions: 128,
    nsPerByte1: level(1),
    nsPerByte2: level(2),
    nsPerByte3: level(3),
    stallNsPerByte1: stall(1),
    stallNsPerByte2: stall(2),
    stallNsPerByte3: stall(3),
    latencyNs2: latency(2),
    latencyNs3: latency(3),
  };
}
