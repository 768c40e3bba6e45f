/** Long sums round as sums of about their root of terms do; short ones and products stay as they are. */
import { afterAll, describe, expect, it } from "vitest";
import { load } from "../commands/library/load.ts";
import type { LoadedModel } from "../commands/library/loaded-model.ts";
import { tensor } from "../commands/library/tensor.ts";
import { importOnnx } from "../frontend/onnx/import/import-model.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import { regionsOf } from "../region/regions-of.ts";
import { runnableTargets } from "../runtime/create-session.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { sumInParts } from "./long-sums.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

function taken<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map((d) => d.message).join());
}

type Shape = readonly (number | string)[];

function reduction(op: string, shape: Shape, axes: readonly number[]): Uint8Array {
  return writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [...shape] }],
    outputs: ["y"],
    weights: { axes: tensor("i64", [axes.length], axes.map(BigInt)) },
    nodes: [{ op, inputs: ["x", "axes"], outputs: ["y"], attributes: { keepdims: 0n } }],
  });
}

/** Like a variance: the mean of squares without the square of the mean, of numbers that are nearly the same. */
function spread(shape: Shape, axis: number): Uint8Array {
  return writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [...shape] }],
    outputs: ["y"],
    weights: { axes: tensor("i64", [1], [BigInt(axis)]) },
    nodes: [
      { op: "ReduceMean", inputs: ["x", "axes"], outputs: ["m"] },
      { op: "Mul", inputs: ["x", "x"], outputs: ["q"] },
      { op: "ReduceMean", inputs: ["q", "axes"], outputs: ["mq"] },
      { op: "Mul", inputs: ["m", "m"], outputs: ["mm"] },
      { op: "Sub", inputs: ["mq", "mm"], outputs: ["y"] },
    ],
  });
}

/** The largest element of y for an x of nothing but 0.1. */
async function largest(bytes: Uint8Array, shape: readonly number[], target: string) {
  const model = await load(bytes, { target, threads: 1 });
  open.push(model);
  const x = tensor("f32", shape, new Array(shape.reduce((a, b) => a * b)).fill(0.1));
  const { y } = model.run({ x });
  const values = Array.from(y!.data as Float32Array, Number);
  return {
    value: Math.max(...values),
    error: Math.max(...values.map((v) => Math.abs(v / 0.1 - 1))),
  };
}

/** Named machines have the code of a general target. */
const here = runnableTargets().names.filter((name) => !targets.get(name)!.machine);

describe.each(here)("long sums on %s", (target) => {
  it.each([
    [[512, 64], [0]],
    [[8, 5000, 3], [1]],
    [[1, 50_176, 1], [1]],
    [
      [40, 40, 8, 9],
      [0, 1, 2],
    ],
  ] as const)("means of %j over %j", async (shape, axes) => {
    const { error } = await largest(reduction("ReduceMean", shape, axes), shape, target);
    expect(error).toBeLessThan(5e-6);
  });

  it.each([[[512, 64], 0]] as const)("differences of sums over %j", async (shape, axis) => {
    const { value } = await largest(spread(shape, axis), shape, target);
    expect(Math.abs(value)).toBeLessThan(2e-8);
  });

  it("of an extent that is open", async () => {
    const bytes = reduction("ReduceMean", ["N", 8], [0]);
    const model = await load(bytes, { target, threads: 1, shapes: { N: "1..3000" } });
    open.push(model);
    for (const n of [1, 31, 32, 33, 500, 2999, 3000]) {
      const x = tensor("f32", [n, 8], new Array(8 * n).fill(0.1));
      const { y } = model.run({ x });
      expect(Math.abs((y!.data[3] as number) / 0.1 - 1)).toBeLessThan(2e-6);
    }
  });
});

describe("which sums have parts", () => {
  /** Reduce loops of the first region's statement, with `|` where a part begins. */
  function partsOf(bytes: Uint8Array, directives = ""): string {
    const { graph } = taken(importOnnx(bytes));
    const nests = taken(buildNests(graph));
    const [region] = regionsOf(nests).regions;
    const schedule = taken(parseSchedule(`schedule "${region!.name}" for "wasm" {${directives}}`));
    const scheduled = taken(applySchedule(region!, schedule));
    const found = sumInParts(scheduled, scheduled.statements[0]!);
    const loops = found.scheduled.loops.filter((l) => l.kind === "reduce").map((l) => l.extent.key);
    return [
      ...loops.slice(0, found.outside),
      ...(found.outside > 0 ? ["|"] : []),
      ...loops.slice(found.outside),
    ].join(" ");
  }

  it("long ones of floats alone", () => {
    expect(partsOf(reduction("ReduceSum", [4, 512], [1]))).toBe("16 | 32");
    expect(partsOf(reduction("ReduceSum", [4, 500_000], [1]))).toBe("1954 | 256");
    expect(partsOf(reduction("ReduceSum", [4, 127], [1]))).toBe("127");
    expect(partsOf(reduction("ReduceMax", [4, 512], [1]))).toBe("512");
  });

  it("with loops outside, copies and lanes counted", () => {
    expect(partsOf(reduction("ReduceSum", [40, 40, 8], [0, 1]))).toBe("50 | 32");
    expect(partsOf(reduction("ReduceSum", [6, 4, 512], [0, 2]))).toBe("6 8 | 64");
    const rows = reduction("ReduceSum", [4, 512], [1]);
    const lanes = "split S0:i1 by 8 -> k l split S0:k by 4 -> ko ku vectorize S0:l unroll S0:ku";
    expect(partsOf(rows, lanes)).toBe("16 4 8");
    const copies = "split S0:i1 by 4 -> k u unroll S0:u";
    expect(partsOf(rows, copies)).toBe("16 | 8 4");
    const wide = reduction("ReduceSum", [512, 64], [0]);
    expect(partsOf(wide, "unroll S0:i1 reorder S0:(i0, i1)")).toBe("512");
  });

  it("and no product", () => {
    const product = writeModel({
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [4, 512] }],
      outputs: ["y"],
      weights: { w: tensor("f32", [512, 8], new Array(4096).fill(1)) },
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    });
    expect(partsOf(product)).toBe("512");
  });
});
