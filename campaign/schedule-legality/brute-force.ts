/**
 * Legality by looking at everything: all instances of a nest at its size, what each touches, and for
 * every two that touch one element whether a tree keeps their order. Reads the tree by itself,
 * shares nothing with the library but the values of expressions.
 */
import {
  type Constraint,
  domainOf,
  enumeratePoints,
  evaluateAffine,
  executeTree,
  type Instance,
  instanceKey,
  type Nest,
  type NestAccess,
  type NestStatement,
  type Plan,
  type ScheduleTree,
} from "../../src/affine/index.ts";

export interface Touch {
  readonly kind: NestAccess["kind"];
  readonly free: boolean;
  /** Spelled elements. */
  readonly elements: readonly string[];
}

export interface Located extends Instance {
  readonly touches: readonly Touch[];
}

/** Every instance of the statements, with what it touches. */
export function instancesOf(statements: readonly NestStatement[]): readonly Located[] {
  return statements.flatMap((s) => {
    const found = enumeratePoints(domainOf(s));
    if (found.kind === "unknown") throw new Error(`${s.name}: ${found.reason}`);
    return found.value.map(({ values }) => {
      const point = Object.fromEntries(s.dims.map((d, i) => [d, values[i]!]));
      return { statement: s.name, point, touches: s.accesses.map((a) => touch(a, point)) };
    });
  });
}

type Point = Readonly<Record<string, number>>;

export function touch(access: NestAccess, point: Point): Touch {
  const free = access.reassociable === true;
  if (!(access.where ?? []).every((c) => holds(c, point))) {
    return { kind: access.kind, free, elements: [] };
  }
  const axes = access.index.map((at) => {
    if (!("low" in at)) return [evaluateAffine(at, point)];
    const [low, end] = [evaluateAffine(at.low, point), evaluateAffine(at.end, point)];
    return Array.from({ length: Math.max(0, end - low) }, (_, i) => low + i);
  });
  const indices = axes.reduce<readonly (readonly number[])[]>(
    (all, axis) => all.flatMap((head) => axis.map((v) => [...head, v])),
    [[]],
  );
  return { kind: access.kind, free, elements: indices.map((i) => `${access.array}[${i}]`) };
}

function holds({ kind, expression }: Constraint, point: Point): boolean {
  const value = evaluateAffine(expression, point);
  return kind === "equality" ? value === 0 : value >= 0;
}

function childrenOf(tree: ScheduleTree): readonly ScheduleTree[] {
  if (tree.kind === "leaf") return [];
  return "children" in tree ? tree.children : [tree.child];
}

/** One step on the way from the root of a tree to an instance. */
interface Step {
  readonly node: ScheduleTree;
  readonly value: number;
  /** Runs in no order with what differs here. */
  readonly loose: boolean;
  /** Lanes, each with its own accumulator. */
  readonly lanes: boolean;
  /** Meets only at the end of the kernel. */
  readonly grid: boolean;
  readonly place: boolean;
}

const loose: ReadonlySet<string> = new Set([
  "parallel",
  "grid",
  "device",
  "blocks",
  "groups",
  "threads",
  "vector",
]);
const grids: ReadonlySet<string> = new Set(["grid", "device", "blocks"]);

export function stepsTo(tree: ScheduleTree, instance: Instance): readonly Step[] {
  const steps: Step[] = [];
  const outer = Object.values(instance.point);
  let marks: string[] = [];
  let loops = 0;
  let node: ScheduleTree = tree;
  while (node.kind !== "leaf") {
    if (node.kind === "mark") {
      marks.push(node.mark.kind);
      node = node.child;
    } else if (node.kind === "sequence" || node.kind === "set") {
      const value = node.children.findIndex((c) => holdsStatement(c, instance.statement));
      const isSet = node.kind === "set";
      steps.push({ node, value, loose: isSet, lanes: false, grid: false, place: true });
      node = node.children[value]!;
      marks = [];
    } else if (node.kind === "band") {
      for (const { values } of node.members) {
        const expression = values.get(instance.statement);
        steps.push({
          node,
          value: expression ? evaluateAffine(expression, instance.point) : outer[loops]!,
          loose: marks.some((m) => loose.has(m)),
          lanes: marks.includes("vector"),
          grid: marks.some((m) => grids.has(m)),
          place: false,
        });
        loops++;
      }
      node = node.child;
      marks = [];
    } else {
      node = childrenOf(node)[0]!;
    }
  }
  return steps;
}

