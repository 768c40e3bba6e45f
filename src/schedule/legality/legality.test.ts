import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { parseSchedule, printSchedule } from "../directive-text.ts";
import { drawStates } from "../states/draw-states.ts";
import { checkSchedule } from "./legality.ts";

function regionOf(body: string): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    symbol N in 4..9
    input x : f32[N, 12] input w : f32[12, 12] input b : f32[12] input idx : i64[N]
    local t : f32[N, 12] local m : f32[N] output y : f32[N, 12] output z : f32[N, 12]
    ${body} }`);
  invariant(parsed.ok, () =>
    parsed.ok ? "" : parsed.diagnostics.map(formatDiagnostic).join("\n"),
  );
  return parsed.value;
}

/** "legal", or code and message of the refusal. */
function check(region: Region, directives: string): string {
  const schedule = parseSchedule(`schedule "R" for "wasm" { ${directives} }`);
  invariant(schedule.ok, () => "the schedule does not parse");
  const applied = applySchedule(region, schedule.value);
  const checked = applied.ok ? checkSchedule(applied.value) : applied;
  if (checked.ok) return "legal";
  const [{ code, message, help }] = checked.diagnostics as [(typeof checked.diagnostics)[0]];
  return `${code} ${message}${help ? `; ${help}` : ""}`;
}

const matmul = `statement S0 "" {i in N, j in 12, reduce k in 12} {
  t[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
}`;
const relu = `statement S1 "" {i in N, j in 12} { y[i, j] = (relu(t[i, j])) }`;
/** y[s, i] from y[s - 1, i + 1]. */
const stencil = `statement S0 "" {scan s in N, i in 12} {
  y[s, i] = (add((y[s - 1, i + 1] if s - 1 >= 0 && 10 - i >= 0 else 0), x[s, i]))
}`;

describe("one statement", () => {
  const region = regionOf(matmul);

  it("elements below a byte are not dealt out to threads, which would write parts of one", () => {
    const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
      input x : f32[9, 7] output y : u4[9, 7]
      statement S0 "" {i in 9, j in 7} { y[i, j] = (cast<u4, saturate>(x[i, j])) } }`);
    invariant(parsed.ok, () => "the region does not parse");
    expect(check(parsed.value, "")).toBe("legal");
    const refused = check(parsed.value, "parallelize S0:i");
    expect(refused).toBe(
      "SCH016 threads would write parts of one byte: y is u4; leave out parallelize S0:i",
    );
  });

  it("a reduction may be tiled, reordered, unrolled and dealt out over its results", () => {
    expect(check(region, "")).toBe("legal");
    expect(check(region, "reorder S0:(k, i, j)")).toBe("legal");
    expect(
      check(region, "split S0:k by 5 -> k0 k1 reorder S0:(k0, j, k1, i) vectorize S0:k1"),
    ).toBe("legal");
    expect(
      check(
        region,
        "tile S0:(i, j) by (2, 4) -> (i0, j0) (i1, j1) reorder S0:(i0, j0, k, i1, j1) unroll S0:i1 vectorize S0:j1 parallelize S0:i0",
      ),
    ).toBe("legal");
  });

  it("threads share no accumulator", () => {
    expect(check(region, "parallelize S0:k")).toMatchInlineSnapshot(
      `"SCH016 S0[i = 0, j = 0, k = 0] must run before S0[i = 0, j = 0, k = 1] (with N = 4): both add to t[0, 0]; threads would add to one result: S0:k is a reduce loop; leave out parallelize S0:k"`,
    );
  });

  it("a reduction that may not be reordered stays in order", () => {
    const strict = regionOf(matmul.replace("reassociates", "approximates"));
    expect(check(strict, "reorder S0:(j, i, k)")).toBe("legal");
    expect(check(strict, "split S0:k by 4 -> k0 k1 vectorize S0:k1")).toContain("SCH016");
    expect(check(strict, "split S0:k by 4 -> k0 k1 reorder S0:(i, j, k1, k0)")).toContain(
      "reorder S0:(i, j, k0, k1) instead of",
    );
  });

  it("a scan keeps its order", () => {
    const scan = regionOf(stencil);
    expect(check(scan, "")).toBe("legal");
    expect(check(scan, "split S0:i by 4 -> i0 i1 vectorize S0:i1")).toBe("legal");
    expect(check(scan, "reorder S0:(i, s)")).toMatchInlineSnapshot(
      `"SCH016 S0[s = 0, i = 1] must run before S0[s = 1, i = 0] (with N = 4): it writes what the second reads, y[0, 1]; the schedule runs the second first; reorder S0:(s, i) instead of reorder S0:(i, s)"`,
    );
    expect(check(scan, "parallelize S0:s")).toMatchInlineSnapshot(
      `"SCH016 S0[s = 0, i = 1] must run before S0[s = 1, i = 0] (with N = 4): it writes what the second reads, y[0, 1]; the iterations of s run on threads, in any order; leave out parallelize S0:s"`,
    );
  });

  it("threads do not meet between the steps of a scan", () => {
    const scan = regionOf(stencil);
    expect(check(scan, "parallelize S0:i")).toMatchInlineSnapshot(
      `"SCH016 S0[s = 0, i = 1] must run before S0[s = 1, i = 0] (with N = 4): it writes what the second reads, y[0, 1]; the iterations of i run on threads, in any order; leave out parallelize S0:i"`,
    );
    const apart = regionOf(stencil.replace("i + 1", "i"));
    expect(check(apart, "parallelize S0:i")).toBe("legal");
    expect(check(apart, "reorder S0:(i, s)")).toBe("legal");
  });

  it("updates of one element stay on one thread and out of lanes", () => {
    const scatter = regionOf(`statement S0 "" {scan i in N, j in 12} {
      index v0 in N checked wraps = idx[i]
      y[v0, j] by add = (x[i, j])
    }`);
    expect(check(scatter, "split S0:j by 4 -> j0 j1 reorder S0:(j0, i, j1)")).toBe("legal");
    expect(check(scatter, "parallelize S0:j")).toBe("legal");
    expect(check(scatter, "parallelize S0:i")).toContain("SCH017");
    const fold = regionOf(`statement S0 "" {i in N, j in 12} {
      m[i] by add = (x[i, j])
    }`);
    expect(check(fold, "reorder S0:(j, i)")).toBe("legal");
    expect(check(fold, "vectorize S0:j")).toContain("both add to m[");
    expect(check(fold, "parallelize S0:j")).toContain("SCH016");
  });

  it("what is not affine is refused unless it is evident", () => {
    const rows = regionOf(`statement S0 "" {i in N, scan j in 12} {
      index v0 in 12 checked wraps = idx[i]
      y[i, j] = (y[i, v0])
    }`);
    expect(check(rows, "")).toBe("legal");
    expect(check(rows, "split S0:j by 4 -> j0 j1 reorder S0:(i, j1, j0)")).toContain("SCH017");
  });

  it("an extent needs the loops outside it", () => {
    const triangle = regionOf(`statement S0 "" {i in N, j in i + 1} { y[i, j] = (x[i, j]) }`);
    expect(check(triangle, "split S0:j by 2 -> j0 j1")).toBe("legal");
    expect(check(triangle, "reorder S0:(j, i)")).toContain("SCH036 the extent i + 1 of S0:j");
    expect(check(triangle, "split S0:i by 2 -> i i1")).toContain("needs i");
  });
});

