/** Terms as text, into a graph: patterns without variables. */
import { invariant } from "../support/invariant.ts";
import type { EGraph } from "./e-graph.ts";
import type { NodeId } from "./node-store.ts";
import { type Pattern, parsePattern } from "./pattern.ts";

/** Adds a term; its variables stand for the given ids. */
export function addPattern<D>(
  graph: EGraph<D>,
  pattern: Pattern | string,
  ids: Readonly<Record<string, NodeId>> = {},
): NodeId {
  const add = (at: Pattern): NodeId => {
    if (at.kind === "variable") {
      const id = ids[at.name];
      invariant(id !== undefined, () => `?${at.name} stands for no id`);
      return id;
    }
    const { op, payload, children } = at;
    invariant(payload.kind === "key", () => `the payload of "${op}" is not fixed`);
    return graph.add(op, children.map(add), payload.key);
  };
  return add(typeof pattern === "string" ? parsePattern(pattern) : pattern);
}
