/**
 * Directives on storage: folding an axis, writing in place of another array, several copies of an array
 * over a loop. Each relocates accesses; storage.ts decides whether a value would be lost. After a legal
 * one the order at that point becomes the original order of the changed nest, so that every later
 * directive has to keep the dependences which the shared cells create.
 */
import { reject } from "../../support/diagnostic.ts";
import { remainder } from "../expression.ts";
import { isRange, type NestAccess } from "../nest.ts";
import { timePaths } from "./flatten.ts";
import { checkFactor } from "./loop-directives.ts";
import type { Nest, Plan } from "./nest-program.ts";
import type { Relocation } from "./storage.ts";

export type StorageDirective =
  /** Cell e mod modulus holds what axis position e of the array did. */
  | {
      readonly kind: "fold";
      readonly array: string;
      readonly axis: number;
      readonly modulus: number;
    }
  /** The elements of `array` lie where those of `over` with the same index do. */
  | { readonly kind: "overwrite"; readonly array: string; readonly over: string }
  /** Iterations of a loop take turns with `copies` copies of the array. */
  | {
      readonly kind: "buffer";
      readonly array: string;
      readonly loop: string;
      readonly copies: number;
    };

/** The relocation of a directive that makes sense for the plan. */
export function relocationOf({ nest, tree }: Plan, d: StorageDirective): Relocation {
  const rank = rankOf(nest, d.array);
  switch (d.kind) {
    case "fold": {
      checkFactor(d.array, d.modulus);
      if (!(d.axis >= 0 && d.axis < rank)) {
        reject("SCH003", `${d.array} has no axis ${d.axis}`, { at: `fold ${d.array}` });
      }
      return (_, access) =>
        access.array === d.array ? foldAxis(access, d.axis, d.modulus) : access;
    }
    case "overwrite": {
      const other = rankOf(nest, d.over);
      const isSame = d.array === d.over;
      if (other !== rank || isSame) {
        const axes = `${d.array} has ${rank} axes, ${d.over} ${other}`;
        reject("SCH003", isSame ? `${d.array} would overwrite itself` : axes, {
          at: `overwrite ${d.over} with ${d.array}`,
          help: "name two arrays of one shape",
        });
      }
      return (_, access) => (access.array === d.array ? { ...access, array: d.over } : access);
    }
    case "buffer": {
      checkFactor(d.array, d.copies);
      checkPrivate(nest, d.array, `buffer ${d.array}`);
      const paths = timePaths(tree, nest.statements);
      return (statement, access) => {
        if (access.array !== d.array) return access;
        const value = paths.get(statement.name)?.find((p) => p.loop === d.loop)?.value;
        if (!value) return outsideLoop(statement.name, d.array, d.loop);
        return { ...access, index: [remainder(value, d.copies), ...access.index] };
      };
    }
  }
}

/** Arrays that hold something before or behind the nest keep their place. */
export function checkPrivate({ given, kept }: Nest, array: string, at: string): void {
  if (!given.has(array) && !kept.has(array)) return;
  reject("SCH010", `${array} is used outside the nest`, { at, help: "only local arrays may move" });
}

function outsideLoop(statement: string, array: string, loop: string): never {
  return reject("SCH002", `${statement} uses ${array} outside the loop ${loop}`, {
    at: `buffer ${array}`,
    help: "fuse all users of the array into the loop first",
  });
}

function rankOf({ statements }: Nest, array: string): number {
  const access = statements.flatMap((s) => s.accesses).find((a) => a.array === array);
  if (access) return access.index.length;
  return reject("SCH011", `the nest does not touch an array ${array}`, { at: array });
}

function foldAxis(access: NestAccess, axis: number, modulus: number): NestAccess {
  const at = access.index[axis]!;
  if (isRange(at)) {
    return reject("SCH017", `axis ${axis} of ${access.array} is reached through an index`, {
      at: `fold ${access.array}`,
      help: "fold an axis whose position is known",
    });
  }
  return { ...access, index: access.index.with(axis, remainder(at, modulus)) };
}

/** The plan with relocated accesses, and its order as the order that must now be kept. */
export function relocated(plan: Plan, relocate: Relocation, d: StorageDirective): Plan {
  const statements = plan.nest.statements.map((s) => ({
    ...s,
    accesses: s.accesses.map((a) => relocate(s, a)),
  }));
  const without = (names: ReadonlySet<string>): ReadonlySet<string> =>
    d.kind === "overwrite" && names.has(d.array) ? new Set([...names, d.over]) : names;
  const { given, kept } = plan.nest;
  const nest = {
    ...plan.nest,
    statements,
    tree: plan.tree,
    given: without(given),
    kept: without(kept),
  };
  return { nest, tree: plan.tree };
}
