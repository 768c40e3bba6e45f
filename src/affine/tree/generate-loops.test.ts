/** Loops of trees against the interpreter of trees: the same instances in the same order, no idle guard. */
import { describe, expect, it } from "vitest";
import { instancesOf } from "../../../campaign/schedule-legality/brute-force.ts";
import { readKernel } from "../../../campaign/schedule-legality/kernel-text.ts";
import { kernelTexts } from "../../../campaign/schedule-legality/kernels.ts";
import { drawDirective } from "../../../campaign/schedule-legality/random-directives.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import {
  applyDirective,
  atMost,
  domainOf,
  enumeratePoints,
  executeTree,
  fixParams,
  generateLoops,
  type Instance,
  instanceKey,
  type LoopNode,
  makeContext,
  type Nest,
  type Plan,
  parseTree,
  printLoops,
  projectParams,
  runLoops,
  startPlan,
  type TreeDirective,
} from "../index.ts";

type Numbers = Readonly<Record<string, number>>;

function instancesAt({ statements }: Nest, params: Numbers): readonly Instance[] {
  return statements.flatMap((s) => {
    const fixed = projectParams(fixParams(domainOf(s), params), Object.keys(params));
    const found = enumeratePoints(fixed);
    invariant(found.kind === "known", () => `${s.name} has no end`);
    return found.value.map(({ values }) => ({
      statement: s.name,
      point: Object.fromEntries(s.dims.map((d, i) => [d, values[i]!])),
    }));
  });
}

function loopsOf({ nest, tree }: Plan): LoopNode {
  const { statements, context } = nest;
  const made = generateLoops({ statements, tree, ...(context && { context }) });
  invariant(made.kind === "known", () => (made.kind === "unknown" ? made.reason : ""));
  return made.value;
}

function planned(nest: Nest, ...directives: readonly TreeDirective[]): Plan {
  let plan = startPlan(nest);
  for (const d of directives) {
    const next = applyDirective(plan, d, 0);
    invariant(next.kind === "legal", () => JSON.stringify(next));
    plan = next.plan;
  }
  return plan;
}

function randomPlan(nest: Nest, rng: Rng): Plan {
  let plan = startPlan(nest);
  for (let n = rng.integer(1, 5); n > 0; n--) {
    const d = drawDirective(rng, plan.nest, plan.tree);
    const next = d && applyDirective(plan, d, 0);
    if (next?.kind === "legal") plan = next.plan;
  }
  return plan;
}

/** Without the guard that is the nth in the order of the text. */
function withoutGuard(node: LoopNode, n: { left: number }): LoopNode {
  switch (node.kind) {
    case "run":
      return node;
    case "block":
      return { ...node, children: node.children.map((c) => withoutGuard(c, n)) };
    case "if": {
      const where = node.where.filter(() => n.left-- !== 0);
      return { ...node, where, body: withoutGuard(node.body, n) };
    }
    default:
      return { ...node, body: withoutGuard(node.body, n) };
  }
}

function guardCount(node: LoopNode): number {
  const own = node.kind === "if" ? node.where.length : 0;
  if (node.kind === "run") return own;
  const inner = node.kind === "block" ? node.children : [node.body];
  return own + inner.reduce((sum, c) => sum + guardCount(c), 0);
}

describe("loops of random trees", () => {
  const names = Object.keys(kernelTexts);
  it.each(names.filter((_, i) => i % 2 === 0))(
    "%s: the instances in the order of the tree",
    (name) => {
      const nest = readKernel(kernelTexts[name]!);
      for (let seed = 0; seed < 3; seed++) {
        const plan =
          seed === 0 ? startPlan(nest) : randomPlan(nest, new Rng(seed + names.indexOf(name)));
        const all = instancesOf(plan.nest.statements);
        const given = all.filter((i) => !i.statement.endsWith(".tile"));
        const { statements } = plan.nest;
        const order = executeTree(plan.tree, given, { statements }).map(instanceKey);
        const loops = loopsOf(plan);
        expect(runLoops(loops, {}).map(instanceKey), printLoops(loops)).toEqual(order);
        for (let n = 0; n < guardCount(loops); n++) {
          const less = runLoops(withoutGuard(loops, { left: n }), {}).map(instanceKey);
          expect(less, `guard ${n} is idle in\n${printLoops(loops)}`).not.toEqual(order);
        }
      }
    },
  );
});

