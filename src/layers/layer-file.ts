/**
 * Layer problem files: JSON of the schema `wavetile/layers/1`, with the machine inside the file. Every fault
 * is a diagnostic.
 */
import { type Json, JsonReader, parseJson } from "../search/json-reader.ts";
import type { Problem } from "../search/problem.ts";
import { findCycle } from "../search/problem-file.ts";
import { fail, ok, type Result } from "../support/diagnostic.ts";
import { type Layer, type LayerType, layerKinds } from "./layer.ts";
import { defaultTiles, type LayerProblem, problemOfLayers, type Tile } from "./layer-problem.ts";
import type { Machine } from "./machine.ts";

export const layersSchema = "wavetile/layers/1";

export function readLayerProblem(text: string): Result<Problem> {
  const reader = new JsonReader();
  const json = parseJson(text, reader);
  const given = json === undefined ? undefined : layersFromJson(json, reader);
  if (given === undefined || reader.faults.length > 0) return fail(...reader.faults);
  return ok(problemOfLayers(given));
}

export function layersFromJson(json: Json, reader: JsonReader): LayerProblem | undefined {
  const keys = { required: ["schema", "name", "machine", "layers"], optional: ["edges", "tiles"] };
  const top = reader.object(json, "the file", keys);
  if (top === undefined) return undefined;
  if (top.schema !== layersSchema) {
    return reader.fault("PRB002", "schema", `expected "${layersSchema}"`);
  }
  const name = reader.text(top.name, "name");
  const machine = readMachine(top.machine, reader);
  const layers = readLayers(top.layers, reader);
  const tiles = top.tiles === undefined ? defaultTiles : readTiles(top.tiles, reader);
  if (name === undefined || !machine || !layers || !tiles) return undefined;
  const edges =
    top.edges === undefined
      ? layers.slice(1).map((_, i) => [i, i + 1] as const)
      : readEdges(top.edges, layers, reader);
  return edges && { name, machine, layers, edges, tiles };
}

const machineNumbers = [
  "sramBytes",
  "sramBandwidthGbps",
  "dramBandwidthGbps",
  "computeGflops",
  "alignmentBytes",
] as const;

function readMachine(json: Json | undefined, reader: JsonReader): Machine | undefined {
  const object = reader.object(json, "machine", { required: ["name", ...machineNumbers] });
  const name = object && reader.text(object.name, "machine.name");
  if (!object || name === undefined) return undefined;
  const read = machineNumbers.map((key) => {
    const value = reader.number(object[key], `machine.${key}`, 0);
    if (value !== 0) return value;
    return reader.fault("PRB003", `machine.${key}`, "expected a number above 0, found 0");
  });
  const [sramBytes, sramBandwidthGbps, dramBandwidthGbps, computeGflops, alignmentBytes] = read;
  if (read.some((n) => n === undefined)) return undefined;
  return {
    name,
    sramBytes: sramBytes!,
    sramBandwidthGbps: sramBandwidthGbps!,
    dramBandwidthGbps: dramBandwidthGbps!,
    computeGflops: computeGflops!,
    alignmentBytes: alignmentBytes!,
  };
}

function readLayers(json: Json | undefined, reader: JsonReader): Layer[] | undefined {
  const list = reader.list(json, "layers");
  if (list?.length === 0) return reader.fault("PRB006", "layers", "there is no layer");
  const layers = list?.flatMap((item, i) => readLayer(item, `layers[${i}]`, reader) ?? []);
  if (!list || layers?.length !== list.length) return undefined;
  const names = new Set<string>();
  for (const { name } of layers) {
    if (names.has(name)) return reader.fault("PRB005", "layers", `"${name}" is declared twice`);
    names.add(name);
  }
  return layers;
}

function readLayer(json: Json, at: string, reader: JsonReader): Layer | undefined {
  const object = reader.object(json, at, { required: ["name", "type", "dims"] });
  const name = object && reader.text(object.name, `${at}.name`);
  const type = object && reader.text(object.type, `${at}.type`);
  if (!object || name === undefined || type === undefined) return undefined;
  if (!(type in layerKinds)) {
    const help = `use one of ${Object.keys(layerKinds).join(", ")}`;
    return reader.fault("PRB004", `${at}.type`, `there is no layer type "${type}"`, help);
  }
  const { dims: needed } = layerKinds[type as LayerType];
  const given = reader.object(object.dims, `${at}.dims`, { required: needed });
  const dims = needed.map((d) => [d, reader.integer(given?.[d], `${at}.dims.${d}`, 1)] as const);
  if (!given || dims.some(([, n]) => n === undefined)) return undefined;
  return { name, type: type as LayerType, dims: Object.fromEntries(dims) as Layer["dims"] };
}

function readTiles(json: Json, reader: JsonReader): Tile[] | undefined {
  const list = reader.list(json, "tiles");
  if (list?.length === 0) return reader.fault("PRB006", "tiles", "there is no tile");
  const tiles = list?.flatMap((item, i): Tile[] => {
    const pair = reader.list(item, `tiles[${i}]`);
    const [m, n] = [0, 1].map((k) => reader.integer(pair?.[k], `tiles[${i}][${k}]`, 1));
    return m === undefined || n === undefined ? [] : [[m, n]];
  });
  return tiles?.length === list?.length ? tiles : undefined;
}

function readEdges(
  json: Json,
  layers: readonly Layer[],
  reader: JsonReader,
): [number, number][] | undefined {
  const numbers = new Map(layers.map((l, i) => [l.name, i]));
  const list = reader.list(json, "edges");
  const edges = list?.flatMap((item, i): [number, number][] => {
    const pair = reader.list(item, `edges[${i}]`);
    const ends = [0, 1].map((k) => {
      const name = reader.text(pair?.[k], `edges[${i}][${k}]`);
      const number = name === undefined ? undefined : numbers.get(name);
      if (name === undefined || number !== undefined) return number;
      return reader.fault("PRB004", `edges[${i}]`, `there is no layer "${name}"`);
    });
    return ends.some((e) => e === undefined) ? [] : [[ends[0]!, ends[1]!]];
  });
  if (!edges || edges.length !== list?.length) return undefined;
  const cycle = findCycle(
    layers.length,
    edges.map(([from, to]) => ({ from, to })),
  );
  if (cycle === undefined) return edges;
  const names = [...cycle, cycle[0]!].map((i) => layers[i]!.name).join(" -> ");
  return reader.fault("PRB007", "edges", `the layers form a cycle: ${names}`);
}
