/** Strongly connected and connected components of an extraction problem's classes. */

import type { ExtractionProblem } from "./problem.ts";
import type { DraftClass } from "./reduce.ts";

/** A number for each class, equal within a strong component (Tarjan, 1972, with an own stack). */
export function strongComponents(problem: ExtractionProblem): Int32Array {
  const { classCount, classStart, childStart, children } = problem;
  const component = new Int32Array(classCount).fill(-1);
  const index = new Int32Array(classCount).fill(-1);
  const low = new Int32Array(classCount);
  const onStack = new Uint8Array(classCount);
  const stack: number[] = [];
  const path: number[] = [];
  const nextEdge = new Int32Array(classCount);
  let counter = 0;
  let components = 0;
  const enter = (c: number): void => {
    index[c] = low[c] = counter++;
    stack.push(c);
    onStack[c] = 1;
    nextEdge[c] = childStart[classStart[c]!]!;
    path.push(c);
  };
  const leave = (c: number): void => {
    path.pop();
    const above = path[path.length - 1];
    if (above !== undefined) low[above] = Math.min(low[above]!, low[c]!);
    if (low[c] !== index[c]) return;
    for (;;) {
      const member = stack.pop()!;
      onStack[member] = 0;
      component[member] = components;
      if (member === c) break;
    }
    components++;
  };
  for (let start = 0; start < classCount; start++) {
    if (index[start]! >= 0) continue;
    enter(start);
    while (path.length > 0) {
      const c = path[path.length - 1]!;
      // The edges of a class are one run, since its nodes are.
      if (nextEdge[c]! < childStart[classStart[c + 1]!]!) {
        const child = children[nextEdge[c]!]!;
        nextEdge[c] = nextEdge[c]! + 1;
        if (index[child]! < 0) enter(child);
        else if (onStack[child]) low[c] = Math.min(low[c]!, index[child]!);
      } else leave(c);
    }
  }
  return component;
}

/** The classes of `order` in groups that no node joins, each ascending. */
export function componentsOf(classes: readonly DraftClass[], order: readonly number[]): number[][] {
  const leader = new Map(order.map((c) => [c, c]));
  const find = (c: number): number => {
    let at = c;
    while (leader.get(at) !== at) {
      leader.set(at, leader.get(leader.get(at)!)!);
      at = leader.get(at)!;
    }
    return at;
  };
  for (const c of order) {
    for (const { children } of classes[c]!) {
      for (const child of children) leader.set(find(child), find(c));
    }
  }
  const groups = new Map<number, number[]>();
  for (const c of [...order].sort((a, b) => a - b)) {
    const group = groups.get(find(c));
    if (group) group.push(c);
    else groups.set(find(c), [c]);
  }
  return [...groups.values()];
}
