/**
 * Launches that were proved before under other names: the layers of a model repeat. A launch's question is
 * its kernel with the names of buffers counted, what is declared of these, which of them share storage and
 * which are fully written by then; launches with equal questions have each other's proof, name by name. So have
 * those of other programs, where the proof needed no more of the parameters than the ranges of those that it names.
 */
import { variablesOf } from "../../semantics/index-expr.ts";
import type { Buffer, Kernel, Program } from "../program.ts";
import { printBuffer, printKernel } from "../program-text.ts";
import { visitExprs, visitStatements } from "../walk.ts";
import { rootOf } from "./launch-view.ts";
import type { Footprint } from "./sequential.ts";

/** What a proof found, in the names of the launch that it was made for. */
export interface ProvedLaunch {
  readonly footprint: Footprint;
  readonly completes: ReadonlySet<string>;
}

export interface LaunchQuestion {
  readonly key: string;
  /** Storage that the kernel meets, in the order in which it does. */
  readonly roots: readonly string[];
}

interface Known extends ProvedLaunch {
  readonly roots: readonly string[];
}

/** Proofs that several programs share: those of a model's regions and of the model. */
export type ProvedLaunches = Map<string, Known>;

/** What of a buffer's kind a proof asks for: whether it may be written, and whether it is. */
function roleOf({ kind }: Buffer, isWritten: boolean): string {
  if (kind === "state") return kind;
  const mayBeWritten = kind === "scratch" || kind === "output";
  return isWritten ? `written${mayBeWritten ? "" : kind}` : "read";
}

/** Buffers that a kernel's code names; a local value may be called as one that it has nothing to do with. */
function buffersMet({ roles }: Kernel): ReadonlyMap<string, { isWritten: boolean }> {
  const met = new Map<string, { isWritten: boolean }>();
  const add = (name: string, isWritten: boolean): void => {
    const known = met.get(name) ?? { isWritten };
    known.isWritten ||= isWritten;
    met.set(name, known);
  };
  for (const { body } of roles) {
    visitExprs(body, (e) => {
      if (e.kind === "load") add(e.buffer, false);
    });
    visitStatements(body, (s) => {
      if (s.kind === "store") add(s.buffer, true);
      if (s.kind !== "intrinsic") return;
      for (const o of s.operands) if (o.kind === "tile") add(o.buffer, true);
    });
  }
  return met;
}

const token = /"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.$%]*/g;

export class KnownLaunches {
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #program: Program;
  readonly #known = new Map<string, Known>();
  readonly #shared: ProvedLaunches;

  constructor(program: Program, shared: ProvedLaunches = new Map()) {
    this.#program = program;
    this.#shared = shared;
    this.#buffers = new Map(program.buffers.map((b) => [b.name, b]));
  }

  questionOf(kernel: Kernel, isReady: (root: string) => boolean): LaunchQuestion {
    const own = new Set(kernel.buffers.map((b) => b.name));
    const met = buffersMet(kernel);
    const counted = new Map<string, string>();
    const count = (spelled: string): string => {
      const known = counted.get(spelled) ?? `#${counted.size}`;
      counted.set(spelled, known);
      return known;
    };
    const parameters = new Set<string>();
    const named = new Map(this.#program.parameters.map((p) => [p.name, p]));
    // A buffer may be called as the kernel or its region is: names are left out of the title alone.
    const untitled = printKernel({ ...kernel, name: "#", region: "#" });
    const text = untitled.replace(token, (found) => {
      if (named.has(found)) parameters.add(found);
      return own.has(found) || met.has(found) ? count(found) : found;
    });
    const roots: string[] = [];
    const declared = [...counted.keys()].flatMap((name) => {
      const buffer = own.has(name) ? undefined : this.#buffers.get(name)!;
      if (!buffer) return [];
      const { placement: _, source: __, viewOf: ___, ...rest } = buffer;
      const root = rootOf(this.#program.buffers, name);
      if (!roots.includes(root)) roots.push(root);
      const storage = `${roots.indexOf(root)}${isReady(root) ? " ready" : ""}`;
      for (const e of [...buffer.shape, ...(buffer.capacity ?? [])])
        for (const p of variablesOf(e)) parameters.add(p);
      const role = roleOf(buffer, met.get(name)!.isWritten);
      const printed = printBuffer({ ...rest, kind: "scratch", name: counted.get(name)! });
      return `${printed} ${role} ${storage}`;
    });
    const ranges = [...parameters].sort().map((p) => {
      const range = named.get(p);
      return range ? `${p} ${range.min}..${range.max}` : p;
    });
    return { key: [text, ...declared, ...ranges].join("\n"), roots };
  }

  find({ key, roots }: LaunchQuestion): ProvedLaunch | undefined {
    const known = this.#known.get(key) ?? this.#shared.get(key);
    if (!known) return undefined;
    const here = new Map(known.roots.map((root, i) => [root, roots[i]!]));
    const there = new Map(known.roots.map((root, i) => [roots[i]!, root]));
    const renamed = (names: ReadonlySet<string>) => new Set([...names].map((n) => here.get(n)!));
    const { reads, writes, mayOverwrite } = known.footprint;
    return {
      footprint: {
        reads: renamed(reads),
        writes: renamed(writes),
        // What the kernel does not meet has no name there.
        ...(mayOverwrite && {
          mayOverwrite: (read, written) =>
            mayOverwrite(there.get(read) ?? "", there.get(written) ?? ""),
        }),
      },
      completes: renamed(known.completes),
    };
  }

  keep({ key, roots }: LaunchQuestion, proved: ProvedLaunch): void {
    const known = { ...proved, roots };
    this.#known.set(key, known);
    // What holds without requirements holds with any.
    if (this.#program.requires.length === 0) this.#shared.set(key, known);
  }
}
