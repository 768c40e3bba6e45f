import { expect, test } from "vitest";
import type { Quad } from "../image/geometry.ts";
import { type Direction, readingOrder } from "./reading-order.ts";

interface Box {
  readonly name: string;
  readonly quad: Quad;
  readonly direction: Direction;
}

/** A box with its top-left corner at (x, y), 20 high, sloping by `rise` per column. */
function box(name: string, x: number, y: number, [width, rise = 0]: readonly number[]): Box {
  const dy = width! * rise;
  const quad: Quad = [
    { x, y },
    { x: x + width!, y: y + dy },
    { x: x + width!, y: y + dy + 20 },
    { x, y: y + 20 },
  ];
  return { name, quad, direction: "right" };
}

function check(boxes: readonly Box[], expected: string): void {
  const read = (items: typeof boxes) =>
    readingOrder(items)
      .map((line) => line.map((b) => b.name).join(" "))
      .join(" / ");
  expect(read(boxes)).toBe(expected);
  expect(read([...boxes].reverse())).toBe(expected);
}

test("boxes side by side form a line, lines go down", () => {
  check([box("c", 0, 40, [90]), box("b", 120, 4, [50]), box("a", 0, 0, [100])], "a b / c");
});

test("a slanted line holds together although its ends are a line apart", () => {
  const boxes = [
    box("a", 0, 0, [200, 0.1]),
    box("b", 220, 22, [150, 0.1]),
    box("c", 0, 30, [200, 0.1]),
  ];
  check(boxes, "a b / c");
});

test("boxes above each other never form a line, however slanted", () => {
  check([box("a", 0, 20, [300, -0.05]), box("b", 0, 30, [120])], "a / b");
});

test("a picture that stands on its head or on a side reads as upright", () => {
  const upright = [box("a", 0, 0, [100]), box("b", 120, 0, [50]), box("c", 0, 40, [90])];
  const turns: [Direction, (p: { x: number; y: number }) => { x: number; y: number }][] = [
    ["left", ({ x, y }) => ({ x: -x, y: -y })],
    ["down", ({ x, y }) => ({ x: -y, y: x })],
    ["up", ({ x, y }) => ({ x: y, y: -x })],
  ];
  for (const [direction, turn] of turns) {
    check(
      upright.map((b) => ({ ...b, direction, quad: b.quad.map(turn) as unknown as Quad })),
      "a b / c",
    );
  }
});
