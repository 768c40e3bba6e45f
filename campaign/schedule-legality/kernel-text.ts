/**
 * Kernels as text: nested loops with affine bounds, and statements of accesses. The order of the text is
 * the original schedule tree. What a statement computes does not matter for legality; how it treats
 * its result does:
 *
 *     for i in 0..4 {
 *       for j in 0..i+1 {
 *         S: C[i, j] = A[i], B[j]      a new value from the reads
 *         T: C[i, j] += A[i], C[0, 0]  added to what is there, in any order
 *         U: C[i, j] ~= A[i]           combined with what is there, in this order
 *         V: y[i] = y[i - 1]%, x[i]    a scan: y[i - 1] is carried on by an associative operator
 *         W: y[i] = x[0:4]             reads some element of x from 0 to 3
 *       }
 *     }
 *
 * `local t` says that an array holds nothing before and is not read afterwards.
 */
import {
  type Affine,
  atMost,
  type BandNode,
  below,
  type Constraint,
  type FilterNode,
  type Nest,
  type NestAccess,
  type NestStatement,
  parseAffine,
  type ScheduleTree,
} from "../../src/affine/index.ts";

export function readKernel(text: string): Nest {
  return new KernelReader(text).read();
}

interface Around {
  readonly dims: readonly string[];
  readonly where: readonly Constraint[];
}

class KernelReader {
  readonly #lines: string[];
  readonly #statements: NestStatement[] = [];
  readonly #local = new Set<string>();

  constructor(text: string) {
    this.#lines = text
      .split("\n")
      .map((l) => l.trim())
      .filter((l) => l !== "");
  }

  read(): Nest {
    const child = this.#items({ dims: [], where: [] });
    const statements = this.#statements;
    const arrays = new Set(statements.flatMap((s) => s.accesses.map((a) => a.array)));
    const outside = new Set([...arrays].filter((a) => !this.#local.has(a)));
    const names = statements.map((s) => s.name);
    const tree: ScheduleTree = { kind: "domain", text: "{ }", child: child.tree };
    if (new Set(names).size !== names.length) throw new Error(`repeated statement in ${names}`);
    return { statements, tree, given: outside, kept: outside };
  }

  /** Items up to a closing brace. */
  #items(around: Around): { readonly tree: ScheduleTree; readonly names: readonly string[] } {
    const children: FilterNode[] = [];
    for (let line = this.#lines.shift(); line !== undefined && line !== "}"; ) {
      const item = this.#item(line, around);
      if (item) children.push({ kind: "filter", statements: item.names, child: item.tree });
      line = this.#lines.shift();
    }
    const names = children.flatMap((c) => c.statements);
    if (children.length === 1) return { tree: children[0]!.child, names };
    return { tree: { kind: "sequence", children }, names };
  }

  #item(
    line: string,
    around: Around,
  ): { readonly tree: ScheduleTree; readonly names: readonly string[] } | undefined {
    const local = /^local (.*)$/.exec(line);
    if (local) {
      for (const name of local[1]!.split(" ")) this.#local.add(name);
      return undefined;
    }
    const loop = /^for (\w+) in (.*?)\.\.(.*) \{$/.exec(line);
    if (!loop) return { tree: { kind: "leaf" }, names: [this.#statement(line, around)] };
    const [, name, low, ends] = loop;
    const bounds = ends!.split(" and ").map((end) => below(name!, affineOf(end)));
    const inner = this.#items({
      dims: [...around.dims, name!],
      where: [...around.where, atMost(affineOf(low!), name!), ...bounds],
    });
    const values = new Map(inner.names.map((s) => [s, affineOf(name!)]));
    const members = [{ loop: name!, values, coincident: false }];
    const band: BandNode = { kind: "band", members, permutable: false, child: inner.tree };
    return { tree: band, names: inner.names };
  }

  #statement(line: string, { dims, where }: Around): string {
    const match = /^(\w+): (\w+)\[(.*?)\] (=|\+=|~=)\s*(.*)$/.exec(line);
    if (!match) throw new Error(`not a statement: ${line}`);
    const [, name, array, index, operator, reads] = match;
    const target = { array: array!, index: indexOf(index!) };
    const accesses: NestAccess[] = [...reads!.matchAll(/(\w+)\[(.*?)\](%?)/g)].map((r) => ({
      kind: "read",
      array: r[1]!,
      index: indexOf(r[2]!),
      ...(r[3] === "%" && { reassociable: true }),
    }));
    const written: NestAccess =
      operator === "="
        ? { kind: "write", ...target }
        : { kind: "update", ...target, reassociable: operator === "+=" };
    this.#statements.push({ name: name!, dims, domain: where, accesses: [...accesses, written] });
    return name!;
  }
}

function indexOf(text: string): NestAccess["index"] {
  if (text.trim() === "") return [];
  return text.split(",").map((part) => {
    const [low, end] = part.split(":");
    return end === undefined ? affineOf(part) : { low: affineOf(low!), end: affineOf(end) };
  });
}

function affineOf(text: string): Affine {
  const read = parseAffine(text.trim());
  if (!read.ok) throw new Error(`not affine: ${text}`);
  return read.value;
}
