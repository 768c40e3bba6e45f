/**
 * isl's own test inputs (flow and schedule cases) from the archive beside the repository, and a
 * reader of the small part of YAML they are written in: keys with text, nested keys, and lists of
 * them. Text may go on over lines; quotes around it and comments are dropped.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { invariant } from "../../src/support/invariant.ts";

const archive = fileURLToPath(new URL("../../../shared/datasets/isl.tar.xz", import.meta.url));
const unpacked = fileURLToPath(new URL("../../.cache/isl/inputs/", import.meta.url));

/** Unpacks the archive once; what is missing, as a sentence, or undefined. */
export function prepareData(): string | undefined {
  if (!existsSync(archive)) return "isl's test inputs (../shared/datasets/isl.tar.xz) are not here";
  mkdirSync(unpacked, { recursive: true });
  const run = spawnSync("tar", ["-xJf", archive, "-C", unpacked], { encoding: "utf8" });
  return run.status === 0 ? undefined : `cannot unpack isl's test inputs: ${run.stderr}`;
}

/** Names of the cases of a folder: its files with this ending, without it. */
export function caseNames(folder: "flow" | "schedule", ending: string): string[] {
  const files = readdirSync(join(unpacked, "isl/test_inputs", folder));
  const own = files.filter((f) => f.endsWith(ending));
  return own.map((f) => f.slice(0, -ending.length)).sort();
}

export function readCase(folder: "flow" | "schedule", file: string): DataNode {
  return parseData(readFileSync(join(unpacked, "isl/test_inputs", folder, file), "utf8"));
}

export interface DataNode {
  readonly [key: string]: string | DataNode | readonly DataNode[] | undefined;
}

interface Entry {
  /** Column of the key. */
  readonly indent: number;
  /** Begins an item of a list. */
  readonly item: boolean;
  readonly key: string;
  text: string;
}

export function parseData(text: string): DataNode {
  const entries: Entry[] = [];
  for (const line of text.split("\n")) {
    if (/^\s*(#.*)?$/.test(line)) continue;
    const match = /^(\s*)(- )?([a-z_]+):(?:\s+(.*))?$/.exec(line);
    const last = entries.at(-1);
    if (match === null) {
      invariant(last !== undefined, () => `text before the first key: ${line}`);
      last.text += ` ${line.trim()}`;
      continue;
    }
    const [, space, dash, key, rest] = match;
    const indent = space!.length + (dash?.length ?? 0);
    entries.push({ indent, item: dash !== undefined, key: key!, text: (rest ?? "").trim() });
  }
  return nodeOf(entries);
}

/** Entries of one column and, below each, deeper ones. */
function nodeOf(entries: readonly Entry[]): DataNode {
  const out: Record<string, DataNode[string]> = {};
  for (const [head, ...below] of groups(entries, (e, first) => e.indent > first.indent)) {
    out[head!.key] = below.length === 0 ? unquoted(head!.text) : childrenOf(below);
  }
  return out;
}

function childrenOf(below: readonly Entry[]): DataNode | readonly DataNode[] {
  const { item, indent } = below[0]!;
  if (!item) return nodeOf(below);
  return groups(below, (e) => !(e.item && e.indent === indent)).map(nodeOf);
}

/** Runs of entries, each begun by one that `belongs` does not hold for. */
function groups(
  entries: readonly Entry[],
  belongs: (entry: Entry, first: Entry) => boolean,
): Entry[][] {
  const out: Entry[][] = [];
  for (const entry of entries) {
    const last = out.at(-1);
    if (last && belongs(entry, last[0]!)) last.push(entry);
    else out.push([entry]);
  }
  return out;
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1) : text;
}

/** The text under a key, or undefined. */
export function textAt(node: DataNode, key: string): string | undefined {
  const found = node[key];
  invariant(found === undefined || typeof found === "string", () => `${key} is not text`);
  return found;
}

export function nodeAt(node: DataNode, key: string): DataNode | undefined {
  const found = node[key];
  const isNode = typeof found === "object" && !Array.isArray(found);
  invariant(found === undefined || isNode, () => `${key} has no keys below it`);
  return found as DataNode | undefined;
}

export function listAt(node: DataNode, key: string): readonly DataNode[] {
  const found = node[key];
  invariant(Array.isArray(found), () => `${key} is not a list`);
  return found as readonly DataNode[];
}
