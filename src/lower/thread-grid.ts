/** The grid of a kernel of CPU threads. */
import { type Grid, threadCountName } from "../program/program.ts";
import { constant, variable } from "../semantics/index-expr.ts";

/** Name of its axis. */
export const threadAxis = "thread";

/** @param isDealt whether a loop of the kernel is dealt out; else one thread runs all of it */
export function threadGrid(isDealt: boolean): Grid {
  return {
    unit: "threads",
    axes: [{ name: threadAxis, extent: isDealt ? variable(threadCountName) : constant(1) }],
    clusterSize: 1,
    resident: false,
  };
}
