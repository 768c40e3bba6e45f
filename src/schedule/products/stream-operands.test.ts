import { describe, expect, it } from "vitest";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { WeightStore } from "../../graph/graph.ts";
import { noWeights } from "../../interp/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import type { Result } from "../../support/diagnostic.ts";
import { allowing } from "../../target/allowing.ts";
import { targets } from "../../target/index.ts";
import { printDirective } from "../directive-text.ts";
import { productForm } from "./product-form.ts";
import { streamFault } from "./stream-operands.ts";

const target = allowing(targets.get("h200")!, ["tf32"]);

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

interface Given {
  readonly equation: string;
  readonly left: readonly number[];
  readonly right: readonly number[];
  readonly dtype?: DType;
  readonly isWeight?: boolean;
  /** The last axis of both operands is read up to there. */
  readonly upTo?: number;
}

function compiled(given: Given): CompiledModel {
  const { equation, left, right, dtype = "bf16", isWeight, upTo } = given;
  const g = new GraphBuilder("product");
  const type = (shape: readonly number[]) => ({ dtype, shape: shape.map((n) => constant(n)) });
  const x = g.input("x", type(left));
  const w = isWeight ? g.weight("w", type(right)) : g.input("w", type(right));
  const operands = [x, w].map((v) => (upTo === undefined ? v : g.sliceAxis(v, 1, 0, upTo)));
  const sums = g.einsum(equation, operands[0]!, operands[1]!, "f32");
  const graph = g.finish([dtype === "f32" ? sums : g.cast(sums, "bf16")]);
  const store: WeightStore = {
    read: () => ({ dtype, shape: right, data: new Uint16Array(right.reduce((a, b) => a * b)) }),
  };
  const weights = isWeight ? store : noWeights;
  return take(compileModel({ graph, weights }, { target }));
}

/** The schedule of the product and what all regions are priced at, in nanoseconds. */
function chosen(given: Given): { readonly how: string; readonly price: number } {
  const { regions } = compiled(given);
  const directives = regions.flatMap((r) => r.scheduled.schedule.directives);
  const product = directives.find((d) => d.kind === "multiply");
  const price = regions.reduce((sum, r) => sum + r.price.estimateNs, 0);
  return { how: product ? printDirective(product) : "", price };
}

function faultOf(given: Given): string | undefined {
  for (const { scheduled } of compiled(given).regions) {
    const [statement] = scheduled.region.statements;
    const form = productForm(scheduled.region, statement!);
    if (typeof form !== "string") return streamFault(form);
  }
  return "no product";
}

describe("operands that tensor copies bring", () => {
  const orders = ["i k, j k -> i j", "i k, k j -> i j", "k i, j k -> i j", "k i, k j -> i j"];

  it("are of either order in 16 bits, at one price", () => {
    const square = { left: [4096, 4096], right: [4096, 4096] } as const;
    const all = orders.map((equation) => chosen({ ...square, equation }));
    for (const { how, price } of all) {
      expect(how).toContain("by wgmma");
      expect(price / all[0]!.price).toBeCloseTo(1, 2);
    }
  });

  it("are problems of a batch as they lie: one kernel", () => {
    for (const equation of ["b i k, b k j -> b i j", "b k i, b j k -> b i j"]) {
      const given = { equation, left: [8, 512, 512], right: [8, 512, 512] } as const;
      expect(chosen(given).how).toContain("by wgmma");
      expect(compiled(given).regions).toHaveLength(1);
    }
  });

  it("lie along the depth where elements have 8 or 32 bits", () => {
    // So small that a copy in the other order, made before, is a launch too many.
    const square = { left: [64, 64], right: [64, 64] } as const;
    for (const dtype of ["f8e4m3fn", "f32"] as const) {
      expect(faultOf({ ...square, equation: orders[0]!, dtype })).toBeUndefined();
      expect(faultOf({ ...square, equation: orders[1]!, dtype })).toMatch(/rows along the depth/);
    }
  });

  it("have rows of a multiple of 16 bytes, of the tensor, not of what is read of it", () => {
    const odd = { left: [128, 64], right: [64, 100] } as const;
    expect(faultOf({ ...odd, equation: orders[1]! })).toMatch(/200 bytes/);
    const part = { equation: orders[0]!, left: [64, 100], right: [64, 100], upTo: 64 } as const;
    expect(faultOf(part)).toMatch(/200 bytes/);
    expect(faultOf({ ...part, left: [64, 104], right: [64, 104] })).toBeUndefined();
  });

  it("end with the tensor where the depth ends within a step: what lies behind is not zero", () => {
    const part = { equation: orders[0]!, left: [64, 128], right: [64, 128] } as const;
    expect(faultOf({ ...part, upTo: 72 })).toMatch(/no whole steps/);
    expect(faultOf({ ...part, left: [64, 72], right: [64, 72] })).toBeUndefined();
  });

  it("are weights in the order of the loops, although either would do", () => {
    const given = { equation: orders[1]!, left: [512, 512], right: [512, 512] } as const;
    const read = (isWeight: boolean) => {
      const { region } = compiled({ ...given, isWeight }).regions[0]!.scheduled;
      return region.tensors.get(region.statements[0]!.reads[1]!.tensor)!.stored !== undefined;
    };
    expect(read(true)).toBe(true);
    expect(read(false)).toBe(false);
  });
});
