/**
 * Launches that were proved before under other names: the layers of a model repeat. A launch's question is
 * its kernel with the names of buffers counted, what is declared of these, which of them share storage and
 * which are fully written by then; launches with equal questions have each other's proof, name by name.
 */
import type { Buffer, Kernel, Program } from "../program.ts";
import { printBuffer, printKernel } from "../program-text.ts";
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

const token = /"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.$%]*/g;

export class KnownLaunches {
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #program: Program;
  readonly #known = new Map<string, ProvedLaunch & { readonly roots: readonly string[] }>();

  constructor(program: Program) {
    this.#program = program;
    this.#buffers = new Map(program.buffers.map((b) => [b.name, b]));
  }

  questionOf(kernel: Kernel, isReady: (root: string) => boolean): LaunchQuestion {
    const own = new Set(kernel.buffers.map((b) => b.name));
    const counted = new Map<string, string>();
    const count = (spelled: string): string => {
      const known = counted.get(spelled) ?? `#${counted.size}`;
      counted.set(spelled, known);
      return known;
    };
    const title = new Set([kernel.name, JSON.stringify(kernel.region)]);
    const text = printKernel(kernel).replace(token, (found) => {
      if (title.has(found)) return "#";
      return own.has(found) || this.#buffers.has(found) ? count(found) : found;
    });
    const roots: string[] = [];
    const declared = [...counted.keys()].flatMap((name) => {
      const buffer = own.has(name) ? undefined : this.#buffers.get(name)!;
      if (!buffer) return [];
      const { placement: _, source: __, viewOf: ___, ...rest } = buffer;
      const root = rootOf(this.#program.buffers, name);
      if (!roots.includes(root)) roots.push(root);
      const storage = `${roots.indexOf(root)}${isReady(root) ? " ready" : ""}`;
      return `${printBuffer({ ...rest, name: counted.get(name)! })} ${storage}`;
    });
    return { key: [text, ...declared].join("\n"), roots };
  }

  find({ key, roots }: LaunchQuestion): ProvedLaunch | undefined {
    const known = this.#known.get(key);
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
        mayOverwrite: (read, written) =>
          mayOverwrite!(there.get(read) ?? "", there.get(written) ?? ""),
      },
      completes: renamed(known.completes),
    };
  }

  keep({ key, roots }: LaunchQuestion, proved: ProvedLaunch): void {
    this.#known.set(key, { ...proved, roots });
  }
}
