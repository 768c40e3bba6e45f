/**
 * A whole model region by region on a device: where does a program leave what another one computes? Every
 * value that a region meets is computed by our WebAssembly program of the same graph, which is the reference.
 * Each region then runs by itself on the reference's values; elements at sampled points, and every element of
 * bytes that differs from the reference's, have to lie in the oracle's interval for the same operands. Two
 * walks through all regions say what becomes of the differences: `free`, where each region takes what the ones
 * before it made, and `kept`, where elements that are a step of a quantisation off are the reference's again.
 * Usage: node region-walk.mjs [--target T] NAME…; a NAME is one of bench/models. Ends with `N passed, N failed`.
 */
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { distanceOf } from "../../src/interp/approximate.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { tileFactors } from "../../src/schedule/states/tile-factors.ts";
import { isFloatDType } from "../../src/semantics/dtype.ts";
import { type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { RegionOracle } from "../../src/verdict/region-oracle.ts";
import { toStored } from "../sessions/stored-tensors.ts";
import { chooseTarget } from "../sessions/wavetile.ts";
import { type DeviceCase, openCase } from "./model-cases.ts";
import { take } from "./ptx-launch.ts";
import { RegionRuns, referenceOf, Values, withInputs } from "./region-values.ts";

const none: ReadonlyMap<string, number> = new Map();
/** Differences of floats above this part of a tensor's largest value are steps, below it roundings. */
const roundings = 2 ** -12;
/** Elements of one tensor that are looked up one by one. */
const mostFollowed = 4000;

const nothing: Found = {
  checked: 0,
  wrong: 0,
  worst: 0,
  elements: 0,
  steps: 0,
  outside: 0,
  farther: 0,
  keptSteps: 0,
};

const words = process.argv.slice(2);
const at = words.indexOf("--target");
const [, asked] = at < 0 ? [] : words.splice(at, 2);
if (words.length === 0) {
  console.error("usage: node region-walk.mjs MODEL … [--target T], where T runs on this machine");
  process.exit(2);
}
let [passed, failed] = [0, 0];
for (const name of words) {
  const isRight = walkModel(openCase(name), targetOf(asked));
  if (isRight) passed++;
  else failed++;
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function targetOf(name: string | undefined): Target {
  return name ? chooseTarget(name) : targets.get(take(probeCuda()).targets[0]!)!;
}

/** What comparing the regions of a model has found so far. */
interface Found {
  /** Sampled elements, those outside the oracle's interval, and the largest part of it that one is off. */
  checked: number;
  wrong: number;
  worst: number;
  /** Elements of regions on the reference's values, and those a step or more off the reference. */
  elements: number;
  steps: number;
  /** Of these: outside the oracle's interval, and bytes that are off by more than one. */
  outside: number;
  farther: number;
  keptSteps: number;
}

function walkModel(opened: DeviceCase, target: Target): boolean {
  const compiled = take(compileModel(opened.model, { target }));
  const { graph } = compiled.model;
  const feeds = opened.inputNames.map((name) => toStored(opened.feeds[name]!));
  const reference = referenceOf(compiled, feeds);
  const inputs = graph.inputs.map((id) => graph.values[id]!.name);
  const free = withInputs(new Values(compiled.nests), inputs, feeds);
  const kept = withInputs(new Values(compiled.nests), inputs, feeds);
  const found = { ...nothing };
  for (const region of compiled.regions) {
    const runs = new RegionRuns(region, compiled, target);
    const told = checkRegion(runs, reference, found);
    for (const [name, tensor] of runs.run(free)) free.set(free.rootOf(name), tensor);
    for (const [name, tensor] of runs.run(kept)) {
      const wanted = reference.find(name);
      if (wanted) found.keptSteps += keepSteps(tensor, wanted);
      kept.set(kept.rootOf(name), tensor);
    }
    runs.dispose();
    if (told) console.log(`  ${region.name} ${told}: ${region.origins.join(" ").slice(0, 90)}`);
  }
  return report(opened, compiled, { reference, free, kept }, found);
}

/** Compares one region on the reference's values; words on what differs by a step. */
function checkRegion(runs: RegionRuns, reference: Values, found: Found): string | undefined {
  const outputs = new Map(runs.run(reference));
  const { region, of } = runs;
  const refs = new Map([...outputs].map(([name, tensor]) => [name, toRef(tensor).data]));
  const tiles = tileFactors(of.scheduled.schedule);
  const given = (name: string) => ({ data: toRef(runs.operand(name, reference)).data, phase: 0 });
  const oracle = new RegionOracle({ region, symbols: none, given, tiles, rng: new Rng(1) });
  const before = { ...found };
  for (const { tensor, offset, value, error } of oracle.expected((t) => (i) => refs.get(t)![i]!)) {
    const distance = distanceOf(refs.get(tensor)![offset]!, value);
    found.checked++;
    if (distance > error) found.wrong++;
    else if (error > 0) found.worst = Math.max(found.worst, distance / error);
  }
  for (const [name, tensor] of outputs) {
    const wanted = reference.find(name);
    if (!wanted) {
      // Parts of sums and turned maps that the graph has no name for are what this region made.
      reference.set(reference.rootOf(name), tensor);
      continue;
    }
    found.elements += tensor.data.length;
    for (const i of stepsIn(tensor, wanted)) {
      found.steps++;
      const isByte = !isFloatDType(tensor.dtype);
      if (isByte && Math.abs(Number(tensor.data[i]) - Number(wanted.data[i])) > 1) found.farther++;
      if (found.steps - before.steps > mostFollowed) continue;
      const { value, error } = oracle.elementAt(name, i);
      if (distanceOf(refs.get(name)![i]!, value) > error) found.outside++;
    }
  }
  const now = [found.steps - before.steps, found.outside - before.outside] as const;
  const wrong = found.wrong - before.wrong;
  if (now[0] + now[1] + wrong === 0) return undefined;
  return `${now[0]} steps, ${now[1]} of them and ${wrong} samples outside the oracle's interval`;
}

/** Elements that are a step of a quantisation from what they should be. */
function stepsIn({ dtype, data }: Tensor, wanted: Tensor): readonly number[] {
  const steps: number[] = [];
  const least = isFloatDType(dtype) ? roundings * largestOf(wanted) : 0;
  for (let i = 0; i < data.length; i++) {
    if (!(Math.abs(Number(data[i]) - Number(wanted.data[i])) <= least)) steps.push(i);
  }
  return steps;
}

/** Puts the wanted elements where there are steps; how many. */
function keepSteps(tensor: Tensor, wanted: Tensor): number {
  const steps = stepsIn(tensor, wanted);
  for (const i of steps) tensor.data[i] = wanted.data[i]!;
  return steps.length;
}

function largestOf({ data }: Tensor): number {
  let most = 0;
  for (const v of data) most = Math.max(most, Math.abs(Number(v)));
  return most;
}

interface Walks {
  readonly reference: Values;
  readonly free: Values;
  readonly kept: Values;
}

function report(
  { name, tolerances }: DeviceCase,
  { model, regions }: CompiledModel,
  { reference, free, kept }: Walks,
  found: Found,
): boolean {
  let isRight = found.wrong === 0 && found.outside === 0;
  console.log(
    `${name}: ${regions.length} regions on the reference's values, ${found.checked} sampled elements, ${found.wrong} outside the oracle's interval, worst at ${found.worst.toFixed(3)} of it`,
  );
  console.log(
    `  ${found.steps} of ${found.elements} elements are a step off, ${found.outside} outside the oracle's interval, ${found.farther} bytes farther than one`,
  );
  for (const [i, id] of model.graph.outputs.entries()) {
    const { name: output } = model.graph.values[id]!;
    const wanted = reference.find(output)!;
    const off = (walk: Values): number => {
      const { data } = walk.find(output)!;
      let worst = 0;
      for (let e = 0; e < data.length; e++) {
        worst = Math.max(worst, Math.abs(Number(data[e]) - Number(wanted.data[e])));
      }
      return worst / largestOf(wanted);
    };
    const [loose, held] = [off(free), off(kept)];
    console.log(
      `  output ${i}: free ${loose.toExponential(1)}, with ${found.keptSteps} steps kept ${held.toExponential(1)} of its largest, allowed ${tolerances[i]!.toExponential(1)}`,
    );
    isRight &&= held <= tolerances[i]!;
  }
  return isRight;
}
