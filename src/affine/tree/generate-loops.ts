/**
 * Loops that visit the instances of a schedule tree in its order: polyhedra are scanned from the
 * outermost loop to the innermost (F. Quillere, S. Rajopadhye, D. Wilde, "Generation of efficient nested
 * loops from polyhedra", 2000; C. Bastoul, "Code generation in the polyhedral model is easier than you
 * think", 2004). Statements that share a loop are separated where their ranges differ, so that each
 * range has a loop of its own without guards; where that gives too many parts, or they have no order,
 * one loop spans all and the statements are guarded. A condition stands as far outside as what it needs
 * is known, and is left out where what surrounds it implies it.
 */
import { invariant } from "../../support/invariant.ts";
import { type Constraint, equals, makeSet } from "../build.ts";
import { isEmptyPiece } from "../compare.ts";
import {
  type Affine,
  add,
  affineEquals,
  ceilDivide,
  floorDivide,
  minus,
  replaceVariables,
  scale,
  variablesOf,
} from "../expression.ts";
import { domainOf, type NestStatement } from "../nest.ts";
import { modulo } from "../row.ts";
import type { IntegerSet } from "../types.ts";
import { type Answer, answer, GiveUp, type Work } from "../work.ts";
import { admits, timePaths } from "./flatten.ts";
import type { Bound, LoopNode } from "./loop-nest.ts";
import { type Congruence, congruenceConstraint, type ScanUnit, scanUnits } from "./scan-unit.ts";
import { isUnordered, loopMarks, type ScheduleTree, type TreeMark } from "./tree.ts";

export interface LoopQuestion {
  readonly statements: readonly NestStatement[];
  readonly tree: ScheduleTree;
  /** What holds for the parameters. */
  readonly context?: IntegerSet;
}

const loopWork = 20_000_000;

/** The loops of a tree; unknown where an instance has no bounds, or the work is too much. */
export function generateLoops(
  { statements, tree, context }: LoopQuestion,
  limit: number = loopWork,
): Answer<LoopNode> {
  return answer((work) => {
    const paths = timePaths(tree, statements);
    const params = [context, ...statements.map(domainOf)].flatMap((d) => d?.params ?? []);
    const scan = { context, params: [...new Set(params)], work };
    const units = statements.flatMap((s) => {
      const parts = paths.get(s.name);
      return parts ? scanUnits(s, parts, scan) : [];
    });
    const known = context ? contextRows(context, work) : [];
    return simplifyLoops(new Generator(work).inside(tree, { units, known, depth: 0, marks: [] }));
  }, limit);
}

/** The rows of a context that is one piece. */
function contextRows(context: IntegerSet, work: Work): readonly Constraint[] {
  const statement: NestStatement = { name: "", dims: [], domain: [], accesses: [] };
  const units = scanUnits(statement, [], { context, params: context.params, work });
  return units.length === 1 ? units[0]!.exact : [];
}

interface Spot {
  readonly units: readonly ScanUnit[];
  /** What is known to hold here. */
  readonly known: readonly Constraint[];
  /** Number of loops around. */
  readonly depth: number;
  /** Of the next loop. */
  readonly marks: readonly TreeMark[];
}

/** A range of one loop in which some statements run. */
interface Part {
  readonly units: readonly ScanUnit[];
  readonly rows: readonly Constraint[];
}

const nothing: LoopNode = { kind: "block", ordered: true, children: [] };

