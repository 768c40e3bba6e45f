/**
 * A matcher as JavaScript: one nest of loops for a plan, written as text and compiled by the engine.
 * Where code from text is forbidden (a content security policy) interpret-matcher.ts runs the same
 * plan; the tests hold the two equal.
 *
 * Only news: with `since` above 0 a row is given only when one of its nodes has a later stamp, that
 * is, was made or changed after the rule last saw the graph (semi-naive evaluation, as in Datalog).
 */
import { compileText } from "./compile-text.ts";
import type { Atom, MatchPlan } from "./match-plan.ts";
import type { RowBuffer } from "./row-buffer.ts";
import type { Snapshot } from "./snapshot.ts";

export interface SearchLimits {
  /** Rows with no node stamped later than this are old. */
  readonly since: number;
  /** The search ends after this many rows. */
  readonly rows: number;
  /** The search ends when it has looked at this many nodes. */
  readonly work: number;
}

/** Writes the rows and gives the work done. */
export type Matcher = (snapshot: Snapshot, rows: RowBuffer, limits: SearchLimits) => number;

export function compileMatcher(plan: MatchPlan): Matcher {
  return compileText<Matcher>(["snapshot", "rows", "limits"], writeMatcher(plan));
}

const prelude = `"use strict";
const { store, opStart, opRows, classStart, classRows, opMask, freshest, roots } = snapshot;
const { keys, links, parent, records } = store;
const { headOp, headPayload, headArity } = store.vocabulary;
const since = limits.since, mostRows = limits.rows, mostWork = limits.work;
let work = 0, count = 0, at = 0, cells = rows.cells;
search: {
`;

/** The text of a matcher's body. */
export function writeMatcher(plan: MatchPlan): string {
  return `${prelude}${writeAtom(plan, 0)}}\nrows.count = count;\nreturn work;`;
}

function writeAtom(plan: MatchPlan, index: number): string {
  const atom = plan.atoms[index];
  if (!atom) return writeRow(plan);
  const { open, close } = writeSource(plan, index);
  const inner = writeChecks(plan, index) + writeAtom(plan, index + 1);
  return `${open}${inner}${close}`;
}

/** The loop over candidates, which declares `n` and its cell `k`. */
function writeSource(plan: MatchPlan, index: number): { open: string; close: string } {
  const atom = plan.atoms[index]!;
  const [n, k, i, e] = ["n", "k", "i", "e"].map((letter) => `${letter}${index}`);
  const node = (text: string) => `const ${n} = ${text}, ${k} = 4 * ${n};\n`;
  const stop = index === 0 ? "if (work > mostWork) break search;\n" : "";
  switch (atom.source.kind) {
    case "classes":
      return {
        open: `for (let ${i} = 0; ${i} < roots.length; ${i}++) {\n${stop}work++;\n${node(`roots[${i}]`)}`,
        close: "}\n",
      };
    case "scan": {
      const range = `let ${i} = opStart[${atom.op}], ${e} = opStart[${atom.op} + 1]`;
      const open = `for (${range}; ${i} < ${e}; ${i}++) {\n${stop}work++;\n${node(`opRows[${i}]`)}`;
      return { open, close: "}\n" };
    }
    case "members": {
      const v = `v${atom.classVariable}`;
      const range = `let ${i} = classStart[${v}], ${e} = classStart[${v} + 1]`;
      const guard = writeFreshGuard(plan, index);
      const head = `if (${guard}) for (${range}; ${i} < ${e}; ${i}++) {\nwork++;\n`;
      return { open: head + node(`classRows[${i}]`), close: "}\n" };
    }
    case "uses": {
      const v = `v${atom.slots[atom.source.slot]!.variable}`;
      const step = `for (let ${i} = records[4 * ${v}]; ${i} !== 0; ${i} = links[${i}]) {\nwork++;\n`;
      const live =
        `if (${i} - ${k} !== ${atom.source.slot + 1} || keys[${k}] < 0) continue;\n` +
        `if (links[${k}] < 0) continue;\n`;
      return { open: step + node(`store.ownerOf(${i})`) + live, close: "}\n" };
    }
  }
}

/** Whether a row with news can still come of this: something seen is new or a class ahead has news. */
function writeFreshGuard(plan: MatchPlan, index: number): string {
  const { ahead } = plan.atoms[index]!;
  if (!ahead) return "true";
  const classes = ahead.map((variable) => `freshest[v${variable}] > since`);
  return [`f${index - 1}`, ...classes].join(" || ");
}

function writeChecks(plan: MatchPlan, index: number): string {
  const atom = plan.atoms[index]!;
  const lines: string[] = [];
  if (atom.source.kind !== "classes") lines.push(...writeHeadChecks(atom, index));
  lines.push(...writeClassBinding(atom, index));
  for (const [i, slot] of atom.slots.entries()) {
    const cell = `keys[k${index} + ${i + 1}]`;
    if (slot.bound) lines.push(`if (${cell} !== v${slot.variable}) continue;`);
    else lines.push(`const v${slot.variable} = ${cell};`);
  }
  lines.push(...writeMaskChecks(atom));
  const stamp = atom.source.kind === "classes" ? `freshest[n${index}]` : `links[k${index}]`;
  const before = index === 0 ? "" : `f${index - 1} || `;
  lines.push(`const f${index} = ${before}${stamp} > since;`);
  return `${lines.join("\n")}\n`;
}

function writeHeadChecks(atom: Atom, index: number): string[] {
  const key = `keys[k${index}]`;
  if (atom.head >= 0) return [`if (${key} !== ${atom.head}) continue;`];
  const h = `h${index}`;
  const lines = [`const ${h} = ${key};`, `if (headOp[${h}] !== ${atom.op}) continue;`];
  const compare = atom.open ? "<" : "!==";
  lines.push(`if (headArity[${h}] ${compare} ${atom.arity}) continue;`);
  if (atom.payloadKey >= 0) lines.push(`if (headPayload[${h}] !== ${atom.payloadKey}) continue;`);
  if (atom.payload >= 0) {
    if (atom.payloadBound) lines.push(`if (headPayload[${h}] !== p${atom.payload}) continue;`);
    else lines.push(`const p${atom.payload} = headPayload[${h}];`);
  }
  return lines;
}

function writeClassBinding(atom: Atom, index: number): string[] {
  const v = `v${atom.classVariable}`;
  if (!atom.classBound) return [`const ${v} = parent[n${index}];`];
  return atom.source.kind === "members" ? [] : [`if (parent[n${index}] !== ${v}) continue;`];
}

function writeMaskChecks(atom: Atom): string[] {
  return atom.masks.map(
    ({ variable, bit }) => `if ((opMask[v${variable}] & ${bit}) === 0) continue;`,
  );
}

function writeRow(plan: MatchPlan): string {
  const { width } = plan.layout;
  const writes = plan.columns.map((column, i) => {
    const letter = { class: "v", payload: "p", node: "n" }[column.kind];
    return `cells[at + ${i}] = ${letter}${column.kind === "node" ? column.atom : column.variable};`;
  });
  return `if (!f${plan.atoms.length - 1}) continue;
if (at + ${width} > cells.length) cells = rows.grow();
${writes.join(" ")}
at += ${width};
if (++count >= mostRows) break search;
`;
}
