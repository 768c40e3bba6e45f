/**
 * Loops as programs repeat them (scan-steps.ts), where their bodies can be steps: shapes stay the same from trip to
 * trip, and nothing inside is decided by data but further loops.
 *
 *   all trips are run, and how many is a number or an expression of sizes: a scan of as many steps.
 *   data decide, and nothing is collected: the body counts the trips that it reads or that end it, and its first
 *   carried value, which is the condition, alone ends it.
 *
 * Others stay as they are: what they collect has an extent that only the run knows.
 */
import { constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { toRef } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, TensorType, ValueId } from "../graph.ts";
import { printType } from "../tensor-type.ts";
import { conditionOf } from "./inline-control.ts";
import { inlineSubgraph, isCopyable } from "./inline-subgraph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";
import { isRepeatable, isUncounted, uncounted } from "./scan-steps.ts";
import { isCut } from "./split-at-data.ts";

type Loop = NodeOf<"loop">;

/** Steps up to which a scan is worth the sequence that counts them, which takes a byte a step. */
const mostListed = 2 ** 22;

/** Inner loops come first. */
export function repeatableLoops(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => {
      if (site.node.op === "loop") return repeatable(site, site.node);
      return site.node.op === "if" ? asTwoLoops(site, site.node) : undefined;
    },
  });
}

/** Whether a body can be a step: shapes are known outside, and what is inside is decided or repeated. */
function canBeStep(body: Graph): boolean {
  const stays = (inner: Node): boolean => !isCut(inner, body) || isRepeatable(inner, body);
  return isCopyable(body) && body.nodes.every(stays);
}

/** A loop of at most one trip for each branch; what they give goes from the one to the other. */
function asTwoLoops(
  { b, inputs }: RebuildSite,
  { attrs, outputs }: NodeOf<"if">,
): readonly ValueId[] | undefined {
  const [first, second] = [attrs.then, attrs.else].map((g) =>
    g.outputs.map((o) => g.values[o]!.type),
  );
  const areAlike = first!.every((t, o) => printType(t) === printType(second![o]!));
  if (!areAlike || ![attrs.then, attrs.else].every(canBeStep)) return undefined;
  const [condition, ...captures] = inputs;
  const starts = b.reshape(condition!, []);
  const zeros = first!.map(({ dtype, shape }) =>
    b.node("broadcast", [b.scalar(0, dtype)], { shape }),
  );
  const most = b.scalar(BigInt(uncounted), "i64");
  const once = (body: Graph, runs: ValueId, states: readonly ValueId[]): readonly ValueId[] => {
    const results = b.nodes("loop", [most, runs, runs, ...states, ...captures], {
      body: onceFor(b, body, first!),
      carried: 1 + outputs.length,
      maxTrips: constant(1),
    });
    return results.slice(1);
  };
  return once(attrs.else, b.apply("not", starts), once(attrs.then, starts, zeros));
}

/** The body of a loop that ends after its first trip. */
function onceFor(b: GraphBuilder, body: Graph, states: readonly TensorType[]): Graph {
  const inner = b.nested(body.name);
  for (const [i, dtype] of (["i64", "bool", "bool"] as const).entries()) {
    inner.input(`of.loop.${i}`, { dtype, shape: [] });
  }
  for (const [i, type] of states.entries()) inner.input(`before.${i}`, type);
  const given = body.inputs.map((id) => {
    const { name, type } = body.values[id]!;
    return inner.input(name, type);
  });
  const results = inlineSubgraph(inner, body, given);
  const ends = inner.scalar(0, "bool");
  return inner.finish([ends, ends, ...results]);
}

function repeatable(site: RebuildSite, node: Loop): readonly ValueId[] | undefined {
  const { body, carried } = node.attrs;
  if (!canBeStep(body)) return undefined;
  // As what it already is.
  if (isUncounted(node, site.old)) return undefined;
  const trips = certainTrips(site, node);
  const collects = node.outputs.length > carried;
  if (trips && (collects || rangeOf(trips, site.b.ranges).max <= mostListed)) {
    return asScan(site, node, trips);
  }
  return collects ? undefined : asUncounted(site, node);
}

/** How many trips there are, where nothing ends the loop before. */
function certainTrips({ b, old, inputs }: RebuildSite, node: Loop): IndexExpr | undefined {
  const start = b.constantOf(inputs[1]!);
  if (!start || Number(toRef(start).data[0]) === 0) return undefined;
  const end = conditionOf(node.attrs.body);
  if (end !== "kept" && end !== "true") return undefined;
  const count = b.constantOf(inputs[0]!);
  if (count) return constant(Math.max(0, Number(toRef(count).data[0])));
  const { maxTrips } = node.attrs;
  const size = sizeOf(node.inputs[0]!, old);
  return size?.key === maxTrips.key && constantValue(maxTrips) === undefined ? maxTrips : undefined;
}

/** The size that a value is, where it is one as it is. */
function sizeOf(id: ValueId, graph: Graph): IndexExpr | undefined {
  const maker = graph.nodes.find((n) => n.outputs[0] === id);
  if (maker?.op === "dimSize") {
    return graph.values[maker.inputs[0]!]!.type.shape[maker.attrs.axis];
  }
  return maker?.op === "reshape" || maker?.op === "cast"
    ? sizeOf(maker.inputs[0]!, graph)
    : undefined;
}

