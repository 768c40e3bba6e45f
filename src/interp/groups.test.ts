import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import { analyseProgram, applyGroups, composeGroup, formRegion } from "../region/form-region.ts";
import {
  candidateGroups,
  defaultGroupOptions,
  fuseElementwise,
  type GroupPlan,
  planGroups,
} from "../region/groups.ts";
import type { NestProgram } from "../region/nest.ts";
import { parseNests } from "../region/nest-reader.ts";
import { canonicalNests, printNests } from "../region/nest-text.ts";
import { constant, mul } from "../semantics/index-expr.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { checkNests } from "./check-nests.ts";

const extents = { N: 1, H: 5, W: 6 };

function nestsOf(graph: Graph): NestProgram {
  const nests = buildNests(graph);
  if (!nests.ok) throw new Error(nests.diagnostics[0]!.message);
  return nests.value;
}

function fuse(program: NestProgram): NestProgram {
  const analysed = analyseProgram(program);
  return applyGroups(analysed, fuseElementwise(program));
}

/** Fused nests compute what the oracle computes; gives the plan and the fused statements. */
function check(graph: Graph): GroupPlan & { readonly fused: NestProgram } {
  checkNests(graph, { rng: new Rng(7), extents, transform: fuse });
  const program = nestsOf(graph);
  return { ...planGroups(analyseProgram(program), defaultGroupOptions), fused: fuse(program) };
}

function statementsOf(program: NestProgram) {
  return program.items.flatMap((i) => (i.kind === "statement" ? [i.statement] : []));
}

const unpadded = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0] };
const same = { ...unpadded, padLow: [1, 1], padHigh: [1, 1] };

class Net {
  readonly g = new GraphBuilder("net");
  readonly n = this.g.symbol("N", 1, 4);
  readonly h = this.g.symbol("H", 3, 99);
  readonly w = this.g.symbol("W", 3, 99);
  scalar(value: number): ValueId {
    return this.g.constant(fromRef(refTensor("f32", [], [value])));
  }
  image(name: string, channels: number): ValueId {
    return this.g.input(name, tensorType("f32", this.n, channels, this.h, this.w));
  }
  apply(op: ScalarOp, ...inputs: readonly ValueId[]): ValueId {
    return this.g.nodes(op, inputs, {} as never)[0]!;
  }
  conv(name: string, x: ValueId, from: number, to: number): ValueId {
    const weights = this.g.weight(name, tensorType("f32", to, from, 3, 3));
    return this.g.nodes("convolution", [x, weights], { ...same, groups: 1 })[0]!;
  }
  /** As exporters write it: x * clip(x + 3, 0, 6) / 6. */
  hardSwish(x: ValueId): ValueId {
    const shifted = this.apply("add", x, this.scalar(3));
    const low = this.apply("max", shifted, this.scalar(0));
    const clipped = this.apply("min", low, this.scalar(6));
    return this.apply("div", this.apply("mul", x, clipped), this.scalar(6));
  }
  bias(name: string, x: ValueId, channels: number): ValueId {
    return this.apply("add", x, this.g.weight(name, tensorType("f32", 1, channels, 1, 1)));
  }
}