function holdsStatement(tree: ScheduleTree, statement: string): boolean {
  if (tree.kind === "filter" && tree.statements.includes(statement)) return true;
  if (tree.kind === "extension" && tree.statement === statement) return true;
  return childrenOf(tree).some((c) => holdsStatement(c, statement));
}

export type Order = "before" | "after" | "lanes" | "apart" | "same";

/** How two instances stand to each other, by their steps. */
export function orderOf(a: readonly Step[], b: readonly Step[]): Order {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a[i]!, b[i]!];
    if (x.value === y.value) continue;
    if (x.loose || y.loose) return x.lanes ? "lanes" : "apart";
    if (!x.place && acrossGrid(a, b, i)) return "apart";
    if (x.place && i > 0 && acrossGrid(a, b, i)) return "apart";
    return x.value < y.value ? "before" : "after";
  }
  return "same";
}

/** Whether the two run in different iterations of a grid loop further inside. */
function acrossGrid(a: readonly Step[], b: readonly Step[], from: number): boolean {
  const kernel = a.findIndex((s) => !s.place);
  if (from < kernel || kernel < 0) return false;
  const [ga, gb] = [a, b].map((s) => s.filter((x) => x.grid).map((x) => x.value));
  return ga!.some((v, i) => v !== gb![i]);
}

/** Two instances of which the first must come before the second, or at least not run at once. */
export interface Pair {
  readonly first: number;
  readonly second: number;
  /** "free": in either order, only not at once. */
  readonly need: "order" | "free";
}

/** All pairs that touch one element, one of them writing, in the original order. */
export function conflictsOf(nest: Nest, instances: readonly Located[]): readonly Pair[] {
  // The original order is that of the tree without marks.
  const steps = instances.map((i) =>
    stepsTo(nest.tree, i).map((s) => ({ ...s, loose: false, grid: false })),
  );
  const users = new Map<string, { at: number; touch: Touch }[]>();
  instances.forEach(({ touches }, at) => {
    for (const t of touches) {
      for (const e of t.elements) users.set(e, [...(users.get(e) ?? []), { at, touch: t }]);
    }
  });
  const needs = new Map<string, Pair>();
  for (const list of users.values()) {
    for (const a of list) {
      for (const b of list) {
        if (a.at === b.at || (a.touch.kind === "read" && b.touch.kind === "read")) continue;
        if (orderOf(steps[a.at]!, steps[b.at]!) !== "before") continue;
        const same = instances[a.at]!.statement === instances[b.at]!.statement;
        const updates = a.touch.kind === "update" && b.touch.kind === "update";
        const free = same && updates && a.touch.free && b.touch.free;
        const key = `${a.at} ${b.at}`;
        if (free && needs.has(key)) continue;
        needs.set(key, { first: a.at, second: b.at, need: free ? "free" : "order" });
      }
    }
  }
  return [...needs.values()];
}

/** The first pair whose order the tree does not keep. */
export function findBroken(
  tree: ScheduleTree,
  instances: readonly Located[],
  pairs: readonly Pair[],
): Pair | undefined {
  const steps = instances.map((i) => stepsTo(tree, i));
  return pairs.find(({ first, second, need }) => {
    const order = orderOf(steps[first]!, steps[second]!);
    return need === "order" ? order !== "before" : order === "apart" || order === "same";
  });
}

/** Why a tree has no meaning: a kernel whose statements do not share its grid loops. */
export function isStray(tree: ScheduleTree, instances: readonly Located[]): boolean {
  const seen = new Map<string, readonly ScheduleTree[]>();
  for (const i of instances) {
    const steps = stepsTo(tree, i);
    const first = steps.findIndex((s) => !s.place);
    const kernel = steps
      .slice(0, first < 0 ? steps.length : first)
      .map((s) => s.value)
      .join();
    const grid = steps.filter((s) => s.grid).map((s) => s.node);
    const others = seen.get(kernel) ?? grid;
    if (others.length !== grid.length || others.some((n, at) => n !== grid[at])) return true;
    seen.set(kernel, grid);
  }
  return false;
}

