/** Pools over windows and over everything, and back. */

import type { PoolKind } from "../../../../semantics/core-ops.ts";
import { add, constant, mul, sub } from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorRow, OperatorTable } from "../operator-row.ts";

import { readWindow } from "./linear.ts";

function poolWindow(node: NodeView, x: Operand): readonly number[] {
  const window = node.attributes.ints("kernel_shape");
  const rank = x.type.shape.length - 2;
  if (!window || window.length !== rank || window.some((w) => w < 1)) {
    node.attributes.refuse("kernel_shape", `[${window ?? ""}]`, `${rank} positive numbers`);
  }
  return window;
}

export function pool(kind: PoolKind): (node: NodeView) => readonly Operand[] {
  return (node) => {
    const x = node.input(0);
    const { attributes } = node;
    const window = poolWindow(node, x);
    const attrs = {
      ...readWindow(node, x, window),
      kind,
      window,
      ceil: attributes.flag("ceil_mode", false),
      countPadding: kind === "average" && attributes.flag("count_include_pad", false),
      exponent: kind === "lp" ? (attributes.int("p") ?? 2) : 1,
    };
    const pooled = node.emit("pool", [x], attrs);
    if (kind !== "max") return [pooled];
    const columnMajor = attributes.flag("storage_order", false);
    if (!node.wants(1)) return [pooled];
    return [pooled, node.emit("poolIndices", [x], { ...attrs, columnMajor })];
  };
}

function spatialAxes(x: Operand): readonly number[] {
  return x.type.shape.map((_, i) => i).slice(2);
}

function globalPool(kind: "max" | "average" | "lp"): OperatorRow {
  return {
    since: kind === "lp" ? [1, 2, 22] : [1, 22],
    convert: (node) => {
      const x = node.input(0);
      const attrs = { axes: spatialAxes(x), keepDims: true };
      if (kind === "average") return node.emit("globalAveragePool", [x], {});
      if (kind === "max") return node.emit("reduce", [x], { kind: "max", ...attrs });
      const p = node.attributes.int("p") ?? 2;
      if (p === 1) return node.emit("reduceL1", [x], attrs);
      if (p === 2) return node.emit("reduceL2", [x], attrs);
      const exponent = (value: number) => node.splat(x.type.dtype, value);
      const powers = node.emit("pow", [node.emit("abs", [x], {}), exponent(p)], {});
      return node.emit(
        "pow",
        [node.emit("reduce", [powers], { kind: "sum", ...attrs }), exponent(1 / p)],
        {},
      );
    },
  };
}

/** Scatters the pooled elements to where they came from; zero elsewhere. */
function maxUnpool(node: NodeView): Operand {
  const [x, indices] = [node.input(0), node.input(1)];
  const window = poolWindow(node, x);
  const { strides, padLow, padHigh } = readWindow(node, x, window);
  const extents = x.type.shape.slice(2);
  const spatial = window.map((w, i) =>
    add(mul(sub(extents[i]!, 1), strides[i]!), w - padLow[i]! - padHigh[i]!),
  );
  const shape = [...x.type.shape.slice(0, 2), ...spatial];
  const flat = (o: Operand) => node.reshape(o, [mul(...o.type.shape)]);
  const empty = node.emit("broadcast", [node.splat(x.type.dtype, 0)], { shape: [mul(...shape)] });
  const attrs = { axis: 0, reduction: "none" } as const;
  const filled = node.emit("scatterElements", [empty, flat(indices), flat(x)], attrs);
  const result = node.reshape(filled, shape);
  if (!node.optional(2)) return result;
  const target = node.indexList(2, "output_shape");
  const zero = shape.map(() => constant(0));
  const high = target.map((t, i) => sub(t, shape[i] ?? 0));
  return node.emit("pad", [result, node.splat(x.type.dtype, 0)], {
    low: zero,
    high,
    mode: "constant",
  });
}

export const poolingRows = {
  MaxPool: { since: [1, 8, 10, 11, 12, 22], convert: pool("max") },
  AveragePool: { since: [7, 10, 11, 19, 22], convert: pool("average") },
  LpPool: { since: [2, 11, 18, 22], convert: pool("lp") },
  GlobalMaxPool: globalPool("max"),
  GlobalAveragePool: globalPool("average"),
  GlobalLpPool: globalPool("lp"),
  MaxUnpool: { since: [9, 11, 22], convert: maxUnpool },
} satisfies OperatorTable;
