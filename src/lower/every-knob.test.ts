import { describe, expect, it } from "vitest";
import { attentionRegion } from "../../campaign/ptx/attention-programs.ts";
import { compileModel } from "../compile.ts";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights } from "../interp/graph.ts";
import type { Region } from "../region/nest.ts";
import { applySchedule } from "../schedule/apply.ts";
import type {
  AttendDirective,
  MultiplyDirective,
  RowsDirective,
  TurnDirective,
} from "../schedule/directive.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { architectures } from "../target/architectures/index.ts";
import { targets } from "../target/index.ts";
import { lowerRegionProgram } from "./region-program.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

/** The one region of a graph, as it is before it has a schedule. */
function regionOf(graph: Graph): Region {
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  expect(regions).toHaveLength(1);
  return regions[0]!.scheduled.region;
}

/** What the driver is given: text, and how many blocks, threads and bytes. */
function emitted(scheduled: ScheduledRegion): string {
  const { program } = take(lowerRegionProgram(scheduled, target, []));
  return JSON.stringify(take(emitPtx(program, architectures.get("sm_90a")!)));
}

/** Each pair of schedules, which differ in one knob, becomes two programs. */
function expectVisible(
  region: Region,
  knobs: Readonly<Record<string, readonly [one: string, other: string]>>,
): void {
  const program = (how: string): string => {
    const text = `schedule "${region.name}" for "h200" { ${how} }`;
    return emitted(take(applySchedule(region, take(parseSchedule(text)))));
  };
  const blind = Object.entries(knobs).filter(([, [one, other]]) => program(one) === program(other));
  expect(blind.map(([knob]) => knob)).toEqual([]);
}

type Pair = readonly [one: string, other: string];
type Knobs<D> = Readonly<Record<keyof Omit<D, "kind" | "statement">, Pair>>;

