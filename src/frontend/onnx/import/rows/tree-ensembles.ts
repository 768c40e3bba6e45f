/**
 * Ensembles of decision trees of ai.onnx.ml. All trees are tables over their nodes; every row of data
 * stands at one node of each tree and takes as many steps as the deepest tree has, where a leaf leads to
 * itself. The weights of the leaves reached are then summed. Operators: TreeEnsembleRegressor and
 * TreeEnsembleClassifier (versions 1 and 3), TreeEnsemble (version 5).
 */
import { constant, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { refTensor, toRef } from "../../../../semantics/tensor.ts";
import { readTensorProto } from "../../tensor-proto.ts";
import type { NodeView } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { classLabels, postTransformed, transformed } from "./class-scores.ts";

const comparisons = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"] as const;
type Comparison = (typeof comparisons)[number];

interface TreeNode {
  readonly feature: number;
  readonly threshold: number;
  /** Undefined: a leaf. */
  readonly mode: Comparison | undefined;
  /** Positions of the children in the list of nodes. */
  readonly yes: number;
  readonly no: number;
  /** Whether missing values go to `yes`. */
  readonly missing: boolean;
}

interface Ensemble {
  readonly nodes: readonly TreeNode[];
  readonly roots: readonly number[];
  /** [nodes, targets] in rows. */
  readonly weights: readonly number[];
  readonly targets: number;
}

const largestEnsemble = 2 ** 24;

/** Steps that trees may have: each stands in the graph by itself. */
const deepest = 1024;

/** Steps from the roots to the deepest leaf; refuses what is no forest. */
function depthOf(node: NodeView, { nodes, roots }: Ensemble): number {
  const parents = new Int32Array(nodes.length);
  const reached = [...roots];
  const known = new Set(roots);
  for (const at of reached) {
    const found = nodes[at] ?? node.refuse(`node ${at} as a child`, "trees of known nodes");
    if (!found.mode) continue;
    for (const child of [found.yes, found.no]) {
      if (child in nodes) parents[child]!++;
      if (!known.has(child)) reached.push(child);
      known.add(child);
    }
  }
  // A node is as deep as its deepest parent lets it be; in a circle nobody comes first.
  const depths = new Int32Array(nodes.length);
  const open = reached.filter((at) => parents[at] === 0);
  for (const at of open) {
    const { mode, yes, no } = nodes[at]!;
    if (!mode) continue;
    for (const child of [yes, no]) {
      depths[child] = Math.max(depths[child]!, depths[at]! + 1);
      parents[child]!--;
      if (parents[child] === 0) open.push(child);
    }
  }
  if (open.length !== reached.length) node.refuse("nodes in a circle", "trees");
  const depth = open.reduce((most, at) => Math.max(most, depths[at]!), 0);
  if (depth > deepest) node.refuse(`trees of depth ${depth}`, `at most ${deepest}`);
  return depth;
}

function table(
  dtype: "i64" | "f32" | "f64" | "bool",
  values: readonly number[],
  shape = [values.length],
): Operand {
  return constantFromRef(refTensor(dtype, shape, values));
}

/** What `mode` says of x and thresholds. */
function compared(node: NodeView, mode: Comparison, x: Operand, limit: Operand): Operand {
  const not = (y: Operand) => node.emit("not", [y], {});
  if (mode === "LEQ") return node.emit("lessEqual", [x, limit], {});
  if (mode === "LT") return node.emit("less", [x, limit], {});
  if (mode === "GTE") return node.emit("lessEqual", [limit, x], {});
  if (mode === "GT") return node.emit("less", [limit, x], {});
  const equal = node.emit("equal", [x, limit], {});
  return mode === "EQ" ? equal : not(equal);
}

/** The leaf of each tree that each row of x [n, features] reaches, [n, trees]. */
function reachedLeaves(node: NodeView, x: Operand, ensemble: Ensemble): Operand {
  const { nodes, roots } = ensemble;
  const dtype = x.type.dtype === "f64" ? "f64" : "f32";
  const modes = comparisons.filter((mode) => nodes.some((n) => n.mode === mode));
  const column = <T>(of: (n: TreeNode) => T) => nodes.map(of);
  const rows = x.type.shape[0]!;
  const shape = [rows, constant(roots.length)];
  const features = table(
    "i64",
    column((n) => n.feature),
  );
  const thresholds = table(
    dtype,
    column((n) => n.threshold),
  );
  const [yes, no] = [
    table(
      "i64",
      column((n) => n.yes),
    ),
    table(
      "i64",
      column((n) => n.no),
    ),
  ];
  const missing = nodes.some((n) => n.missing)
    ? table(
        "bool",
        column((n) => (n.missing ? 1 : 0)),
      )
    : undefined;
  const kinds =
    modes.length > 1
      ? table(
          "i64",
          column((n) => modes.indexOf(n.mode!)),
        )
      : undefined;
  const start = node.reshape(table("i64", roots), [constant(1), constant(roots.length)]);
  let at: Operand = node.emit("broadcast", [start], { shape });
  const depth = depthOf(node, ensemble);
  for (let step = 0; step < depth; step++) {
    const own = (of: Operand) => node.emit("gather", [of, at], { axis: 0 });
    const value = node.emit("gatherElements", [x, own(features)], { axis: 1 });
    const limit = own(thresholds);
    let taken = compared(node, modes[0]!, value, limit);
    if (kinds) {
      const kind = own(kinds);
      for (const [i, mode] of modes.entries()) {
        if (i === 0) continue;
        const isThis = node.emit("equal", [kind, node.splat("i64", i)], {});
        taken = node.emit("select", [isThis, compared(node, mode, value, limit), taken], {});
      }
    }
    if (missing) {
      const unknown = node.emit("and", [node.emit("isNan", [value], {}), own(missing)], {});
      taken = node.emit("or", [taken, unknown], {});
    }
    at = node.emit("select", [taken, own(yes), own(no)], {});
  }
  return at;
}

const aggregates = ["SUM", "AVERAGE", "MIN", "MAX"] as const;

/** Weights of the leaves of all trees together, [n, targets]. */
function aggregated(
  node: NodeView,
  x: Operand,
  ensemble: Ensemble,
  how: (typeof aggregates)[number],
): Operand {
  const { nodes, weights, targets, roots } = ensemble;
  const dtype = x.type.dtype === "f64" ? "f64" : "f32";
  const leaves = reachedLeaves(node, x, ensemble);
  const own = table(dtype, weights, [nodes.length, targets]);
  const reached = node.emit("gather", [own, leaves], { axis: 0 });
  const kind = how === "MIN" ? "min" : how === "MAX" ? "max" : "sum";
  const y = node.emit("reduce", [reached], { kind, axes: [1], keepDims: false });
  return how === "AVERAGE" ? node.emit("div", [y, node.splat(dtype, roots.length)], {}) : y;
}

function numbers(node: NodeView, name: string): readonly number[] | undefined {
  const { attributes } = node;
  const tensor = attributes.tensor(`${name}_as_tensor`);
  if (!tensor) return attributes.floats(name);
  const read = readTensorProto(tensor, node.origin.at);
  if (read.kind !== "inline") return node.refuse("external data in an attribute", "a list");
  return Array.from(toRef(read.tensor).data, Number);
}

/** The lists of versions 1 and 3: nodes by tree and number; `kind` is target or class. */
function readLists(node: NodeView, kind: "target" | "class", targets: number): Ensemble {
  const { attributes } = node;
  attributes.ignore("nodes_hitrates", "nodes_hitrates_as_tensor");
  const ints = (name: string) => attributes.ints(name) ?? [];
  const [trees, ids] = [ints("nodes_treeids"), ints("nodes_nodeids")];
  // Before anything is made of each node: a forest of millions takes minutes.
  const size = ids.length === 0 ? 0 : checkedSize(node, ids.length, targets);
  const places = new Map(ids.map((id, i) => [`${trees[i]} ${id}`, i]));
  const modes = attributes.strings("nodes_modes") ?? [];
  const [features, yes, no] = ["featureids", "truenodeids", "falsenodeids"].map((name) =>
    ints(`nodes_${name}`),
  ) as [readonly number[], readonly number[], readonly number[]];
  const missing = ints("nodes_missing_value_tracks_true");
  const thresholds = numbers(node, "nodes_values") ?? [];
  const lengths = [trees, modes, features, yes, no, thresholds].map((list) => list.length);
  if (places.size !== ids.length || lengths.some((n) => n !== ids.length) || ids.length === 0)
    node.refuse("lists of nodes that do not fit together", "one entry for each node");
  const nodes = ids.map((_, i): TreeNode => {
    const mode = modes[i]!.replace("BRANCH_", "") as Comparison;
    if ((mode as string) === "LEAF") return leaf(i);
    if (!comparisons.includes(mode)) attributes.refuse("nodes_modes", modes[i], "BRANCH_LEQ, …");
    const child = (id: number) => places.get(`${trees[i]} ${id}`) ?? -1;
    return {
      feature: features[i]!,
      threshold: thresholds[i]!,
      mode,
      yes: child(yes[i]!),
      no: child(no[i]!),
      missing: missing[i] === 1,
    };
  });
  const weights = new Array<number>(size).fill(0);
  const values = numbers(node, `${kind}_weights`) ?? [];
  const [ownTrees, ownNodes, own] = ["treeids", "nodeids", "ids"].map((n) => ints(`${kind}_${n}`));
  for (const [i, value] of values.entries()) {
    const at = places.get(`${ownTrees![i]} ${ownNodes![i]}`);
    const target = own![i] ?? -1;
    if (at === undefined || target < 0 || target >= targets)
      node.refuse(`a weight of ${kind} ${target}`, `known nodes, 0 to ${targets - 1}`);
    else weights[at * targets + target]! += value;
  }
  const children = new Set(nodes.flatMap((n) => (n.mode ? [n.yes, n.no] : [])));
  const roots = nodes.flatMap((_, i) => (children.has(i) ? [] : [i]));
  if (roots.length === 0) node.refuse("nodes without a root", "trees");
  return { nodes, roots, weights, targets };
}

const leaf = (at: number): TreeNode => ({
  feature: 0,
  threshold: 0,
  mode: undefined,
  yes: at,
  no: at,
  missing: false,
});

function checkedSize(node: NodeView, nodes: number, targets: number): number {
  const size = nodes * targets;
  if (!(size >= 1 && size <= largestEnsemble))
    node.refuse(`${nodes} nodes of ${targets} numbers`, `1 to ${largestEnsemble} numbers`);
  return size;
}

/** x [n, features] as reals. */
function features(node: NodeView): Operand {
  const x = node.input(0);
  node.checkRank(x, 2, "data");
  return x.type.dtype === "f64" || x.type.dtype === "f32" ? x : node.cast(x, "f32");
}

function plusBase(node: NodeView, y: Operand, targets: number): Operand {
  const base = numbers(node, "base_values") ?? [];
  if (base.length === 0) return y;
  if (base.length !== targets && base.length !== 1)
    node.refuse(`${base.length} base values`, `${targets}`);
  return node.emit("add", [y, table(y.type.dtype === "f64" ? "f64" : "f32", base)], {});
}

function treeRegressor(node: NodeView): Operand {
  const { attributes } = node;
  const targets = attributes.int("n_targets") ?? 1;
  const how = attributes.choice("aggregate_function", ...aggregates);
  const ensemble = readLists(node, "target", targets);
  const y = plusBase(node, aggregated(node, features(node), ensemble, how), targets);
  return node.cast(postTransformed(node, y), "f32");
}

/**
 * One weight for each class, and the label of the greatest. Of two classes the weights may be of one
 * alone, which then decides: those of class 0 count for the second class and give both scores; those of
 * class 1 leave the score of the first at 0 (as in onnxruntime; the operator's page does not say).
 */
function treeClassifier(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const labels = classLabels(node, "classlabels");
  const given = attributes.ints("class_ids") ?? [];
  const isBinary = labels.count === 2 && new Set(given).size === 1;
  const ensemble = readLists(node, "class", labels.count);
  const sums = aggregated(node, features(node), ensemble, "SUM");
  const [n] = sums.type.shape as [IndexExpr, IndexExpr];
  if (!isBinary) {
    const scores = plusBase(node, sums, labels.count);
    return [labels.best(scores), node.cast(postTransformed(node, scores), "f32")];
  }
  const only = constantFromRef(refTensor("i64", [1], [given[0]!]));
  const own = node.emit("gather", [sums, only], { axis: 1 });
  const base = numbers(node, "base_values") ?? [];
  const { dtype } = own.type;
  const score =
    base.length === 0
      ? own
      : node.emit("add", [own, node.splat(dtype, base[base.length - 1]!)], {});
  const allPositive = (numbers(node, "class_weights") ?? []).every((w) => w >= 0);
  const plain = (second: Operand) =>
    node.emit("concat", [node.emit("sub", [second, second], {}), second], { axis: 1 });
  const limit = node.splat(dtype, allPositive ? 0.5 : 0);
  const second = node.reshape(node.emit("less", [limit, score], {}), [n]);
  const form = allPositive ? ("complement" as const) : ("opposite" as const);
  const scores =
    given[0] === 0 ? postTransformed(node, score, form) : postTransformed(node, plain(score));
  return [labels.either(second), node.cast(scores, "f32")];
}

/** Contents of a tensor that is an attribute. */
function attributeNumbers(node: NodeView, name: string): readonly number[] {
  const tensor = node.attributes.tensor(name);
  if (!tensor) return [];
  const read = readTensorProto(tensor, node.origin.at);
  if (read.kind !== "inline") return node.refuse("external data in an attribute", "a list");
  return Array.from(toRef(read.tensor).data, Number);
}

/** The sets of the nodes that ask for members, one behind the other with NaN between them. */
function readSets(node: NodeView): (readonly number[])[] {
  const sets: number[][] = [[]];
  for (const value of attributeNumbers(node, "membership_values")) {
    if (Number.isNaN(value)) sets.push([]);
    else sets.at(-1)!.push(value);
  }
  return sets;
}

/** The lists of version 5: inner nodes and leaves apart. Members of a set are asked for one by one. */
function readTables(node: NodeView, targets: number): Ensemble {
  const { attributes } = node;
  attributes.ignore("nodes_hitrates");
  const ints = (name: string) => attributes.ints(name) ?? [];
  const [features, yes, no] = ["featureids", "truenodeids", "falsenodeids"].map((name) =>
    ints(`nodes_${name}`),
  ) as [readonly number[], readonly number[], readonly number[]];
  const [yesLeaf, noLeaf] = [ints("nodes_trueleafs"), ints("nodes_falseleafs")];
  const modes = attributeNumbers(node, "nodes_modes");
  const splits = attributeNumbers(node, "nodes_splits");
  const missing = ints("nodes_missing_value_tracks_true");
  const inner = modes.length;
  const lists = [features, yes, no, yesLeaf, noLeaf, splits];
  if (inner === 0 || lists.some((list) => list.length !== inner))
    node.refuse("lists of nodes that do not fit together", "one entry for each node");
  const [ids, weights] = [ints("leaf_targetids"), attributeNumbers(node, "leaf_weights")];
  if (ids.length !== weights.length || ids.some((id) => id < 0 || id >= targets))
    node.refuse("weights of unknown targets", `0 to ${targets - 1}`);
  const leaves = ids.length;
  checkedSize(node, inner + leaves, targets);
  const isMissing = (i: number) => missing[i] === 1;
  const nodes: TreeNode[] = [];
  const sets = readSets(node);
  const more: TreeNode[] = [];
  for (const [i, code] of modes.entries()) {
    const child = (at: number, isLeaf: number) => (isLeaf === 1 ? inner + at : at);
    const ends = { yes: child(yes[i]!, yesLeaf[i]!), no: child(no[i]!, noLeaf[i]!) };
    const own = { feature: features[i]!, missing: isMissing(i) };
    const mode = comparisons[code];
    if (mode) nodes.push({ ...own, ...ends, threshold: splits[i]!, mode });
    else if (code !== 6) attributes.refuse("nodes_modes", code, "0 to 6");
    else {
      const set = sets.shift() ?? [];
      const first = inner + leaves + more.length;
      const chain = set.map((threshold, k): TreeNode => {
        const next = k === set.length - 1 ? ends.no : first + k;
        return { ...own, threshold, mode: "EQ", yes: ends.yes, no: next };
      });
      if (chain.length === 0) node.refuse("a set without members", "one or more");
      nodes.push(chain[0]!);
      for (const next of chain.slice(1)) more.push(next);
    }
  }
  for (let i = 0; i < leaves; i++) nodes.push(leaf(inner + i));
  for (const next of more) nodes.push(next);
  const table = new Array<number>(checkedSize(node, nodes.length, targets)).fill(0);
  for (const [i, id] of ids.entries()) table[(inner + i) * targets + id] = weights[i]!;
  return { nodes, roots: ints("tree_roots"), weights: table, targets };
}

const newAggregates = ["AVERAGE", "SUM", "MIN", "MAX"] as const;
const newTransforms = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"] as const;

function treeEnsemble(node: NodeView): Operand {
  const { attributes } = node;
  const targets = attributes.int("n_targets") ?? 1;
  const code = attributes.int("aggregate_function") ?? 1;
  const how = newAggregates[code] ?? attributes.refuse("aggregate_function", code, "0 to 3");
  const after = attributes.int("post_transform") ?? 0;
  const transform = newTransforms[after] ?? attributes.refuse("post_transform", after, "0 to 3");
  const x = features(node);
  const y = aggregated(node, x, readTables(node, targets), how);
  return node.cast(transformed(node, y, transform), x.type.dtype);
}

export const treeEnsembleRows = {
  TreeEnsemble: { since: [5], convert: treeEnsemble },
  TreeEnsembleRegressor: { since: [1, 3], convert: treeRegressor },
  TreeEnsembleClassifier: { since: [1, 3], convert: treeClassifier },
} satisfies OperatorTable;
