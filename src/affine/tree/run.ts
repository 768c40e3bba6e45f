/**
 * Runs a schedule tree on given instances: the slow obvious meaning that everything else about trees
 * is compared with. Gives the instances in the order in which they run; where nothing is ordered, in
 * the order that the caller picks. An instance that no leaf takes, or that two take, is reported.
 */
import { invariant } from "../../support/invariant.ts";
import { equals, makeSet } from "../build.ts";
import { enumeratePoints } from "../enumerate.ts";
import { affine, evaluateAffine } from "../expression.ts";
import type { NestStatement } from "../nest.ts";
import { parseMap } from "../notation-parse.ts";
import { applyMap } from "../operations.ts";
import { type BandMember, isUnordered, type ScheduleTree, type TreeMark } from "./tree.ts";

/** An instance: the statement and the values of its dimensions. */
export interface Instance {
  readonly statement: string;
  readonly point: Readonly<Record<string, number>>;
}

export interface RunOptions {
  /** The order of `count` parts that nothing orders; as they stand when absent. */
  readonly permute?: (count: number) => readonly number[];
  /** Dimensions of the statements that extensions bring in. */
  readonly statements?: readonly NestStatement[];
}

export type Run =
  | { readonly kind: "ran"; readonly order: readonly Instance[] }
  /** Some instance does not run exactly once. */
  | { readonly kind: "miscounted"; readonly instance: Instance; readonly times: number };

/** Runs every instance of `domain` and those that extensions add, each exactly once. */
export function runTree(
  tree: ScheduleTree,
  domain: readonly Instance[],
  options: RunOptions = {},
): Run {
  const order = executeTree(tree, domain, options);
  const counts = new Map<string, number>();
  for (const i of order) counts.set(instanceKey(i), (counts.get(instanceKey(i)) ?? 0) + 1);
  for (const instance of [...domain, ...order]) {
    const times = counts.get(instanceKey(instance)) ?? 0;
    if (times !== 1) return { kind: "miscounted", instance, times };
  }
  return { kind: "ran", order };
}

export function instanceKey({ statement, point }: Instance): string {
  return `${statement}[${Object.values(point).join()}]`;
}

/** The instances in the order of the tree. */
export function executeTree(
  tree: ScheduleTree,
  domain: readonly Instance[],
  options: RunOptions = {},
): readonly Instance[] {
  return new Runner(options).run(tree, domain, { marks: [], prefix: [] });
}

/** What a node knows of the nodes above it. */
interface Above {
  readonly marks: readonly TreeMark[];
  /** Values of the loops outside. */
  readonly prefix: readonly number[];
}

class Runner {
  readonly #options: RunOptions;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  run(tree: ScheduleTree, domain: readonly Instance[], above: Above): readonly Instance[] {
    const { prefix } = above;
    const inner = { marks: [], prefix };
    switch (tree.kind) {
      case "leaf":
        return domain;
      case "domain":
      case "context":
        return this.run(tree.child, domain, inner);
      case "mark":
        return this.run(tree.child, domain, { marks: [...above.marks, tree.mark], prefix });
      case "filter": {
        const kept = domain.filter((i) => tree.statements.includes(i.statement));
        return this.run(tree.child, kept, inner);
      }
      case "extension":
        return this.run(tree.child, [...domain, ...this.#added(tree, prefix)], inner);
      case "sequence":
        return tree.children.flatMap((child) => this.run(child, domain, inner));
      case "set": {
        const order = this.#permuted(tree.children);
        return order.flatMap((child) => this.run(child, domain, inner));
      }
      case "band":
        return this.#band(tree.members, { tree: tree.child, ...above }, domain);
    }
  }

  #band(
    members: readonly BandMember[],
    at: Above & { readonly tree: ScheduleTree },
    domain: readonly Instance[],
  ): readonly Instance[] {
    const [member, ...others] = members;
    if (!member) return this.run(at.tree, domain, { marks: [], prefix: at.prefix });
    const groups = new Map<number, Instance[]>();
    for (const instance of domain) {
      const value = member.values.get(instance.statement);
      if (!value) continue;
      const time = evaluateAffine(value, instance.point);
      groups.set(time, [...(groups.get(time) ?? []), instance]);
    }
    const times = [...groups.keys()].sort((a, b) => a - b);
    const order = at.marks.some(isUnordered) ? this.#permuted(times) : times;
    return order.flatMap((time) =>
      this.#band(others, { ...at, prefix: [...at.prefix, time] }, groups.get(time)!),
    );
  }

  #permuted<T>(parts: readonly T[]): readonly T[] {
    const order = this.#options.permute?.(parts.length);
    return order ? order.map((i) => parts[i]!) : parts;
  }

  /** What an extension adds at the values of the loops outside it. */
  #added(
    { text, statement }: ScheduleTree & { readonly kind: "extension" },
    prefix: readonly number[],
  ): readonly Instance[] {
    const read = parseMap(text);
    const dims = this.#options.statements?.find((s) => s.name === statement)?.dims;
    invariant(read.ok && dims, () => `extension ${text} brings in nothing known`);
    const outside = read.value.pieces[0]?.input?.dims ?? [];
    const where = outside.map((d, i) => equals(d, affine(prefix[i]!)));
    const found = enumeratePoints(applyMap(read.value, makeSet({ dims: outside, where })));
    invariant(found.kind === "known", () => `extension ${text} has no end`);
    return found.value.map(({ values }) => ({
      statement,
      point: Object.fromEntries(dims.map((d, i) => [d, values[i]!])),
    }));
  }
}
