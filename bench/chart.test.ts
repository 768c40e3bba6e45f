import { describe, expect, it } from "vitest";
import { lineChartSvg } from "./chart.ts";

describe("a line chart", () => {
  const svg = lineChartSvg({
    title: "time < limit",
    x: "layers",
    y: "ms",
    lines: [
      {
        name: "all",
        points: [
          [0, 0],
          [96, 37],
        ],
      },
    ],
  });

  it("has every point inside its frame, scaled to round ends", () => {
    expect(svg).toContain('points="64.0,352.0 601.6,59.7"');
    expect(svg.match(/<circle/g)).toHaveLength(2);
  });

  it("escapes what it writes", () => {
    expect(svg).toContain("time &lt; limit");
  });
});
