/**
 * Overlapped tiles: a producer runs once for each tile of its consumer, on all that the tile reads, so
 * that tiles need nothing from each other. Instances on the rims of tiles run in several; an extension
 * node adds the copies. Right when the producer makes one local array that the consumer alone reads, all
 * that the consumer reads of it is made by the producer, and every copy stands where what it reads is
 * there and not yet overwritten.
 */
import { diagnostic, reject } from "../../support/diagnostic.ts";
import { makeMap } from "../build.ts";
import { isSubset } from "../compare.ts";
import type { Dependence } from "../dependence.ts";
import { type Affine, affine } from "../expression.ts";
import { checkDependence, pairOf, type Witness } from "../legality.ts";
import { accessMap, domainOf, type NestAccess, type NestStatement } from "../nest.ts";
import { flatRangeProduct } from "../nested.ts";
import { formatSet } from "../notation-print.ts";
import {
  applyMap,
  compose,
  emptyMap,
  emptySet,
  intersectDomain,
  inverse,
  union,
} from "../operations.ts";
import type { IntegerMap, IntegerSet } from "../types.ts";
import { changeChain, noStatement, rechain, simplifyTree } from "./chain.ts";
import type { Verdict } from "./directive.ts";
import { flattenTree, timePaths } from "./flatten.ts";
import { tileLoops } from "./loop-directives.ts";
import { nestDependences, type Plan } from "./nest-program.ts";
import { checkPrivate } from "./storage-directives.ts";
import { type FilterNode, leaf, mapChildren, type ScheduleTree } from "./tree.ts";

export interface OverlapDirective {
  readonly kind: "overlap";
  /** Runs in the tiles of `into`. */
  readonly statement: string;
  readonly into: string;
  readonly loops: readonly string[];
  readonly factors: readonly number[];
  readonly outer: readonly string[];
  readonly inner: readonly string[];
}

/** The name that the producer's copies have. */
export function copyName(statement: string): string {
  return `${statement}.tile`;
}

export function overlapTiles(plan: Plan, d: OverlapDirective, at: number): Verdict {
  const found = nestDependences(plan.nest);
  if (found.kind === "unknown") return { kind: "unknown", at, reason: found.reason };
  const shared = sharedValue(plan, d, found.value);
  if (shared) {
    const text = `what ${d.statement} makes is not made once, for ${d.into} alone`;
    const help = "overlap a producer of a temporary with its only reader";
    const diagnostics = [diagnostic("SCH016", text, { help })];
    return { kind: "malformed", at, diagnostics, witness: shared };
  }
  const overlap = new Overlap(plan, d, found.value);
  const next = overlap.build();
  const { times } = flattenTree(next.tree, next.nest.statements);
  const options = plan.nest.context ? { context: plan.nest.context } : {};
  for (const dependence of overlap.dependencesOfCopies()) {
    const one = checkDependence({ times }, dependence, options);
    if (one.kind === "illegal") return { kind: "illegal", at, witness: one.witness };
    if (one.kind === "unknown") return { kind: "unknown", at, reason: one.reason };
  }
  return { kind: "legal", plan: next };
}

/** Two instances that share an element of the producer's array otherwise than from it to its consumer. */
function sharedValue(
  { nest }: Plan,
  { statement, into }: OverlapDirective,
  dependences: readonly Dependence[],
): Witness | undefined {
  const made = nest.statements
    .filter((s) => s.name === statement)
    .flatMap((s) => s.accesses.filter((a) => a.kind !== "read").map((a) => a.array));
  for (const d of dependences) {
    const array = d.sourceAccess?.pieces[0]?.output.name;
    if (array === undefined || !made.includes(array)) continue;
    if (d.kind === "flow" && d.source === statement && d.sink === into) continue;
    const witness = pairOf(d, nest.context ? { context: nest.context } : {});
    if (witness) return witness;
  }
  return undefined;
}

class Overlap {
  readonly #plan: Plan;
  readonly #d: OverlapDirective;
  readonly #dependences: readonly Dependence[];
  readonly #producer: NestStatement;
  readonly #consumer: NestStatement;
  readonly #made: NestAccess;
  /** Names and values (in the consumer) of the loops outside a tile and those that count tiles. */
  readonly #prefix: readonly { readonly name: string; readonly value: Affine }[];
  readonly #tiled: ScheduleTree;
  readonly #copies: NestStatement;
  /** { [outer loops] -> S[...] }: what a tile needs. */
  readonly #needed: IntegerMap;

