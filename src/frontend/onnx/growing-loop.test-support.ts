/** The body of a loop that puts x behind what it carries, in each trip. */
import type { GraphSpec } from "./model-writer.ts";

export const growing: GraphSpec = {
  inputs: [
    { name: "i", dtype: "i64", shape: [] },
    { name: "go", dtype: "bool", shape: [] },
    { name: "before", dtype: "f32", shape: [null] },
  ],
  outputs: ["again", "after"],
  nodes: [
    { op: "Identity", inputs: ["go"], outputs: ["again"] },
    { op: "Concat", inputs: ["before", "x"], outputs: ["after"], attributes: { axis: 0n } },
  ],
};
