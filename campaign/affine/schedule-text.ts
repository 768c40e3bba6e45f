/**
 * isl's schedule trees as times and bands: nodes domain, band ("schedule" with "permutable" and
 * "coincident"), sequence, set and filter become time vectors for each tuple, one dimension a
 * sequence or set and one a band member, with the bands and the sets (whose children are in no
 * order) found on the way.
 */

import { readMap, readSet } from "../../bench/isl/questions.ts";
import {
  compose,
  emptyMap,
  flatRangeProduct,
  type IntegerMap,
  type IntegerSet,
  union,
  universeMap,
} from "../../src/affine/index.ts";
import { invariant } from "../../src/support/invariant.ts";
import { type DataNode, listAt, nodeAt, textAt } from "./isl-data.ts";

export interface TextBand {
  /** Its first time dimension and how many it has. */
  readonly first: number;
  readonly count: number;
  /** The instances below it. */
  readonly instances: IntegerSet;
  /** Whether the text gives any flags. */
  readonly flagged: boolean;
  readonly permutable: boolean;
  readonly coincident: readonly boolean[];
}

export interface TimedTree {
  /** { instance -> time vector }; vectors of one length. */
  readonly order: IntegerMap;
  readonly bands: readonly TextBand[];
  /** Dimensions whose values tell the children of a set, with the instances below. */
  readonly sets: readonly { readonly dimension: number; readonly instances: IntegerSet }[];
}

/** Times of the instances below a node: a row of texts, one map a dimension. */
interface Timed {
  readonly instances: IntegerSet;
  readonly dims: readonly IntegerMap[];
}

export function timeTree(tree: DataNode): TimedTree {
  const domain = readSet(textAt(tree, "domain")!);
  const bands: TextBand[] = [];
  const sets: { dimension: number; instances: IntegerSet }[] = [];
  const leaves: Timed[] = [];

  const visit = (node: DataNode | undefined, at: Timed): void => {
    if (node === undefined) leaves.push(at);
    else if (node.filter !== undefined) visit(nodeAt(node, "child"), filtered(node, at));
    else if (node.schedule !== undefined) visitBand(node, at);
    else visitChildren(node, at);
  };
  const visitBand = (node: DataNode, at: Timed): void => {
    const members = readMembers(textAt(node, "schedule")!);
    bands.push({
      first: at.dims.length,
      count: members.length,
      instances: at.instances,
      flagged: node.permutable !== undefined || node.coincident !== undefined,
      permutable: textAt(node, "permutable") === "1",
      coincident: flags(textAt(node, "coincident"), members.length),
    });
    visit(nodeAt(node, "child"), { ...at, dims: [...at.dims, ...members] });
  };
  const visitChildren = (node: DataNode, at: Timed): void => {
    const key = node.set !== undefined ? "set" : "sequence";
    if (key === "set") sets.push({ dimension: at.dims.length, instances: at.instances });
    listAt(node, key).forEach((child, index) => {
      const own = filtered(child, at);
      visit(nodeAt(child, "child"), { ...own, dims: [...own.dims, constantTime(own, index)] });
    });
  };
  visit(nodeAt(tree, "child"), { instances: domain, dims: [] });
  return { order: joinLeaves(leaves), bands, sets };
}

function filtered(node: DataNode, at: Timed): Timed {
  const filter = readSet(textAt(node, "filter")!);
  const tuples = new Set(filter.pieces.map((p) => p.output));
  const kept = [...at.instances.pieces].filter((p) =>
    [...tuples].some((t) => sameShape(t, p.output)),
  );
  return { ...at, instances: { ...at.instances, pieces: kept } };
}

type Tuple = IntegerSet["pieces"][number]["output"];

function sameShape(a: Tuple, b: Tuple): boolean {
  if (a.name !== b.name || a.dims.length !== b.dims.length) return false;
  if (!a.nested || !b.nested) return a.nested === b.nested;
  return sameShape(a.nested.from, b.nested.from) && sameShape(a.nested.to, b.nested.to);
}

/** `[N] -> [{ S[i] -> [(i)] }, { … }]`: one map a member. */
function readMembers(text: string): IntegerMap[] {
  const open = text.indexOf("{");
  const params = text.slice(0, text.lastIndexOf("[", open));
  return (text.match(/\{[^}]*\}/g) ?? []).map((body) => readMap(`${params}${body}`));
}

function flags(text: string | undefined, count: number): boolean[] {
  const found =
    text?.match(/[01]/g)?.map((f) => f === "1") ?? new Array<boolean>(count).fill(false);
  invariant(found.length === count, () => `${found.length} flags for ${count} members`);
  return found;
}

/** The same time for all points of the tuples. */
function constantTime({ instances }: Timed, value: number): IntegerMap {
  const distinct: Tuple[] = [];
  for (const { output } of instances.pieces) {
    if (!distinct.some((t) => sameShape(t, output))) distinct.push(output);
  }
  const time = readMap(`{ [] -> [${value}] }`);
  const none = { name: "", dims: [] };
  return distinct.reduce(
    (all, tuple) => union(all, compose(universeMap(tuple, none), time)),
    emptyMap(instances.params),
  );
}

/** { instance -> [] } */
function everyInstance(instances: IntegerSet): IntegerMap {
  const pieces = instances.pieces.map((p) => ({
    ...p,
    input: p.output,
    output: { name: "", dims: [] },
  }));
  return { kind: "map", params: instances.params, pieces };
}

function joinLeaves(leaves: readonly Timed[]): IntegerMap {
  const depth = Math.max(...leaves.map((l) => l.dims.length));
  let order = emptyMap();
  for (const leaf of leaves) {
    let times = everyInstance(leaf.instances);
    for (let k = 0; k < depth; k++) {
      times = flatRangeProduct(times, leaf.dims[k] ?? constantTime(leaf, 0));
    }
    order = union(order, times);
  }
  return order;
}
