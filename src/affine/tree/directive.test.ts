/** Directives on trees, one known case each; campaign/schedule-legality draws the rest. */
import { describe, expect, it } from "vitest";
import { readKernel } from "../../../campaign/schedule-legality/kernel-text.ts";
import { kernelTexts } from "../../../campaign/schedule-legality/kernels.ts";
import { prepareKernel, tryKernel } from "../../../campaign/schedule-legality/trial.ts";
import type { Nest, TreeDirective, Verdict } from "../index.ts";
import { formatWitness, printTree, scheduleNest, smallestChange } from "../index.ts";

function judge(nest: Nest | string, ...directives: readonly TreeDirective[]): Verdict {
  return scheduleNest(typeof nest === "string" ? readKernel(kernelTexts[nest]!) : nest, directives);
}

function witnessOf(verdict: Verdict): string {
  return verdict.kind === "illegal" ? formatWitness(verdict.witness) : verdict.kind;
}

/** The smallest change, which must be legal. */
function cure(nest: Nest, ...directives: readonly TreeDirective[]): string | undefined {
  const change = smallestChange(nest, directives);
  if (change) expect(scheduleNest(nest, change.directives).kind).toBe("legal");
  return change?.text;
}

const stencil = { statement: "S" };

describe("order", () => {
  it("fused statements stand as they were fused, at whatever depth", () => {
    const nest = readKernel(`
      for i in 0..5 {
        S: m[i] = x[i]
      }
      for i in 0..5 {
        T: n[i] = m[i]
      }
      for i in 0..5 {
        for j in 0..4 {
          U: y[i, j] = n[i]
        }
      }
      for i in 0..5 {
        for j in 0..4 {
          V: z[i, j] = y[i, j]
        }
      }`);
    const into = (statement: string, at: string): TreeDirective => ({
      ...{ kind: "fuse", statement, into: "U", at },
    });
    const all = judge(nest, into("S", "i"), into("T", "i"), into("V", "j"));
    expect(all.kind === "legal" && printTree(all.plan.tree)).toMatchInlineSnapshot(`
      "domain "{ }"
        band [i: U i, S i, T i, V i]
          sequence
            filter S
              leaf
            filter T
              leaf
            filter U V
              band [j: U j, V j]
                sequence
                  filter U
                    leaf
                  filter V
                    leaf
      "
    `);
    expect(witnessOf(judge(nest, into("T", "i"), into("S", "i")))).toContain(
      "flow dependence on m",
    );
  });

  it("interchange of a (1, -1) stencil needs a skew", () => {
    const exchange: TreeDirective = { kind: "interchange", statement: "S", loop: "i", other: "j" };
    expect(witnessOf(judge("stencil-1-minus-1", exchange))).toContain("flow dependence on A[");
    const skew: TreeDirective = { kind: "skew", statement: "S", loop: "j", by: "i", factor: 1 };
    expect(judge("stencil-1-minus-1", skew, exchange).kind).toBe("legal");
    expect(cure(readKernel(kernelTexts["stencil-1-minus-1"]!), exchange)).toBe(
      "skew S:j by i times 1 before interchange S:i with j",
    );
  });

  it("rectangular tiles of a time stencil are refused, skewed and diamond ones are not", () => {
    const tile: TreeDirective = {
      kind: "tile",
      ...stencil,
      loops: ["t", "i"],
      factors: [2, 3],
      outer: ["to", "io"],
      inner: ["ti", "ii"],
    };
    expect(judge("time-stencil", tile).kind).toBe("illegal");
    const skew: TreeDirective = { kind: "skew", ...stencil, loop: "i", by: "t", factor: 1 };
    expect(judge("time-stencil", skew, tile).kind).toBe("legal");
    const diamond: TreeDirective = {
      ...{ kind: "diamond", ...stencil, loop: "t", by: "i", factor: 4 },
      ...{ slope: 1, wave: "w", tile: "d" },
    };
    const rows: TreeDirective = { kind: "mark", ...stencil, loop: "d", mark: "parallel" };
    expect(judge("time-stencil", diamond, rows).kind).toBe("legal");
  });

  it("fusion of a stencil with its consumer needs a shift", () => {
    const nest = readKernel(`
      for i in 1..9 {
        S: a[i] = x[i]
      }
      for i in 1..8 {
        T: b[i] = a[i - 1], a[i + 1]
      }`);
    const fuse: TreeDirective = { kind: "fuse", statement: "S", into: "T", at: "i" };
    expect(witnessOf(judge(nest, fuse))).toContain("S[2] at time (2, 0) must precede T[1]");
    const shift: TreeDirective = { kind: "shift", statement: "T", loop: "i", by: 1 };
    expect(judge(nest, fuse, shift).kind).toBe("legal");
    expect(cure(nest, fuse)).toBe("shift T:i by 1 behind fuse S into T:i");
    const fission: TreeDirective = { kind: "fission", statement: "S", loop: "i" };
    expect(judge(nest, fuse, fission).kind).toBe("legal");
  });

  it("blocks do not meet inside a kernel, threads do", () => {
    const mark = (loop: "grid" | "threads"): TreeDirective => ({
      ...{ kind: "mark", statement: "S", loop: "i", mark: loop },
    });
    expect(judge("time-stencil", mark("threads")).kind).toBe("legal");
    expect(judge("time-stencil", mark("grid")).kind).toBe("illegal");
  });
});