describe("fusion", () => {
  const region = regionOf(matmul + relu);

  it("a consumer goes behind the last step of the reduction", () => {
    expect(check(region, "fuse S1 into S0:i")).toBe("legal");
    expect(check(region, "fuse S1 into S0:j")).toBe("legal");
    expect(check(region, "fuse S1 into S0:i parallelize S0:i parallelize S1:i")).toBe("legal");
    expect(check(region, "reorder S0:(j, i, k) reorder S1:(j, i)")).toBe("legal");
  });

  it("reading ahead is refused", () => {
    const ahead = relu.replace("t[i, j]", "(t[i + 1, j] if N - i - 2 >= 0 else 0)");
    expect(check(regionOf(matmul + ahead), "")).toBe("legal");
    expect(check(regionOf(matmul + ahead), "fuse S1 into S0:i")).toMatchInlineSnapshot(
      `"SCH016 S0[i = 1, j = 0, k = 0] must run before S1[i = 0, j = 0] (with N = 4): it writes what the second reads, t[1, 0]; the schedule runs the second first; shift S1:i by 1 behind fuse S1 into S0:i"`,
    );
    const behind = relu.replace("t[i, j]", "(t[i - 1, j] if i - 1 >= 0 else 0)");
    expect(check(regionOf(matmul + behind), "fuse S1 into S0:i")).toBe("legal");
    expect(
      check(regionOf(matmul + behind), "fuse S1 into S0:i parallelize S0:i parallelize S1:i"),
    ).toContain("shift S0:i by 1 behind fuse S1 into S0:i");
  });

  it("swapped sides of a fuse keep the order of the region", () => {
    expect(check(region, "fuse S0 into S1:i")).toBe("legal");
  });

  it("needs a serial place outside the tile, in a statement that runs", () => {
    expect(check(region, "unroll S0:j unroll S1:j fuse S1 into S0:j")).toContain("SCH010 loop j");
    expect(check(region, "fuse S1 into S0:i fuse S0 into S1:i")).toContain("SCH010");
    expect(check(region, "parallelize S0:j fuse S1 into S0:i")).toContain("SCH016");
  });

  it("the host must run every shared iteration", () => {
    const short = matmul.replace("reduce k in 12}", "reduce k in 12} where 5 - j >= 0");
    expect(check(regionOf(short + relu), "fuse S1 into S0:j")).toContain(
      "S0 does not run every iteration that S1 needs",
    );
    expect(check(regionOf(short + relu), "fuse S1 into S0:i")).toBe("legal");
  });
});

