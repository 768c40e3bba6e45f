import { expect, it } from "vitest";
import { decadesAround, placeX, placeY, rangeAround } from "./axes.ts";
import { breakdownPicture } from "./breakdown-picture.ts";
import { gapPicture } from "./gap-picture.ts";
import { arcLanes, layerGraph } from "./layer-graph.ts";
import { machineRows, machinesPicture } from "./machines-picture.ts";
import { reportPage } from "./report-page.ts";
import { groupFits, scatterPicture } from "./scatter-picture.ts";
import { evenTicks, formatNs, logTicks, shortNumber } from "./svg.ts";

/** Numbers of an attribute of all elements of a kind, in order. */
function numbers(svg: string, element: string, attribute: string, fill = ""): readonly number[] {
  return [...svg.matchAll(new RegExp(`<${element} [^>]*>`, "g"))]
    .map((m) => m[0])
    .filter((tag) => tag.includes(fill))
    .map((tag) => Number(new RegExp(` ${attribute}="([^"]*)"`).exec(tag)![1]));
}

it("breaks a price down: parts as long as their share, the dearest region first", () => {
  const svg = breakdownPicture("wasm", [
    { name: "a", parts: { loads: 10, memory: 30, stores: 0 } },
    { name: "b", parts: { loads: 60, memory: 20, stores: 0 } },
  ]);
  const long = numbers(svg, "rect", "width").filter((w) => w > 12);
  const whole = 460;
  const shares = [60, 20, 10, 30].map((ns) => (ns * whole) / 80);
  for (const [i, share] of shares.entries()) expect(long[i]).toBeCloseTo(share, 0);
  expect(svg.indexOf(">b<")).toBeLessThan(svg.indexOf(">a<"));
  expect(svg).not.toContain(">stores<");
});

it("gives arcs that meet lanes of their own, and no lane to what follows directly", () => {
  const edges = [
    [0, 1],
    [0, 5],
    [1, 3],
    [3, 5],
    [2, 6],
    [5, 9],
  ].map(([from, to]) => ({ from: from!, to: to! }));
  const lanes = arcLanes(edges);
  expect(lanes.map((l) => [l.from, l.to])).not.toContainEqual([0, 1]);
  expect(lanes).toHaveLength(5);
  for (const a of lanes) {
    for (const b of lanes) {
      if (a === b || a.lane !== b.lane) continue;
      expect(a.to <= b.from || b.to <= a.from).toBe(true);
    }
  }
  const box = (name: string) => ({ name, makes: "f32 [4]", isPacked: false, ns: 1 });
  const svg = layerGraph("wasm", [..."abcdefghij"].map(box), edges);
  expect(svg.match(/>f32 \[4\]</g)).toHaveLength(10);
  expect(svg.match(/<polyline/g)).toHaveLength(1 + 5);
});

it("draws solution and bound as stairs that end where the search ended", () => {
  const points = [
    { work: 10, objective: null, bound: 1 },
    { work: 100, objective: 9, bound: 3 },
    { work: 5000, objective: 5, bound: 5 },
  ];
  const svg = gapPicture({ name: "p", unit: "ms", points })!;
  expect(svg).toContain("proven the best after 5000 entries");
  const stairs = [...svg.matchAll(/<polyline points="([^"]*)"[^>]*stroke-width="(7|2)"/g)];
  const ends = stairs.map((m) => m[1]!.split(" ").at(-1)!.split(",").map(Number));
  expect(ends).toHaveLength(2);
  expect(ends[0]).toEqual(ends[1]);
  expect(stairs[0]![1]!.split(" ")).toHaveLength(4);
  expect(stairs[1]![1]!.split(" ")).toHaveLength(6);
  const open = [{ work: 1, objective: 4, bound: 3 }];
  expect(gapPicture({ name: "p", unit: "ms", points: open })).toContain("gap 25 %");
  expect(gapPicture({ name: "p", unit: "ms", points: points.slice(0, 1) })).toBeUndefined();
  expect(gapPicture({ name: "p", unit: "ms", points: [] })).toBeUndefined();
});

it("puts times on their places, and ranks within groups alone", () => {
  const point = (group: string, predictedNs: number, measuredNs: number) => {
    return { name: "x", group, predictedNs, measuredNs };
  };
  const points = [
    ...[1, 2, 3, 4].map((i) => point("up", i, 10 * i)),
    ...[1, 2, 3].map((i) => point("down", 100 - i, i)),
    point("few", 5, 5),
  ];
  expect(groupFits(points)).toEqual([
    { group: "up", n: 4, rho: 1 },
    { group: "down", n: 3, rho: -1 },
    { group: "few", n: 1, rho: undefined },
  ]);
  const svg = scatterPicture("t", points, "n")!;
  const [x, y] = [numbers(svg, "circle", "cx"), numbers(svg, "circle", "cy")];
  expect(x).toHaveLength(8);
  const axis = { ...rangeAround([1, 99], true), log: true, name: "" };
  expect(x[0]).toBeCloseTo(placeX(axis, 10), 0);
  expect(y[0]).toBeCloseTo(placeY(axis, 1), 0);
  expect(svg).toContain("up (4, rho 1.00)");
  expect(scatterPicture("t", [], "n")).toBeUndefined();
});

it("compares machines region by region, with the sum of each first", () => {
  const region = (name: string, estimateNs: number) => ({ name, estimateNs, boundNs: 1 });
  const machines = [
    { machine: "one", regions: [region("a", 10), region("b", 30)] },
    { machine: "two", regions: [region("a", 5), region("c", 1)] },
  ];
  const rows = machineRows(machines);
  expect(rows.map((r) => r.name)).toEqual(["the whole model", "a", "b", "c"]);
  expect(rows[0]!.times.map((t) => t?.ns)).toEqual([40, 6]);
  expect(rows[2]!.times).toEqual([{ ns: 30, boundNs: 1 }, undefined]);
  expect(machinesPicture(machines)).toContain(">two<");
  expect(machinesPicture(machines.slice(0, 1))).toBeUndefined();
});

it("makes one page of all, with names escaped and what is missing said", () => {
  const page = reportPage({
    title: "a<b>",
    facts: ['"quoted" & more'],
    pictures: [{ name: "gap", svg: "<svg></svg>\n" }],
    missing: [{ name: "machines", needs: "the ONNX model" }],
  });
  expect(page).toContain("<h1>a&lt;b&gt;</h1>");
  expect(page).toContain("<p>&quot;quoted&quot; &amp; more</p>");
  expect(page).toContain("Gap over time");
  expect(page).toContain("One model across machines: the ONNX model");
  expect(page).not.toMatch(/<script|https?:(?!\/\/www\.w3\.org)/);
});

it("has ticks at round places inside the range", () => {
  expect(logTicks(3, 3000)).toEqual([5, 10, 20, 50, 100, 200, 500, 1000, 2000]);
  expect(logTicks(1, 1e6)).toEqual([1, 10, 100, 1000, 1e4, 1e5, 1e6]);
  expect(evenTicks(0, 10)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(evenTicks(4, 4)).toEqual([4]);
  expect(decadesAround([3073])).toEqual({ low: 1000, high: 10_000 });
  expect(decadesAround([10])).toEqual({ low: 10, high: 100 });
  expect([0, 999, 1500, 2e6].map(shortNumber)).toEqual(["0", "999", "1.5k", "2M"]);
  expect([1.234, 5678, 9.9e6].map(formatNs)).toEqual(["1.23 ns", "5.68 µs", "9.9 ms"]);
});