describe("storage", () => {
  const loads = `
    local t
    for k in 0..6 {
      for i in 0..3 {
        L: t[i] = x[k, i]
      }
      for i in 0..3 {
        M: y[i] += t[i]
      }
    }`;
  const pipeline: TreeDirective = {
    kind: "pipeline",
    loop: "k",
    stages: new Map([
      ["L", 0],
      ["M", 1],
    ]),
  };

  it("a pipeline needs two buffers", () => {
    const nest = readKernel(loads);
    expect(witnessOf(judge(nest, pipeline))).toContain("anti dependence on t[");
    const buffer = (copies: number): TreeDirective => ({
      ...{ kind: "buffer", array: "t", loop: "k", copies },
    });
    expect(judge(nest, buffer(1), pipeline).kind).toBe("illegal");
    expect(judge(nest, buffer(2), pipeline).kind).toBe("legal");
    expect(cure(nest, buffer(1), pipeline)).toBe(
      'buffer "t" over k in 2 instead of buffer "t" over k in 1',
    );
    expect(cure(nest, pipeline)).toBe("leave out pipeline k (L 0, M 1)");
  });

  it("a fold keeps as many rows as are needed", () => {
    const fold = (modulus: number): TreeDirective => ({
      ...{ kind: "fold", array: "c", axis: 1, modulus },
    });
    const fuse: TreeDirective = { kind: "fuse", statement: "S", into: "T", at: "y" };
    const nest = readKernel(`
      local c
      for y in 0..6 {
        for x in 0..3 {
          S: c[x, y] = in[x, y]
        }
      }
      for y in 1..6 {
        for x in 0..3 {
          T: out[x, y] = c[x, y - 1], c[x, y]
        }
      }`);
    expect(judge(nest, fold(2)).kind).toBe("clash");
    expect(judge(nest, fuse, fold(2)).kind).toBe("legal");
    expect(cure(nest, fuse, fold(1))).toBe('fold "c" axis 1 to 2 instead of fold "c" axis 1 to 1');
    const tight = judge(nest, fuse, fold(1));
    expect(tight).toMatchObject({ kind: "clash", clash: { array: "c" } });
  });

  it("a result may overwrite what is read for the last time", () => {
    const nest = readKernel(`
      local a b
      for i in 0..5 {
        S: a[i] = x[i]
      }
      for i in 0..5 {
        T: b[i] = a[i]
      }
      for i in 0..5 {
        U: y[i] = b[i], b[0]
      }`);
    const over = (array: string, other: string): TreeDirective => ({
      ...{ kind: "overwrite", array, over: other },
    });
    expect(judge(nest, over("b", "a")).kind).toBe("legal");
    expect(judge(nest, over("y", "b"))).toMatchObject({
      kind: "clash",
      clash: { array: "b", element: [0], overwriter: { statement: "U" } },
    });
    expect(judge(nest, over("a", "x")).kind).toBe("clash");
    // What shares cells must keep the order that made it right.
    const late: TreeDirective = { kind: "fuse", statement: "U", into: "T", at: "i" };
    expect(judge(nest, late).kind).toBe("legal");
  });
});

