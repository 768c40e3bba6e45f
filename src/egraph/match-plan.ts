/**
 * How a rule's left side is searched: its nodes flattened into atoms over class variables and put in
 * an order in which each atom is reached from what is bound already: among the members of a bound
 * class, among the uses of a bound child, or, for the first, from all nodes of the operator. Both
 * matchers (compile-matcher.ts, interpret-matcher.ts) run this plan. A match is a row of integers
 * whose columns `RowLayout` names.
 */
import { atomCount, classNames, type NodePattern, type Pattern, payloadNames } from "./pattern.ts";
import type { Snapshot } from "./snapshot.ts";
import type { HeadId, OpId, Vocabulary } from "./vocabulary.ts";

export type AtomSource =
  /** Every class: the left side is a bare variable. */
  | { readonly kind: "classes" }
  | { readonly kind: "scan" }
  | { readonly kind: "members" }
  | { readonly kind: "uses"; readonly slot: number };

export interface Slot {
  readonly variable: number;
  /** Bound by an earlier atom or slot: compare, else bind. */
  readonly bound: boolean;
}

export interface Atom {
  readonly source: AtomSource;
  readonly op: OpId;
  /** The exact head, or -1 where payload or arity are open. */
  readonly head: HeadId;
  readonly arity: number;
  readonly open: boolean;
  /** Variable that the payload binds or must equal; -1 for none. */
  readonly payload: number;
  readonly payloadBound: boolean;
  /** Payload id asked for where the head is open for its arity; -1 for any. */
  readonly payloadKey: number;
  /** Variable of the node's class; bound by an earlier atom or slot, or to be bound when `bindClass`. */
  readonly classVariable: number;
  readonly classBound: boolean;
  readonly slots: readonly Slot[];
  /**
   * Classes that this atom and the later ones look into, where all are bound: without news so far and
   * in these, no row comes of it. undefined where that cannot be told.
   */
  readonly ahead: readonly number[] | undefined;
  /** Classes bound here that a later atom looks into, with the bit of its operator. */
  readonly masks: readonly { readonly variable: number; readonly bit: number }[];
}

/** Columns of a row. */
export interface RowLayout {
  /** Roots of the left patterns: node ids. */
  readonly rootColumns: readonly number[];
  readonly classColumns: ReadonlyMap<string, number>;
  readonly payloadColumns: ReadonlyMap<string, number>;
  /** First column of the atoms' nodes, in the patterns' own order, or -1 where rows carry none. */
  readonly nodesColumn: number;
  /** Column of the node that an inner or outer name was matched by. */
  readonly nodeColumns: ReadonlyMap<string, number>;
  readonly width: number;
}

export interface MatchPlan {
  /** In the order of the search. */
  readonly atoms: readonly Atom[];
  /** Place in the patterns' own order (depth first, left to right) of each atom. */
  readonly places: readonly number[];
  readonly classVariables: number;
  readonly payloadVariables: number;
  readonly layout: RowLayout;
  /** What each column holds: a variable of a class, of a payload, or an atom's node. */
  readonly columns: readonly Column[];
}

export type Column =
  | { readonly kind: "class"; readonly variable: number }
  | { readonly kind: "payload"; readonly variable: number }
  | { readonly kind: "node"; readonly atom: number };

interface LooseAtom {
  readonly pattern: NodePattern | undefined;
  readonly classVariable: number;
  readonly children: readonly number[];
}

/** Plans the search for patterns that share variables. @param withNodes rows carry the atoms' nodes */
export function planMatch(
  left: readonly Pattern[],
  vocabulary: Vocabulary,
  withNodes: boolean,
): MatchPlan {
  const flat = flatten(left);
  const order = orderAtoms(flat.atoms);
  const bound = new Set<number>();
  const payloadNumbers = new Map(payloadNames(left).map((name, i) => [name, i]));
  const boundPayloads = new Set<number>();
  const plain = order.map(({ place, source }) =>
    finishAtom(flat.atoms[place]!, source, { vocabulary, bound, payloadNumbers, boundPayloads }),
  );
  const atoms = plain.map((atom, i) => ({ ...atom, ...lookAhead(plain, i) }));
  const places = order.map(({ place }) => place);
  return {
    atoms,
    places,
    classVariables: flat.variables,
    payloadVariables: payloadNumbers.size,
    ...layoutRow(left, flat, places, withNodes),
  };
}

