/**
 * Scheduling and lowering change nothing: for random statements and random legal directives, the
 * program that lowering makes computes what the statement's interpreter computes, on any number of
 * threads, without a race, an unwritten element or an access out of bounds, and so does the WebAssembly
 * that is emitted for it.
 */
import { describe, expect, it } from "vitest";
import type { Region, Statement } from "../../src/region/nest.ts";
import type { Directive, Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import { drawStates } from "../../src/schedule/states/draw-states.ts";
import { partsOf } from "../../src/schedule/states/tile-parts.ts";
import { inRange } from "../../src/semantics/condition.ts";
import { add, constant, type IndexExpr, mul, variable } from "../../src/semantics/index-expr.ts";
import { simpleMonoid } from "../../src/semantics/monoids.ts";
import { apply, argument, literal } from "../../src/semantics/scalar-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { checkLowering } from "./check-lowering.ts";

const v = variable;
const read = (tensor: string, ...index: IndexExpr[]) => ({ tensor, index, guard: [], fill: 0 });
const x0 = argument(0, "f32");
const x1 = argument(1, "f32");

interface Case {
  readonly statement: Statement;
  /** Tensors of bool; the others are of f32. */
  readonly masks?: readonly string[];
  readonly tensors: Readonly<
    Record<string, readonly [readonly IndexExpr[], "input" | "weight" | "output"]>
  >;
}

const sum = { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" } as const;
const base = { name: "S0", guard: [], indirects: [], finishReads: [], origin: "test" } as const;

/** y[i, j] = relu(sum over k of x[i, k] w[k, j] + b[j]) */
function matmul(rng: Rng, m: IndexExpr): Case {
  const n = constant(rng.integer(1, 19));
  const k = constant(rng.integer(1, 9));
  const statement: Statement = {
    ...base,
    loops: [
      { name: "i", extent: m, kind: "space" },
      { name: "j", extent: n, kind: "space" },
      { name: "k", extent: k, kind: "reduce" },
    ],
    reads: [read("x", v("i"), v("k")), read("w", v("k"), v("j"))],
    body: [apply("mul", x0, x1)],
    reduction: sum,
    finishReads: [read("b", v("j"))],
    finish: [apply("relu", apply("add", x0, x1))],
    writes: [{ tensor: "y", index: [v("i"), v("j")], combine: "overwrite" }],
  };
  const tensors = {
    x: [[m, k], "input"],
    w: [[k, n], "weight"],
    b: [[n], "weight"],
    y: [[m, n], "output"],
  } as const;
  return { statement, tensors };
}

/** y[i, j] = sum over k of x[i, k] z[j, k] where m[i, j], else -3: scores of attention under a mask */
function maskedScores(rng: Rng, m: IndexExpr): Case {
  const n = constant(rng.integer(4, 19));
  const k = constant(rng.integer(1, 9));
  const statement: Statement = {
    ...base,
    loops: [
      { name: "i", extent: m, kind: "space" },
      { name: "j", extent: n, kind: "space" },
      { name: "k", extent: k, kind: "reduce" },
    ],
    reads: [read("x", v("i"), v("k")), read("z", v("k"), v("j"))],
    body: [apply("mul", x0, x1)],
    reduction: sum,
    finishReads: [read("m", v("i"), v("j"))],
    finish: [apply("select", argument(1, "bool"), x0, literal(-3, "f32"))],
    writes: [{ tensor: "y", index: [v("i"), v("j")], combine: "overwrite" }],
  };
  const tensors = {
    x: [[m, k], "input"],
    z: [[k, n], "input"],
    m: [[m, n], "input"],
    y: [[m, n], "output"],
  } as const;
  return { statement, masks: ["m"], tensors };
}

/** y[g, i, j] = sum over k of x[g, i, k] w[n g + j, k]: groups have parts of an axis of the weights */
function groupedProduct(rng: Rng, m: IndexExpr): Case {
  const [groups, k] = [constant(2), constant(rng.integer(1, 9))];
  const n = rng.pick([4, 5, 8, 16]);
  const statement: Statement = {
    ...base,
    loops: [
      { name: "g", extent: groups, kind: "space" },
      { name: "i", extent: m, kind: "space" },
      { name: "j", extent: constant(n), kind: "space" },
      { name: "k", extent: k, kind: "reduce" },
    ],
    reads: [read("x", v("g"), v("i"), v("k")), read("w", add(mul(n, v("g")), v("j")), v("k"))],
    body: [apply("mul", x0, x1)],
    reduction: sum,
    writes: [{ tensor: "y", index: [v("g"), v("i"), v("j")], combine: "overwrite" }],
  };
  const tensors = {
    x: [[groups, m, k], "input"],
    w: [[constant(2 * n), k], "weight"],
    y: [[groups, m, constant(n)], "output"],
  } as const;
  return { statement, tensors };
}

/** A strided, padded convolution with a residual operand in its epilogue. */
function convolution(rng: Rng, width: IndexExpr): Case {
  const [channels, outputs] = [constant(rng.integer(1, 3)), constant(rng.integer(1, 10))];
  const [height, window] = [rng.integer(3, 7), rng.integer(1, 3)];
  const [stride, pad] = [rng.integer(1, 2), rng.integer(0, 1)];
  const rows = Math.floor((height + 2 * pad - window) / stride) + 1;
  const h = add(mul(stride, v("oh")), v("kh"), -pad);
  const w = add(v("ow"), v("kw"), -pad);
  const outWidth = add(width, 2 * pad - window + 1);
  const guard = [...inRange(h, height), ...inRange(w, width)];
  const statement: Statement = {
    ...base,
    loops: [
      { name: "oc", extent: outputs, kind: "space" },
      { name: "oh", extent: constant(rows), kind: "space" },
      { name: "ow", extent: outWidth, kind: "space" },
      { name: "ic", extent: channels, kind: "reduce" },
      { name: "kh", extent: constant(window), kind: "reduce" },
      { name: "kw", extent: constant(window), kind: "reduce" },
    ],
    reads: [
      { tensor: "x", index: [v("ic"), h, w], guard, fill: 0 },
      read("w", v("oc"), v("ic"), v("kh"), v("kw")),
    ],
    body: [apply("mul", x0, x1)],
    reduction: sum,
    finishReads: [read("r", v("oc"), v("oh"), v("ow"))],
    finish: [apply("max", apply("add", x0, x1), literal(0.25, "f32"))],
    writes: [{ tensor: "y", index: [v("oc"), v("oh"), v("ow")], combine: "overwrite" }],
  };
  const out = [outputs, constant(rows), outWidth];
  const tensors = {
    x: [[channels, constant(height), width], "input"],
    w: [[outputs, channels, constant(window), constant(window)], "weight"],
    r: [out, "input"],
    y: [out, "output"],
  } as const;
  return { statement, tensors };
}

/** y[j, i] = x[i, j] * s[j] + position: a transpose, a broadcast and an index value. */
function elementwise(rng: Rng, n: IndexExpr): Case {
  const m = constant(rng.integer(1, 9));
  const statement: Statement = {
    ...base,
    loops: [
      { name: "j", extent: n, kind: "space" },
      { name: "i", extent: m, kind: "space" },
    ],
    reads: [read("x", v("i"), v("j")), read("s", v("j"))],
    body: [
      apply("add", apply("mul", x0, x1), {
        kind: "index",
        dtype: "f32",
        expr: add(mul(3, v("i")), v("j")),
      }),
    ],
    writes: [{ tensor: "y", index: [v("j"), v("i")], combine: "overwrite" }],
  };
  const tensors = {
    x: [[m, n], "input"],
    s: [[n], "weight"],
    y: [[n, m], "output"],
  } as const;
  return { statement, tensors };
}

/** y[i] = max over j, k of a padded read; the fill is the identity. */
function windowMaximum(rng: Rng, n: IndexExpr): Case {
  const m = constant(rng.integer(2, 8));
  const at = add(v("j"), v("k"), -1);
  const statement: Statement = {
    ...base,
    loops: [
      { name: "i", extent: m, kind: "space" },
      { name: "k", extent: constant(rng.integer(1, 3)), kind: "reduce" },
      { name: "j", extent: n, kind: "reduce" },
    ],
    reads: [{ tensor: "x", index: [v("i"), at], guard: inRange(at, n), fill: -Infinity }],
    body: [x0],
    reduction: { monoid: simpleMonoid("max", "f32"), numericClass: "exact" },
    writes: [{ tensor: "y", index: [v("i")], combine: "overwrite" }],
  };
  return { statement, tensors: { x: [[m, n], "input"], y: [[m], "output"] } };
}

const cases = { matmul, maskedScores, groupedProduct, convolution, elementwise, windowMaximum };

function makeRegion(
  { statement, tensors, masks = [] }: Case,
  range: { min: number; max: number },
): Region {
  const entries = Object.entries(tensors).map(([name, [shape, role]]) => {
    const dtype = masks.includes(name) ? "bool" : "f32";
    return [name, { name, dtype, shape, role }] as const;
  });
  return {
    name: "r",
    group: { name: "r", anchor: "S0", inlined: [], epilogue: [] },
    statements: [statement],
    symbols: [{ name: "N", range }],
    tensors: new Map(entries),
  };
}

/** Directives that any statement without scans may take, in random order and number. */
function randomSchedule(region: Region, rng: Rng): Schedule {
  const statement = "S0";
  const loops = region.statements[0]!.loops.map((l) => ({
    name: l.name,
    kind: l.kind,
    split: false,
  }));
  const directives: Directive[] = [];
  for (let i = 0; i < rng.integer(0, 3); i++) {
    const loop = rng.pick(loops);
    const [outer, inner] = [`${loop.name}a`, `${loop.name}b`];
    directives.push({
      kind: "split",
      statement,
      loop: loop.name,
      factor: rng.integer(1, 5),
      outer,
      inner,
    });
    loops.splice(
      loops.indexOf(loop),
      1,
      { ...loop, name: outer },
      { ...loop, name: inner, split: true },
    );
  }
  for (let i = loops.length - 1; i > 0; i--) {
    const j = rng.integer(0, i);
    [loops[i], loops[j]] = [loops[j]!, loops[i]!];
  }
  const lane = loops.findIndex((l) => l.split);
  if (lane >= 0 && rng.uniform() < 0.6) {
    const [loop] = loops.splice(lane, 1);
    loops.push(loop!);
    directives.push({ kind: "vectorize", statement, loop: loop!.name });
  }
  directives.push({ kind: "reorder", statement, order: loops.map((l) => l.name) });
  for (const loop of loops.slice(0, -1)) {
    if (loop.split && rng.uniform() < 0.5)
      directives.push({ kind: "unroll", statement, loop: loop.name });
  }
  const shared = loops.find((l) => l.kind === "space" && !l.split);
  if (shared && rng.uniform() < 0.5)
    directives.push({ kind: "parallelize", statement, loop: shared.name });
  return { region: "r", target: "wasm", directives };
}

describe.each(Object.entries(cases))("lowering %s", (_, make) => {
  const target = targets.get("wasm")!;

  it("keeps the meaning under random directives", () => {
    const refused = new Map<string, number>();
    for (let seed = 0; seed < 60; seed++) {
      const rng = new Rng(seed * 31 + 7);
      const fixed = rng.uniform() < 0.5;
      const range = { min: 4, max: 14 };
      const region = makeRegion(make(rng, fixed ? constant(rng.integer(4, 14)) : v("N")), range);
      const code = checkLowering(region, randomSchedule(region, rng), rng, target);
      if (code) refused.set(code, (refused.get(code) ?? 0) + 1);
    }
    const total = [...refused.values()].reduce((a, b) => a + b, 0);
    expect(total, JSON.stringify([...refused])).toBeLessThan(30);
  });

  it("keeps the meaning under states of its superposition", () => {
    for (const parallel of [false, true]) {
      const rng = new Rng(parallel ? 5 : 11);
      const region = makeRegion(make(rng, v("N")), { min: 4, max: 21 });
      const states = drawStates(region, target, { count: 40, rng, parallel, inLanes: false });
      expect(states.length).toBeGreaterThan(0);
      for (const { schedule } of states)
        expect(checkLowering(region, schedule, rng, target)).toBeUndefined();
    }
  });
});

describe("copies of a loop of which a number is left that nobody knows", () => {
  it.each([2, 3, 4, 5, 6, 7, 8])("run in parts: every remainder of %i", (rows) => {
    const rng = new Rng(rows);
    const region = makeRegion(matmul(rng, v("N")), { min: 1, max: 40 });
    const text = `schedule "r" for "wasm" {
      split S0:i by ${rows} -> i_o i_r
      unroll S0:i_r
      split S0:j by 4 -> j_o j_l
      vectorize S0:j_l
      reorder S0:(j_o, i_o, k, i_r, j_l)
    }`;
    const schedule = parseSchedule(text);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const target = targets.get("wasm")!;
    for (let n = 1; n <= 2 * rows; n++) {
      expect(checkLowering(region, schedule.value, rng, target, n)).toBeUndefined();
    }
  });

  it.each([
    [2, 1, [1]],
    [4, 3, [2, 1]],
    [6, 5, [4, 1]],
    [8, 7, [4, 2, 1]],
    [8, 0, []],
  ] as const)("of %i, %i are left: parts of %j", (copies, left, parts) => {
    expect(partsOf(copies, left)).toEqual(parts);
  });
});

/** t[i, j] = x[i, j] * w[j]; y[i] = sum over j of t[i, j] * x[i, j] */
function rowSums(columns: IndexExpr): Region {
  const rows = constant(5);
  const loops = [
    { name: "i", extent: rows, kind: "space" },
    { name: "j", extent: columns, kind: "space" },
  ] as const;
  const product: Statement = {
    ...base,
    loops,
    reads: [read("x", v("i"), v("j")), read("w", v("j"))],
    body: [apply("mul", x0, x1)],
    writes: [{ tensor: "t", index: [v("i"), v("j")], combine: "overwrite" }],
  };
  const total: Statement = {
    ...base,
    name: "S1",
    loops: [loops[0], { ...loops[1], kind: "reduce" }],
    reads: [read("t", v("i"), v("j")), read("x", v("i"), v("j"))],
    body: [apply("mul", x0, x1)],
    reduction: sum,
    writes: [{ tensor: "y", index: [v("i")], combine: "overwrite" }],
  };
  const tensor = (name: string, shape: readonly IndexExpr[], role: "input" | "output" | "local") =>
    [name, { name, dtype: "f32", shape, role }] as const;
  return {
    name: "r",
    group: { name: "r", anchor: "S1", inlined: [], epilogue: [] },
    statements: [product, total],
    symbols: [{ name: "N", range: { min: 3, max: 9 } }],
    tensors: new Map([
      tensor("x", [rows, columns], "input"),
      tensor("w", [columns], "input"),
      tensor("t", [rows, columns], "local"),
      tensor("y", [rows], "output"),
    ]),
  };
}

describe("fuse, place, stage and tile", () => {
  const fused = "fuse S0 into S1:i";
  const placed = `${fused} place "t" in local at S0:i`;
  it.each([
    [fused],
    [placed],
    [`${placed} stage "x" in local at S1:i depth 1`],
    [`parallelize S0:i parallelize S1:i ${placed}`],
    [`split S0:i by 2 -> a b split S1:i by 2 -> a b fuse S0 into S1:b place "t" in local at S0:b`],
    [`${placed} split S0:j by 4 -> c d vectorize S0:d split S1:j by 4 -> c d vectorize S1:d`],
    [`tile S0:(i, j) by (2, 3) -> (a, b) (c, d)`],
  ])("keep the meaning: %s", (directives) => {
    const target = targets.get("wasm")!;
    const parsed = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
    if (!parsed.ok) throw new Error(parsed.diagnostics[0]!.message);
    for (let seed = 0; seed < 6; seed++) {
      const rng = new Rng(seed);
      const region = rowSums(seed % 2 === 0 ? v("N") : constant(rng.integer(1, 9)));
      expect(checkLowering(region, parsed.value, rng, target)).toBeUndefined();
    }
  });

  it("refuses a stage that lowering has no place for (SCH018)", () => {
    const text = `schedule "r" for "wasm" { stage "x" in local at S1:j depth 1 }`;
    const parsed = parseSchedule(text);
    const region = rowSums(constant(4));
    const target = targets.get("wasm")!;
    expect(parsed.ok && checkLowering(region, parsed.value, new Rng(1), target)).toBe("SCH018");
  });
});
