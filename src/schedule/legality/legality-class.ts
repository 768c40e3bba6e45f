/**
 * The class of a scheduled region under the question of legality: a text that two regions share when
 * they differ in names, in sizes and in what no dependence depends on alone. What is proved of a region
 * made general (generalise.ts) holds for its whole class, so a model of many layers asks affine/ once
 * for each shape of nest and schedule (legality.ts).
 *
 * Spelled are loops, statements and tensors by their number, extents by which of them are equal, the
 * accesses to tensors that the region writes, guards of statements, and the order of the loops with
 * their modes. Symbols inside an index keep their name and range.
 */
import type { Statement } from "../../region/nest.ts";
import { atomOperands, type IndexAtom, type IndexExpr } from "../../semantics/index-expr.ts";
import type { PlacedTensor, ScheduledRegion, ScheduledStatement } from "../scheduled-region.ts";
import { dependentAccesses, generalise } from "./generalise.ts";

/** What is known of classes. */
export interface ClassKnowledge {
  /** Whether the region is legal because it would be with any sizes; `prove` decides the general one. */
  isProved(scheduled: ScheduledRegion, prove: (general: ScheduledRegion) => boolean): boolean;
}

/** Classes that a compilation has met, and whether they are proved. */
export class LegalityClasses implements ClassKnowledge {
  readonly #proved = new Map<string, boolean>();

  get size(): number {
    return this.#proved.size;
  }

  isProved(scheduled: ScheduledRegion, prove: (general: ScheduledRegion) => boolean): boolean {
    const dependent = dependentTensors(scheduled);
    const general = generalise(scheduled, dependent);
    const name = new Spelling(general, dependent).region();
    const known = this.#proved.get(name);
    if (known !== undefined) return known;
    const proved = prove(general);
    this.#proved.set(name, proved);
    return proved;
  }
}

/** Tensors that dependences or places are about: what nobody writes may be read in any order. */
export function dependentTensors({ region, placed }: ScheduledRegion): ReadonlySet<string> {
  const written = region.statements.flatMap((s) => s.writes.map((w) => w.tensor));
  return new Set([...written, ...placed.map((p) => p.tensor)]);
}

class Numbering {
  readonly #known = new Map<string, number>();

  of(name: string): number {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, this.#known.size);
    return this.#known.size - 1;
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }
}

class Spelling {
  readonly #scheduled: ScheduledRegion;
  readonly #dependent: ReadonlySet<string>;
  readonly #symbols: ReadonlyMap<string, string>;
  readonly #tensors = new Numbering();
  readonly #statements = new Numbering();

  constructor(scheduled: ScheduledRegion, dependent: ReadonlySet<string>) {
    this.#scheduled = scheduled;
    this.#dependent = dependent;
    this.#symbols = new Map(
      scheduled.region.symbols.map((s) => [s.name, `${s.name} ${s.range.min} ${s.range.max}`]),
    );
  }

  region(): string {
    const { statements, fused, placed, staged } = this.#scheduled;
    return [
      ...statements.map((s) => this.#statement(s)),
      ...fused.map(
        (f) => `fuse ${this.#statements.of(f.statement)} ${this.#statements.of(f.into)} ${f.depth}`,
      ),
      ...placed.map((p) => `place ${this.#place(p)}`),
      ...staged.map((p) => `stage ${this.#place(p)} ${p.copies > 1}`),
    ].join("\n");
  }

  #place({ tensor, scope, statement, depth }: PlacedTensor): string {
    const { role } = this.#scheduled.region.tensors.get(tensor)!;
    const numbers = `${this.#tensors.of(tensor)} ${this.#statements.of(statement)} ${depth}`;
    return `${scope} ${role === "local"} ${numbers}`;
  }

  #statement({ statement, loops }: ScheduledStatement): string {
    const { name, guard, reduction } = statement;
    this.#statements.of(name);
    const names = new Numbering();
    const parts = statement.loops.map(
      (l) => `${l.kind} ${names.of(l.name)} ${this.#index(l.extent, names)}`,
    );
    for (const c of guard) parts.push(`${c.kind} ${this.#index(c.expr, names)}`);
    parts.push(...this.#accesses(statement, names));
    for (const d of this.#scheduled.schedule.directives) {
      if (d.kind !== "split" || d.statement !== name) continue;
      parts.push(`${names.of(d.loop)}/${d.factor} ${names.of(d.outer)} ${names.of(d.inner)}`);
    }
    parts.push(...loops.map((l) => `${l.mode} ${names.of(l.name)}`));
    return `${reduction?.numericClass ?? "plain"}; ${parts.join("; ")}`;
  }

  #accesses(statement: Statement, names: Numbering): readonly string[] {
    return dependentAccesses(statement, this.#dependent).map((a) => {
      const kind = "combine" in a ? a.combine : "read";
      const index = a.index.map((e) => this.#index(e, names));
      return `${kind} ${this.#tensors.of(a.tensor)}[${index.join()}]`;
    });
  }

  #index(expr: IndexExpr, names: Numbering): string {
    const [term] = expr.terms;
    if (!term) return expr.key;
    const parts = expr.terms.map(
      ({ coefficient, atoms }) =>
        `${coefficient}*${atoms.map((a) => this.#atom(a, names)).join("*")}`,
    );
    return `${parts.join("+")}+${expr.constant}`;
  }

  /** A name that is neither a loop nor a symbol is loaded: it may be anything. */
  #atom(atom: IndexAtom, names: Numbering): string {
    if (atom.kind !== "variable") {
      return `${atom.kind}(${atomOperands(atom).map((e) => this.#index(e, names))})`;
    }
    if (names.has(atom.name)) return `l${names.of(atom.name)}`;
    return this.#symbols.get(atom.name) ?? "loaded";
  }
}
