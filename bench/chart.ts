/** Line charts as SVG, both axes from zero: what a suite has to show beside its rows. */

export interface LineChart {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly {
    readonly name: string;
    readonly points: readonly (readonly [number, number])[];
  }[];
}

/** A chart and the name of the file that it becomes, without its ending. */
export interface NamedChart {
  readonly name: string;
  readonly chart: LineChart;
}

const size = { width: 640, height: 400 } as const;
const inset = { left: 64, right: 16, top: 36, bottom: 48 } as const;
const colours = ["#1b6ca8", "#c4572b", "#3f8f4f", "#7a4fa3"] as const;

export function lineChartSvg({ title, x, y, lines }: LineChart): string {
  const all = lines.flatMap((line) => line.points);
  const most = [0, 1].map((axis) => roundUp(Math.max(...all.map((p) => p[axis]!))));
  const [plotWidth, plotHeight] = [
    size.width - inset.left - inset.right,
    size.height - inset.top - inset.bottom,
  ];
  const atX = (v: number): string => (inset.left + (v / most[0]!) * plotWidth).toFixed(1);
  const atY = (v: number): string => (inset.top + (1 - v / most[1]!) * plotHeight).toFixed(1);
  const [low, left] = [atY(0), atX(0)];
  const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const [tx, ty] = [share * most[0]!, share * most[1]!];
    return [
      `<line x1="${left}" x2="${atX(most[0]!)}" y1="${atY(ty)}" y2="${atY(ty)}" stroke="#ddd"/>`,
      text(atX(tx), String(Number(low) + 16), "middle", shorten(tx)),
      text(String(inset.left - 8), String(Number(atY(ty)) + 4), "end", shorten(ty)),
    ];
  });
  const drawn = lines.flatMap(({ name, points }, i) => {
    const colour = colours[i % colours.length]!;
    const path = points.map(([px, py]) => `${atX(px)},${atY(py)}`);
    const row = String(inset.top + 14 + 16 * i);
    return [
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${path.join(" ")}"/>`,
      ...points.map(
        ([px, py]) => `<circle cx="${atX(px)}" cy="${atY(py)}" r="3" fill="${colour}"/>`,
      ),
      text(String(inset.left + 12), row, "start", name, colour),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    text(String(size.width / 2), "20", "middle", title),
    ...ticks,
    text(String(inset.left + plotWidth / 2), String(size.height - 10), "middle", x),
    `<g transform="translate(16 ${inset.top + plotHeight / 2}) rotate(-90)">${text("0", "0", "middle", y)}</g>`,
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

function text(x: string, y: string, anchor: string, content: string, colour = "#222"): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${colour}">${escaped}</text>`;
}

/** One, two, four or five, and zeros. */
function roundUp(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 2, 4, 5, 10].find((n) => n * unit >= value)!;
}

function shorten(value: number): string {
  return String(Number(value.toPrecision(3)));
}
