/**
 * The pictures of a compiled model, from what an artifact holds: how schedules were searched, what they cost, what
 * flows between regions. In: searches, a program, what was measured. Out: pictures by name, and for those that cannot
 * be drawn what they need. What each looks like is report/.
 */
import type { SearchReport } from "../../artifact/artifact.ts";
import { priceCalibrated } from "../../cost/calibration.ts";
import type { CalibrationFile } from "../../cost/calibration-file.ts";
import type { Graph } from "../../graph/graph.ts";
import { kernelUses } from "../../lower/task-uses.ts";
import type { Buffer, Program } from "../../program/program.ts";
import { blockedName } from "../../region/channel-blocks.ts";
import { breakdownPicture } from "../../report/breakdown-picture.ts";
import { gapPicture } from "../../report/gap-picture.ts";
import { type LayerBox, type LayerEdge, layerGraph } from "../../report/layer-graph.ts";
import { machinesPicture } from "../../report/machines-picture.ts";
import { scatterPicture, type TimedPoint } from "../../report/scatter-picture.ts";
import { searchPictures } from "../../report/search-pictures.ts";
import type { Picture } from "../../report/svg.ts";

export interface Pictured {
  /** Of the target that is reported, and of others, for comparison. */
  readonly search: SearchReport;
  readonly others: readonly SearchReport[];
  readonly program: Program;
  readonly graph: Graph;
  /** Times of regions, where they were measured. */
  readonly measured?: readonly TimedPoint[];
  /** The calibration of this machine, where there is one. */
  readonly calibration?: CalibrationFile;
}

export interface MissingPicture {
  readonly name: string;
  readonly needs: string;
}

export interface DrawnPictures {
  readonly pictures: readonly Picture[];
  readonly missing: readonly MissingPicture[];
}

export function drawPictures(from: Pictured): DrawnPictures {
  const { search } = from;
  const drawn: readonly (readonly [string, string | undefined, string])[] = [
    ...searchPictures(search).map((p) => [p.name, p.svg, ""] as const),
    ["gap", gapOf(search), "an artifact of this version, with a search that found a bound"],
    ["breakdown", breakdownOf(search), "a CPU target, and an artifact of this version"],
    ["layers", layersOf(from), ""],
    ["measured", measuredOf(from), "--measure, on a machine that runs the target"],
    ["calibration", calibrationOf(from), `wavetile calibrate --target ${search.target}`],
    [
      "machines",
      machinesPicture(machinesOf(from)),
      "--machines with the ONNX model, or an artifact of several targets",
    ],
  ];
  return {
    pictures: drawn.flatMap(([name, svg]) => (svg === undefined ? [] : [{ name, svg }])),
    missing: drawn.flatMap(([name, svg, needs]) => (svg === undefined ? [{ name, needs }] : [])),
  };
}

const psPerMs = 1e9;

function gapOf({ target, trace = [] }: SearchReport): string | undefined {
  const inMs = (ps: number | null): number | null => ps && ps / psPerMs;
  const points = trace.map((p) => ({
    work: p.work,
    objective: inMs(p.objective),
    bound: inMs(p.bound),
  }));
  return gapPicture({ name: target, unit: "ms as priced", points });
}

function breakdownOf({ target, regions }: SearchReport): string | undefined {
  const known = regions.flatMap(({ name, parts }) => (parts ? [{ name, parts }] : []));
  return known.length === 0 ? undefined : breakdownPicture(target, known);
}

function measuredOf({ measured, search }: Pictured): string | undefined {
  const note =
    "a dot for each region: least of several runs, one thread, largest shapes, with the call of each kernel";
  return scatterPicture(`predicted against measured, ${search.target}`, measured ?? [], note);
}

function calibrationOf({ calibration }: Pictured): string | undefined {
  if (!calibration) return undefined;
  const { samples, fit, target } = calibration;
  const points = samples.map((s) => ({
    name: s.workload,
    group: s.family,
    predictedNs: priceCalibrated(s.regions, fit).ns,
    measuredNs: s.ns,
  }));
  const note = `${samples.length} samples that the prices were fitted to; rank correlation by family`;
  return scatterPicture(`calibration of ${target}`, points, note);
}

function machinesOf({ search, others }: Pictured) {
  return [search, ...others].map(({ target, regions }) => ({ machine: target, regions }));
}

function layersOf({ search, program, graph }: Pictured): string | undefined {
  const { boxes, edges } = layerFlow(search, program, graph);
  return boxes.length === 0 ? undefined : layerGraph(search.target, boxes, edges);
}

/** Regions in the order of their kernels, and which result each reads. */
export function layerFlow(
  search: SearchReport,
  program: Program,
  graph: Graph,
): { readonly boxes: readonly LayerBox[]; readonly edges: readonly LayerEdge[] } {
  const names = [...new Set(program.kernels.map((k) => k.region))];
  const buffers = new Map(program.buffers.map((b) => [b.name, b]));
  const owner = (name: string): string => {
    const of = buffers.get(name)?.viewOf;
    return of === undefined ? name : owner(of);
  };
  const uses = kernelUses(program.kernels);
  const writers = new Map<string, number>();
  const edges = new Map<string, LayerEdge>();
  const results = new Map<number, Buffer>();
  for (const kernel of program.kernels) {
    const at = names.indexOf(kernel.region);
    const { reads, writes } = uses.get(kernel.name)!;
    for (const name of reads) {
      const from = writers.get(owner(name));
      if (from !== undefined && from < at) edges.set(`${from} ${at}`, { from, to: at });
    }
    for (const name of writes) {
      const buffer = buffers.get(name);
      if (buffer?.scope !== "memory") continue;
      writers.set(owner(name), at);
      results.set(at, buffer);
    }
  }
  const boxes = names.map((name, at): LayerBox => {
    const buffer = results.get(at);
    const estimate = search.regions.find((r) => r.name === name)?.estimateNs ?? 0;
    if (!buffer) return { name, makes: "", isPacked: false, ns: estimate };
    const { dtype, shape, layout } = buffer;
    const stored = (layout?.shape ?? shape).map((e) => e.key);
    const block = Number(stored.at(-1));
    const from = graph.values.find((v) => blockedName(v.name, block) === owner(buffer.name));
    const isPacked = layout !== undefined || from !== undefined;
    const kept = from ? `, blocks of ${block}` : "";
    const makes = `${dtype} [${stored.join(", ")}]${kept}`;
    return { name, makes, isPacked, ns: estimate };
  });
  return { boxes, edges: [...edges.values()] };
}
