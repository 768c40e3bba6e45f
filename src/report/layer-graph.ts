/**
 * The regions of a model in the order in which they run, with what flows between them: a box each, its result's
 * type and layout beside it, and an arc for each result that is read further on than by the next region. In: boxes
 * and edges. Out: SVG. Arcs that would lie over each other get lanes of their own.
 */
import { colours, formatNs, line, page, rect, rowHeight, text, width } from "./svg.ts";

export interface LayerBox {
  readonly name: string;
  /** Type and layout of what it makes: `f32 [1, 64, 56, 56] blocks of 16`. */
  readonly makes: string;
  /** Whether its layout is another than the order of its dimensions. */
  readonly isPacked: boolean;
  readonly ns: number;
}

/** Positions of the region that writes and the one that reads. */
export interface LayerEdge {
  readonly from: number;
  readonly to: number;
}

const top = 56;
const boxLeft = 210;
const boxWidth = 230;
const laneWidth = 8;
const mostLanes = 22;

export interface ArcLane extends LayerEdge {
  readonly lane: number;
}

/** The lane of each edge that skips a region: short ones inside, none crossing another in its own lane. */
export function arcLanes(edges: readonly LayerEdge[]): readonly ArcLane[] {
  const skipping = edges.filter((e) => e.to > e.from + 1);
  skipping.sort((a, b) => a.to - a.from - (b.to - b.from) || a.from - b.from);
  const lanes: LayerEdge[][] = [];
  return skipping.map((edge) => {
    const isFree = (lane: readonly LayerEdge[]): boolean =>
      lane.every((other) => other.to <= edge.from || other.from >= edge.to);
    const found = lanes.findIndex(isFree);
    const lane = found < 0 ? lanes.push([]) - 1 : found;
    lanes[lane]!.push(edge);
    return { ...edge, lane };
  });
}

export function layerGraph(
  target: string,
  boxes: readonly LayerBox[],
  edges: readonly LayerEdge[],
): string {
  const most = Math.max(1e-9, ...boxes.map((b) => b.ns));
  const y = (at: number): number => top + at * rowHeight;
  const straight = new Set(edges.filter((e) => e.to === e.from + 1).map((e) => e.from));
  const drawn = boxes.flatMap((box, at) => [
    rect({ x: boxLeft, y: y(at) + 2, w: boxWidth, h: rowHeight - 6 }, colours.quiet, box.name),
    rect(
      { x: boxLeft, y: y(at) + 2, w: (boxWidth * box.ns) / most, h: rowHeight - 6 },
      "#9cc3e0",
      formatNs(box.ns),
    ),
    text({ x: boxLeft + 6, y: y(at) + 15, size: 11, most: boxWidth - 12 }, box.name),
    text(
      {
        x: boxLeft + boxWidth + 10,
        y: y(at) + 15,
        size: 11,
        fill: box.isPacked ? colours.taken : colours.faint,
        most: width - boxLeft - boxWidth - 16,
      },
      box.makes,
    ),
    ...(straight.has(at)
      ? [
          line(
            [
              [boxLeft + 20, y(at) + rowHeight - 4],
              [boxLeft + 20, y(at + 1) + 2],
            ],
            colours.faint,
            1.5,
          ),
        ]
      : []),
  ]);
  const arcs = arcLanes(edges).map(({ from, to, lane }) => {
    const x = boxLeft - 8 - laneWidth * (1 + Math.min(lane, mostLanes));
    const [start, end] = [y(from) + 15, y(to) + 7];
    return line(
      [
        [boxLeft, start],
        [x, start],
        [x, end],
        [boxLeft, end],
      ],
      "#8a97a3",
    );
  });
  const about = "blue: share of the dearest; red: channels in blocks, or packed";
  return page(`layers and layouts, ${target}`, top + boxes.length * rowHeight + 20, [
    text({ x: 16, y: 44, fill: colours.faint }, about),
    ...arcs,
    ...drawn,
  ]);
}