describe("placement", () => {
  const region = regionOf(matmul + relu);

  it("a tile lives for one iteration outside it", () => {
    expect(check(region, 'fuse S1 into S0:j place "t" in local at S0:j')).toBe("legal");
    expect(check(region, 'fuse S1 into S0:i place "t" in local at S0:j')).toContain(
      "S1 uses t outside",
    );
    expect(check(region, 'place "t" in local at S0:i')).toContain("S1 uses t outside");
    expect(check(region, 'fuse S1 into S0:i place "y" in local at S0:i')).toContain("y is output");
    const behind = relu.replace("t[i, j]", "(t[i - 1, j] if i - 1 >= 0 else 0)");
    const shifted = check(
      regionOf(matmul + behind),
      'fuse S1 into S0:i place "t" in local at S0:i',
    );
    expect(shifted).toContain("the tile does not live");
  });

  it("a staged copy is made after its source is finished", () => {
    expect(check(region, 'stage "x" in local at S0:i depth 1')).toBe("legal");
    expect(check(region, 'stage "t" in local at S1:i depth 1')).toBe("legal");
    const inside = "fuse S1 into S0:i";
    expect(check(region, `${inside} stage "t" in local at S1:i depth 1`)).toContain(
      "it writes what the second reads, t[0, 0]; the copy is made before either",
    );
    expect(check(region, `${inside} stage "t" in local at S1:j depth 1`)).toBe("legal");
    expect(check(region, `${inside} stage "t" in local at S1:j depth 2`)).toContain("SCH016");
    expect(check(region, `${inside} stage "y" in local at S0:i depth 1`)).toBe("legal");
  });

  it("a staged copy of what is written by a scan is made before its iteration", () => {
    const scan = regionOf(stencil);
    expect(check(scan, 'stage "y" in local at S0:s depth 1')).toBe("legal");
    expect(check(scan, 'stage "y" in local at S0:s depth 2')).toContain(
      "y[0, 1]; the copy is made before either",
    );
  });
});

describe("candidates", () => {
  const convolution = `statement S0 "" {n in N, oc in 12, ow in 10, reduce ic in 3, reduce kw in 3} {
    c[n, oc, ow] = reduce<sum, f32, reassociates>(
      mul((img[n, ic, ow + kw - 1] if ow + kw - 1 >= 0 && 9 - ow - kw + 1 >= 0 else 0), k[oc, ic, kw]))
      finish (relu(_0))
  }`;
  const pool = `statement S0 "" {i in N, reduce k in 3, reduce j in 12} {
    m[i] = reduce<max, f32, exact>(x[i, j])
  }`;
  const elementwise = `statement S0 "" {j in 12, i in N} { y[i, j] = (add(x[i, j], b[j])) }`;

  it.each([
    ["matmul", regionOf(matmul)],
    ["pool", regionOf(pool)],
    ["elementwise", regionOf(elementwise)],
    [
      "convolution",
      (() => {
        const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
          symbol N in 1..4
          input img : f32[N, 3, 10] weight k : f32[12, 3, 3] output c : f32[N, 12, 10]
          ${convolution} }`);
        invariant(parsed.ok, () => "the convolution does not parse");
        return parsed.value;
      })(),
    ],
  ] as const)("every candidate of %s is legal", (_, region) => {
    for (const parallel of [false, true]) {
      const drawing = { count: 60, rng: new Rng(3), parallel, inLanes: false };
      for (const { schedule } of drawStates(region, targets.get("wasm")!, drawing)) {
        const applied = applySchedule(region, schedule);
        invariant(applied.ok, () => "a candidate does not apply");
        const checked = checkSchedule(applied.value);
        expect(checked.ok, printSchedule(schedule)).toBe(true);
      }
    }
  });
});

it("the worked example of the documentation is legal", () => {
  const page = readFileSync(new URL("../../../docs/schedule-language.md", import.meta.url), "utf8");
  const text = page.slice(page.lastIndexOf('schedule "conv" for'));
  const schedule = parseSchedule(text.slice(0, text.indexOf("}") + 1));
  const region = parseRegion(`region conv group conv anchor S0 inlined () epilogue () {
    input x : f32[16, 56, 56] weight w : f32[32, 16, 3, 3] output y : f32[32, 56, 56]
    statement S0 "" {oc in 32, oh in 56, ow in 56, reduce ic in 16, reduce kh in 3, reduce kw in 3} {
      y[oc, oh, ow] = reduce<sum, f32, reassociates>(mul(x[ic, oh + kh - 1, ow + kw - 1], w[oc, ic, kh, kw]))
    } }`);
  invariant(schedule.ok && region.ok, () => "the example does not parse");
  const applied = applySchedule(region.value, schedule.value);
  expect(applied.ok && checkSchedule(applied.value).ok).toBe(true);
});
