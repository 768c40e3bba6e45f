/**
 * The values that a model's regions meet, by the names under which regions know them, and single regions as
 * programs that run on them (region-walk.ts).
 */
import type { CompiledRegion } from "../../src/code-price.ts";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { lowerRegionProgram } from "../../src/lower/region-program.ts";
import type { Region } from "../../src/region/nest.ts";
import { tensorsRead } from "../../src/region/uses.ts";
import { createSession } from "../../src/runtime/create-session.ts";
import type { ModelSession } from "../../src/runtime/model-session.ts";
import { evaluate, type IndexExpr } from "../../src/semantics/index-expr.ts";
import { packTensor } from "../../src/semantics/layout.ts";
import { makeTensor, type Tensor } from "../../src/semantics/tensor.ts";
import type { Target } from "../../src/target/target.ts";
import { chooseTarget } from "../sessions/wavetile.ts";
import { take } from "./ptx-launch.ts";

/** Tensors by the names under which regions know them. */
export class Values {
  readonly #known = new Map<string, Tensor>();
  readonly #of: ReadonlyMap<string, string>;
  readonly #nests: CompiledModel["nests"];

  constructor(nests: CompiledModel["nests"]) {
    this.#nests = nests;
    const views = nests.items.flatMap((i) => (i.kind === "view" ? [i.view] : []));
    this.#of = new Map(views.map((v) => [v.tensor, v.of]));
  }

  set(name: string, tensor: Tensor): void {
    this.#known.set(name, tensor);
  }

  /** The name of the storage under which a tensor is kept. */
  rootOf(name: string): string {
    const of = this.#of.get(name);
    return of === undefined ? name : this.rootOf(of);
  }

  /** The tensor that a name, a view's or a turned map's too, stands for. */
  find(name: string): Tensor | undefined {
    const known = this.#known.get(name);
    if (known) return known;
    const of = this.#of.get(name);
    if (of !== undefined) return this.find(of);
    const map = baseOf(name);
    const base = map === undefined ? undefined : this.find(map);
    const { shape } = this.#nests.tensors.get(name) ?? {};
    return base && shape && withChannelsLast(base, extentsOf(shape));
  }
}

/** The feature map that is stored with its channels last under a name. */
function baseOf(name: string): string | undefined {
  return name.endsWith(".last") ? name.slice(0, -".last".length) : undefined;
}

/** [n, c, h, w] as [n, h, w, c], with zeros for channels that the map has not. */
function withChannelsLast({ dtype, shape, data }: Tensor, turned: readonly number[]): Tensor {
  const made = makeTensor(dtype, turned);
  const [, height, width, wide] = turned as [number, number, number, number];
  const [pictures, channels] = shape as [number, number];
  const pixels = height * width;
  for (let n = 0; n < pictures; n++)
    for (let c = 0; c < channels; c++)
      for (let p = 0; p < pixels; p++)
        made.data[(n * pixels + p) * wide + c] = data[(n * channels + c) * pixels + p]!;
  return made;
}

function extentsOf(shape: readonly IndexExpr[]): number[] {
  return shape.map((e) => evaluate(e, new Map()));
}

/** What regions meet that the graph has a name for, by our WebAssembly program; outputs are always among them. */
export function referenceOf(
  { model, nests, regions }: CompiledModel,
  feeds: readonly Tensor[],
): Values {
  const { graph, weights } = model;
  const values = new Values(nests);
  const constant = new Set(graph.weights.map((w) => w.value));
  const idOf = new Map(graph.values.map((v, id) => [v.name, id]));
  const wanted = new Set(graph.outputs);
  const follow = (name: string): void => {
    const id = idOf.get(name);
    if (id !== undefined) {
      if (!constant.has(id) && !graph.inputs.includes(id)) wanted.add(id);
      return;
    }
    const next = values.rootOf(name) === name ? baseOf(name) : values.rootOf(name);
    if (next !== undefined) follow(next);
  };
  for (const { scheduled } of regions) {
    for (const t of scheduled.region.tensors.values()) if (t.role !== "local") follow(t.name);
  }
  const outputs = [...wanted];
  const target = chooseTarget("wasm");
  const made = take(
    compileModel({ graph: { ...graph, outputs, states: [] }, weights }, { target }),
  );
  const weight = weightReader(made.model);
  const session = take(createSession(made.plan.program, target, { threads: 1, weight }));
  const names = made.model.graph.inputs.map((id) => made.model.graph.values[id]!.name);
  const found = take(session.run(Object.fromEntries(names.map((n, i) => [n, feeds[i]!]))));
  outputs.forEach((id, i) => {
    values.set(graph.values[id]!.name, found[made.nests.outputs[i]!]!);
  });
  return withInputs(
    values,
    graph.inputs.map((id) => graph.values[id]!.name),
    feeds,
  );
}

export function withInputs(
  values: Values,
  names: readonly string[],
  feeds: readonly Tensor[],
): Values {
  for (const [i, name] of names.entries()) values.set(name, feeds[i]!);
  return values;
}

/** One region of a model as a program of its own. */
export class RegionRuns {
  readonly of: CompiledRegion;
  readonly region: Region;
  readonly #session: ModelSession;
  /** A weight as the region has it; undefined of what is none. */
  readonly #constant: (name: string) => Tensor | undefined;

  constructor(of: CompiledRegion, { model, nests, regionRequires }: CompiledModel, target: Target) {
    this.of = of;
    this.region = of.scheduled.region;
    const { graph } = model;
    const constant = new Set(graph.weights.map((w) => graph.values[w.value]!.name));
    const read = weightReader(model);
    const views = new Values(nests);
    this.#constant = (name) => {
      const { stored } = this.region.tensors.get(name)!;
      if (stored) return packTensor(read(views.rootOf(stored.of)), stored.layout);
      const root = views.rootOf(name);
      return constant.has(root) ? read(root) : undefined;
    };
    const { program } = take(lowerRegionProgram(of.scheduled, target, regionRequires));
    const weight = (name: string): Tensor => this.#constant(name)!;
    this.#session = take(createSession(program, target, { threads: 1, weight }));
  }

  /** What the region reads of a walk, with the shapes that it has there. */
  operand(name: string, values: Values): Tensor {
    const { shape, dtype } = this.region.tensors.get(name)!;
    const tensor = this.#constant(name) ?? values.find(name);
    const extents = extentsOf(shape);
    if (tensor) return { ...tensor, shape: extents };
    if (this.region.statements.some((s) => tensorsRead(s).has(name))) {
      throw new Error(`${this.of.name}: nothing computed ${name}`);
    }
    // Only named: what the region reads in its place is stored in another way.
    return makeTensor(dtype, extents);
  }

  run(values: Values): readonly (readonly [string, Tensor])[] {
    const feeds = this.#session.inputs.map((p) => [p.name, this.operand(p.name, values)] as const);
    this.#session.poison();
    return Object.entries(take(this.#session.run(Object.fromEntries(feeds))));
  }

  dispose(): void {
    void this.#session.dispose();
  }
}
