/** Directives on trees in text, one line each, as the schedule language spells them. */
import type { TreeDirective } from "./directive.ts";

export function printTreeDirective(d: TreeDirective): string {
  switch (d.kind) {
    case "split":
    case "jam":
    case "split-reduction":
    case "split-scan":
      return `${d.kind} ${d.statement}:${d.loop} by ${d.factor} -> ${d.outer} ${d.inner}`;
    case "tile":
      return `tile ${d.statement}:${list(d.loops)} by ${list(d.factors)} -> ${list(d.outer)} ${list(d.inner)}`;
    case "overlap":
      return `overlap ${d.statement} into ${d.into}:${list(d.loops)} by ${list(d.factors)} -> ${list(d.outer)} ${list(d.inner)}`;
    case "reorder":
      return `reorder ${d.statement}:${list(d.order)}`;
    case "interchange":
      return `interchange ${d.statement}:${d.loop} with ${d.other}`;
    case "skew":
      return `skew ${d.statement}:${d.loop} by ${d.by} times ${d.factor}`;
    case "shift":
      return `shift ${d.statement}:${d.loop} by ${d.by}`;
    case "diamond":
      return `diamond ${d.statement}:${d.loop} with ${d.by} by ${d.factor} slope ${d.slope} -> ${d.wave} ${d.tile}`;
    case "mark":
      return `mark ${d.statement}:${d.loop} ${d.mark}`;
    case "fuse":
      return `fuse ${d.statement} into ${d.into}:${d.at}`;
    case "fission":
      return `fission ${d.statement}:${d.loop}`;
    case "pipeline":
      return `pipeline ${d.loop} ${pairs(d.stages)}`;
    case "roles":
      return `roles ${d.loop} ${pairs(new Map([...d.roles].map(([s, r]) => [s, quote(r)])))}`;
    case "fold":
      return `fold ${quote(d.array)} axis ${d.axis} to ${d.modulus}`;
    case "overwrite":
      return `overwrite ${quote(d.over)} with ${quote(d.array)}`;
    case "buffer":
      return `buffer ${quote(d.array)} over ${d.loop} in ${d.copies}`;
  }
}

function quote(name: string): string {
  return JSON.stringify(name);
}

function list(items: readonly (string | number)[]): string {
  return `(${items.join(", ")})`;
}

function pairs(map: ReadonlyMap<string, string | number>): string {
  return `(${[...map].map(([statement, value]) => `${statement} ${value}`).join(", ")})`;
}
