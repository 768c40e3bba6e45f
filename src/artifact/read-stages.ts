/**
 * The artifact of a model that runs in stages, read: the whole graph with its weights, and the stages in
 * their order, each with its part of the graph and the container of its program, which is read like an
 * artifact of its own (read-artifact.ts). What a stage takes must be there before it runs.
 */
import type { Graph, WeightStore } from "../graph/graph.ts";
import { parseGraph } from "../graph/graph-text.ts";
import { attempt, type Result } from "../support/diagnostic.ts";
import { tensorNames } from "./artifact.ts";
import { checkPorts } from "./check-program.ts";
import { type Container, damaged, readText, stageContainers, take } from "./container.ts";
import { checkNames, readWeights, within } from "./read-artifact.ts";

export interface ReadStage {
  readonly part: Graph;
  /** Of its weights, under the keys of the whole graph. */
  readonly weights: WeightStore;
  /** Absent: the reference computes it. */
  readonly program?: Container;
}

export interface ReadStages {
  readonly graph: Graph;
  readonly weights: WeightStore;
  readonly stages: readonly ReadStage[];
}

export function readStages(container: Container): Result<ReadStages> {
  const { meta, tensors } = container;
  return attempt(() => {
    if (!meta.stages) damaged("it is of a model in one piece");
    const known = new Set<string>([tensorNames.meta, tensorNames.seal, tensorNames.graph]);
    const graph = within(tensorNames.graph, () =>
      take(parseGraph(readText(tensors, tensorNames.graph))),
    );
    checkPorts(graph, meta);
    const weights = readWeights(graph, container, known);
    const stages = stageContainers(container).map(({ part: text, program }, i): ReadStage => {
      const prefix = tensorNames.stage(i);
      const name = `${prefix}${tensorNames.part}`;
      const part = within(name, () => take(parseGraph(text)));
      known.add(name);
      if (program) checkPorts(part, program.meta);
      for (const own of program?.tensors.keys() ?? []) {
        if (tensors.has(`${prefix}${own}`)) known.add(`${prefix}${own}`);
      }
      return {
        part,
        weights: readWeights(part, container, known),
        ...(program && { program }),
      };
    });
    checkOrder(graph, stages);
    checkNames(tensors, known, meta);
    return { graph, weights, stages };
  });
}

/** Every value that a stage takes, and every output, has been made by then, of the same type and rank. */
function checkOrder(graph: Graph, stages: readonly ReadStage[]): void {
  const made = new Map<string, string>();
  const add = ({ values }: Graph, ids: readonly number[]): void => {
    for (const id of ids) made.set(values[id]!.name, kindOf(values[id]!));
  };
  const need = ({ values }: Graph, ids: readonly number[], where: string): void => {
    for (const id of ids) {
      const { name } = values[id]!;
      if (made.get(name) !== kindOf(values[id]!))
        damaged(`${where} takes ${name}, which nothing makes`);
    }
  };
  add(graph, graph.inputs);
  add(
    graph,
    graph.weights.map((w) => w.value),
  );
  for (const [i, { part }] of stages.entries()) {
    need(part, part.inputs, `stage ${i}`);
    add(part, part.outputs);
  }
  need(graph, graph.outputs, "the model");
}

function kindOf({ type }: Graph["values"][number]): string {
  return `${type.dtype} of rank ${type.shape.length}`;
}
