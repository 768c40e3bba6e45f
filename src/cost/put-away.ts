/**
 * Values of a step that a register file does not hold, from counts alone. In: how many are alive, and registers.
 * Out: how many are put away and fetched again; more values alive never make it fewer.
 */
import type { Target } from "../target/target.ts";
import { vectorRegisterCount } from "./core-figures.ts";
import { crowdedOut } from "./program-work.ts";

/** Vectors of one step: kept all along, loaded ahead; copies of the step, and whether it is of a reduction. */
export interface StepValues {
  readonly kept: number;
  readonly ahead: number;
  readonly copies: number;
  readonly reduces: boolean;
}

/** Registers for vectors, and what a statement keeps in them beside its points. */
export interface RegisterRoom {
  readonly registers: number;
  /** The engine that compiles the code assigns registers, by its own habits. */
  readonly isEngines: boolean;
  readonly literals: number;
}

export function registerRoom(target: Target, literals: number): RegisterRoom {
  const isEngines = target.compiledByEngine === true;
  return { registers: vectorRegisterCount(target), isEngines, literals };
}

/** Vectors that so many points keep: sums or results, literals, and what passes through. */
export function keptVectors(
  points: number,
  { components, literals }: { readonly components: number; readonly literals: number },
): number {
  return points * Math.max(1, components) + literals + 2;
}

export function putAway(
  { kept, ahead, copies, reduces }: StepValues,
  { registers, isEngines, literals }: RegisterRoom,
): number {
  if (isEngines) {
    const others = 2 + (reduces ? literals : 0);
    return crowdedOut(kept - others + ahead, registers);
  }
  // An accumulator without a register is fetched and put back by every copy, an operand once.
  const homeless = Math.max(0, kept - registers) * copies;
  return homeless + Math.max(0, ahead - Math.max(0, registers - kept));
}