class Generator {
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  inside(tree: ScheduleTree, spot: Spot): LoopNode {
    if (spot.units.length === 0) return nothing;
    const below = { ...spot, marks: [] };
    switch (tree.kind) {
      case "leaf":
        return inSequence(spot.units.map((u) => this.#instances(u, below)));
      case "domain":
      case "context":
      case "extension":
        return this.inside(tree.child, below);
      case "filter": {
        const units = spot.units.filter((u) => admits(tree, u.statement.name));
        return this.inside(tree.child, { ...below, units });
      }
      case "sequence":
      case "set": {
        const children = tree.children.map((c) => this.inside(c, below));
        return { kind: "block", ordered: tree.kind === "sequence", children };
      }
      case "mark": {
        const { mark } = tree;
        if (loopMarks.some((m) => m === mark.kind)) {
          return this.inside(tree.child, { ...spot, marks: [...spot.marks, mark] });
        }
        return { kind: "mark", mark, body: this.inside(tree.child, below) };
      }
      case "band": {
        const band = (at: number, inner: Spot): LoopNode =>
          at === tree.members.length
            ? this.inside(tree.child, { ...inner, marks: [] })
            : this.#loop(inner, (next) => band(at + 1, { ...next, marks: spot.marks }));
        return band(0, spot);
      }
    }
  }

  /** What is left of a unit behind the last loop of the tree: further loops, guards, the instance. */
  #instances(unit: ScanUnit, spot: Spot): LoopNode {
    const alone = { ...spot, units: [unit] };
    if (spot.depth < unit.loops.length)
      return this.#loop(alone, (next) => this.#instances(unit, next));
    const all = [...unit.exact, ...unit.congruences.map(congruenceConstraint)];
    const guards = this.#needed(all, spot.known);
    const { name, dims } = unit.statement;
    return guarded(guards, { kind: "run", statement: name, dims, values: unit.values });
  }

  /** The loop at the spot's depth, in as many parts as its statements' ranges need. */
  #loop(above: Spot, body: (next: Spot) => LoopNode): LoopNode {
    const runs = (u: ScanUnit): boolean =>
      !this.#isEmpty([...above.known, ...u.within[above.depth + 1]!]);
    const spot = { ...above, units: above.units.filter(runs) };
    if (spot.units.length === 0) return nothing;
    // Iterations that run in no order, or meet at their end, stay one loop.
    const whole = spot.marks.some(isUnordered);
    const parts = (whole ? undefined : this.#separate(spot)) ?? [this.#together(spot)];
    return inSequence(parts.map((p) => this.#part(p, spot, body)));
  }

  #part({ units, rows }: Part, spot: Spot, body: (next: Spot) => LoopNode): LoopNode {
    const loop = units[0]!.loops[spot.depth]!;
    const own = rows.filter((r) => variablesOf(r.expression).includes(loop));
    const outer = rows.filter((r) => !own.includes(r));
    const later = units[0]!.loops.slice(spot.depth + 1);
    const common = commonCongruences(units).filter((c) => !usesAny(c, later));
    const outside = common.filter((c) => !variablesOf(c.expression).includes(loop));
    const guards = [
      ...this.#asked(outer, { units, own }, spot),
      ...this.#needed(outside.map(congruenceConstraint), spot.known),
    ];
    const known = [...spot.known, ...guards];
    const bounds = this.#needed(own, known);
    const made = this.#made({ units, loop, bounds, known }, spot, body);
    return guarded(guards, made);
  }

  /** Conditions that no bound of a loop further inside makes sure of: without them those are empty. */
  #asked(
    outer: readonly Constraint[],
    { units, own }: { readonly units: readonly ScanUnit[]; readonly own: readonly Constraint[] },
    { known, depth }: Spot,
  ): readonly Constraint[] {
    const bounds = units.map((u) => {
      const later = u.loops.slice(depth);
      const isLater = (c: Constraint): boolean =>
        variablesOf(c.expression).some((v) => later.includes(v));
      return [...own, ...u.within.at(-1)!.filter(isLater)];
    });
    let kept = outer;
    for (const c of outer) {
      const others = kept.filter((k) => k !== c);
      if (bounds.every((b) => this.#implies([...known, ...b, ...others], c))) kept = others;
    }
    return kept;
  }

  #made(
    at: {
      readonly units: readonly ScanUnit[];
      readonly loop: string;
      readonly bounds: readonly Constraint[];
      readonly known: readonly Constraint[];
    },
    spot: Spot,
    body: (next: Spot) => LoopNode,
  ): LoopNode {
    const { units, loop, bounds, known } = at;
    const lows = bounds.flatMap((c) => boundOf(c, loop, 1));
    const highs = bounds.flatMap((c) => boundOf(c, loop, -1));
    const value = lows.find((l) => highs.some((h) => affineEquals(l, h)));
    const next = { units, depth: spot.depth + 1, marks: [] };
    if (value) {
      const single = [...known, equals(loop, value)];
      const guards = this.#needed(bounds, single);
      const inner = body({ ...next, known: [...single, ...guards] });
      return { kind: "let", loop, value, body: guarded(guards, inner) };
    }
    const later = units[0]!.loops.slice(spot.depth + 1);
    const stride = commonCongruences(units)
      .filter((c) => !usesAny(c, later))
      .flatMap((c) => strideOf(c, loop))[0];
    const held = stride
      ? [congruenceConstraint({ expression: minus(loop, stride.from), modulus: stride.step })]
      : [];
    const low = lows.length > 0 ? joined("max", lows) : this.#outermost(units, spot, 1);
    const high = highs.length > 0 ? joined("min", highs) : this.#outermost(units, spot, -1);
    const inner = body({ ...next, known: [...known, ...bounds, ...held] });
    const { marks } = spot;
    return { kind: "for", loop, marks, low, high, ...(stride && { stride }), body: inner };
  }

  /** Without a bound that all statements share: the lowest of their lows, or the highest of their highs. */
  #outermost(units: readonly ScanUnit[], spot: Spot, side: 1 | -1): Bound {
    const each = units.map((u) => {
      const own = this.#needed(u.within[spot.depth + 1]!, spot.known);
      const bounds = own.flatMap((c) => boundOf(c, u.loops[spot.depth]!, side));
      if (bounds.length === 0) throw new GiveUp("unbounded");
      return joined(side === 1 ? "max" : "min", bounds);
    });
    return joined(side === 1 ? "min" : "max", each);
  }

  /** One range for all: the rows of each that hold for all. */
  #together({ units, known, depth }: Spot): Part {
    const ranges = units.map((u) => u.within[depth + 1]!);
    const rows = ranges
      .flat()
      .filter((r) => ranges.every((range) => this.#implies([...known, ...range], r)));
    return { units, rows };
  }

  /** Ranges without a common point, in their order; undefined where there is none or they are many. */
  #separate({ units, known, depth }: Spot): readonly Part[] | undefined {
    const most = 2 * units.length + 1;
    let parts: readonly Part[] = [];
    for (const unit of units) {
      const range = unit.within[depth + 1]!;
      const before = parts;
      parts = [
        ...before.flatMap((p) => this.#split(p, { units: [unit], rows: range }, known)),
        ...this.#beyond(range, before, known).map((rows) => ({ units: [unit], rows })),
      ];
      if (parts.length > most) return undefined;
    }
    const loop = units[0]!.loops[depth]!;
    return this.#inOrder(parts, { loop, known });
  }

  /** A part as what is in a range, which `added` joins, and what is not. */
  #split(part: Part, added: Part, known: readonly Constraint[]): readonly Part[] {
    const both = [...part.rows, ...added.rows];
    if (this.#isEmpty([...known, ...both])) return [part];
    const outside = this.#without(part.rows, added.rows, known);
    return [
      { units: [...part.units, ...added.units], rows: both },
      ...outside.map((rows) => ({ units: part.units, rows })),
    ];
  }

  #beyond(
    range: readonly Constraint[],
    parts: readonly Part[],
    known: readonly Constraint[],
  ): readonly (readonly Constraint[])[] {
    let rest: readonly (readonly Constraint[])[] = [range];
    for (const p of parts) rest = rest.flatMap((r) => this.#without(r, p.rows, known));
    return rest;
  }

  /** Disjoint ranges that make up `rows` without `taken`. */
  #without(
    rows: readonly Constraint[],
    taken: readonly Constraint[],
    known: readonly Constraint[],
  ): readonly (readonly Constraint[])[] {
    if (this.#isEmpty([...known, ...rows, ...taken])) return [rows];
    const out: (readonly Constraint[])[] = [];
    let inside = rows;
    for (const c of taken) {
      for (const missed of opposites(c)) {
        const beyond = [...inside, missed];
        if (!this.#isEmpty([...known, ...beyond])) out.push(beyond);
      }
      inside = [...inside, c];
    }
    return out;
  }

  #inOrder(
    parts: readonly Part[],
    { loop, known }: { readonly loop: string; readonly known: readonly Constraint[] },
  ): readonly Part[] | undefined {
    const left = [...parts];
    const out: Part[] = [];
    while (left.length > 0) {
      const first = left.findIndex((p) =>
        left.every((q) => q === p || !this.#mayPrecede(q, p, { loop, known })),
      );
      if (first < 0) return undefined;
      out.push(...left.splice(first, 1));
    }
    return out;
  }

  /** Whether some value of the loop in `p` is below one in `q`, with the same values outside. */
  #mayPrecede(
    p: Part,
    q: Part,
    { loop, known }: { readonly loop: string; readonly known: readonly Constraint[] },
  ): boolean {
    const other = `${loop}'later`;
    const later = q.rows.map((c) => ({
      ...c,
      expression: replaceVariables(c.expression, { [loop]: other }),
    }));
    const below: Constraint = { kind: "inequality", expression: add(minus(other, loop), -1) };
    return !this.#isEmpty([...known, ...p.rows, ...later, below]);
  }

  /** The constraints that neither the others nor what is known imply. */
  #needed(all: readonly Constraint[], known: readonly Constraint[]): readonly Constraint[] {
    let kept = all;
    for (const c of all) {
      const others = kept.filter((k) => k !== c);
      if (this.#implies([...known, ...others], c)) kept = others;
    }
    return kept;
  }

  #implies(known: readonly Constraint[], c: Constraint): boolean {
    return opposites(c).every((o) => this.#isEmpty([...known, o]));
  }

  #isEmpty(where: readonly Constraint[]): boolean {
    const dims = [...new Set(where.flatMap((c) => variablesOf(c.expression)))];
    const { params, pieces } = makeSet({ dims, where });
    return pieces.every((p) => isEmptyPiece(params, p, this.#work));
  }
}

/** What holds where a constraint does not. */
function opposites({ kind, expression }: Constraint): readonly Constraint[] {
  const below: Constraint = { kind: "inequality", expression: add(scale(-1, expression), -1) };
  if (kind === "inequality") return [below];
  return [below, { kind: "inequality", expression: add(expression, -1) }];
}

/** The bound that a row sets to a loop from below (1) or above (-1). */
function boundOf({ expression }: Constraint, loop: string, side: 1 | -1): readonly Affine[] {
  const coefficient = expression.terms.find((t) => t.atom === loop)?.coefficient ?? 0;
  if (Math.sign(coefficient) !== side) return [];
  const rest = minus(expression, scale(coefficient, loop));
  if (variablesOf(rest).includes(loop)) return [];
  return side === 1
    ? [ceilDivide(scale(-1, rest), coefficient)]
    : [floorDivide(rest, -coefficient)];
}

function joined(kind: "min" | "max", parts: readonly Bound[]): Bound {
  invariant(parts.length > 0, () => "a loop without bounds");
  return parts.length === 1 ? parts[0]! : { kind, parts };
}

/** Congruences that all units have. */
function commonCongruences(units: readonly ScanUnit[]): readonly Congruence[] {
  const [first, ...others] = units;
  return first!.congruences.filter((c) =>
    others.every((u) =>
      u.congruences.some(
        (o) => o.modulus === c.modulus && affineEquals(o.expression, c.expression),
      ),
    ),
  );
}

function usesAny({ expression }: Congruence, loops: readonly string[]): boolean {
  return variablesOf(expression).some((v) => loops.includes(v));
}

/** The values of a loop as a stride: a*t + f is a multiple of m, a invertible. */
function strideOf(
  { expression, modulus }: Congruence,
  loop: string,
): readonly { readonly step: number; readonly from: Affine }[] {
  const coefficient = expression.terms.find((t) => t.atom === loop)?.coefficient ?? 0;
  const rest = minus(expression, scale(coefficient, loop));
  if (coefficient === 0 || variablesOf(rest).includes(loop)) return [];
  for (let inverse = 1; inverse < modulus; inverse++) {
    if (modulo(coefficient * inverse, modulus) !== 1) continue;
    return [{ step: modulus, from: scale(-inverse, rest) }];
  }
  return [];
}

function guarded(where: readonly Constraint[], body: LoopNode): LoopNode {
  return where.length > 0 ? { kind: "if", where, body } : body;
}

function inSequence(children: readonly LoopNode[]): LoopNode {
  return children.length === 1 ? children[0]! : { kind: "block", ordered: true, children };
}

/** Without parts that run nothing; sequences in sequences become one, guards of guards too. */
function simplifyLoops(node: LoopNode): LoopNode {
  switch (node.kind) {
    case "run":
      return node;
    case "block": {
      const children = node.children
        .map(simplifyLoops)
        .flatMap((c) =>
          c.kind === "block" && (c.ordered === node.ordered || c.children.length === 0)
            ? c.children
            : [c],
        );
      return children.length === 1 ? children[0]! : { ...node, children };
    }
    default: {
      const body = simplifyLoops(node.body);
      if (body.kind === "block" && body.children.length === 0) return body;
      if (node.kind === "if" && body.kind === "if") {
        return { ...body, where: [...node.where, ...body.where] };
      }
      return { ...node, body };
    }
  }
}
