/** Programs of small norms, softmax and scans over rows, which `campaign -- gpu-mutants` plants faults in. */
import { describe, it } from "vitest";
import { type RowsCase, rowsText } from "../../campaign/ptx/row-programs.ts";
import { checkGolden } from "./golden-file.ts";

/** Two warps a row, ragged ends, what is kept in each of the three ways. */
const rows: readonly (readonly [string, RowsCase])[] = [
  [
    "softmax",
    {
      op: "softmax",
      shape: [2, 140],
      dtype: "f32",
      how: "threads 64 lanes 2 together 1 keep registers",
    },
  ],
  [
    "a norm, rows of a block",
    {
      op: "layerNorm",
      shape: [3, 96],
      dtype: "bf16",
      how: "threads 64 lanes 2 together 2 keep operands",
    },
  ],
  [
    "a norm read again",
    {
      op: "rmsNorm",
      shape: [2, 150],
      dtype: "f32",
      how: "threads 64 lanes 2 together 1 keep memory",
    },
  ],
  [
    "a scan in a loop",
    {
      op: "cumulative",
      shape: [2, 150],
      dtype: "f32",
      how: "threads 64 lanes 1 together 1 keep memory",
    },
  ],
  [
    "a scan of integers, rows of a block",
    {
      op: "cumulative",
      shape: [3, 130],
      dtype: "i64",
      how: "threads 64 lanes 2 together 2 keep registers",
    },
  ],
  [
    "softmax along the first axis",
    {
      op: "softmax",
      shape: [20, 37],
      across: true,
      dtype: "f32",
      how: "threads 32 lanes 2 together 2 across keep registers",
    },
  ],
  [
    "the same in parts, read again",
    {
      op: "softmax",
      shape: [20, 37],
      across: true,
      dtype: "bf16",
      how: "threads 16 lanes 2 together 4 across parts 2 keep memory",
    },
  ],
  [
    "a norm in parts of rows",
    {
      op: "layerNorm",
      shape: [2, 200],
      dtype: "f32",
      how: "threads 64 lanes 2 together 1 parts 2 keep operands",
    },
  ],
  [
    "a scan across, rows beside each other",
    {
      op: "cumulative",
      shape: [20, 150],
      across: true,
      dtype: "f32",
      how: "threads 8 lanes 1 together 16 across items 4 keep memory",
    },
  ],
];

describe("rows by blocks", () => {
  it("are the programs last looked at", () => {
    const texts = new Map(rows.map(([name, given]) => [name, rowsText(given)]));
    checkGolden(
      "rows.txt",
      "norms, softmax and scans as the compiler lowers them over rows",
      texts,
    );
  });
});
