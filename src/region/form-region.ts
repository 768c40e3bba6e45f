/**
 * From a chosen group to the one statement that computes it: epilogues are composed onto the anchor in
 * order, tensors that only the group itself reads are dropped, then inlined producers are put in, last
 * first. `formRegion` wraps the statement for scheduling, `applyGroups` rebuilds a whole program.
 */
import { invariant } from "../support/invariant.ts";
import { type Composition, composeEpilogue, dropWrites, refused } from "./compose-epilogue.ts";
import { inlineProducer } from "./inline-producer.ts";
import { ItemOrder } from "./item-order.ts";
import type { Group, NestItem, NestProgram, Region, Statement } from "./nest.ts";
import { itemTensors, pruneProgram } from "./prune.ts";
import { findUses, tensorsRead, type Uses } from "./uses.ts";

/** A program with what fusion asks about it. */
export interface AnalysedProgram {
  readonly program: NestProgram;
  readonly uses: Uses;
  readonly order: ItemOrder;
  /** Groups that were composed before, and anchors with the first of their epilogues. */
  readonly composed: Map<string, Composition>;
}

export function analyseProgram(program: NestProgram): AnalysedProgram {
  const uses = findUses(program);
  return { program, uses, order: new ItemOrder(program, uses), composed: new Map() };
}

export function statementNamed({ program, uses }: AnalysedProgram, name: string): Statement {
  const item = program.items[uses.statementAt.get(name) ?? -1];
  invariant(item?.kind === "statement", () => `no statement ${name}`);
  return item.statement;
}

/** Position at which a group runs: that of its last member. */
export function groupPosition({ uses }: AnalysedProgram, group: Group): number {
  return Math.max(...[group.anchor, ...group.epilogue].map((n) => uses.statementAt.get(n)!));
}

/** The statement of a group, or why its members cannot be one statement. */
export function composeGroup(analysed: AnalysedProgram, group: Group): Composition {
  const key = [group.anchor, ...group.epilogue, "", ...group.inlined].join(" ");
  const known = analysed.composed.get(key) ?? composeAnew(analysed, group);
  analysed.composed.set(key, known);
  return known;
}

/** The anchor with its epilogues, and with all tensors that they write. */
function composeEpilogues(
  analysed: AnalysedProgram,
  anchor: string,
  epilogue: readonly string[],
): Composition {
  const last = epilogue.at(-1);
  if (last === undefined) return { kind: "composed", statement: statementNamed(analysed, anchor) };
  const key = [anchor, ...epilogue].join(" ");
  const known = analysed.composed.get(key);
  if (known) return known;
  const before = composeEpilogues(analysed, anchor, epilogue.slice(0, -1));
  const made =
    before.kind === "refused"
      ? before
      : composeEpilogue(analysed.program, before.statement, statementNamed(analysed, last));
  analysed.composed.set(key, made);
  return made;
}

function composeAnew(analysed: AnalysedProgram, group: Group): Composition {
  const grown = composeEpilogues(analysed, group.anchor, group.epilogue);
  if (grown.kind === "refused") return grown;
  let { statement } = grown;
  const position = groupPosition(analysed, group);
  const members = new Set(
    [group.anchor, ...group.epilogue].map((n) => analysed.uses.statementAt.get(n)!),
  );
  const recomputed = group.inlined.map((n) => analysed.uses.statementAt.get(n)!);
  const late = analysed.order.overtaken(members, recomputed, position);
  if (late) {
    const other = analysed.program.items[late.item]!;
    const reason = `${nameOf(other)} ${late.what} ${late.tensor} before ${group.name} ends`;
    return { kind: "refused", reason, between: late.item };
  }
  const inner = new Set<string>();
  for (const { tensor } of statement.writes) {
    if (outsideReaders(analysed.uses, tensor, members).length === 0) inner.add(tensor);
  }
  // What the last member makes is the point of the group, even when nobody reads it.
  for (const { tensor } of statementNamed(analysed, group.epilogue.at(-1) ?? group.anchor).writes) {
    inner.delete(tensor);
  }
  statement = dropWrites(statement, inner);
  for (const name of [...group.inlined].reverse()) {
    const next = inlineProducer(analysed.program, statement, statementNamed(analysed, name));
    if (next.kind === "refused") return next;
    statement = next.statement;
  }
  return readsItself(analysed.uses, statement) ?? { kind: "composed", statement };
}

function nameOf(item: NestItem): string {
  if (item.kind === "statement") return item.statement.name;
  return item.kind === "view" ? item.view.tensor : item.routine.name;
}

/** Whoever reads a tensor and is no member, or reads it under another name (at no known time). */
function outsideReaders(
  { readers, aliased }: Uses,
  tensor: string,
  members: ReadonlySet<number>,
): readonly number[] {
  const outside = (readers.get(tensor) ?? []).filter((at) => !members.has(at));
  return aliased.has(tensor) ? [...outside, Number.POSITIVE_INFINITY] : outside;
}

/** Only a scan may read what it writes, under whatever name. */
function readsItself({ roots }: Uses, statement: Statement): Composition | undefined {
  if (statement.loops.some((l) => l.kind === "scan")) return undefined;
  const reads = new Set([...tensorsRead(statement)].map((t) => roots.get(t) ?? t));
  const both = statement.writes.find((w) => reads.has(w.tensor));
  return both && refused(`${statement.name} would read ${both.tensor} while it writes it`);
}

/** The statement of a group that is known to compose. */
export function composedStatement(analysed: AnalysedProgram, group: Group): Statement {
  const composed = composeGroup(analysed, group);
  invariant(composed.kind === "composed", () => `group ${group.name}: ${reasonOf(composed)}`);
  return composed.statement;
}

function reasonOf(composition: Composition): string {
  return composition.kind === "refused" ? composition.reason : "composed";
}

/** The region of a group: one statement and the tensors that it touches. */
export function formRegion(analysed: AnalysedProgram, group: Group): Region {
  const statement = composedStatement(analysed, group);
  const touched = itemTensors({ kind: "statement", statement });
  const { program } = analysed;
  return {
    name: group.name,
    group,
    statements: [statement],
    symbols: program.symbols,
    tensors: new Map([...new Set(touched)].map((name) => [name, program.tensors.get(name)!])),
  };
}

/**
 * The program with each group as one statement at the place of its last member. Every statement must
 * be anchor or epilogue of one group, or inlined wherever it is read.
 */
export function applyGroups(analysed: AnalysedProgram, groups: readonly Group[]): NestProgram {
  const { program } = analysed;
  const at = new Map<number, Statement>();
  for (const group of groups) {
    at.set(groupPosition(analysed, group), composedStatement(analysed, group));
  }
  const items = program.items.flatMap((item, position): readonly NestItem[] => {
    if (item.kind !== "statement") return [item];
    const statement = at.get(position);
    return statement ? [{ kind: "statement", statement }] : [];
  });
  return pruneProgram({ ...program, items });
}
