/**
 * What the analytical model knows of one core: rates, latencies and what an instruction mix costs, each a
 * positive number with a meaning of its own, so that calibration can scale each within bounds. In: a
 * target. Out: defaults by first principles; nothing here is fitted to a workload.
 */
import type { Target } from "../target/target.ts";

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
  /** Instructions of loop control per trip. */
  readonly loopInstructions: number;
  /** Instructions to set up pointers and bounds where a loop begins, per access that moves. */
  readonly setupInstructions: number;
  /** Time lost where a loop of unknown length ends: a branch that is guessed wrongly. */
  readonly loopEndNs: number;
  /** Instructions to bring a lane that lies apart into its place. */
  readonly gatherInstructions: number;
  /** Instructions to spread one element over the lanes, beside its load. */
  readonly splatInstructions: number;
  /** Instructions of a condition on one element. */
  readonly guardInstructions: number;
  /** Instructions for a value that does not fit the registers: stored and loaded again. */
  readonly spillInstructions: number;
  /** Share of a body's loads that a code generator has in registers at once. */
  readonly loadsAhead: number;
  /** How much longer functions evaluated by series take than their count of multiply-adds. */
  readonly callFactor: number;
  /** Share of the slower of two resources' time that the other does not hide. */
  readonly overlapLoss: number;
  /** Factor on the time of lines that are read in short runs a page or more apart. */
  readonly scatterFactor: number;
  /** Nanoseconds per byte from each level of memory into the one before, by its position. */
  readonly nsPerByte1: number;
  readonly nsPerByte2: number;
  readonly nsPerByte3: number;
}

export type CoreFigure = keyof CoreFigures;

/** Registers that a core has for vectors, those of a tile and those of its operands. */
export function vectorRegisterCount(target: Target): number {
  return target.vectorRegisters > 16 ? 32 : 16;
}

export function coreFigures(target: Target): CoreFigures {
  // All that a core issues in a nanosecond, three of them vector arithmetic or memory at most.
  const vector = target.vectorOpsPerNsPerCore.value;
  const flopsPerInstruction = (target.capabilities.has("fma") ? 2 : 1) * (target.vectorBytes / 4);
  const multiplyAdds = target.f32FlopsPerNsPerCore.value / flopsPerInstruction;
  const level = (i: number): number => {
    const found = target.memory[Math.min(i, target.memory.length - 1)]!;
    return 1 / found.bytesPerNsPerCore.value;
  };
  const engine = target.compiledByEngine === true;
  return {
    issuePerNs: vector * (engine ? 1.5 : 0.75),
    arithmeticPerNs: Math.min(multiplyAdds, vector * 0.55),
    loadsPerNs: vector * 0.4,
    storesPerNs: vector * 0.24,
    // Without a fused instruction only the addition is part of the chain.
    latencyNs: target.multiplyAddLatencyNs.value * (target.capabilities.has("fma") ? 0.7 : 0.36),
    loopInstructions: 1,
    setupInstructions: 1.5,
    loopEndNs: 0.7,
    gatherInstructions: 4,
    splatInstructions: engine ? 2 : 0,
    guardInstructions: 3,
    spillInstructions: 2,
    loadsAhead: engine ? 1 : 0,
    callFactor: engine ? 5 : 1.3,
    overlapLoss: 0.25,
    scatterFactor: 3,
    nsPerByte1: level(1),
    nsPerByte2: level(2),
    nsPerByte3: level(3),
  };
}
