/**
 * Clusters of P blocks that first share one tile, `if c < R { ... }`, and then go on alone from tile to tile,
 * `for t < W { ... }` (schedule directive `multiply ... blocks B parts P`), seen as clusters of one tile each, all
 * of them shared. With N = W * C * P for C clusters, block r of cluster c has the tiles n = P * (C * t + c) + r, and
 * cluster c has the tile N + c: every n below N + R once. A tile that a block has alone may be seen as shared where
 * that means the same accesses to memory: the stores of the blocks of a cluster, taken together, are those of the
 * block, each once, and what the block loads they load. Meant, like tile-turns.ts, for questions in which no
 * two accesses are ordered: one thread's accesses are then P threads', which can only race more.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  splitLinear,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import type { GridAxis } from "../program.ts";
import type { Statement } from "../statement.ts";
import { exprIndices, ownExprs, substituteStatements, visitExpr } from "../walk.ts";
import type { TileRole } from "./tile-turns.ts";

/** The role's body, of nothing but these two, for each tile and block of a cluster; undefined where it is anything else. */
export function overSharedRound(
  axes: readonly GridAxis[],
  body: readonly Statement[],
  ranges: IndexRanges,
): TileRole | undefined {
  const round = sharedRoundOf(axes, body);
  if (!round) return undefined;
  const { cluster, part, parts, clusters, whole, shared } = round;
  const [low, high] = [`${cluster}.low`, `${cluster}.high`];
  const digits = add(mul(parts, variable(high)), variable(low));
  const tiles = whole + shared;
  const known = new Map(ranges)
    .set(low, { min: 0, max: parts - 1 })
    .set(high, { min: 0, max: Math.ceil(tiles / parts) - 1 });
  const alone = accessesOf(round.alone.body, known, [
    [cluster, sub(variable(high), mul(clusters, variable(round.alone.variable)))],
    [part, variable(low)],
  ]);
  if (!alone || [...alone.stores, ...alone.loads].length === 0) return undefined;
  const names = new Set([cluster, part, round.alone.variable]);
  if ([...alone.used].some((name) => names.has(name))) return undefined;
  const [stores, loads]: [string[], Set<string>] = [[], new Set()];
  for (let rank = 0; rank < parts; rank++) {
    const own = accessesOf(round.together, known, [
      [cluster, sub(digits, whole)],
      [part, constant(rank)],
    ]);
    if (!own) return undefined;
    stores.push(...own.stores);
    for (const load of own.loads) loads.add(load);
  }
  const isSame =
    stores.sort().join("\n") === alone.stores.toSorted().join("\n") &&
    [...alone.loads].every((load) => loads.has(load));
  if (!isSame) return undefined;
  const name = `${cluster}.tile`;
  const at = new Map([[cluster, sub(variable(name), whole)]]);
  return {
    axes: axes.map((a) => (a.name === cluster ? { name, extent: constant(tiles) } : a)),
    body: substituteStatements(round.together, at),
    isOneCopy: false,
  };
}

interface SharedRound {
  readonly cluster: string;
  readonly part: string;
  readonly parts: number;
  readonly clusters: number;
  /** Tiles that single blocks have, and those of clusters. */
  readonly whole: number;
  readonly shared: number;
  readonly together: readonly Statement[];
  readonly alone: Extract<Statement, { kind: "for" }>;
}

function sharedRoundOf(
  axes: readonly GridAxis[],
  body: readonly Statement[],
): SharedRound | undefined {
  const [branch, loop] = body;
  const [cluster, part] = axes.slice(-2);
  if (axes.length !== 2 || body.length !== 2) return undefined;
  if (branch?.kind !== "if" || branch.else.length > 0 || branch.conditions.length !== 1)
    return undefined;
  if (loop?.kind !== "for" || loop.mode.kind !== "serial") return undefined;
  const [clusters, parts, rounds] = [cluster!.extent, part!.extent, loop.extent].map(constantValue);
  const shared = boundOf(branch.conditions[0]!, cluster!.name);
  if (clusters === undefined || parts === undefined || rounds === undefined) return undefined;
  if (shared === undefined || shared < 1 || shared > clusters) return undefined;
  return {
    ...{ cluster: cluster!.name, part: part!.name, parts, clusters, shared },
    ...{ whole: rounds * clusters * parts, together: branch.then, alone: loop },
  };
}

/** Of a condition that is `name < bound`, the bound. */
function boundOf({ kind, expr }: Condition, name: string): number | undefined {
  const linear = splitLinear(expr, name);
  const rest = linear && constantValue(linear.rest);
  if (kind === "zero" || linear?.coefficient !== -1 || rest === undefined) return undefined;
  return rest + 1;
}

/** Accesses spelled with what they happen under, loops by how deep they lie. */
interface Accesses {
  readonly stores: readonly string[];
  readonly loads: ReadonlySet<string>;
  /** All variables in them. */
  readonly used: ReadonlySet<string>;
}

function accessesOf(
  body: readonly Statement[],
  ranges: IndexRanges,
  at: readonly (readonly [string, IndexExpr])[],
): Accesses | undefined {
  const found = new AccessList(ranges);
  return found.list(substituteStatements(body, new Map(at)), []) ? found : undefined;
}

class AccessList implements Accesses {
  readonly stores: string[] = [];
  readonly loads = new Set<string>();
  readonly used = new Set<string>();
  readonly #ranges: IndexRanges;

  constructor(ranges: IndexRanges) {
    this.#ranges = ranges;
  }

  /** Whether all statements are known kinds. */
  list(body: readonly Statement[], under: readonly string[]): boolean {
    return body.every((s) => this.#statement(s, under));
  }

  #statement(s: Statement, under: readonly string[]): boolean {
    for (const value of ownExprs(s)) {
      visitExpr(value, (e) => {
        if (e.kind !== "load") {
          for (const index of exprIndices(e)) this.#spelled(index);
          return;
        }
        const guard = e.guard.map((c) => this.#condition(c));
        this.loads.add(this.#access(e, e.lanes, [...under, ...guard]));
      });
    }
    switch (s.kind) {
      case "let":
        return true;
      case "store":
        this.stores.push(this.#access(s, s.value.lanes, under));
        return true;
      case "if": {
        const conditions = s.conditions.map((c) => this.#condition(c));
        if (s.else.length > 0 && conditions.length !== 1) return false;
        const otherwise = s.else.length > 0 ? [`not ${conditions[0]}`] : [];
        return (
          this.list(s.then, [...under, ...conditions]) &&
          this.list(s.else, [...under, ...otherwise])
        );
      }
      case "for": {
        if (s.mode.kind !== "serial") return false;
        const name = `loop.${under.length}`;
        const inside = substituteStatements(s.body, new Map([[s.variable, variable(name)]]));
        return this.list(inside, [...under, `${name} < ${this.#spelled(s.extent)}`]);
      }
      default:
        return false;
    }
  }

  #access(
    { buffer, index }: { readonly buffer: string; readonly index: readonly IndexExpr[] },
    lanes: number,
    under: readonly string[],
  ): string {
    const place = index.map((e) => this.#spelled(e)).join();
    return `${buffer}[${place}] x ${lanes} if ${under.toSorted().join(" and ")}`;
  }

  #condition({ kind, expr }: Condition): string {
    return `${kind} ${this.#spelled(expr)}`;
  }

  #spelled(e: IndexExpr): string {
    const simple = simplify(simplify(e, this.#ranges), this.#ranges);
    for (const name of variablesOf(simple)) this.used.add(name);
    return simple.key;
  }
}
