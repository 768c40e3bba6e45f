/**
 * Reads the text form of schedule trees (tree-text.ts) back: one node a line, depth by indentation.
 * TXT001 with the line where it is malformed.
 */
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import type { Affine } from "../expression.ts";
import { parseAffine, parseMap, parseSet } from "../notation-parse.ts";
import {
  type BandMember,
  type FilterNode,
  loopMarks,
  type ScheduleTree,
  type TreeMark,
} from "./tree.ts";

/** Nodes inside each other: what recursion over a tree bears. */
const mostDepth = 250;

interface Line {
  readonly depth: number;
  readonly text: string;
  readonly number: number;
}

export function parseTree(text: string): Result<ScheduleTree> {
  return attempt(() => new TreeReader(text).read());
}

class TreeReader {
  readonly #lines: readonly Line[];
  /** The statements of the domain and of extensions; undefined where the domain names none. */
  #statements: Set<string> | undefined;
  #at = 0;

  constructor(text: string) {
    this.#lines = text.split(/\r?\n/).flatMap((line, i) => {
      const content = line.trimStart();
      if (content === "") return [];
      return [{ depth: (line.length - content.length) / 2, text: content, number: i + 1 }];
    });
  }

  read(): ScheduleTree {
    const tree = this.#node(0);
    const rest = this.#lines[this.#at];
    if (rest) malformed("the end of the tree", rest);
    return tree;
  }

  #node(depth: number): ScheduleTree {
    const line = this.#lines[this.#at++];
    if (!line) return reject("TXT001", "expected a node, found the end of the text");
    if (line.depth !== depth) malformed(`a node at depth ${depth}`, line);
    if (depth > mostDepth) malformed(`no more than ${mostDepth} nodes inside each other`, line);
    const [kind] = line.text.split(" ", 1);
    const rest = line.text.slice(kind!.length).trim();
    switch (kind) {
      case "leaf":
        if (rest !== "") malformed("nothing behind leaf", line);
        return { kind };
      case "domain":
      case "context": {
        const text = quoted(rest, line);
        if (!parseSet(text).ok) malformed("a set", line);
        if (kind === "domain") this.#declare(text);
        return { kind, text, child: this.#node(depth + 1) };
      }
      case "extension": {
        const [statement, map] = /^(\S+) (.*)$/.exec(rest)?.slice(1) ?? [];
        if (statement === undefined) return malformed("a statement and a map", line);
        const text = quoted(map!, line);
        if (!parseMap(text).ok) malformed("a map", line);
        this.#statements?.add(statement);
        return { kind, statement, text, child: this.#node(depth + 1) };
      }
      case "filter": {
        const statements = rest.split(" ").filter((name) => name !== "");
        if (statements.length === 0) malformed("statements", line);
        for (const name of statements) this.#requireKnown(name, line);
        return { kind, statements, child: this.#node(depth + 1) };
      }
      case "sequence":
      case "set":
        if (rest !== "") malformed(`nothing behind ${kind}`, line);
        return { kind, children: this.#filters(depth + 1, line) };
      case "mark":
        return { kind, mark: readMark(rest, line), child: this.#node(depth + 1) };
      case "band": {
        const band = /^(permutable )?\[(.*)\]$/.exec(rest);
        if (!band) return malformed("members in brackets", line);
        const members = band[2]!.split("; ").map((m) => readMember(m, line));
        for (const { values } of members) {
          for (const name of values.keys()) this.#requireKnown(name, line);
        }
        const permutable = band[1] !== undefined;
        return { kind, members, permutable, child: this.#node(depth + 1) };
      }
      default:
        return malformed(
          "domain, context, filter, sequence, set, mark, extension, band or leaf",
          line,
        );
    }
  }

  /** The names of a domain's tuples. */
  #declare(domain: string): void {
    const names = [...domain.matchAll(/([A-Za-z_][\w.$']*)\s*\[/g)].map((m) => m[1]!);
    if (names.length > 0) this.#statements = new Set(names);
  }

  #requireKnown(name: string, line: Line): void {
    if (!this.#statements || this.#statements.has(name)) return;
    malformed(`statements of the domain (${[...this.#statements].join(", ")}), not ${name}`, line);
  }

  #filters(depth: number, parent: Line): readonly FilterNode[] {
    const children: FilterNode[] = [];
    for (let next = this.#lines[this.#at]; next?.depth === depth; next = this.#lines[this.#at]) {
      const child = this.#node(depth);
      if (child.kind !== "filter") return malformed("a filter", next);
      children.push(child);
    }
    return children.length > 0 ? children : malformed("filters below it", parent);
  }
}

/** `i0: S0 floor(i/4), S1 i, coincident` */
function readMember(text: string, line: Line): BandMember {
  const head = /^([^\s:]+): (.*)$/.exec(text);
  if (!head) return malformed("a band member `loop: statement value, …`", line);
  const parts = head[2]!.split(", ");
  const coincident = parts.at(-1) === "coincident";
  const values = new Map<string, Affine>();
  for (const part of coincident ? parts.slice(0, -1) : parts) {
    const space = part.indexOf(" ");
    if (space < 1) malformed("a statement and its value", line);
    const value = parseAffine(part.slice(space + 1));
    if (!value.ok) return malformed(`an affine value (${value.diagnostics[0]!.message})`, line);
    if (values.has(part.slice(0, space))) malformed("each statement once", line);
    values.set(part.slice(0, space), value.value);
  }
  return { loop: head[1]!, values, coincident };
}

function readMark(text: string, line: Line): TreeMark {
  const loop = loopMarks.find((m) => m === text);
  if (loop) return { kind: loop };
  const role = /^role (".*")$/.exec(text);
  if (role) return { kind: "role", role: quoted(role[1]!, line) };
  const tile = /^(placed|staged) ("(?:[^"\\]|\\.)*") in (\S+)$/.exec(text);
  if (!tile) return malformed(`a mark: ${loopMarks.join(", ")}, role, placed or staged`, line);
  const kind = tile[1] === "placed" ? "placed" : "staged";
  return { kind, tensor: quoted(tile[2]!, line), scope: tile[3]! };
}

function quoted(text: string, line: Line): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : malformed("a quoted text", line);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return malformed("a quoted text", line);
  }
}

function malformed(expected: string, { text, number }: Line): never {
  const found = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return reject("TXT001", `expected ${expected}, found ${JSON.stringify(found)}`, {
    at: `line ${number}`,
  });
}