describe("programs", () => {
  it("reductions split within their numeric class", () => {
    const split: TreeDirective = {
      ...{ kind: "split-reduction", statement: "T", loop: "k", factor: 2, outer: "p", inner: "q" },
    };
    const chunks: TreeDirective = { kind: "mark", statement: "T", loop: "p", mark: "parallel" };
    const whole: TreeDirective = { kind: "mark", statement: "T", loop: "k", mark: "parallel" };
    expect(judge("gemm", whole).kind).toBe("illegal");
    expect(judge("gemm", split, chunks).kind).toBe("legal");
    const ordered = judge("gemm-ordered", { ...split, statement: "S" });
    expect(witnessOf(ordered)).toContain("reduction dependence on C[0, 0]: S[0, 0, ");
  });

  it("scans split", () => {
    const split: TreeDirective = {
      ...{ kind: "split-scan", statement: "S", loop: "i", factor: 3, outer: "p", inner: "q" },
    };
    const chunks: TreeDirective = { kind: "mark", statement: "S", loop: "p", mark: "blocks" };
    expect(judge("scan-1d", split, chunks).kind).toBe("malformed");
    const local: TreeDirective = { kind: "mark", statement: "S", loop: "p", mark: "parallel" };
    expect(judge("scan-1d", split, local).kind).toBe("legal");
    const carry: TreeDirective = {
      kind: "mark",
      statement: "S.carry",
      loop: "p",
      mark: "parallel",
    };
    expect(judge("scan-1d", split, carry).kind).toBe("illegal");
  });

  it("overlapped tiles make what they read", () => {
    const overlap: TreeDirective = {
      kind: "overlap",
      statement: "S",
      into: "T",
      loops: ["y", "x"],
      factors: [2, 2],
      outer: ["yo", "xo"],
      inner: ["yi", "xi"],
    };
    const tiles: TreeDirective = { kind: "mark", statement: "T", loop: "yo", mark: "grid" };
    expect(judge("pooling", overlap, tiles).kind).toBe("legal");
    expect(judge("convolution", { ...overlap, statement: "T", into: "U" }).kind).toBe("malformed");
  });
});

it("numbers that no loop can take are refused with what they may be (SCH003)", () => {
  const tile: TreeDirective = {
    ...{ kind: "tile", statement: "S", loops: ["t"], factors: [0], outer: ["o"], inner: ["u"] },
  };
  const wrong: readonly (readonly [TreeDirective, string])[] = [
    [tile, "a factor is a whole number from 1 to 2^53 - 1"],
    [
      { kind: "skew", statement: "S", loop: "i", by: "t", factor: 0.5 },
      "a skew is by a whole number within ±(2^53 - 1)",
    ],
    [
      { kind: "shift", statement: "S", loop: "i", by: 2 ** 53 },
      "a shift is by a whole number within ±(2^53 - 1)",
    ],
    [
      {
        ...{ kind: "diamond", statement: "S", loop: "t", by: "i", slope: 0, factor: 2 },
        ...{ wave: "w", tile: "d" },
      },
      "a slope is a whole number from 1 to 2^53 - 1",
    ],
  ];
  for (const [directive, help] of wrong) {
    const verdict = judge("time-stencil", directive);
    const [fault] = verdict.kind === "malformed" ? verdict.diagnostics : [];
    expect(fault, directive.kind).toMatchObject({ code: "SCH003", help });
  }
});

it("random schedules agree with all pairs of instances", () => {
  for (const name of ["jacobi-1d", "pooling", "softmax", "scatter"]) {
    const kernel = prepareKernel(readKernel(kernelTexts[name]!));
    for (let seed = 0; seed < 10; seed++) {
      expect(tryKernel(kernel, seed).trouble).toBeUndefined();
    }
  }
});