/** The first value that is overwritten while it is needed, or not found where it is looked for. */
export function findLost(
  plan: Plan,
  instances: readonly Located[],
  moved: readonly Located[],
): string | undefined {
  const { nest, tree } = plan;
  const steps = new Map(instances.map((i) => [instanceKey(i), stepsTo(tree, i)]));
  const at = new Map(instances.map((i, k) => [instanceKey(i), k]));
  const order = executeTree(tree, instances, { statements: nest.statements }).map(
    (i) => at.get(instanceKey(i))!,
  );
  const writers = cellWriters(nest, instances, moved);
  for (const { element, cell, w, r, readCell } of valuesOf(nest, { instances, moved, order })) {
    if (readCell !== cell) return `${element} is looked for in ${readCell}`;
    for (const x of writers.get(cell) ?? []) {
      if (x.element === element) continue;
      if (x.at < 0) {
        if (w < 0) return `${element} and ${x.element} are both in ${cell} from the start`;
        continue;
      }
      if (x.at === w || x.at === r) continue;
      const s = steps.get(instanceKey(instances[x.at]!))!;
      const beforeW = w >= 0 && orderOf(s, steps.get(instanceKey(instances[w]!))!) === "before";
      const behindR = r >= 0 && orderOf(steps.get(instanceKey(instances[r]!))!, s) === "before";
      if (!beforeW && !behindR) return `${element} in ${cell} is overwritten by ${x.element}`;
    }
  }
  return undefined;
}

function arrayOf(element: string): string {
  return element.slice(0, element.indexOf("["));
}

interface CellWriter {
  /** -1: it is there before the nest. */
  readonly at: number;
  readonly element: string;
}

function cellWriters(
  nest: Nest,
  instances: readonly Located[],
  moved: readonly Located[],
): ReadonlyMap<string, readonly CellWriter[]> {
  const writers = new Map<string, CellWriter[]>();
  const add = (cell: string, writer: CellWriter): void => {
    writers.set(cell, [...(writers.get(cell) ?? []), writer]);
  };
  const seen = new Set<string>();
  instances.forEach(({ touches }, at) => {
    touches.forEach((t, k) => {
      t.elements.forEach((element, e) => {
        const cell = moved[at]!.touches[k]!.elements[e]!;
        const given = nest.given.has(arrayOf(element)) && !seen.has(element);
        if (given) add(cell, { at: -1, element });
        seen.add(element);
        if (t.kind !== "read") add(cell, { at, element });
      });
    });
  });
  return writers;
}

interface Value {
  readonly element: string;
  readonly cell: string;
  readonly readCell: string;
  /** Instances; -1 is before or behind everything. */
  readonly w: number;
  readonly r: number;
}

/** Every value with each instance that reads it, in the order of the tree. */
function valuesOf(
  nest: Nest,
  run: {
    readonly instances: readonly Located[];
    readonly moved: readonly Located[];
    readonly order: readonly number[];
  },
): readonly Value[] {
  const { instances, moved, order } = run;
  /** Who may have made what an element holds now. */
  const holds = new Map<string, { w: number; cell: string }[]>();
  const homes = new Map<string, string>();
  instances.forEach(({ touches }, at) => {
    touches.forEach((t, k) => {
      t.elements.forEach((element, e) => {
        const cell = moved[at]!.touches[k]!.elements[e]!;
        homes.set(element, cell);
        if (nest.given.has(arrayOf(element))) holds.set(element, [{ w: -1, cell }]);
      });
    });
  });
  const values: Value[] = [];
  const use = (element: string, r: number, readCell: string): void => {
    for (const { w, cell } of holds.get(element) ?? []) {
      values.push({ element, cell, readCell, w, r });
    }
  };
  for (const at of order) {
    const { touches } = instances[at]!;
    const cellOf = (k: number, e: number): string => moved[at]!.touches[k]!.elements[e]!;
    touches.forEach((t, k) => {
      if (t.kind === "write") return;
      t.elements.forEach((element, e) => {
        use(element, at, cellOf(k, e));
      });
    });
    touches.forEach((t, k) => {
      if (t.kind === "read") return;
      const sure = t.elements.length === 1 ? [] : undefined;
      t.elements.forEach((element, e) => {
        const made = { w: at, cell: cellOf(k, e) };
        holds.set(element, [...(sure ?? holds.get(element) ?? []), made]);
      });
    });
  }
  for (const element of holds.keys()) {
    if (nest.kept.has(arrayOf(element))) use(element, -1, homes.get(element)!);
  }
  return values;
}
