import { describe, expect, it } from "vitest";
import { firstDifference } from "../../../campaign/random-values.ts";
import { compileModel } from "../../compile.ts";
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { printProgram } from "../../program/program-text.ts";
import type { Region } from "../../region/nest.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { TurnDirective } from "../../schedule/directive.ts";
import { parseSchedule, printDirective, printSchedule } from "../../schedule/directive-text.ts";
import { decideSchedule } from "../../schedule/legality/legality.ts";
import { enumerateTurns } from "../../schedule/turns/turn-candidates.ts";
import { turnFault, turnForm } from "../../schedule/turns/turn-form.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant, type IndexLike, toIndex } from "../../semantics/index-expr.ts";
import { fromRef, type RefTensor, randomRef, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { architectures } from "../../target/architectures/index.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Build = (g: GraphBuilder, turned: ValueId, straight: ValueId) => ValueId;

const plain: Build = (_, turned) => turned;
/** Operands of both orders. */
const both: Build = (g, turned, straight) => g.add(g.apply("neg", turned), straight);
const widened: Build = (g, turned) => g.cast(turned, "f32");

function graphOf(
  dtype: DType,
  shape: readonly IndexLike[],
  permutation: readonly number[],
  build: Build = plain,
): Graph {
  const g = new GraphBuilder("turns");
  const x = g.input("x", { dtype, shape: shape.map(toIndex) });
  const turned = permutation.map((axis) => toIndex(shape[axis]!));
  const z = build === both ? g.input("z", { dtype, shape: turned }) : x;
  return g.finish([build(g, g.transpose(x, permutation), z)]);
}

/** The one region of a graph, as it is before it has a schedule. */
function regionOf(graph: Graph): Region {
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  expect(regions).toHaveLength(1);
  return regions[0]!.scheduled.region;
}

function scheduleOf(region: Region, how: string) {
  const { name } = region.statements[0]!;
  return take(parseSchedule(`schedule "${region.name}" for "h200" { turn ${name} ${how} }`));
}

/** Compiled (and so proved) with the schedule, run, and compared with the oracle. */
function difference(graph: Graph, how: string, symbols: Readonly<Record<string, number>> = {}) {
  const region = regionOf(graph);
  const measured = new Map([[region.name, scheduleOf(region, how)]]);
  const made = compileModel({ graph, weights: noWeights }, { target, measured });
  expect(made.ok ? made.warnings : []).toEqual([]);
  const compiled = take(made);
  const { program } = compiled.plan;
  expect(printProgram(program)).toContain("barrier");
  take(emitPtx(program, architectures.get("sm_90a")!));
  const rng = new Rng(5);
  const at = (e: IndexLike): number => {
    const { terms, key, constant } = toIndex(e);
    return terms.length > 0 ? symbols[key]! : constant;
  };
  const inputs = graph.inputs.map((id): RefTensor => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(dtype, shape.map(at), rng);
  });
  const [want] = take(runGraph(graph, inputs));
  const contents = new Map(
    compiled.model.graph.inputs.map((id, i) => {
      const { data } = fromRef(inputs[i]!);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      return [compiled.model.graph.values[id]!.name, bytes] as const;
    }),
  );
  const outcome = runProgram(program, { parameters: symbols, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const [output] = compiled.nests.outputs;
  const template = fromRef(want!);
  const bytes = outcome.contents.get(output!)!.slice();
  const Numbers = template.data.constructor as new (b: ArrayBuffer) => typeof template.data;
  const found = { ...template, data: new Numbers(bytes.buffer) } as typeof template;
  return firstDifference(toRef(found), want!);
}

function orderOf(rank: number, rng: Rng): readonly number[] {
  const axes = Array.from({ length: rank }, (_, axis) => ({ axis, key: rng.uniform() }));
  return axes.sort((a, b) => a.key - b.key).map((a) => a.axis);
}

describe("maps that turn what they read", () => {
  it("every type, in vectors as wide as both sides allow, tiles that are cut", () => {
    const cases: readonly (readonly [DType, readonly [number, number], string])[] = [
      ["f32", [36, 40], "tile (32, 32) threads 64 lanes (4, 4)"],
      ["f32", [36, 40], "tile (16, 64) threads 128 lanes (4, 2)"],
      ["bf16", [72, 40], "tile (32, 64) threads 64 lanes (8, 8)"],
      ["f16", [36, 38], "tile (64, 32) threads 32 lanes (2, 4)"],
      ["i8", [48, 80], "tile (64, 32) threads 64 lanes (16, 16)"],
      ["u8", [33, 70], "tile (64, 64) threads 128 lanes (2, 1)"],
      ["i64", [34, 6], "tile (16, 32) threads 32 lanes (2, 2)"],
      ["f64", [9, 35], "tile (32, 16) threads 64 lanes (1, 1)"],
      ["bool", [20, 36], "tile (32, 32) threads 64 lanes (4, 4)"],
    ];
    for (const [dtype, shape, how] of cases)
      expect(difference(graphOf(dtype, shape, [1, 0]), how), `${dtype} ${how}`).toBeUndefined();
  });

  it("loops outside, in any order of axes", () => {
    const how = "tile (16, 16) threads 32 lanes (1, 1)";
    const orders = [
      [0, 2, 1],
      [2, 1, 0],
      [2, 0, 1],
      [1, 2, 0],
    ];
    for (const order of orders)
      expect(difference(graphOf("f32", [5, 18, 7], order), how)).toBeUndefined();
    const four = graphOf("bf16", [3, 4, 6, 20], [3, 1, 2, 0]);
    expect(difference(four, how)).toBeUndefined();
    expect(difference(graphOf("f32", [2, 3, 2, 18, 3], [4, 1, 3, 0, 2]), how)).toBeUndefined();
  });

  it("with operands as they lie, and conversions", () => {
    const how = "tile (32, 32) threads 64 lanes (4, 4)";
    for (const dtype of ["f32", "bf16"] as const)
      expect(difference(graphOf(dtype, [2, 36, 40], [0, 2, 1], both), how)).toBeUndefined();
    expect(difference(graphOf("bf16", [36, 44], [1, 0], widened), how)).toBeUndefined();
  });

  it("where ends cut tiles of sizes that no listing proves", () => {
    const graph = graphOf("bf16", [8, 1000, 776], [0, 2, 1]);
    const region = regionOf(graph);
    const how = "tile (128, 64) threads 256 lanes (8, 8)";
    const measured = new Map([[region.name, scheduleOf(region, how)]]);
    expect(compileModel({ graph, weights: noWeights }, { target, measured })).toMatchObject({
      ok: true,
      warnings: [],
    });
  });

  it("of open extents", () => {
    const g = new GraphBuilder("open");
    const [n, m] = [g.symbol("N", 1, 40), g.symbol("M", 1, 40)];
    const x = g.input("x", { dtype: "f32", shape: [n, m] });
    const graph = g.finish([g.transpose(x, [1, 0])]);
    const how = "tile (16, 16) threads 32 lanes (1, 1)";
    for (const symbols of [
      { N: 1, M: 40 },
      { N: 17, M: 33 },
    ])
      expect(difference(graph, how, symbols)).toBeUndefined();
  });

  it("random shapes, orders and types by any candidate", () => {
    const rng = new Rng(11);
    const types = ["f32", "f16", "bf16", "i8", "i64"] as const;
    let tried = 0;
    while (tried < 10) {
      const rank = rng.integer(2, 4);
      const shape = Array.from({ length: rank }, () => rng.integer(1, rank === 2 ? 70 : 12));
      const order = orderOf(rank, rng);
      const graph = graphOf(
        types[rng.integer(0, types.length - 1)]!,
        shape,
        order,
        rng.integer(0, 1) ? both : plain,
      );
      const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
      const found = regions.length === 1 ? enumerateTurns(regions[0]!.scheduled.region) : [];
      if (found.length === 0) continue;
      tried++;
      const chosen = printDirective(found[rng.integer(0, found.length - 1)]!);
      const how = chosen.split(" ").slice(2).join(" ");
      expect(difference(graph, how), `${shape} ${order} ${chosen}`).toBeUndefined();
    }
  });

  it("are legal, and what they cannot be is said", () => {
    const region = regionOf(graphOf("f32", [64, 64], [1, 0]));
    const codeOf = (how: string): string | undefined => {
      const made = applySchedule(region, scheduleOf(region, how));
      const decided = made.ok ? decideSchedule(made.value) : made;
      return decided.ok ? undefined : decided.diagnostics[0]!.code;
    };
    expect(codeOf("tile (32, 32) threads 128 lanes (4, 4)")).toBeUndefined();
    const printed = printSchedule(scheduleOf(region, "tile (32, 64) threads 128 lanes (4, 2)"));
    expect(printSchedule(take(parseSchedule(printed)))).toBe(printed);
    for (const how of [
      "tile (32, 24) threads 128 lanes (4, 4)",
      "tile (32, 32) threads 16 lanes (4, 4)",
      "tile (32, 32) threads 128 lanes (32, 4)",
      "tile (32, 32) threads 1024 lanes (4, 4)",
      "tile (128, 128) threads 256 lanes (4, 4)",
      "tile (64, 128) threads 32 lanes (4, 4)",
      "tile (2, 256) threads 32 lanes (4, 4)",
    ])
      expect(codeOf(how), how).toBe("SCH049");
    const odd = turnForm(regionOf(graphOf("f32", [33, 64], [1, 0])));
    const lanes: TurnDirective = {
      ...{ kind: "turn", statement: "S0", tile: [32, 32], threads: 128, lanes: [4, 4] },
    };
    expect(typeof odd === "string" ? odd : turnFault(lanes, odd)).toContain("not whole vectors");
  });

  it("other maps turn nothing", () => {
    const shape = [constant(8), constant(64)];
    const g = new GraphBuilder("plain");
    const region = regionOf(g.finish([g.apply("neg", g.input("x", { dtype: "f32", shape }))]));
    const made = applySchedule(region, scheduleOf(region, "tile (8, 8) threads 32 lanes (1, 1)"));
    expect(made.ok ? [] : made.diagnostics.map((d) => d.code)).toEqual(["SCH048"]);
    expect(enumerateTurns(regionOf(graphOf("f32", [8, 6, 64], [1, 0, 2])))).toEqual([]);
  });

  it("are chosen where memory is what counts", () => {
    for (const [dtype, shape] of [
      ["bf16", [64, 1024, 2048]],
      ["f32", [33, 1001, 777]],
    ] as const) {
      const graph = graphOf(dtype, shape, [0, 2, 1]);
      const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
      expect(regions[0]!.scheduled.schedule.directives.map((d) => d.kind)).toEqual(["turn"]);
    }
  });
});
