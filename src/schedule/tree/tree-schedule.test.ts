/** Directives that only trees can say: text, decision, witness, cure, place of an iteration. */
import { describe, expect, it } from "vitest";
import { printTree } from "../../affine/index.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { applySchedule } from "../apply.ts";
import { treeKinds } from "../directive.ts";
import { parseSchedule, printSchedule } from "../directive-text.ts";
import { checkSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { formatPlace, parseAt, placeOf } from "./place.ts";
import { scheduleTree } from "./tree.ts";

function regionOf(body: string): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    symbol N in 4..9
    input x : f32[N, 12] input w : f32[12, 12] input b : f32[12]
    local t : f32[N, 12] local u : f32[N, 12] output y : f32[N, 12]
    ${body} }`);
  invariant(parsed.ok, () =>
    parsed.ok ? "" : parsed.diagnostics.map(formatDiagnostic).join("\n"),
  );
  return parsed.value;
}

function scheduled(region: Region, directives: string): ScheduledRegion {
  const schedule = parseSchedule(`schedule "R" for "wasm" { ${directives} }`);
  invariant(schedule.ok, () => (schedule.ok ? "" : formatDiagnostic(schedule.diagnostics[0]!)));
  const applied = applySchedule(region, schedule.value);
  invariant(applied.ok, () => (applied.ok ? "" : formatDiagnostic(applied.diagnostics[0]!)));
  return applied.value;
}

/** "legal", or code and message and help of the refusal. */
function check(region: Region, directives: string): string {
  const schedule = parseSchedule(`schedule "R" for "wasm" { ${directives} }`);
  invariant(schedule.ok, () => (schedule.ok ? "" : formatDiagnostic(schedule.diagnostics[0]!)));
  const applied = applySchedule(region, schedule.value);
  const checked = applied.ok ? checkSchedule(applied.value) : applied;
  if (checked.ok) return "legal";
  const [{ code, message, help }] = checked.diagnostics as [(typeof checked.diagnostics)[0]];
  return `${code} ${message}${help ? `; ${help}` : ""}`;
}

/** y[s, i] from y[s - 1, i + 1]. */
const stencil = regionOf(`statement S0 "" {scan s in N, i in 12} {
  y[s, i] = (add((y[s - 1, i + 1] if s - 1 >= 0 && 10 - i >= 0 else 0), x[s, i]))
}`);
/** y[s, i] from three neighbours one step before. */
const jacobi = regionOf(`statement S0 "" {scan s in N, i in 12} {
  y[s, i] = (add(add((y[s - 1, i - 1] if s - 1 >= 0 && i - 1 >= 0 else 0),
    (y[s - 1, i] if s - 1 >= 0 else 0)), (y[s - 1, i + 1] if s - 1 >= 0 && 10 - i >= 0 else 0)))
}`);
const matmul = `statement S0 "" {i in N, j in 12, reduce k in 12} {
  t[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
}`;
const relu = `statement S1 "" {i in N, j in 12} { y[i, j] = (relu(t[i, j])) }`;
const copy = `statement S0 "" {i in N, j in 12} { t[i, j] = (x[i, j]) }`;
/** Reads two rows of t. */
const rows = `statement S1 "" {i in N, j in 12} {
  y[i, j] = (add((t[i - 1, j] if i - 1 >= 0 else 0), t[i, j]))
}`;
const ahead = `statement S1 "" {i in N, j in 12} {
  y[i, j] = (add((t[i + 1, j] if N - i - 2 >= 0 else 0), t[i, j]))
}`;
const cumulative = regionOf(`statement S0 "" {i in N, scan j in 12} {
  y[i, j] = (add((y[i, j - 1] if j - 1 >= 0 else 0), x[i, j]))
}`);

const legal: Readonly<Record<(typeof treeKinds)[number], readonly [Region, string]>> = {
  interchange: [regionOf(matmul), "interchange S0:i with j"],
  jam: [regionOf(matmul), "jam S0:i by 2 -> i0 i1"],
  skew: [stencil, "skew S0:i by s times 1 interchange S0:s with i"],
  shift: [regionOf(copy + ahead), "fuse S1 into S0:i shift S1:i by 1"],
  diamond: [jacobi, "diamond S0:s with i by 4 slope 1 -> wave tile bind S0:tile to threads"],
  fission: [regionOf(copy + relu), "fuse S1 into S0:j fission S0:j"],
  pipeline: [
    regionOf(copy + relu),
    'fuse S1 into S0:i buffer "t" over i in 2 pipeline i (S0 0, S1 1)',
  ],
  roles: [
    regionOf(copy + rows.replaceAll("S1", "S2").replaceAll("t[", "x[")),
    'fuse S2 into S0:i roles i (S0 "load", S2 "math")',
  ],
  "split-reduction": [regionOf(matmul), "split-reduction S0:k by 4 -> k0 k1 parallelize S0:i"],
  "split-scan": [cumulative, "split-scan S0:j by 4 -> j0 j1"],
  fold: [regionOf(copy + rows), 'fuse S1 into S0:i fold "t" axis 0 to 2'],
  overwrite: [
    regionOf(`${copy} statement S1 "" {i in N, j in 12} { u[i, j] = (relu(t[i, j])) }
      statement S2 "" {i in N, j in 12} { y[i, j] = (u[i, j]) }`),
    'overwrite "t" with "u"',
  ],
  buffer: [regionOf(copy + relu), 'fuse S1 into S0:i buffer "t" over i in 1'],
  overlap: [regionOf(copy + rows), "overlap S0 into S1:(i) by (2) -> (i0) (i1)"],
};

describe.each(treeKinds)("%s", (kind) => {
  const [region, directives] = legal[kind];

  it("is legal where it keeps every dependence", () => {
    expect(check(region, directives)).toBe("legal");
  });

  it("has a text form", () => {
    const { schedule } = scheduled(region, directives);
    const text = printSchedule(schedule);
    expect(text).toContain(`${kind} `);
    expect(parseSchedule(text)).toEqual({ ok: true, value: schedule, warnings: [] });
  });
});

describe("refusals have a witness and a change that is legal", () => {
  it.each([
    [
      "interchange",
      stencil,
      "interchange S0:s with i",
      "skew S0:i by s times 1 before interchange S0:s with i",
    ],
    ["jam", stencil, "jam S0:s by 2 -> s0 s1", "leave out jam S0:s by 2 -> s0 s1"],
    [
      "skew",
      stencil,
      "skew S0:i by s times -1 interchange S0:s with i",
      "skew S0:i by s times 1 instead of skew S0:i by s times -1",
    ],
    [
      "tile",
      jacobi,
      "tile S0:(s, i) by (2, 4) -> (s0, i0) (s1, i1)",
      "skew S0:i by s times 1 before tile S0:(s, i) by (2, 4) -> (s0, i0) (s1, i1)",
    ],
    [
      "shift",
      regionOf(copy + ahead),
      "fuse S1 into S0:i shift S0:i by 1",
      "shift S0:i by -1 instead of shift S0:i by 1",
    ],
    [
      "diamond",
      jacobi,
      "diamond S0:s with i by 4 slope 1 -> wave tile bind S0:wave to threads",
      "leave out bind S0:wave to threads",
    ],
    [
      "fuse",
      regionOf(
        rows.replace("S1", "S0").replaceAll("t[", "u[") +
          relu.replaceAll("t[", "y[").replace("y[i, j] =", "u[i, j] ="),
      ),
      "fuse S1 into S0:i",
      "shift S1:i by 1 behind fuse S1 into S0:i",
    ],
    [
      "pipeline",
      regionOf(copy + relu),
      "fuse S1 into S0:i pipeline i (S0 0, S1 0) shift S0:i by 1",
      "leave out shift S0:i by 1",
    ],
    [
      "roles",
      regionOf(copy + relu),
      'fuse S1 into S0:i roles i (S0 "load", S1 "math")',
      "shift S1:i by 1 behind fuse S1 into S0:i",
    ],
    [
      "split-reduction",
      regionOf(matmul.replace("reassociates", "approximates")),
      "split-reduction S0:k by 4 -> k0 k1",
      "leave out split-reduction S0:k by 4 -> k0 k1",
    ],
    [
      "fold",
      regionOf(copy + rows),
      'fuse S1 into S0:i fold "t" axis 0 to 1',
      'fold "t" axis 0 to 2 instead of fold "t" axis 0 to 1',
    ],
    [
      "overwrite",
      regionOf(copy + rows),
      'overwrite "x" with "y"',
      'leave out overwrite "x" with "y"',
    ],
    [
      "buffer",
      regionOf(copy + rows),
      'fuse S1 into S0:i buffer "t" over i in 2',
      'leave out buffer "t" over i in 2',
    ],
    [
      "fold and pipeline",
      regionOf(copy + relu),
      'fuse S1 into S0:i fold "t" axis 0 to 1 pipeline i (S0 0, S1 1)',
      'fold "t" axis 0 to 2 instead of fold "t" axis 0 to 1',
    ],
    [
      "split-reduction over threads",
      regionOf(matmul),
      "split-reduction S0:k by 4 -> k0 k1 parallelize S0:k0",
      "leave out parallelize S0:k0",
    ],
    [
      "fission",
      regionOf(copy + rows),
      'fuse S1 into S0:i fold "t" axis 0 to 2 fission S0:i',
      "leave out fission S0:i",
    ],
    [
      "tiles of tiles",
      jacobi,
      "tile S0:(s, i) by (4, 6) -> (s0, i0) (s1, i1) tile S0:(s1, i1) by (2, 3) -> (s2, i2) (s3, i3)",
      "skew S0:i by s times 1 before tile S0:(s, i) by (4, 6) -> (s0, i0) (s1, i1)",
    ],
    ["reorder", stencil, "reorder S0:(i, s)", "reorder S0:(s, i) instead of reorder S0:(i, s)"],
    ["parallelize", stencil, "parallelize S0:i", "leave out parallelize S0:i"],
    ["parallelize a reduction", regionOf(matmul), "parallelize S0:k", "leave out parallelize S0:k"],
    [
      "bind",
      cumulative,
      "bind S0:i to blocks bind S0:j to threads",
      "leave out bind S0:j to threads",
    ],
    [
      "fuse inside other grid loops",
      regionOf(copy + relu),
      "parallelize S0:j fuse S1 into S0:i",
      "leave out fuse S1 into S0:i",
    ],
    [
      "overlap",
      regionOf(`statement S0 "" {i in N, j in 12} { t[i, j] = (u[i, j]) }
        ${rows.replace("y[i, j] =", "u[i, j] =")}`),
      "overlap S0 into S1:(i) by (2) -> (i0) (i1)",
      "leave out overlap S0 into S1:(i) by (2) -> (i0) (i1)",
    ],
    [
      "overlap what others read",
      regionOf(`${copy} ${rows} ${relu.replace("S1", "S2").replace("y[", "u[")}`),
      "overlap S0 into S1:(i) by (2) -> (i0) (i1)",
      "leave out overlap S0 into S1:(i) by (2) -> (i0) (i1)",
    ],
    ["vectorize a scan", cumulative, "vectorize S0:j", "leave out vectorize S0:j"],
    [
      "split a scan that reads further back",
      regionOf(`statement S0 "" {i in N, scan j in 12} {
        y[i, j] = (add((y[i, j - 1] if j - 1 >= 0 else 0), relu((y[i, j - 2] if j - 2 >= 0 else 0))))
      }`),
      "split-scan S0:j by 4 -> j0 j1",
      "leave out split-scan S0:j by 4 -> j0 j1",
    ],
    [
      "place what the region gives",
      regionOf(copy + relu),
      'fuse S1 into S0:i place "y" in local at S0:i',
      'leave out place "y" in local at S0:i',
    ],
    [
      "place what others read",
      regionOf(copy + relu),
      'place "t" in local at S0:i',
      'leave out place "t" in local at S0:i',
    ],
    [
      "stage what is written beside",
      regionOf(copy + relu),
      'fuse S1 into S0:i stage "t" in local at S1:i depth 1',
      "shift S1:i by 1 behind fuse S1 into S0:i",
    ],
  ])("%s: %#", (_, region, directives, cure) => {
    const refusal = check(region, directives);
    expect(refusal).toMatch(/^SCH016 .*S\d\[i = \d|^SCH016 .*S\d\[s = \d/);
    expect(refusal).toMatch(/\b[tuxy]\[\d|S0\.part\[\d/);
    expect(refusal).toMatch(/must run before|needs it|behind the region/);
    expect(refusal.slice(refusal.lastIndexOf("; ") + 2)).toBe(cure);
  });
});

describe("the order that trees give", () => {
  const pipelined = scheduled(
    regionOf(copy + relu),
    'fuse S1 into S0:i buffer "t" over i in 2 pipeline i (S0 0, S1 1) vectorize S1:j',
  );

  it("is printed as a tree with what is proved about its bands", () => {
    const tree = scheduleTree(pipelined);
    expect(tree.ok && printTree(tree.value)).toMatchInlineSnapshot(`
      "domain "[N] -> { S0[i, j] : 0 <= i < N and 0 <= j <= 11; S1[i, j] : 0 <= i < N and 0 <= j <= 11 }"
        context "[N] -> { [] : 4 <= N <= 9 }"
          band permutable [i: S0 i, S1 i + 1]
            set
              filter S0
                band permutable [j: S0 j, coincident]
                  leaf
              filter S1
                mark vector
                  band permutable [j: S1 j, coincident]
                    leaf
      "
    `);
  });

  it("has a place for every iteration", () => {
    const place = placeOf(pipelined, "S1", { i: 2, j: 5 });
    expect(place.ok && formatPlace(place.value)).toMatchInlineSnapshot(`
      "device  0
      kernel  0
      lane    5
      time    (3, 1, 5)
      loops
        i = 3
        j = 5 (vector)"
    `);
    expect(placeOf(pipelined, "S1", { i: 2, j: 12 })).toMatchObject({
      diagnostics: [{ code: "SCH020" }],
    });
    expect(placeOf(pipelined, "S1", { i: 2 })).toMatchObject({ diagnostics: [{ code: "SCH002" }] });
    expect(placeOf(pipelined, "S7", { i: 2 })).toMatchObject({ diagnostics: [{ code: "SCH001" }] });
  });
});

describe("where tensors lie under such an order", () => {
  const skewed = "skew S0:j by i times 1 skew S1:j by i times 1";
  const both = regionOf(copy + relu);

  it("a tile lives for one iteration", () => {
    const fused = `${skewed} fuse S1 into S0:j`;
    expect(check(both, `${fused} place "t" in local at S0:j`)).toBe("legal");
    expect(check(both, `${fused} shift S1:j by 1 place "t" in local at S0:j`)).toContain(
      "the tile does not live",
    );
    expect(check(both, `${skewed} place "t" in local at S0:i`)).toContain("S1 uses t outside");
    expect(check(both, `${fused} place "y" in local at S0:j`)).toContain("used outside the region");
    expect(check(both, `${fused} place "t" in local at S0:k`)).toContain("SCH002");
  });

  it("a staged copy is made before its kernel", () => {
    expect(check(both, `${skewed} stage "t" in local at S1:i depth 2`)).toBe("legal");
    expect(check(both, `${skewed} fuse S1 into S0:i stage "t" in local at S1:i depth 1`)).toContain(
      "it writes what the second reads, t[0, 0]; the copy is made before either",
    );
    expect(check(both, `${skewed} fuse S1 into S0:i stage "t" in local at S1:j depth 1`)).toBe(
      "legal",
    );
  });
});

describe("directives without a place", () => {
  it.each([
    ["skew S0:j by q times 1", "SCH002"],
    ["skew S7:j by i times 1", "SCH001"],
    ["skew S0:j by i times 1 fuse S1 into S7:i", "SCH001"],
    ["skew S0:j by i times 1 fuse S1 into S0:q", "SCH002"],
    ['fold "q" axis 0 to 2', "SCH011"],
    ['fold "t" axis 3 to 2', "SCH003"],
    ["split-scan S0:j by 2 -> j0 j1", "SCH010"],
    ["fission S0:i", "SCH010"],
    ["pipeline i (S0 0)", "SCH010"],
    ['skew S0:j by i times 1 place "q" in local at S0:i', "SCH011"],
    ["skew S0:j by i times 9007199254740991 skew S0:i by j times 9007199254740991", "AFF002"],
    ["shift S0:j by 9007199254740991 shift S0:j by 9007199254740991", "AFF002"],
  ])("%s is %s", (directives, code) => {
    expect(check(regionOf(copy + relu), directives)).toContain(code);
  });
});

it.each(["pipeline i (S0 0, S1 1, S0 2)", 'roles i (S0 "load", S0 "math")'])(
  "%s names a statement twice",
  (text) => {
    const parsed = parseSchedule(`schedule "R" for "wasm" { ${text} }`);
    expect(parsed).toMatchObject({ ok: false, diagnostics: [{ code: "TXT001" }] });
  },
);

it("an iteration has one value a loop", () => {
  for (const text of ["S0[i = 1, i = 2]", "S0[1, i = 2]"]) {
    const asked = parseAt(text);
    invariant(asked.ok, () => text);
    expect(() => asked.value.point(["i", "j"])).toThrow("SCH020");
  }
});
