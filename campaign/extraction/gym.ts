/**
 * The extraction-gym's e-graphs from the archive beside the repository, and a judge of solutions that
 * works on their own form alone: names of nodes and classes, nothing of src/egraph.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ExtractionProblem, makeProblem, type ProblemNode } from "../../src/egraph/index.ts";

const archive = fileURLToPath(
  new URL("../../../shared/datasets/extraction-gym.tar.xz", import.meta.url),
);
const unpacked = fileURLToPath(new URL("../../.cache/extraction-gym/", import.meta.url));

let isUnpacked = false;

/** Unpacks the archive, once a process; what is missing, as a sentence, or undefined. */
export function prepareGym(): string | undefined {
  if (isUnpacked) return undefined;
  if (!existsSync(archive)) return "../shared/datasets/extraction-gym.tar.xz is not here";
  mkdirSync(unpacked, { recursive: true });
  const run = spawnSync("tar", ["-xJf", archive, "-C", unpacked], { encoding: "utf8" });
  isUnpacked = run.status === 0;
  return isUnpacked ? undefined : `cannot unpack the extraction-gym: ${run.stderr}`;
}

/** `family/name` of every graph, in the order of names. */
export function gymNames(): string[] {
  const files = readdirSync(unpacked, { recursive: true, encoding: "utf8" });
  const graphs = files.filter((file) => file.endsWith(".json")).sort();
  return graphs.map((file) =>
    file
      .split("/")
      .slice(-2)
      .join("/")
      .replace(/\.json$/, ""),
  );
}

interface GymNode {
  readonly op: string;
  /** Ids of nodes, which stand for their classes. */
  readonly children: readonly string[];
  readonly eclass: string;
  readonly cost: number;
}

export interface GymGraph {
  readonly nodes: Readonly<Record<string, GymNode>>;
  readonly root_eclasses: readonly string[];
}

export function readGym(name: string): GymGraph {
  const files = readdirSync(unpacked, { recursive: true, encoding: "utf8" });
  const file = files.find((path) => path.endsWith(`${name}.json`));
  if (file === undefined) throw new Error(`the extraction-gym has no ${name}`);
  return JSON.parse(readFileSync(join(unpacked, file), "utf8")) as GymGraph;
}

/** The problem, and the gym's id of each of its nodes. */
export function problemOfGym(graph: GymGraph): { problem: ExtractionProblem; ids: string[] } {
  const entries = Object.entries(graph.nodes);
  const classes = [...new Set(entries.map(([, node]) => node.eclass))];
  const numbers = new Map(classes.map((name, i) => [name, i]));
  const members: ProblemNode[][] = classes.map(() => []);
  const names: string[][] = classes.map(() => []);
  for (const [id, { eclass, cost, children }] of entries) {
    const needs = children.map((child) => numbers.get(graph.nodes[child]!.eclass)!);
    members[numbers.get(eclass)!]!.push({ cost, children: needs });
    names[numbers.get(eclass)!]!.push(id);
  }
  const roots = graph.root_eclasses.map((name) => numbers.get(name)!);
  return { problem: makeProblem(members, roots), ids: names.flat() };
}

/** DAG cost of the chosen nodes from the roots on, or what is wrong with them. */
export function judgeChoice(graph: GymGraph, chosen: readonly string[]): number | string {
  const byClass = new Map<string, GymNode>();
  for (const id of chosen) {
    const node = graph.nodes[id]!;
    if (byClass.has(node.eclass)) return `class ${node.eclass} has two nodes`;
    byClass.set(node.eclass, node);
  }
  // Peels off classes whose children are all done; what is left over is in a circle.
  const needed = new Set(graph.root_eclasses);
  for (const name of needed) {
    const node = byClass.get(name);
    if (!node) return `class ${name} has no node`;
    for (const child of node.children) needed.add(graph.nodes[child]!.eclass);
  }
  const done = new Set<string>();
  let cost = 0;
  for (let before = -1; before !== done.size; ) {
    before = done.size;
    for (const name of needed) {
      const node = byClass.get(name)!;
      if (done.has(name)) continue;
      if (!node.children.every((child) => done.has(graph.nodes[child]!.eclass))) continue;
      done.add(name);
      cost += node.cost;
    }
  }
  return done.size === needed.size ? cost : "the chosen nodes need each other in a circle";
}
