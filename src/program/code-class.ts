/**
 * What a program does, whatever its parameters, buffers and kernels are called: the text form with their names counted.
 * Programs of equal classes are each other's, name by name, so that what is found of one holds for all.
 */
import type { Program } from "./program.ts";
import { printProgram } from "./program-text.ts";

const token = /"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.$%]*/g;

export function codeClass(program: Program): string {
  const short = new Map<string, string>();
  // No token begins so: a counted name is never one of those that stay.
  const count = (spelled: string): void => {
    if (!short.has(spelled)) short.set(spelled, `#${short.size}`);
  };
  for (const { name } of program.parameters) count(name);
  for (const { name, source } of program.buffers) {
    count(name);
    if (source !== undefined) count(JSON.stringify(source));
  }
  for (const { name, region, buffers, counters } of program.kernels) {
    count(name);
    count(JSON.stringify(region));
    for (const own of [...buffers, ...counters]) count(own.name);
  }
  return printProgram(program).replace(token, (found) => short.get(found) ?? found);
}
