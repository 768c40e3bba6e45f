import { describe, expect, test } from "vitest";
import { distance, isInsideConvex, rectangleCorners } from "../image/geometry.ts";
import { findComponents, type ScoreMap } from "./components.ts";
import { defaultBoxRules, findTextBoxes } from "./text-boxes.ts";

function mapOf(width: number, height: number, score: (x: number, y: number) => number): ScoreMap {
  const data = new Float32Array(width * height);
  for (let i = 0; i < data.length; i++) data[i] = score(i % width, Math.floor(i / width));
  return { width, height, data };
}

describe("findComponents", () => {
  test("diagonal neighbours belong together, gaps of one pixel part", () => {
    const rows = ["#..##", ".#.##", "....."];
    const map = mapOf(5, 3, (x, y) => (rows[y]![x] === "#" ? 1 : 0));
    expect(findComponents(map, 0.5).map((c) => c.pixels)).toEqual([2, 4]);
  });
  test("the rim leaves out inner pixels but keeps those at the border of the map", () => {
    const [component] = findComponents(
      mapOf(5, 5, () => 1),
      0.5,
    );
    expect(component!.pixels).toBe(25);
    expect(component!.rim.length).toBe(16);
  });
});

describe("findTextBoxes", () => {
  test("grows an upright bar on every side by area * ratio / perimeter", () => {
    const map = mapOf(100, 40, (x, y) => (x >= 20 && x <= 80 && y >= 15 && y <= 25 ? 0.9 : 0));
    const [box, ...others] = findTextBoxes(map);
    expect(others).toEqual([]);
    const margin = (60 * 10 * 1.5) / (2 * (60 + 10));
    expect(box!.score).toBeCloseTo(0.9, 6);
    expect(box!.quad[0].x).toBeCloseTo(20 - margin, 9);
    expect(box!.quad[0].y).toBeCloseTo(15 - margin, 9);
    expect(box!.quad[2].x).toBeCloseTo(80 + margin, 9);
    expect(box!.quad[2].y).toBeCloseTo(25 + margin, 9);
  });

  test("finds the slope of a slanted bar", () => {
    const angle = 0.3;
    const u = { x: Math.cos(angle), y: Math.sin(angle) };
    const bar = { center: { x: 60, y: 50 }, u, width: 70, height: 12 };
    const corners = rectangleCorners(bar);
    const map = mapOf(120, 100, (x, y) => (isInsideConvex(corners, { x, y }) ? 0.8 : 0.1));
    const [box] = findTextBoxes(map);
    const [topLeft, topRight] = box!.quad;
    const slope = Math.atan2(topRight.y - topLeft.y, topRight.x - topLeft.x);
    expect(Math.abs(slope - angle)).toBeLessThan(0.05);
    const margin = (70 * 12 * 1.5) / (2 * (70 + 12));
    expect(Math.abs(distance(topLeft, topRight) - (70 + 2 * margin))).toBeLessThan(3);
  });

  test("drops specks and uncertain boxes", () => {
    const speck = mapOf(30, 30, (x, y) => (x < 12 && y === 4 ? 1 : 0));
    expect(findTextBoxes(speck)).toEqual([]);
    const faint = mapOf(30, 30, (x, y) => (x < 20 && y > 3 && y < 20 ? 0.4 : 0));
    expect(findTextBoxes(faint)).toEqual([]);
    expect(findTextBoxes(faint, { ...defaultBoxRules, boxThreshold: 0.35 }).length).toBe(1);
  });

  test("an empty map has no text", () => {
    expect(
      findTextBoxes(
        mapOf(8, 8, () => 0),
        defaultBoxRules,
      ),
    ).toEqual([]);
  });
});