describe("default groups", () => {
  it("makes convolution, bias and hard swish one statement with a finish", () => {
    const net = new Net();
    const y = net.hardSwish(net.bias("b", net.conv("w", net.image("x", 3), 3, 4), 4));
    const { groups, fused } = check(net.g.finish([y]));
    expect(groups).toHaveLength(1);
    expect(statementsOf(fused)).toMatchObject([
      { reduction: { monoid: { name: "sum" } }, finishReads: [{ tensor: "b" }], writes: [{}] },
    ]);
  });

  it("stores a result that others read as well, and fuses a residual", () => {
    const net = new Net();
    const x = net.image("x", 3);
    const a = net.apply("relu", net.bias("b", net.conv("w0", x, 3, 3), 3));
    const sum = net.apply("add", net.conv("w1", a, 3, 3), a);
    const { fused } = check(net.g.finish([sum, net.apply("exp", sum)]));
    expect(statementsOf(fused).map((s) => s.writes.length)).toEqual([1, 2]);
  });

  it("does not move a product over the squeeze that it needs", () => {
    const net = new Net();
    const x = net.bias("b", net.conv("w", net.image("x", 3), 3, 3), 3);
    const [sum] = net.g.nodes("reduce", [x], { kind: "sum", axes: [2, 3], keepDims: true });
    const gate = net.apply("sigmoid", net.conv("w1", sum!, 3, 3));
    const { fused, refusals } = check(net.g.finish([net.apply("mul", x, gate)]));
    expect(statementsOf(fused)).toHaveLength(4);
    expect(refusals.some((r) => r.reason.includes("before"))).toBe(true);
  });

  it("writes convolutions straight into their concatenation", () => {
    const net = new Net();
    const x = net.image("x", 3);
    const parts = [net.conv("w0", x, 3, 2), net.apply("relu", net.conv("w1", x, 3, 4))];
    const [y] = net.g.nodes("concat", parts, { axis: 1 });
    const { fused } = check(net.g.finish([net.apply("neg", y!)]));
    expect(statementsOf(fused)).toHaveLength(3);
    expect([...fused.tensors.values()].filter((t) => t.role === "intermediate")).toHaveLength(1);
  });

  it("reads a padded operand under a guard, but not when padding would change it", () => {
    const net = new Net();
    const [padded] = net.g.nodes("pad", [net.image("x", 3), net.scalar(0)], {
      low: [0, 0, 1, 2].map(constant),
      high: [0, 0, 1, 0].map(constant),
      mode: "constant",
    });
    const { fused } = check(net.g.finish([net.conv("w", padded!, 3, 2)]));
    expect(statementsOf(fused)).toHaveLength(1);
    const other = new Net();
    const [one] = other.g.nodes("pad", [other.image("x", 3), other.scalar(1)], {
      low: [0, 0, 1, 2].map(constant),
      high: [0, 0, 1, 0].map(constant),
      mode: "constant",
    });
    expect(statementsOf(check(other.g.finish([other.conv("w", one!, 3, 2)])).fused)).toHaveLength(
      2,
    );
  });

  it("sums squares in one statement, but computes an exponential once", () => {
    const net = new Net();
    const x = net.image("x", 3);
    const square = net.apply("mul", x, x);
    const [sum] = net.g.nodes("reduce", [square], { kind: "sum", axes: [3], keepDims: true });
    expect(statementsOf(check(net.g.finish([sum!])).fused)).toHaveLength(1);
    const soft = new Net();
    const e = soft.apply("exp", soft.image("x", 3));
    const [total] = soft.g.nodes("reduce", [e], { kind: "sum", axes: [3], keepDims: true });
    const { fused, refusals } = check(soft.g.finish([soft.apply("div", e, total!)]));
    expect(statementsOf(fused)).toHaveLength(3);
    expect(refusals.some((r) => r.reason.includes("again"))).toBe(true);
  });

  it.each([
    [3, 2, 2],
    [2, 2, 1],
    [2, 3, 1],
  ])(
    "computes an exponential under windows of %d each %d in %d statements",
    (size, step, count) => {
      const net = new Net();
      const [pooled] = net.g.nodes("pool", [net.apply("exp", net.image("x", 3))], {
        kind: "max",
        window: [size, size],
        strides: [step, step],
        dilations: [1, 1],
        padLow: [0, 0],
        padHigh: [0, 0],
        ceil: false,
        countPadding: false,
        exponent: 1,
      });
      expect(statementsOf(check(net.g.finish([pooled!])).fused)).toHaveLength(count);
    },
  );

  it("looks through reshapes that keep places affine", () => {
    const net = new Net();
    const x = net.conv("w", net.image("x", 3), 3, 3);
    const shape = [net.n, constant(3), mul(net.h, net.w)];
    const [flat] = net.g.nodes("reshape", [net.apply("relu", x)], { shape });
    const [sum] = net.g.nodes("reduce", [flat!], { kind: "max", axes: [2], keepDims: false });
    check(net.g.finish([sum!, net.apply("neg", flat!)]));
  });
});

it("does not read a result under another name while writing it", () => {
  const g = new GraphBuilder("net");
  const y = g.nodes("neg", [g.input("x", tensorType("f32", 4, 6))], {})[0]!;
  const [view] = g.nodes("reshape", [y], { shape: [constant(6), constant(4)] });
  const [turned] = g.nodes("transpose", [view!], { permutation: [1, 0] });
  check(g.finish([g.nodes("add", [y, turned!], {})[0]!]));
});

it("leaves floats of 16 bits short where their readers can widen them", () => {
  const net = new Net();
  const { g } = net;
  const [x, w, residual] = [
    ["x", 4, 8],
    ["w", 6, 8],
    ["residual", 4, 6],
  ].map(([name, ...shape]) => g.input(name as string, tensorType("bf16", ...(shape as number[]))));
  const product = g.cast(g.einsum("i k, j k -> i j", x!, w!, "f32"), "bf16");
  const sum = net.apply("add", product, residual!);
  const wide = g.cast(sum, "f32");
  const squares = net.apply("mul", wide, wide);
  const means = g.node("reduce", [squares], { kind: "sum", axes: [1], keepDims: true });
  const scaled = g.cast(net.apply("mul", wide, means), "bf16");
  const graph = g.finish([scaled, net.apply("add", sum, sum)]);
  const keepsHalves = { ...defaultGroupOptions, keepsHalves: true };
  const transform = (program: NestProgram) => {
    const analysed = analyseProgram(program);
    return applyGroups(analysed, planGroups(analysed, keepsHalves).groups);
  };
  checkNests(graph, { rng: new Rng(7), extents: {}, transform });
  const written = (program: NestProgram) => {
    const first = statementsOf(program)[0]!;
    return first.writes.map((w) => program.tensors.get(w.tensor)!.dtype);
  };
  expect(written(transform(nestsOf(graph)))).toEqual(["bf16"]);
  expect(written(fuse(nestsOf(graph)))).toContain("f32");
});