const matmul = readKernel(`
  for i in 0..N {
    for j in 0..M {
      for k in 0..N {
        S: C[i, j] += A[i, k], B[k, j]
      }
    }
  }`);
const triangle = readKernel(`
  for i in 0..N {
    S: a[i] = x[i]
    for j in 0..i + 1 {
      T: b[i, j] = a[i], b[i, j]
    }
  }`);
const stencil = readKernel(`
  for t in 0..M {
    for i in 1..N - 1 {
      S: a[t + 1, i] = a[t, i - 1], a[t, i], a[t, i + 1]
    }
  }`);
const chain = readKernel(`
  for i in 0..N {
    S: t[i] = x[i]
  }
  for i in 1..M {
    T: y[i] = t[i - 1], t[i + 1]
  }`);

const tile = (statement: string, ...loops: readonly string[]): TreeDirective => ({
  kind: "tile",
  statement,
  loops,
  factors: loops.map((_, i) => 3 + i),
  outer: loops.map((l) => `${l}0`),
  inner: loops.map((l) => `${l}1`),
});

describe("loops with parameters", () => {
  it.each<readonly [string, Nest, readonly TreeDirective[]]>([
    ["tiles", matmul, [tile("S", "i", "j")]],
    [
      "tiles of a triangle",
      triangle,
      [{ kind: "fission", statement: "S", loop: "i" }, tile("T", "i", "j")],
    ],
    [
      "skewed tiles",
      stencil,
      [{ kind: "skew", statement: "S", loop: "i", by: "t", factor: 1 }, tile("S", "t", "i")],
    ],
    [
      "diamonds",
      stencil,
      [
        {
          kind: "diamond",
          statement: "S",
          loop: "t",
          by: "i",
          factor: 4,
          slope: 1,
          wave: "w",
          tile: "d",
        },
      ],
    ],
    [
      "a fusion with a shift",
      chain,
      [
        { kind: "fuse", statement: "T", into: "S", at: "i" },
        { kind: "shift", statement: "T", loop: "i", by: 1 },
      ],
    ],
    [
      "a skew by twice a loop, exchanged",
      stencil,
      [
        { kind: "skew", statement: "S", loop: "i", by: "t", factor: 2 },
        { kind: "interchange", statement: "S", loop: "t", other: "i" },
      ],
    ],
    [
      "unroll and jam",
      triangle,
      [{ kind: "jam", statement: "T", loop: "i", factor: 2, outer: "i0", inner: "i1" }],
    ],
  ])("%s", (_, nest, directives) => {
    const plan = planned(nest, ...directives);
    const loops = loopsOf(plan);
    const guards = guardCount(loops);
    const idle = new Set(Array.from({ length: guards }, (_, n) => n));
    for (const N of [0, 1, 2, 5, 8]) {
      for (const M of [0, 1, 4, 7]) {
        const order = executeTree(plan.tree, instancesAt(nest, { N, M }));
        const keys = order.map(instanceKey);
        expect(
          runLoops(loops, { N, M }).map(instanceKey),
          `N ${N} M ${M}\n${printLoops(loops)}`,
        ).toEqual(keys);
        for (const n of idle) {
          const less = runLoops(withoutGuard(loops, { left: n }), { N, M }).map(instanceKey);
          if (less.join() !== keys.join()) idle.delete(n);
        }
      }
    }
    expect([...idle], printLoops(loops)).toEqual([]);
  });

  it("statements are separated where their ranges differ", () => {
    const fused = planned(
      chain,
      { kind: "fuse", statement: "T", into: "S", at: "i" },
      { kind: "shift", statement: "T", loop: "i", by: 1 },
    );
    expect(printLoops(loopsOf(fused))).toMatchInlineSnapshot(`
      "for i = 0 .. min(N - 1, 1)
        S[i]
      for i = 2 .. min(N - 1, M)
        S[i]
        T[i - 1]
      for i = max(2, M + 1) .. N - 1
        S[i]
      for i = max(2, N) .. M
        T[i - 1]
      "
    `);
    const context = makeContext([atMost(3, "N"), atMost("N", "M")]);
    const known = { ...fused, nest: { ...fused.nest, context } };
    expect(printLoops(loopsOf(known))).toMatchInlineSnapshot(`
      "for i = 0 .. 1
        S[i]
      for i = 2 .. N - 1
        S[i]
        T[i - 1]
      for i = N .. M
        T[i - 1]
      "
    `);
  });

  it("threads share one loop, with guards inside", () => {
    const fused = planned(
      chain,
      { kind: "fuse", statement: "T", into: "S", at: "i" },
      { kind: "shift", statement: "T", loop: "i", by: 1 },
      { kind: "mark", statement: "S", loop: "i", mark: "parallel" },
    );
    expect(printLoops(loopsOf(fused))).toMatchInlineSnapshot(`
      "for i = 0 .. max(N - 1, M) parallel
        if N >= i + 1
          S[i]
        if i >= 2 and M >= i
          T[i - 1]
      "
    `);
  });

  it("tiles are whole where the size is known to be a multiple", () => {
    const fixed = readKernel(`
      for i in 0..96 {
        for j in 0..96 {
          S: C[j, i] = A[i, j]
        }
      }`);
    const tiles = planned(fixed, {
      ...tile("S", "i", "j"),
      kind: "tile",
      factors: [32, 16],
    } as TreeDirective);
    expect(printLoops(loopsOf(tiles))).toMatchInlineSnapshot(`
      "for i0 = 0 .. 2
        for j0 = 0 .. 5
          for i1 = 0 .. 31
            for j1 = 0 .. 15
              S[32i0 + i1, 16j0 + j1]
      "
    `);
    const ragged = planned(matmul, tile("S", "i"));
    expect(printLoops(loopsOf(ragged))).toMatchInlineSnapshot(`
      "for i0 = 0 .. floor((N + 2)/3) - 1
        for i1 = 0 .. min(N - 3i0 - 1, 2)
          for j = 0 .. M - 1
            for k = 0 .. N - 1
              S[3i0 + i1, j, k]
      "
    `);
  });

  it("every second value is a stride, not a guard", () => {
    const tree = parseTree(`band [t: S 2*i + 1]
  leaf
`);
    const nest = readKernel(`
      for i in 0..N {
        S: a[i] = x[i]
      }`);
    invariant(tree.ok, () => "no tree");
    const loops = loopsOf({ nest, tree: tree.value });
    expect(printLoops(loops)).toMatchInlineSnapshot(`
      "for t = 1 .. 2N - 1 step 2 from 1
        S[floor((t + 1)/2) - 1]
      "
    `);
    expect(runLoops(loops, { N: 3 }).map(instanceKey)).toEqual(["S[0]", "S[1]", "S[2]"]);
  });

  it("what no loop counts is a loop inside", () => {
    const tree = parseTree(`band [t: S floor(i/2)]
  leaf
`);
    const nest = readKernel(`
      for i in 0..N {
        S: a[i] = x[i]
      }`);
    invariant(tree.ok, () => "no tree");
    const loops = loopsOf({ nest, tree: tree.value });
    expect(runLoops(loops, { N: 5 }).map(instanceKey)).toEqual(
      [0, 1, 2, 3, 4].map((i) => `S[${i}]`),
    );
    expect(printLoops(loops)).toMatchInlineSnapshot(`
      "for t = 0 .. floor((N + 1)/2) - 1
        for i = 2t .. min(N - 1, 2t + 1)
          S[i]
      "
    `);
  });

  it("says when there is no last iteration", () => {
    const nest = readKernel(`
      for i in 0..N {
        S: a[i] = x[i]
      }`);
    const [s] = nest.statements;
    const open = { ...s!, domain: s!.domain.slice(0, 1) };
    expect(generateLoops({ statements: [open], tree: nest.tree })).toEqual({
      kind: "unknown",
      reason: "unbounded",
    });
    expect(generateLoops({ statements: stencil.statements, tree: stencil.tree }, 1).kind).toBe(
      "unknown",
    );
  });
});