/** A node that every match has: of a head, or of an operator where the head is -1. */
export interface NeededNode {
  readonly op: OpId;
  readonly head: HeadId;
}

/** Nodes without which patterns cannot match, each once, depth first. */
export function neededNodes(
  left: readonly Pattern[],
  vocabulary: Vocabulary,
): readonly NeededNode[] {
  const found = new Map<string, NeededNode>();
  const visit = (pattern: Pattern): void => {
    if (pattern.kind === "variable") return;
    const op = vocabulary.op(pattern.op);
    const head = exactHead(pattern, op, vocabulary);
    found.set(`${op} ${head}`, { op, head });
    pattern.children.forEach(visit);
  };
  left.forEach(visit);
  return [...found.values()];
}

export function hasNodes(snapshot: Snapshot, needed: readonly NeededNode[]): boolean {
  const { hasHead, opStart } = snapshot;
  return needed.every(({ op, head }) =>
    head < 0 ? opStart[op + 1]! > opStart[op]! : hasHead[head] === 1,
  );
}

/** The head that a pattern asks for, -1 where payload or arity are open. */
function exactHead(
  { payload, open, children }: NodePattern,
  op: OpId,
  vocabulary: Vocabulary,
): HeadId {
  if (payload.kind !== "key" || open) return -1;
  return vocabulary.head(op, vocabulary.payload(payload.key), children.length);
}

interface Flat {
  readonly atoms: readonly LooseAtom[];
  readonly names: ReadonlyMap<string, number>;
  readonly roots: readonly number[];
  readonly variables: number;
}

/** Atoms depth first; named variables have the first numbers, inner terms without a name the rest. */
function flatten(left: readonly Pattern[]): Flat {
  const names = new Map(classNames(left).map((name, i) => [name, i]));
  const atoms: LooseAtom[] = [];
  let variables = names.size;
  const numberOf = (pattern: Pattern): number =>
    pattern.name === undefined ? variables++ : names.get(pattern.name)!;
  const add = (pattern: Pattern, classVariable: number): void => {
    if (pattern.kind === "variable") {
      atoms.push({ pattern: undefined, classVariable, children: [] });
      return;
    }
    const children = pattern.children.map(numberOf);
    atoms.push({ pattern, classVariable, children });
    for (const [i, child] of pattern.children.entries()) {
      if (child.kind === "node") add(child, children[i]!);
    }
  };
  const roots = left.map((pattern) => {
    add(pattern, numberOf(pattern));
    return 0;
  });
  return { atoms, names, roots: rootPlaces(left, roots.length), variables };
}

/** Places of the roots among the atoms. */
function rootPlaces(left: readonly Pattern[], count: number): number[] {
  const places: number[] = [];
  let place = 0;
  for (let i = 0; i < count; i++) {
    places.push(place);
    place += atomCount(left[i]!);
  }
  return places;
}

/** Greedy: members of a bound class first, then uses of a bound child, else the next in order. */
function orderAtoms(atoms: readonly LooseAtom[]): { place: number; source: AtomSource }[] {
  const rest = atoms.map((_, place) => place);
  const bound = new Set<number>();
  const order: { place: number; source: AtomSource }[] = [];
  while (rest.length > 0) {
    const next = chooseAtom(atoms, rest, bound);
    rest.splice(rest.indexOf(next.place), 1);
    order.push(next);
    const atom = atoms[next.place]!;
    bound.add(atom.classVariable);
    for (const child of atom.children) bound.add(child);
  }
  return order;
}