describe("every knob of a schedule is in the text that the driver gets", () => {
  it("of products", () => {
    const g = new GraphBuilder("product");
    const [x, w] = [
      g.input("x", tensorType("bf16", 512, 256)),
      g.input("w", tensorType("bf16", 512, 256)),
    ];
    const residual = g.input("r", tensorType("bf16", 512, 512));
    const sums = g.cast(g.einsum("i k, j k -> i j", x, w, "f32"), "bf16");
    const region = regionOf(g.finish([g.add(sums, residual)]));
    const base =
      "multiply S0 by wgmma tile (128, 128, 64) warps (8, 1) stages 2 swizzle 128 results 2";
    const warps = base.replace("by wgmma", "by mma").replace(" results 2", "");
    const turns = base.replace("results 2", "results 2 blocks 8");
    expectVisible(region, {
      by: [base.replace(" results 2", ""), warps],
      tile: [base, base.replace("128, 128, 64", "128, 64, 64")],
      warps: [base, base.replace("(8, 1)", "(4, 1)")],
      stages: [base, base.replace("stages 2", "stages 4")],
      swizzle: [warps, warps.replace("swizzle 128", "swizzle 0")],
      group: [base, base.replace("swizzle 128", "swizzle 128 group 2")],
      results: [base, base.replace("results 2", "results 1")],
      blocks: [turns, turns.replace("blocks 8", "blocks 4")],
      teams: [turns.replace("(8, 1)", "(4, 1)"), `${turns.replace("(8, 1)", "(4, 1)")} teams 2`],
      parts: [base.replace(" results 2", ""), base.replace("results 2", "parts 2")],
      cluster: [base, `${base} cluster 2`],
      ahead: [base, `${base} ahead`],
      swapped: [base.replace(" results 2", ""), base.replace(" results 2", " swapped")],
    } satisfies Knobs<MultiplyDirective>);
    const round = turns.replace("blocks 8", "blocks 12");
    expectVisible(region, {
      "parts of a round": [round, `${round} parts 2`],
      "blocks that share": [
        `${round} parts 2`,
        `${turns.replace("blocks 8", "blocks 14")} parts 2`,
      ],
    });
  });

  it("of rows", () => {
    const g = new GraphBuilder("weights");
    const x = g.input("x", tensorType("bf16", 64, 1024));
    const region = regionOf(g.finish([g.node("softmax", [x], { axis: 1 })]));
    const last = region.statements.at(-1)!.name;
    const base = `rows ${last} threads 128 lanes 8 together 1 keep registers`;
    expectVisible(region, {
      threads: [base, base.replace("128", "64")],
      lanes: [base, base.replace("lanes 8", "lanes 4")],
      rows: [base, base.replace("together 1", "together 2")],
      across: [base, base.replace("lanes 8 together 1", "lanes 1 together 1 across")],
      items: [
        base.replace("lanes 8 together 1", "lanes 1 together 1 across"),
        base.replace("lanes 8 together 1", "lanes 1 together 1 across items 4"),
      ],
      parts: [base, base.replace("together 1", "together 1 parts 2")],
      keep: [base, base.replace("registers", "operands")],
      shared: [
        base.replace("registers", "operands"),
        base.replace("registers", "operands shared 1"),
      ],
    } satisfies Knobs<RowsDirective>);
  });

  it("of maps that turn what they read", () => {
    const g = new GraphBuilder("turns");
    const region = regionOf(
      g.finish([g.transpose(g.input("x", tensorType("bf16", 256, 512)), [1, 0])]),
    );
    const base = `turn ${region.statements[0]!.name} tile (64, 64) threads 128 lanes (8, 8)`;
    expectVisible(region, {
      tile: [base, base.replace("(64, 64)", "(64, 128)")],
      threads: [base, base.replace("threads 128", "threads 256")],
      lanes: [base, base.replace("(8, 8)", "(4, 8)")],
    } satisfies Knobs<TurnDirective>);
    expectVisible(region, {
      "tile along what is read": [base, base.replace("(64, 64)", "(32, 64)")],
      "stored lanes": [base, base.replace("(8, 8)", "(8, 4)")],
    });
  });

  it("of attention", () => {
    const program = (how: string): string =>
      emitted(
        attentionRegion({
          ...{ heads: 2, groups: 1, rows: 256, columns: 256, depth: 64 },
          ...{ dtype: "bf16", causal: true, mask: false, how },
        }),
      );
    const base = "by wgmma tile (128, 128) warps 8 stages 2";
    const whole = "by mma tile (256, 64) warps 8 stages 2";
    const pairs: Knobs<AttendDirective> = {
      by: [base, base.replace("wgmma", "mma")],
      tile: [base, base.replace("128, 128", "128, 64")],
      warps: ["by mma tile (64, 64) warps 4 stages 2", "by mma tile (64, 64) warps 2 stages 2"],
      stages: [base, base.replace("stages 2", "stages 3")],
      gathered: [base, `${base} gathered`],
      parts: [whole, `${whole} parts 2`],
      splits: [whole, `${whole} splits 2`],
    };
    const blind = Object.entries(pairs).filter(([, [a, b]]) => program(a) === program(b));
    expect(blind.map(([knob]) => knob)).toEqual([]);
  });

  it("of loops and of what lies near them", () => {
    const g = new GraphBuilder("softmax");
    const x = g.input("x", tensorType("f32", 64, 1024));
    const region = regionOf(g.finish([g.node("softmax", [x], { axis: 1 })]));
    const [largest, map, sum, last] = region.statements.map((s) => s.name) as [
      string,
      string,
      string,
      string,
    ];
    const fused = `fuse ${sum} into ${map}:i0\nfuse ${last} into ${map}:i0`;
    const held = region.statements[1]!.writes[0]!.tensor;
    const placed = (scope: string): string => `${fused}\nplace "${held}" in ${scope} at ${map}:i0`;
    const staged = `split ${map}:i1 by 64 -> a b\nstage "x" in shared at ${map}:a depth 1`;
    const tiled = `tile ${map}:(i0, i1) by (4, 64) -> (a, c) (b, d)`;
    expectVisible(region, {
      tile: [tiled, tiled.replace("64", "32")],
      "fuse: who": ["", `fuse ${sum} into ${map}:i0`],
      "fuse: how many": [`fuse ${sum} into ${map}:i0`, fused],
      place: [fused, placed("shared")],
      "place: scope": [placed("shared"), placed("local")],
      "stage: scope": [staged, staged.replace("shared", "local")],
      "stage: at": [staged, staged.replace(`${map}:a`, `${map}:i0`)],
      interchange: ["", `interchange ${last}:i0 with i1`],
      jam: [`jam ${largest}:i0 by 2 -> a b`, `jam ${largest}:i0 by 4 -> a b`],
    });
  });

  it("of where tensors lie", () => {
    const g = new GraphBuilder("packed");
    const [x, w] = [
      g.input("x", tensorType("f32", 64, 128)),
      g.weight("w", tensorType("f32", 128, 96)),
    ];
    const region = regionOf(g.finish([g.matMul(x, w)]));
    const { tensor } = region.statements[0]!.reads[1]!;
    const layout = (by: number): string =>
      `layout "${tensor}" [${96 / by}, 128, ${by}] holds [${by}*p0 + p2, p1] at [floorDiv(l0, ${by}), l1, mod(l0, ${by})]`;
    expectVisible(region, { layout: ["", layout(16)], "layout: of": [layout(16), layout(32)] });
  });

  it("of loops that are dealt out to blocks and threads", () => {
    const g = new GraphBuilder("sums");
    const region = regionOf(
      g.finish([g.reduce("sum", g.input("x", tensorType("f32", 64, 1024)), [1], false)]),
    );
    const [{ name, loops }] = region.statements as [Region["statements"][number]];
    const [i, k] = loops.map((l) => l.name) as [string, string];
    const base = [
      `split ${name}:${k} by 4 -> k_v k_l`,
      `split ${name}:k_v by 32 -> k_o k_t`,
      `bind ${name}:k_t to threads`,
      `vectorize ${name}:k_l`,
      `split ${name}:${i} by 4 -> i_b i_g`,
      `bind ${name}:i_g to groups`,
      `reorder ${name}:(i_b, i_g, k_t, k_o, k_l)`,
      `bind ${name}:i_b to blocks`,
    ];
    const changed = (from: string, to: string): Pair => {
      const all = base.join("\n");
      expect(all).toContain(from);
      return [all, all.replace(from, to)];
    };
    expectVisible(region, {
      split: changed(`split ${name}:${i} by 4`, `split ${name}:${i} by 8`),
      vectorize: changed(`vectorize ${name}:k_l`, `unroll ${name}:k_l`),
      unroll: changed(`bind ${name}:i_g to groups`, `unroll ${name}:i_g`),
      bind: changed(`bind ${name}:i_b to blocks`, ""),
      reorder: [
        changed("k_t, k_o, k_l)", "k_t, k_o, k_l)")[0].replace(`vectorize ${name}:k_l\n`, ""),
        changed("k_t, k_o, k_l)", "k_t, k_l, k_o)")[1].replace(`vectorize ${name}:k_l\n`, ""),
      ],
    });
  });
});
