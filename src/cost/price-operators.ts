/**
 * Prices for runtimes that take a graph one operator after another: each operator, composites among them,
 * is called, reads its operands and writes its results, and computes meanwhile. What such a runtime fuses
 * by itself it fuses in both of two graphs that are compared. For graphs that are exported; the rates are
 * the target's.
 */
import { definitionGraph } from "../graph/builder.ts";
import type { CompositeKind } from "../graph/composite-table.ts";
import { compulsoryBytes, flopsOf, graphFlops, rangesOf } from "../graph/counts.ts";
import type { Graph, Node, OpAttrs, OpKind } from "../graph/graph.ts";
import { infoOf, isComposite, subgraphsOf } from "../graph/op-table.ts";
import { bytesOf } from "../graph/tensor-type.ts";
import { add, type IndexExpr, toIndex } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { ok, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import type { PricedOp } from "./price-graph.ts";

/** What runtimes take to call an operator, beside its work. */
const callNs = 1000;

export class OperatorPricer {
  readonly hasComposites = true;
  readonly #flopsPerNs: number;
  readonly #bytesPerNs: number;
  readonly #callNs: number;
  readonly #prices = new Map<string, number>();

  constructor({ blocks, ...target }: Target) {
    this.#flopsPerNs = (blocks?.cores ?? 1) * target.f32FlopsPerNsPerCore.value;
    this.#bytesPerNs = blocks?.memoryBytesPerNs.value ?? target.memory[0]!.bytesPerNsPerCore.value;
    this.#callNs = blocks ? blocks.launchNs.value + blocks.memoryLatencyNs.value : callNs;
  }

  /** One name for each operator, by what it costs. */
  regions(graph: Graph): Result<readonly string[]> {
    const ranges = rangesOf(graph);
    const names = graph.nodes.map((node) => {
      const ns = this.#nodeNs(node, graph, ranges);
      const name = `${node.op} ${ns}`;
      this.#prices.set(name, ns);
      return name;
    });
    return ok(names);
  }

  /** Nanoseconds of a whole graph. */
  totalNs(graph: Graph): number {
    const ranges = rangesOf(graph);
    return graph.nodes.reduce((sum, node) => sum + this.#nodeNs(node, graph, ranges), 0);
  }

  #nodeNs(node: Node, graph: Graph, ranges: IndexRanges): number {
    const bodies = subgraphsOf(node);
    // Data decide which of several runs: a graph that computes all of them has to beat the cheapest.
    if (bodies.length > 1) {
      return this.#callNs + Math.min(...bodies.map((body) => this.totalNs(body)));
    }
    const bytes = node.op === "reshape" ? toIndex(0) : compulsoryBytes(node, graph);
    return this.#price(flopsOf(node, graph), bytes, ranges);
  }

  /** Nanoseconds of what `regions` named. */
  region(name: string): number {
    return this.#prices.get(name)!;
  }

  /** Nanoseconds of one operator. */
  op({ op, attrs, inputs, output }: PricedOp, ranges: IndexRanges): number {
    const info = infoOf<OpKind>(op);
    const call = { inputs, outputs: [output], attrs: attrs as OpAttrs[OpKind], ranges };
    const flops = isComposite(op)
      ? graphFlops(definitionGraph(op as CompositeKind, inputs, attrs as never, { ranges, at: op }))
      : (info.flops?.(call) ?? toIndex(0));
    if (op === "reshape") return this.#price(flops, toIndex(0), ranges);
    const read = info.bytesRead?.(call) ?? add(0, ...inputs.map(bytesOf));
    return this.#price(flops, add(read, bytesOf(output)), ranges);
  }

  #price(flops: IndexExpr, bytes: IndexExpr, ranges: IndexRanges): number {
    const most = (count: IndexExpr) => rangeOf(count, ranges).max;
    return this.#callNs + Math.max(most(flops) / this.#flopsPerNs, most(bytes) / this.#bytesPerNs);
  }
}
