/**
 * A schedule tree as time vectors: along the path to a statement's leaf every band member and every
 * place in a sequence or set is one time dimension. Marked members, and places in a set, order
 * nothing; legality.ts holds them to that.
 */
import { makeMap } from "../build.ts";
import { type Affine, affine } from "../expression.ts";
import type { MarkKind, TimeMark, TimeSchedule } from "../legality.ts";
import type { NestStatement } from "../nest.ts";
import type { IntegerMap } from "../types.ts";
import { isUnordered, type ScheduleTree, type TreeMark } from "./tree.ts";

/** One time dimension of a statement. */
export interface TimePart {
  /** The band, sequence or set; statements with the same node are compared here. */
  readonly node: ScheduleTree;
  readonly value: Affine;
  /** The loop whose value it is; absent for a place in a sequence or set. */
  readonly loop?: string;
  readonly marks: readonly TreeMark[];
}

/** Statement -> its time dimensions, outermost first; statements without a leaf are absent. */
export type TimePaths = ReadonlyMap<string, readonly TimePart[]>;

export function timePaths(tree: ScheduleTree, statements: readonly NestStatement[]): TimePaths {
  const paths = new Map<string, readonly TimePart[]>();
  for (const statement of statements) {
    const parts = pathTo(tree, statement);
    if (parts) paths.set(statement.name, parts);
  }
  return paths;
}

/** The statements that extensions below bring in. */
export function extendedBelow(tree: ScheduleTree): readonly string[] {
  switch (tree.kind) {
    case "leaf":
      return [];
    case "extension":
      return [tree.statement, ...extendedBelow(tree.child)];
    case "sequence":
    case "set":
      return tree.children.flatMap(extendedBelow);
    default:
      return extendedBelow(tree.child);
  }
}

/** Whether a filter lets a statement through, or one below it brings the statement in. */
export function admits(filter: ScheduleTree & { kind: "filter" }, statement: string): boolean {
  return filter.statements.includes(statement) || extendedBelow(filter).includes(statement);
}

function pathTo(root: ScheduleTree, statement: NestStatement): TimePart[] | undefined {
  const parts: TimePart[] = [];
  let marks: TreeMark[] = [];
  let loops = 0;
  for (let node = root; node.kind !== "leaf"; ) {
    switch (node.kind) {
      case "sequence":
      case "set": {
        const at = node.children.findIndex((c) => admits(c, statement.name));
        if (at < 0) return undefined;
        parts.push({ node, value: affine(at), marks: [] });
        marks = [];
        node = node.children[at]!.child;
        break;
      }
      case "band":
        for (const { loop, values } of node.members) {
          // What an extension brings in later has the loops outside it as its first dimensions.
          const value = values.get(statement.name) ?? affine(statement.dims[loops]!);
          parts.push({ node, value, loop, marks });
          loops++;
        }
        marks = [];
        node = node.child;
        break;
      case "filter":
        if (!admits(node, statement.name)) return undefined;
        node = node.child;
        break;
      case "mark":
        marks = [...marks, node.mark];
        node = node.child;
        break;
      default:
        node = node.child;
    }
  }
  return parts;
}

/** What a dimension is marked as: undefined where it orders. */
export function markOf(part: TimePart): MarkKind | undefined {
  if (part.node.kind === "set") return "parallel";
  if (part.loop === undefined || !part.marks.some(isUnordered)) return undefined;
  return part.marks.some((m) => m.kind === "vector") ? "vector" : "parallel";
}

/** Time maps and marks of all statements; the maps are made when asked for. */
export function flattenTree(
  tree: ScheduleTree,
  statements: readonly NestStatement[],
): TimeSchedule & { readonly paths: TimePaths } {
  const paths = timePaths(tree, statements);
  let times: ReadonlyMap<string, IntegerMap> | undefined;
  return {
    paths,
    marks: marksOf(paths),
    get times() {
      times ??= timesOf(paths, statements);
      return times;
    },
  };
}

/** Time maps of the statements that have a path, of their first `depth` dimensions alone. */
export function timesOf(
  paths: TimePaths,
  statements: readonly NestStatement[],
  depth = Infinity,
): ReadonlyMap<string, IntegerMap> {
  const times = new Map<string, IntegerMap>();
  for (const statement of statements) {
    const parts = paths.get(statement.name);
    if (parts) times.set(statement.name, timeMapOf(statement, parts.slice(0, depth)));
  }
  return times;
}

export function timeMapOf(
  statement: NestStatement,
  parts: readonly Pick<TimePart, "value">[],
): IntegerMap {
  const values = parts.map((p) => p.value);
  return makeMap({ from: { tuple: statement.name, dims: statement.dims }, to: { values } });
}

function marksOf(paths: TimePaths): TimeMark[] {
  const marks: TimeMark[] = [];
  const seen = new Set<string>();
  for (const parts of paths.values()) {
    parts.forEach((part, dimension) => {
      const kind = markOf(part);
      if (kind === undefined) return;
      const together = [...paths].filter(([, other]) => other[dimension]?.node === part.node);
      const statements = together.map(([name]) => name);
      const key = `${dimension} ${kind} ${statements.join(" ")}`;
      if (!seen.has(key)) marks.push({ dimension, kind, statements });
      seen.add(key);
    });
  }
  return marks;
}
