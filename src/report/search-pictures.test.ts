import { expect, it } from "vitest";
import { type RegionSearch, type SearchFigures, searchPictures } from "./search-pictures.ts";

function region(name: string, estimateNs: number): RegionSearch {
  return {
    name,
    estimateNs,
    boundNs: estimateNs / 4,
    generated: 1000,
    removed: [{ constraint: "registers", states: 400 }],
    roofline: 300,
    symmetry: 100,
    occupancy: 150,
    code: 40,
  };
}

function report(regions: readonly RegionSearch[]): SearchFigures {
  return { target: "wasm", regions };
}

/** Tags that are opened and not closed, in order; text between is not looked at. */
function openTags(svg: string): readonly string[] {
  const open: string[] = [];
  for (const [, end, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/gi)) {
    if (self) continue;
    if (!end) open.push(name!);
    else expect(open.pop()).toBe(name);
  }
  return open;
}

it("is well-formed whatever regions are called, and the same every time", () => {
  const odd = report([region('a<b & "c">', 2e6), region("plain", 1e6)]);
  const pictures = searchPictures(odd);
  expect(pictures.map((p) => p.name)).toEqual(["funnel", "collapse", "price"]);
  for (const { svg } of pictures) {
    expect(openTags(svg)).toEqual([]);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  }
  expect(searchPictures(odd)).toEqual(pictures);
});

it("counts what is left after each step of all regions", () => {
  const [funnel] = searchPictures(report([region("x", 1), region("y", 2)]));
  const shown = [
    ...funnel!.svg.matchAll(/font-size="11" fill="#555" text-anchor="end">(\d+)/g),
  ].map((m) => Number(m[1]));
  expect(shown).toEqual([2000, 1200, 600, 400, 100, 20, 2]);
});

it("ends every animation with one state, and keys that rise from 0", () => {
  const [, collapse] = searchPictures(report([region("x", 1), region("y", 2)]));
  for (const [, values] of collapse!.svg.matchAll(/attributeName="width" values="([^"]*)"/g)) {
    const widths = values!.split(";").map(Number);
    expect(widths).toEqual([...widths].sort((a, b) => b - a));
  }
  for (const [, values, times] of collapse!.svg.matchAll(/values="([^"]*)" keyTimes="([^"]*)"/g)) {
    const keys = times!.split(";").map(Number);
    expect(values!.split(";").length).toBe(keys.length);
    expect(keys[0]).toBe(0);
    expect(keys).toEqual([...keys].sort((a, b) => a - b));
    expect(keys.at(-1)).toBeLessThanOrEqual(1);
  }
});

it("draws the slowest regions of large models, and an empty report", () => {
  const many = Array.from({ length: 90 }, (_, i) => region(`r${i}`, i + 1));
  const price = searchPictures(report(many)).at(-1)!.svg;
  expect(price).toContain(">r89<");
  expect(price).not.toContain(">r3<");
  for (const { svg } of searchPictures(report([]))) expect(openTags(svg)).toEqual([]);
});
