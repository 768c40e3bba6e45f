/**
 * Sizes for the extents of a model that nobody bounded, where something has to be done at some size: from
 * tables, by the place of an extent among the axes of the inputs. The first sizes at which the model can be
 * imported are taken; whoever asks says which they were.
 */
import { spellName } from "../../frontend/onnx/import/assembly.ts";
import {
  type ImportedModel,
  importModel,
  interfaceOf,
  type ModelInterface,
  readInterface,
} from "../../frontend/onnx/import/import-model.ts";
import type { ShapeOverride } from "../../frontend/onnx/import/shape-override.ts";
import { readModelFile } from "../../frontend/onnx/model-file.ts";
import type { Graph } from "../../graph/graph.ts";
import { unboundedSymbols } from "../../graph/unbounded-symbols.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { IndexRange } from "../../semantics/index-range.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { type GivenSizes, givenSizes, type ModelBytes } from "./model-bytes.ts";

/** Values and ranges by the names of extents. */
export type AssumedSizes = ReadonlyMap<string, IndexRange>;

/**
 * What an extent is, by its place: `batch` the first axis of inputs with several, `picture` the last two axes
 * of inputs with four or more if both are open or the last one is, `channels` the axis before two open ones,
 * `length` any other.
 */
type Place = "batch" | "channels" | "picture" | "length";

/** Tried in this order. */
const values: readonly Readonly<Record<Place, number>>[] = [
  { batch: 1, channels: 3, picture: 224, length: 64 },
  { batch: 1, channels: 1, picture: 224, length: 128 },
  { batch: 1, channels: 3, picture: 320, length: 256 },
  { batch: 1, channels: 1, picture: 320, length: 512 },
  { batch: 1, channels: 3, picture: 640, length: 1024 },
  { batch: 1, channels: 1, picture: 640, length: 4096 },
  { batch: 1, channels: 3, picture: 64, length: 16_000 },
  { batch: 1, channels: 1, picture: 64, length: 80_000 },
  { batch: 1, channels: 3, picture: 32, length: 16 },
  { batch: 1, channels: 1, picture: 28, length: 1 },
  // A first axis that is no batch but counts frames, which windows slide over.
  { batch: 64, channels: 1, picture: 224, length: 128 },
  { batch: 256, channels: 1, picture: 224, length: 64 },
];

/** Upper ends of ranges that a program can serve; pictures and channels take a value all the same. */
const most = { batch: 8, length: 512 } as const satisfies Partial<Record<Place, number>>;

export interface SizeWish {
  /** What takes a range where the model allows it, for programs that outlive the question. */
  readonly ranges: readonly (keyof typeof most)[];
  /** Ask for values of extents that have an upper bound too. */
  readonly bounded?: boolean;
}

/** Undefined where nothing is open, or where no sizes of the tables will do. */
export function assumeSizes(
  source: ModelBytes,
  given: GivenSizes,
  { ranges, bounded = false }: SizeWish,
): AssumedSizes | undefined {
  const model = readModelFile(source.bytes);
  if (!model.ok) return undefined;
  const found = interfaceOf(model.value, givenSizes(given));
  if (!found.ok) return undefined;
  const { graph } = found.value;
  const open = graph.symbols.filter((s) => (bounded ? s.min < s.max : s.max === Infinity));
  if (open.length === 0) return undefined;
  const places = new Map(open.map(({ name }) => [name, placeOf(name, found.value)]));
  // Decoded once, for all sizes.
  const { readExternal } = source;
  const importAt = (at: GivenSizes) =>
    importModel(model.value, { ...givenSizes(at), ...(readExternal && { readExternal }) });
  const imported = importAt(given);
  const before = refusalOf(imported);
  const constraints = imported.ok ? imported.value.graph.constraints : [];
  const rows = [
    rowOf(values[0]!, ranges),
    rowOf(values[0]!, ranges.includes("length") ? ["length"] : []),
    ...values.map((row) => rowOf(row, ranges.includes("batch") ? ["batch"] : [])),
    ...values.map((row) => rowOf(row, [])),
  ];
  const tried = new Set<string>();
  for (const row of rows) {
    const sizes = new Map(open.map((s) => [s.name, within(s, row[places.get(s.name)!])]));
    const settled = settle(sizes, constraints, graph);
    const texts = sizeTexts(settled).join();
    if (tried.has(texts)) continue;
    tried.add(texts);
    const at = importAt({ ...given, shapes: withSizes(given, settled) });
    const refusal = refusalOf(at);
    if (refusal === undefined && at.ok && holds(at.value.graph)) return settled;
    // Refused by the same words without any size: others will not do either.
    if (refusal === before && isFixed(settled)) return undefined;
  }
  return undefined;
}

/** The first sizes of the table, whether they will do or not. */
export function firstSizes(source: ModelBytes, given: GivenSizes): GivenSizes["shapes"] {
  const found = readInterface(source.bytes, givenSizes(given));
  if (!found.ok) return given.shapes;
  const open = found.value.graph.symbols.filter((s) => s.min < s.max);
  const row = rowOf(values[0]!, []);
  const sizes = open.map((s) => [s.name, within(s, row[placeOf(s.name, found.value)])] as const);
  return withSizes(given, new Map(sizes));
}

