import { describe, expect, it } from "vitest";
import type { Region, TensorRole } from "../region/nest.ts";
import { constant, variable } from "../semantics/index-expr.ts";
import { simpleMonoid } from "../semantics/monoids.ts";
import { apply, argument } from "../semantics/scalar-expr.ts";
import { applySchedule } from "./apply.ts";
import { blockedLayout } from "./candidates.ts";
import { parseSchedule, printSchedule } from "./directive-text.ts";

const [i, j, k] = ["i", "j", "k"].map(variable) as [
  ReturnType<typeof variable>,
  ReturnType<typeof variable>,
  ReturnType<typeof variable>,
];
const tensor = (name: string, role: TensorRole | "local") =>
  [name, { name, dtype: "f32", shape: [constant(8), constant(8)], role }] as const;

/** t[i, j] = sum over k of x[i, k] w[k, j]; y[i, j] = relu(t[i, j]) */
const region: Region = {
  name: "r",
  group: { name: "r", anchor: "S0", inlined: [], epilogue: [] },
  symbols: [],
  tensors: new Map([
    tensor("x", "input"),
    tensor("w", "weight"),
    tensor("t", "local"),
    tensor("y", "output"),
  ]),
  statements: [
    {
      name: "S0",
      loops: [
        { name: "i", extent: constant(8), kind: "space" },
        { name: "j", extent: constant(8), kind: "space" },
        { name: "k", extent: variable("K"), kind: "reduce" },
      ],
      guard: [],
      indirects: [],
      reads: [
        { tensor: "x", index: [i, k], guard: [], fill: 0 },
        { tensor: "w", index: [k, j], guard: [], fill: 0 },
      ],
      body: [apply("mul", argument(0, "f32"), argument(1, "f32"))],
      reduction: { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" },
      finishReads: [],
      writes: [{ tensor: "t", index: [i, j], combine: "overwrite" }],
      origin: "matmul",
    },
    {
      name: "S1",
      loops: [
        { name: "i", extent: constant(8), kind: "space" },
        { name: "j", extent: constant(8), kind: "scan" },
      ],
      guard: [],
      indirects: [],
      reads: [{ tensor: "t", index: [i, j], guard: [], fill: 0 }],
      body: [apply("relu", argument(0, "f32"))],
      finishReads: [],
      writes: [{ tensor: "y", index: [i, j], combine: "overwrite" }],
      origin: "relu",
    },
  ],
};

/** The loops after the directives, or the code of the first that is refused. */
function check(directives: string): string {
  const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
  if (!schedule.ok) return schedule.diagnostics[0]!.code;
  const applied = applySchedule(region, schedule.value);
  if (!applied.ok) return applied.diagnostics[0]!.code;
  return applied.value.statements[0]!.loops.map(
    (l) => `${l.name}:${l.extent.key}${l.mode === "serial" ? "" : ` ${l.mode}`}`,
  ).join(", ");
}

describe("applySchedule", () => {
  it("splits, tiles, reorders and marks", () => {
    expect(check("split S0:j by 3 -> j0 j1 unroll S0:j1")).toBe("i:8, j0:3, j1:3 unroll, k:K");
    expect(check("tile S0:(i, j) by (2, 4) -> (i0, j0) (i1, j1)")).toBe(
      "i0:4, j0:2, i1:2, j1:4, k:K",
    );
    expect(check("reorder S0:(j, k, i) parallelize S0:j vectorize S0:i")).toBe(
      "j:8 grid, k:K, i:8 vector",
    );
  });

  it.each([
    ["unroll S7:i", "SCH001"],
    ["unroll S0:z", "SCH002"],
    ["split S0:i by 0 -> a b", "SCH003"],
    ["split S0:i by 2 -> j b", "SCH004"],
    ["reorder S0:(i, j)", "SCH005"],
    ["unroll S0:k", "SCH006"],
    ["vectorize S0:i vectorize S0:j", "SCH007"],
    ["vectorize S1:j", "SCH008"],
    ["unroll S0:i unroll S0:i", "SCH009"],
    ["fuse S0 into S0:i", "SCH010"],
    ['place "q" in register at S0:i', "SCH011"],
    ["fuse S1 into S0:k", "SCH012"],
    ["split S0:i by 2 ->", "TXT001"],
  ])("refuses %s", (directives, code) => {
    expect(check(directives)).toBe(code);
  });

  it("prints every directive so that it parses back", () => {
    const text = `schedule "r" for "wasm" {
  split S0:i by 2 -> i0 i1
  tile S0:(i0, j) by (2, 4) -> (a, b) (c, d)
  reorder S0:(a, b, k, c, i1, d)
  vectorize S0:d
  unroll S0:c
  parallelize S0:a
  fuse S1 into S0:a
  place "t" in local at S0:a
  stage "x" in local at S0:a depth 1
}
`;
    const parsed = parseSchedule(text);
    expect(parsed.ok && printSchedule(parsed.value)).toBe(text);
    const layout = blockedLayout([constant(8), constant(8)], 1, 4);
    const schedule = {
      region: "r",
      target: "wasm",
      directives: [{ kind: "layout", tensor: "w", layout } as const],
    };
    const again = parseSchedule(printSchedule(schedule));
    expect(again.ok && again.value).toEqual(schedule);
  });
});
