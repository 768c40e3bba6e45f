/**
 * A graph of tensor operations as a placement problem: a task a node, times by the roofline of its
 * flops and compulsory bytes, memory from the weights that it reads first. Weights that several nodes
 * read count for the first. Symbols stand at the top of their range.
 */
import { compulsoryBytes, flopsOf, rangesOf } from "../../graph/counts.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { bytesOf } from "../../graph/tensor-type.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { type PlanDevice, rateFor } from "../device.ts";
import { reserveBytes } from "../quantize/memory.ts";
import { transfersOf } from "./decoder-problem.ts";
import type { PlaceProblem, PlaceTask } from "./problem.ts";

export function graphProblem(graph: Graph, devices: readonly PlanDevice[]): PlaceProblem {
  const ranges = rangesOf(graph);
  const weights = new Set(graph.weights.map((w) => w.value));
  const maker = new Map<ValueId, number>();
  const tasks = graph.nodes.map((node, index): PlaceTask => {
    let memoryBytes = 0;
    const inputs = new Map<number, number>();
    for (const value of new Set(node.inputs)) {
      const bytes = most(bytesOf(graph.values[value]!.type), ranges);
      if (weights.delete(value)) memoryBytes += bytes;
      const from = maker.get(value);
      if (from !== undefined) inputs.set(from, (inputs.get(from) ?? 0) + bytes);
    }
    for (const output of node.outputs) maker.set(output, index);
    const flops = most(flopsOf(node, graph), ranges);
    const bytes = most(compulsoryBytes(node, graph), ranges);
    return {
      name: `${index} ${node.op}`,
      inputs: [...inputs].map(([from, size]) => ({ from, bytes: size })),
      timeNs: devices.map((d) => nodeNs(flops, bytes, d)),
      memoryBytes,
    };
  });
  const room = devices.map((d) => ({
    name: d.name,
    memoryBytes: Math.max(0, Math.floor(d.memoryBytes.value - reserveBytes(d).value)),
  }));
  return { tasks, devices: room, transfers: transfersOf(devices) };
}

function most(expression: IndexExpr, ranges: IndexRanges): number {
  return Math.max(0, rangeOf(expression, ranges).max);
}

function nodeNs(flops: number, bytes: number, device: PlanDevice): number {
  return Math.max(flops / rateFor(device, "f32").value, bytes / device.memoryBytesPerNs.value);
}