/** Why the model cannot be compiled as it was imported; undefined where it can. */
function refusalOf(imported: Result<ImportedModel>): string | undefined {
  if (!imported.ok) return imported.diagnostics.map(formatDiagnostic).join("\n");
  const open = unboundedSymbols(imported.value.graph);
  return open && formatDiagnostic(open);
}

/** Corners of ranges that are looked at: 2 for each extent. */
const mostCorners = 256;

/** Whether what the model demands of its extents is true at the ends of their ranges, in every combination. */
function holds({ constraints, symbols, inputs, values: typed }: Graph): boolean {
  const given = new Set(inputs.flatMap((v) => [...variablesOf(...typed[v]!.type.shape)]));
  const open = symbols.filter((s) => given.has(s.name));
  let corners: ReadonlyMap<string, number>[] = [new Map()];
  for (const { name, min, max } of open) {
    const ends = min === max || corners.length >= mostCorners ? [max] : [min, max];
    corners = corners.flatMap((at) => ends.map((end) => new Map([...at, [name, end]])));
  }
  return constraints
    .filter(({ left, right }) => [...variablesOf(left, right)].every((n) => given.has(n)))
    .filter(({ left, right }) => !isDefinedBy(left, right) && !isDefinedBy(right, left))
    .every(({ left, right }) => corners.every((at) => evaluate(left, at) === evaluate(right, at)));
}

/** An extent that is what others make of it: whoever feeds these gives the right one. */
function isDefinedBy(left: IndexExpr, right: IndexExpr): boolean {
  const others = variablesOf(right);
  return [...variablesOf(left)].some((n) => variable(n).key === left.key && !others.has(n));
}

function isFixed(sizes: AssumedSizes): boolean {
  return [...sizes.values()].every(({ min, max }) => min === max);
}

/** A text for each, as a shape option has it. */
export function sizeTexts(sizes: AssumedSizes): readonly string[] {
  return [...sizes].map(
    ([name, { min, max }]) => `${name}=${min === max ? String(min) : `${min}..${max}`}`,
  );
}

function rowOf(
  row: Readonly<Record<Place, number>>,
  ranges: SizeWish["ranges"],
): Readonly<Record<Place, IndexRange>> {
  const range = (place: Place): IndexRange => {
    const isRange = ranges.some((r) => r === place);
    return isRange ? { min: 1, max: most[place as keyof typeof most] } : fixedAt(row[place]);
  };
  return {
    batch: range("batch"),
    channels: range("channels"),
    picture: range("picture"),
    length: range("length"),
  };
}

function fixedAt(value: number): IndexRange {
  return { min: value, max: value };
}

function within({ min, max }: IndexRange, wish: IndexRange): IndexRange {
  const end = Math.min(max, Math.max(min, wish.max));
  return { min: wish.min === wish.max ? end : Math.min(end, Math.max(min, wish.min)), max: end };
}

function placeOf(name: string, { graph }: ModelInterface): Place {
  let place: Place = "length";
  for (const id of graph.inputs) {
    const { shape } = graph.values[id]!.type;
    const isOpen = (axis: number): boolean => constantValue(shape[axis]!) === undefined;
    for (const [axis, extent] of shape.entries()) {
      if (!variablesOf(extent).has(name)) continue;
      if (axis === 0 && shape.length > 1) return "batch";
      const last = shape.length - 1;
      if (last < 3 || !isOpen(last)) continue;
      if (axis >= last - 1) place = "picture";
      else if (axis === last - 2 && isOpen(last - 1)) place = "channels";
    }
  }
  return place;
}

/** Extents that must equal others take their values: the sum of two lengths, a number. */
function settle(
  sizes: ReadonlyMap<string, IndexRange>,
  constraints: Graph["constraints"],
  { symbols }: Graph,
): AssumedSizes {
  const settled = new Map(sizes);
  const known = new Map(symbols.filter((s) => s.min === s.max).map((s) => [s.name, s]));
  const pinned = new Set<string>();
  const evaluated = (e: IndexExpr): number | undefined => {
    const at = new Map<string, number>();
    for (const name of variablesOf(e)) {
      const range = settled.get(name) ?? known.get(name);
      if (!range || range.min !== range.max) return undefined;
      at.set(name, range.min);
    }
    return evaluate(e, at);
  };
  for (const { left, right } of constraints) {
    for (const [one, other] of [
      [left, right],
      [right, left],
    ] as const) {
      const name = [...settled.keys()].find((n) => variable(n).key === one.key);
      const value = name !== undefined && !pinned.has(name) ? evaluated(other) : undefined;
      if (name === undefined || value === undefined || value < 0) continue;
      settled.set(name, fixedAt(value));
      pinned.add(name);
      for (const used of variablesOf(other)) pinned.add(used);
      break;
    }
  }
  return settled;
}

/** Shape overrides with these sizes in the place of what was open. */
export function withSizes({ shapes }: GivenSizes, sizes: AssumedSizes): GivenSizes["shapes"] {
  const kept = Object.entries(shapes).filter(([name]) => !sizes.has(spellName(name, "dim")));
  const added = [...sizes].map(([name, range]): [string, ShapeOverride] => [
    name,
    range.min === range.max ? range.min : range,
  ]);
  return Object.fromEntries([...kept, ...added]);
}