/** Whether the body reads the number of its trip. */
function readsNumber(body: Graph): boolean {
  const number = body.inputs[0]!;
  return body.outputs.includes(number) || body.nodes.some((n) => n.inputs.includes(number));
}

/** A body with other ports around the one of the loop. */
function wrapped(
  b: GraphBuilder,
  body: Graph,
  ports: {
    /** New inputs in front of the states: their types. */
    readonly first: readonly ("i64" | "bool")[];
    /** Of the element or of a capture behind the states and in front of the captures. */
    readonly behind?: "bool" | "i64";
    readonly carried: number;
    readonly results: (
      inner: GraphBuilder,
      given: { readonly first: readonly ValueId[]; readonly behind: ValueId | undefined },
      run: (number: ValueId | undefined, condition: ValueId) => readonly ValueId[],
    ) => readonly ValueId[];
  },
): Graph {
  const { first, behind, carried, results } = ports;
  const inner = b.nested(body.name);
  const own = body.inputs.slice(2).map((id) => body.values[id]!);
  const scalar = (dtype: "i64" | "bool") => ({ dtype, shape: [] }) as const;
  const firsts = first.map((dtype, i) => inner.input(`of.loop.${i}`, scalar(dtype)));
  const states = own.slice(0, carried).map(({ name, type }) => inner.input(name, type));
  const extra = behind && inner.input("of.trip", scalar(behind));
  const captures = own.slice(carried).map(({ name, type }) => inner.input(name, type));
  const run = (number: ValueId | undefined, condition: ValueId) =>
    inlineSubgraph(inner, body, [
      number ?? inner.scalar(0n, "i64"),
      condition,
      ...states,
      ...captures,
    ]);
  return inner.finish(results(inner, { first: firsts, behind: extra }, run));
}

function asScan({ b, inputs }: RebuildSite, node: Loop, trips: IndexExpr): readonly ValueId[] {
  const { body, carried } = node.attrs;
  const counts = readsNumber(body);
  const steps = wrapped(b, body, {
    first: counts ? ["i64"] : [],
    behind: "bool",
    carried,
    results: (inner, { first: [number] }, run) => {
      const results = run(number, inner.scalar(1, "bool")).slice(1);
      if (number === undefined) return results;
      return [inner.apply("add", number, inner.scalar(1n, "i64")), ...results];
    },
  });
  const sequence = b.node("broadcast", [b.scalar(1, "bool")], { shape: [trips] });
  const [states, captures] = [inputs.slice(2, 2 + carried), inputs.slice(2 + carried)];
  const first = counts ? [b.scalar(0n, "i64")] : [];
  const collected = node.outputs.length - carried;
  const results = b.nodes("scan", [...first, ...states, sequence, ...captures], {
    body: steps,
    carried: first.length + carried,
    sequences: 1,
    inputAxes: [0],
    inputReversed: [false],
    outputAxes: new Array<number>(collected).fill(0),
    outputReversed: new Array<boolean>(collected).fill(false),
  });
  return results.slice(first.length);
}

function asUncounted({ b, inputs }: RebuildSite, node: Loop): readonly ValueId[] {
  const { body, carried, maxTrips } = node.attrs;
  const count = b.constantOf(inputs[0]!);
  const isEnded = !count || Number(toRef(count).data[0]) < uncounted;
  const counts = isEnded || readsNumber(body);
  const end = conditionOf(body);
  const loop = wrapped(b, body, {
    // The number of the trip and the condition as the op gives them are not read.
    first: counts ? ["i64", "bool", "bool", "i64"] : ["i64", "bool", "bool"],
    ...(isEnded && { behind: "i64" }),
    carried,
    results: (inner, { first: [, , runs, number], behind }, run) => {
      const [condition, ...results] = run(number, inner.scalar(1, "bool"));
      const next =
        number === undefined ? [] : [inner.apply("add", number, inner.scalar(1n, "i64"))];
      const more = behind === undefined ? [] : [inner.apply("less", next[0]!, behind)];
      // A body that passes its condition on got a true one.
      const own = end === "kept" ? [] : [condition!];
      const parts = [...own, ...more];
      const goesOn = parts.length > 0 ? parts.reduce((x, y) => inner.apply("and", x, y)) : runs!;
      return [goesOn, goesOn, ...next, ...results];
    },
  });
  const starts = b.reshape(inputs[1]!, []);
  const zero = b.scalar(0n, "i64");
  const runs = isEnded ? b.apply("and", starts, b.apply("less", zero, inputs[0]!)) : starts;
  const first = counts ? [runs, zero] : [runs];
  const most = b.scalar(BigInt(uncounted), "i64");
  const states = [...first, ...inputs.slice(2, 2 + carried)];
  const captures = [...(isEnded ? [inputs[0]!] : []), ...inputs.slice(2 + carried)];
  const results = b.nodes("loop", [most, runs, ...states, ...captures], {
    body: loop,
    carried: states.length,
    maxTrips,
  });
  return results.slice(first.length);
}