describe("regions and candidates", () => {
  it("forms a region of one statement and lists prefixes of the epilogue", () => {
    const net = new Net();
    const y = net.apply("relu", net.bias("b", net.conv("w", net.image("x", 3), 3, 4), 4));
    const program = nestsOf(net.g.finish([y]));
    const analysed = analyseProgram(program);
    const candidates = candidateGroups(program, 10).filter((g) => g.anchor === "S0");
    expect(candidates.map((g) => g.epilogue.length)).toEqual([0, 1, 2]);
    const region = formRegion(analysed, candidates[2]!);
    expect([...region.tensors.keys()]).toEqual(["x", "w", "b", program.outputs[0]]);
    expect(candidateGroups(program, 2)).toHaveLength(2);
  });

  it("refuses what does not read its anchor in place", () => {
    const net = new Net();
    const x = net.apply("exp", net.image("x", 3));
    const [back] = net.g.nodes("reverse", [x], { axes: [3] });
    const analysed = analyseProgram(nestsOf(net.g.finish([net.apply("add", x, back!)])));
    const group = { name: "S0", anchor: "S0", inlined: [], epilogue: ["S1"] };
    expect(composeGroup(analysed, group)).toMatchObject({ kind: "refused" });
  });
});

/** Random graphs over a few shapes that broadcast, reduce, move and contract. */
function randomNet(seed: number): Graph {
  const rng = new Rng(seed);
  const net = new Net();
  const pool: ValueId[] = [net.image("x", 3), net.image("y", 3)];
  const vectors = [net.g.weight("v", tensorType("f32", 1, 3, 1, 1)), net.scalar(2)];
  const unary = ["relu", "neg", "tanh", "abs", "sigmoid"] as const;
  const binary = ["add", "mul", "sub", "max"] as const;
  const steps: readonly (() => ValueId)[] = [
    () => net.apply(rng.pick(unary), rng.pick(pool)),
    () => net.apply(rng.pick(binary), rng.pick(pool), rng.pick(pool)),
    () => net.apply(rng.pick(binary), rng.pick(pool), rng.pick(vectors)),
    () => net.conv(`w${pool.length}`, rng.pick(pool), 3, 3),
    () => net.g.nodes("reverse", [rng.pick(pool)], { axes: [3] })[0]!,
    () => {
      const attrs = { kind: "sum", axes: [3], keepDims: true } as const;
      const [sum] = net.g.nodes("reduce", [rng.pick(pool)], attrs);
      return net.apply("add", sum!, rng.pick(pool));
    },
    () => {
      const [both] = net.g.nodes("concat", [rng.pick(pool), rng.pick(pool)], { axis: 1 });
      const starts = [0, rng.integer(0, 3), 0, 0].map(constant);
      const sizes = [net.n, constant(3), net.h, net.w];
      return net.g.nodes("slice", [both!], { starts, steps: [1, 1, 1, 1], sizes })[0]!;
    },
    () => {
      const attrs = {
        kind: "sum",
        axis: 3,
        exclusive: rng.integer(0, 1) === 1,
        reverse: false,
      } as const;
      return net.g.nodes("cumulative", [rng.pick(pool)], attrs)[0]!;
    },
    () => {
      const shape = [net.n, constant(3), mul(net.h, net.w)];
      const [flat] = net.g.nodes("reshape", [rng.pick(pool)], { shape });
      const back = [net.n, constant(3), net.h, net.w];
      return net.g.nodes("reshape", [net.apply("neg", flat!)], { shape: back })[0]!;
    },
  ];
  for (let i = 0; i < 9; i++) pool.push(rng.pick(steps)());
  return net.g.finish([pool.at(-1)!, rng.pick(pool.slice(2))]);
}

describe("properties", () => {
  it("the text of fused nests reads back", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const fused = fuse(nestsOf(randomNet(seed)));
        expect(parseNests(printNests(fused))).toMatchObject({ value: canonicalNests(fused) });
      }),
      { numRuns: 60 },
    );
  });

  it("fusing changes nothing", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        checkNests(randomNet(seed), { rng: new Rng(seed), extents, transform: fuse });
      }),
      { numRuns: 60 },
    );
  });

  it("partitions the statements", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const program = nestsOf(randomNet(seed));
        const groups = fuseElementwise(program);
        const owners = groups.flatMap((g) => [g.anchor, ...g.epilogue]);
        const inlined = new Set(groups.flatMap((g) => g.inlined));
        const names = statementsOf(program).map((s) => s.name);
        expect(new Set(owners).size).toBe(owners.length);
        expect([...owners, ...inlined].sort()).toEqual([...names].sort());
      }),
      { numRuns: 60 },
    );
  });
});
