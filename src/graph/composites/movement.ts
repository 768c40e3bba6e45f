/** Data movement in several steps: one-hot, blocks of space and depth, triangles. */
import { floorDiv, mul, toIndex } from "../../semantics/index-expr.ts";
import { boolean, choice, dim, integer } from "../attr-schema.ts";
import type { CompositeRows } from "./composite.ts";

export const movementForms = {
  oneHot: {
    arity: [2, 2],
    schema: { axis: integer, depth: dim },
    definition: (b, [indices, values], { axis, depth }) => {
      const dtype = b.dtypeOf(indices!);
      const shape = b.shapeOf(indices!);
      const outer = [...shape.slice(0, axis), toIndex(1), ...shape.slice(axis)];
      const line = new Array<number>(outer.length).fill(1);
      const positions = b.iota([depth], 0, dtype);
      const along = b.reshape(positions, [...line.slice(0, axis), depth, ...line.slice(axis + 1)]);
      const asked = b.reshape(indices!, outer);
      const count = b.extentProduct(positions, [0], dtype);
      const negative = b.apply("less", asked, b.scalarLike(0, asked));
      const wrapped = b.select(negative, b.add(asked, count), asked);
      const hit = b.apply("equal", wrapped, along);
      const off = b.reshape(b.sliceAxis(values!, 0, 0, 1), []);
      const on = b.reshape(b.sliceAxis(values!, 0, 1, 1), []);
      return [b.select(hit, on, off)];
    },
  },
  // dcr: depth = (block row, block column, channel); crd: (channel, block row, block column)
  depthToSpace: {
    arity: [1, 1],
    schema: { blockSize: integer, mode: choice("dcr", "crd") },
    definition: (b, [x], { blockSize, mode }) => {
      const [n, c, h, w] = b.shapeOf(x!);
      const channels = floorDiv(c!, blockSize * blockSize);
      const dcr = mode === "dcr";
      const split = dcr
        ? [n!, blockSize, blockSize, channels, h!, w!]
        : [n!, channels, blockSize, blockSize, h!, w!];
      const order = dcr ? [0, 3, 4, 1, 5, 2] : [0, 1, 4, 2, 5, 3];
      const moved = b.transpose(b.reshape(x!, split), order);
      return [b.reshape(moved, [n!, channels, mul(h!, blockSize), mul(w!, blockSize)])];
    },
  },
  spaceToDepth: {
    arity: [1, 1],
    schema: { blockSize: integer },
    definition: (b, [x], { blockSize }) => {
      const [n, c, h, w] = b.shapeOf(x!);
      const rows = floorDiv(h!, blockSize);
      const columns = floorDiv(w!, blockSize);
      const split = b.reshape(x!, [n!, c!, rows, blockSize, columns, blockSize]);
      const moved = b.transpose(split, [0, 3, 5, 1, 2, 4]);
      return [b.reshape(moved, [n!, mul(c!, blockSize * blockSize), rows, columns])];
    },
  },
  trilu: {
    arity: [1, 1],
    schema: { upper: boolean, diagonal: integer },
    definition: (b, [x], { upper, diagonal }) => {
      const [rows, columns] = b.shapeOf(x!).slice(-2);
      const row = b.iota([rows!, 1], 0, "i64");
      const column = b.iota([1, columns!], 1, "i64");
      const edge = b.add(row, b.scalar(diagonal, "i64"));
      const keep = upper ? b.apply("lessEqual", edge, column) : b.apply("lessEqual", column, edge);
      return [b.select(keep, x!, b.scalarLike(0, x!))];
    },
  },
} satisfies CompositeRows<"oneHot" | "depthToSpace" | "spaceToDepth" | "trilu">;