function chooseAtom(
  atoms: readonly LooseAtom[],
  rest: readonly number[],
  bound: ReadonlySet<number>,
): { place: number; source: AtomSource } {
  const member = rest.find((place) => bound.has(atoms[place]!.classVariable));
  if (member !== undefined) return { place: member, source: { kind: "members" } };
  for (const place of rest) {
    const slot = atoms[place]!.children.findIndex((child) => bound.has(child));
    if (slot >= 0) return { place, source: { kind: "uses", slot } };
  }
  const place = rest[0]!;
  return { place, source: { kind: atoms[place]!.pattern ? "scan" : "classes" } };
}

interface Bindings {
  readonly vocabulary: Vocabulary;
  readonly bound: Set<number>;
  readonly payloadNumbers: ReadonlyMap<string, number>;
  readonly boundPayloads: Set<number>;
}

type PlainAtom = Omit<Atom, "ahead" | "masks">;

function lookAhead(atoms: readonly PlainAtom[], index: number): Pick<Atom, "ahead" | "masks"> {
  const bound = new Set(
    atoms.slice(0, index).flatMap((a) => [a.classVariable, ...a.slots.map((s) => s.variable)]),
  );
  const isMember = (atom: PlainAtom) => atom.source.kind === "members";
  const rest = atoms.slice(index);
  const certain = rest.every((atom) => isMember(atom) && bound.has(atom.classVariable));
  const mine = new Set(atoms[index]!.slots.filter((s) => !s.bound).map((s) => s.variable));
  const masks = atoms
    .slice(index + 1)
    .filter((atom) => isMember(atom) && mine.has(atom.classVariable))
    .map((atom) => ({ variable: atom.classVariable, bit: 1 << (atom.op & 31) }));
  return { ahead: certain ? rest.map((atom) => atom.classVariable) : undefined, masks };
}

function finishAtom(loose: LooseAtom, source: AtomSource, bindings: Bindings): PlainAtom {
  const { pattern, classVariable } = loose;
  const { vocabulary, bound, payloadNumbers, boundPayloads } = bindings;
  const classBound = bound.has(classVariable);
  bound.add(classVariable);
  const slots = loose.children.map((variable) => {
    const slot = { variable, bound: bound.has(variable) };
    bound.add(variable);
    return slot;
  });
  const common = { source, classVariable, classBound, slots, arity: slots.length };
  if (!pattern) {
    const none = { op: -1, head: -1, open: true, payload: -1, payloadKey: -1 };
    return { ...common, ...none, payloadBound: false };
  }
  const op = vocabulary.op(pattern.op);
  const { kind } = pattern.payload;
  const payload = kind === "variable" ? payloadNumbers.get(pattern.payload.name)! : -1;
  const payloadKey = kind === "key" ? vocabulary.payload(pattern.payload.key) : -1;
  const head = exactHead(pattern, op, vocabulary);
  const payloadBound = boundPayloads.has(payload);
  boundPayloads.add(payload);
  return { ...common, op, head, open: pattern.open, payload, payloadBound, payloadKey };
}

function layoutRow(
  left: readonly Pattern[],
  flat: Flat,
  places: readonly number[],
  withNodes: boolean,
): Pick<MatchPlan, "layout" | "columns"> {
  const searched = (place: number): number => places.indexOf(place);
  const columns: Column[] = flat.roots.map((place) => ({ kind: "node", atom: searched(place) }));
  const rootColumns = columns.map((_, i) => i);
  const classColumns = new Map<string, number>();
  for (const [name, variable] of flat.names) {
    classColumns.set(name, columns.push({ kind: "class", variable }) - 1);
  }
  const payloadColumns = new Map<string, number>();
  for (const [variable, name] of payloadNames(left).entries()) {
    payloadColumns.set(name, columns.push({ kind: "payload", variable }) - 1);
  }
  const nodesColumn = withNodes ? columns.length : -1;
  const nodeColumns = new Map<string, number>();
  if (withNodes) {
    for (const [place, atom] of flat.atoms.entries()) {
      const column = columns.push({ kind: "node", atom: searched(place) }) - 1;
      if (atom.pattern?.name !== undefined) nodeColumns.set(atom.pattern.name, column);
    }
  }
  const width = columns.length;
  const layout = { rootColumns, classColumns, payloadColumns, nodesColumn, nodeColumns, width };
  return { layout, columns };
}
