import { describe, expect, it } from "vitest";
import type { NestProgram, Statement, TensorRole } from "../region/nest.ts";
import { applySchedule } from "../schedule/apply.ts";
import type { Directive } from "../schedule/directive.ts";
import { constant, type IndexExpr, variable } from "../semantics/index-expr.ts";
import { apply, argument } from "../semantics/scalar-expr.ts";
import { targets } from "../target/index.ts";
import { lowerProgram } from "./lower-program.ts";

const target = targets.get("wasm")!;
const i = variable("i");

function relu(name: string, from: string, to: string, extent: IndexExpr): Statement {
  return {
    name,
    loops: [{ name: "i", extent, kind: "space" }],
    guard: [],
    indirects: [],
    reads: [{ tensor: from, index: [i], guard: [], fill: 0 }],
    body: [apply("relu", argument(0, "f32"))],
    finishReads: [],
    writes: [{ tensor: to, index: [i], combine: "overwrite" }],
    origin: name,
  };
}

interface Chain {
  readonly extent: IndexExpr;
  readonly max?: number;
  readonly directives?: readonly Directive[];
  readonly routine?: boolean;
}

/** x -> t0 -> t1 -> … -> y, a relu each. */
function chain({ extent, max = 64, directives = [], routine = false }: Chain) {
  const names = ["x", "t0", "t1", "t2", "y"];
  const role = (name: string): TensorRole =>
    name === "x" ? "input" : name === "y" ? "output" : "intermediate";
  const tensors: NestProgram["tensors"] = new Map(
    names.map((name) => [name, { name, dtype: "f32", shape: [extent], role: role(name) }]),
  );
  const statements = names.slice(1).map((to, k) => relu(`S${k}`, names[k]!, to, extent));
  const symbols = [{ name: "N", range: { min: 1, max } }];
  const nests: NestProgram = {
    name: "chain",
    symbols,
    tensors,
    items: [
      ...statements.map((statement) => ({ kind: "statement", statement }) as const),
      ...(routine
        ? [
            {
              kind: "routine",
              routine: { name: "S4", node: 0, origin: "topK", reads: ["x"], writes: ["y"] },
            } as const,
          ]
        : []),
    ],
    inputs: ["x"],
    outputs: ["y"],
  };
  const scheduled = statements.map((statement) => {
    const region = {
      name: statement.name,
      group: { name: statement.name, anchor: statement.name, inlined: [], epilogue: [] },
      statements: [statement],
      symbols,
      tensors,
    };
    const own = statement.name === "S0" ? directives : [];
    const schedule = { region: statement.name, target: "wasm", directives: own };
    const applied = applySchedule(region, schedule);
    if (!applied.ok) throw new Error(applied.diagnostics[0]!.message);
    return applied.value;
  });
  return lowerProgram({ nests, scheduled, requires: [], states: [] }, target);
}

describe("lowerProgram", () => {
  it("lets every elementwise step of a chain take over its operand's storage", () => {
    const plan = chain({ extent: variable("N") });
    expect(plan).toMatchObject({
      ok: true,
      value: { arenas: { scratch: 256 }, scratchLowerBound: 256 },
    });
  });

  it("refuses what has no bound, no room or no program", () => {
    const code = (c: Chain): string => {
      const plan = chain(c);
      return plan.ok ? "ok" : plan.diagnostics[0]!.code;
    };
    expect(code({ extent: variable("N"), max: Infinity })).toBe("MEM001");
    expect(code({ extent: constant(2 ** 30) })).toBe("MEM002");
    expect(code({ extent: constant(8), routine: true })).toBe("SCH015");
    expect(chain({ extent: constant(8), routine: true })).toMatchObject({
      diagnostics: [{ message: "target wasm has no program for topK" }],
    });
  });

  it("refuses tiles without a constant size and copies in flight", () => {
    const at = { statement: "S0", at: "i" } as const;
    const code = (directives: readonly Directive[], max: number): string => {
      const plan = chain({ extent: variable("N"), max, directives });
      return plan.ok ? "ok" : plan.diagnostics[0]!.code;
    };
    const stage = { kind: "stage", tensor: "x", scope: "local", depth: 2, ...at } as const;
    expect(code([stage], 64)).toBe("SCH014");
    const columns: readonly Directive[] = [
      { kind: "split", statement: "S0", loop: "i", factor: 4, outer: "a", inner: "b" },
      { kind: "reorder", statement: "S0", order: ["b", "a"] },
      { kind: "place", tensor: "t0", scope: "local", statement: "S0", at: "b" },
    ];
    expect(code(columns, Infinity)).toBe("SCH013");
  });
});
