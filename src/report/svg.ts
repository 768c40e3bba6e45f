/**
 * The parts that all pictures are drawn of: a page with a title, rows of labelled bars, axes with ticks, a legend.
 * In: numbers and texts. Out: SVG as text; equal input, equal bytes. What a picture shows is its own file's.
 */

export interface Picture {
  /** Name of its file, without the ending. */
  readonly name: string;
  readonly svg: string;
}

export const width = 760;
export const inset = { left: 190, right: 110, top: 56, bottom: 36 } as const;
export const rowHeight = 24;
export const colours = {
  left: "#1b6ca8",
  taken: "#c4572b",
  bound: "#3f8f4f",
  quiet: "#d9dee3",
  text: "#222",
  faint: "#555",
} as const;
/** For what has no order: told apart by people who see red and green alike, too. */
export const palette = [
  ...["#1b6ca8", "#e69f00", "#3f8f4f", "#c4572b", "#7b5ea7", "#56b4e9", "#8c8c8c", "#b8336a"],
  ...["#2ca6a4", "#8a6d3b", "#111827", "#a3c644"],
] as const;

/** About what a character of the pages' font takes. */
const characterWidth = 0.56;

export function page(title: string, height: number, content: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    text({ x: 16, y: 24, size: 14 }, title),
    ...content,
    "</svg>",
    "",
  ].join("\n");
}

/** Height of a page of rows. */
export function rowsHeight(rows: number): number {
  return inset.top + rows * rowHeight + inset.bottom;
}

export function plotWidth(): number {
  return width - inset.left - inset.right;
}

export function rowTop(at: number): number {
  return inset.top + at * rowHeight;
}

export interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly size?: number;
  readonly anchor?: "start" | "middle" | "end";
  readonly fill?: string;
  /** Shown whole where the text is cut to this many pixels. */
  readonly most?: number;
}

export function text(place: TextPlace, content: string): string {
  const { x, y, size = 12, anchor = "start", fill = colours.text, most = Infinity } = place;
  const shown = fitted(content, most, size);
  const hint = shown === content ? "" : `<title>${escapeXml(content)}</title>`;
  const side = anchor === "start" ? "" : ` text-anchor="${anchor}"`;
  return `<text x="${short(x)}" y="${short(y)}" font-size="${size}" fill="${fill}"${side}>${hint}${escapeXml(shown)}</text>`;
}

/** The end of a text says more than its beginning: names are paths. */
function fitted(content: string, most: number, size: number): string {
  const characters = Math.floor(most / (characterWidth * size));
  return content.length <= characters
    ? content
    : `…${content.slice(content.length - characters + 1)}`;
}

export function rect(
  at: { readonly x: number; readonly y: number; readonly w: number; readonly h: number },
  fill: string,
  hint = "",
): string {
  const size = `x="${short(at.x)}" y="${short(at.y)}" width="${short(at.w)}" height="${short(at.h)}"`;
  return hint === ""
    ? `<rect ${size} fill="${fill}"/>`
    : `<rect ${size} fill="${fill}"><title>${escapeXml(hint)}</title></rect>`;
}

export function line(
  points: readonly (readonly [number, number])[],
  stroke: string,
  wide = 1,
): string {
  const path = points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
  return `<polyline points="${path}" fill="none" stroke="${stroke}" stroke-width="${wide}"/>`;
}

export interface Part {
  readonly share: number;
  readonly colour: string;
  readonly hint?: string;
}

/** Parts one over the other, all from the left. */
export function bar(at: number, parts: readonly Part[]): readonly string[] {
  return parts.map(({ share, colour, hint }) => {
    const [y, h] = [rowTop(at) + 4, rowHeight - 8];
    return rect({ x: inset.left, y, w: plotWidth() * share, h }, colour, hint);
  });
}

/** Parts one behind the other. */
export function stackedBar(at: number, parts: readonly Part[]): readonly string[] {
  let x: number = inset.left;
  return parts.map(({ share, colour, hint }) => {
    const [y, w] = [rowTop(at) + 4, plotWidth() * share];
    const drawn = rect({ x, y, w, h: rowHeight - 8 }, colour, hint);
    x += w;
    return drawn;
  });
}

export function label(at: number, name: string): string {
  const most = inset.left - 20;
  return text({ x: inset.left - 8, y: rowTop(at) + 16, anchor: "end", most }, name);
}

export function value(at: number, content: string): string {
  const place = { x: width - 8, y: rowTop(at) + 16, anchor: "end", size: 11 } as const;
  return text({ ...place, fill: colours.faint }, content);
}

export function caption(content: string): string {
  return text({ x: 16, y: 44, fill: colours.faint }, content);
}

/** Colours with their names, side by side under the title; wraps into further lines. */
export function legend(
  entries: readonly { readonly name: string; readonly colour: string }[],
  top = 34,
): readonly string[] {
  let [x, y] = [16, top];
  return entries.flatMap(({ name, colour }) => {
    const long = 18 + name.length * 7 + 14;
    if (x + long > width && x > 16) [x, y] = [16, y + 16];
    const drawn = [
      rect({ x, y, w: 12, h: 12 }, colour),
      text({ x: x + 16, y: y + 10, size: 11, fill: colours.faint }, name),
    ];
    x += long;
    return drawn;
  });
}

/** Places at round numbers between two: powers of ten and their doubles and halves, or even steps. */
export function logTicks(low: number, high: number): readonly number[] {
  const found: number[] = [];
  const first = Math.floor(Math.log10(low));
  const steps = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
  for (let power = first; 10 ** power <= high; power++) {
    for (const step of steps) {
      const at = step * 10 ** power;
      if (at >= low && at <= high) found.push(at);
    }
  }
  return found;
}

export function evenTicks(low: number, high: number): readonly number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough)!;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** Three digits, with thousands as k, M and G. */
export function shortNumber(x: number): string {
  const units = ["", "k", "M", "G", "T"] as const;
  const step = Math.max(0, Math.min(4, Math.floor(Math.log10(Math.abs(x) || 1) / 3)));
  return `${Number((x / 1000 ** step).toPrecision(3))}${units[step]}`;
}

export function formatNs(ns: number): string {
  if (ns >= 1e6) return `${Number((ns / 1e6).toPrecision(3))} ms`;
  return ns >= 1e3 ? `${Number((ns / 1e3).toPrecision(3))} µs` : `${Number(ns.toPrecision(3))} ns`;
}

function short(x: number): string {
  return String(Number(x.toFixed(1)));
}

export function escapeXml(content: string): string {
  return content
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