  constructor(plan: Plan, d: OverlapDirective, dependences: readonly Dependence[]) {
    const named = (name: string): NestStatement =>
      plan.nest.statements.find((s) => s.name === name) ?? noStatement(name);
    this.#plan = plan;
    this.#d = d;
    this.#dependences = dependences;
    this.#producer = named(d.statement);
    this.#consumer = named(d.into);
    this.#made = this.#checkProducer();
    this.#tiled = tileLoops(plan.tree, { ...d, statement: d.into });
    this.#prefix = this.#outerLoops();
    this.#needed = this.#neededByTile();
    this.#copies = this.#copyStatement();
  }

  build(): Plan {
    const { nest } = this.#plan;
    const array = copyName(this.#made.array);
    const own = this.#prefix.map((p) => p.value);
    const accesses = this.#consumer.accesses.map((a) =>
      a.array === this.#made.array ? { ...a, array, index: [...own, ...a.index] } : a,
    );
    const consumer = { ...this.#consumer, accesses };
    const statements = nest.statements.map((s) =>
      s === this.#producer ? this.#copies : s === this.#consumer ? consumer : s,
    );
    const tree = simplifyTree(this.#extended(without(this.#tiled, this.#producer.name)));
    return { nest: { ...nest, statements, tree }, tree };
  }

  /** The producer's dependences on statements other than the consumer, for every copy. */
  dependencesOfCopies(): readonly Dependence[] {
    const { name, accesses } = this.#producer;
    const all = [...this.#prefix.map((p) => p.name), ...this.#producer.dims];
    const values = this.#copies.dims.slice(this.#prefix.length);
    const copyOf = intersectDomain(
      makeMap({ from: { tuple: copyName(name), dims: all }, to: { tuple: name, values } }),
      domainOf(this.#copies),
    );
    const mapOf = (old: IntegerMap | undefined): IntegerMap | undefined => {
      const at = accesses.findIndex(
        (a) => formatSet(accessMap(this.#producer, a)) === formatSet(old!),
      );
      return accessMap(this.#copies, this.#copies.accesses[at]!);
    };
    return this.#dependences.flatMap((d): Dependence[] => {
      const [from, to] = [d.source === name, d.sink === name];
      const isValue = d.sourceAccess?.pieces.some((p) => p.output.name === this.#made.array);
      if ((!from && !to) || isValue) return [];
      const relation = from ? compose(copyOf, d.relation) : compose(d.relation, inverse(copyOf));
      return [
        {
          ...d,
          relation,
          source: from ? copyName(name) : d.source,
          sink: to ? copyName(name) : d.sink,
          ...(from && { sourceAccess: mapOf(d.sourceAccess)! }),
          ...(to && { sinkAccess: mapOf(d.sinkAccess)! }),
        },
      ];
    });
  }

  #refuse(reason: string, help: string): never {
    return reject("SCH010", reason, {
      at: `overlap ${this.#d.statement} in ${this.#d.into}`,
      help,
    });
  }

  /** One local array, each element made once, by a statement that does not read it. */
  #checkProducer(): NestAccess {
    const { statement, into } = this.#d;
    const writes = this.#producer.accesses.filter((a) => a.kind !== "read");
    const [made] = writes;
    if (writes.length !== 1 || made!.kind !== "write") {
      this.#refuse(`${statement} does not just write one array`, "overlap statements that do");
    }
    const { array } = made!;
    checkPrivate(this.#plan.nest, array, `overlap ${statement} in ${into}`);
    const others = this.#plan.nest.statements.filter(
      (s) => s.accesses.some((a) => a.array === array && a !== made) && s !== this.#consumer,
    );
    const touches = (map: IntegerMap | undefined): boolean =>
      map?.pieces.some((p) => p.output.name === array) === true;
    const mixed = this.#dependences.some((d) => touches(d.sourceAccess) && d.kind !== "flow");
    const updates = this.#consumer.accesses.some((a) => a.array === array && a.kind !== "read");
    if (others.length > 0 || mixed || updates) {
      this.#refuse(
        `${array} is not made once by ${statement} for ${into} alone`,
        "overlap a producer of a temporary with its only reader",
      );
    }
    const reads = this.#consumer.accesses.filter((a) => a.array === array);
    const image = (s: NestStatement, a: NestAccess): IntegerSet =>
      applyMap(accessMap(s, a), domainOf(s));
    const wanted = reads.map((a) => image(this.#consumer, a)).reduce(union, emptySet());
    if (reads.length === 0 || isSubset(wanted, image(this.#producer, made!)) !== "yes") {
      this.#refuse(
        `${into} reads elements of ${array} that ${statement} does not make`,
        "overlap a producer that makes all its consumer reads",
      );
    }
    return made!;
  }

  #outerLoops(): readonly { readonly name: string; readonly value: Affine }[] {
    const parts = timePaths(this.#tiled, this.#plan.nest.statements).get(this.#d.into)!;
    const last = parts.findLastIndex((p) => p.loop !== undefined && this.#d.outer.includes(p.loop));
    const loops = parts.slice(0, last + 1).filter((p) => p.loop !== undefined);
    const shared = timePaths(this.#tiled, this.#plan.nest.statements).get(this.#d.statement)!;
    const both = loops.find((p) => shared.some((q) => q.node === p.node));
    if (both) {
      this.#refuse(`both run inside the loop ${both.loop}`, "overlap statements side by side");
    }
    const taken = new Set(this.#producer.dims);
    return loops.map((p) => ({
      name: taken.has(p.loop!) ? `${p.loop!}_tile` : p.loop!,
      value: p.value,
    }));
  }

  #neededByTile(): IntegerMap {
    const { name, dims, accesses } = this.#consumer;
    const values = this.#prefix.map((p) => p.value);
    const tileOf = intersectDomain(
      makeMap({ from: { tuple: name, dims }, to: { values } }),
      domainOf(this.#consumer),
    );
    const makers = inverse(
      intersectDomain(accessMap(this.#producer, this.#made), domainOf(this.#producer)),
    );
    const reads = accesses
      .filter((a) => a.array === this.#made.array)
      .map((a) => compose(accessMap(this.#consumer, a), makers));
    return compose(inverse(tileOf), reads.reduce(union, emptyMap()));
  }

  #copyStatement(): NestStatement {
    const name = copyName(this.#producer.name);
    const dims = [...this.#prefix.map((p) => p.name), ...this.#producer.dims];
    const within: IntegerSet = {
      kind: "set",
      params: this.#needed.params,
      pieces: this.#needed.pieces.map((p) => ({ ...p, input: undefined, output: { name, dims } })),
    };
    const array = copyName(this.#made.array);
    const own = this.#prefix.map((p) => affine(p.name));
    const accesses = this.#producer.accesses.map((a) =>
      a === this.#made ? { ...a, array, index: [...own, ...a.index] } : a,
    );
    return { name, dims, domain: this.#producer.domain, within, accesses };
  }

  /** The copies in front of the consumer's points, inside the loops that count tiles. */
  #extended(tree: ScheduleTree): ScheduleTree {
    const { into, outer } = this.#d;
    return changeChain(tree, { statement: into, loop: outer.at(-1)! }, (chain, at) => {
      const inner = rechain({ loops: chain.loops.slice(at + 1), rest: chain.rest });
      const members = this.#producer.dims.map((loop) => ({
        loop,
        values: new Map([[this.#copies.name, affine(loop)]]),
        coincident: false,
      }));
      const copies: ScheduleTree =
        members.length > 0 ? { kind: "band", members, permutable: false, child: leaf } : leaf;
      const children: FilterNode[] = [
        { kind: "filter", statements: [this.#copies.name], child: copies },
        { kind: "filter", statements: [into], child: inner },
      ];
      const rest: ScheduleTree = {
        kind: "extension",
        statement: this.#copies.name,
        text: formatSet(this.#extension()),
        child: { kind: "sequence", children },
      };
      return { loops: chain.loops.slice(0, at + 1), rest };
    });
  }

  /** { [outer loops] -> S.tile[outer loops, ...] }. */
  #extension(): IntegerMap {
    const dims = this.#prefix.map((p) => p.name);
    const same = makeMap({ from: { dims }, to: { values: dims } });
    const joined = flatRangeProduct(same, this.#needed);
    const name = this.#copies.name;
    return {
      ...joined,
      pieces: joined.pieces.map((p) => ({ ...p, output: { name, dims: p.output.dims } })),
    };
  }
}

/** The tree without one statement. */
function without(tree: ScheduleTree, statement: string): ScheduleTree {
  const inside = mapChildren(tree, (child) => without(child, statement));
  if (inside.kind !== "sequence" && inside.kind !== "set") return inside;
  const children = inside.children.flatMap((c): FilterNode[] => {
    const statements = c.statements.filter((s) => s !== statement);
    return statements.length > 0 ? [{ ...c, statements }] : [];
  });
  return { ...inside, children };
}
