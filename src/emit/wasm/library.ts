/**
 * Functions that emitted code calls: each is added to the module when first asked for. A row says
 * the signature and how to write the body, which may ask for others. Functions of the host
 * (JavaScript's Math, imported as "math") are declared ahead because imports come first.
 */
import { invariant } from "../../support/invariant.ts";
import type { FunctionBuilder, FunctionIndex } from "./function-builder.ts";
import type { FunctionSignature, ModuleBuilder } from "./module-builder.ts";

export interface LibraryRow {
  readonly signature: FunctionSignature;
  readonly body: (f: FunctionBuilder, library: Library) => void;
  /** Writes the body where it is used, on an operand that may be pushed more than once. */
  readonly expand?: (f: FunctionBuilder, library: Library, x: () => void) => void;
}

export class Library {
  readonly #module: ModuleBuilder;
  readonly #rows: ReadonlyMap<string, LibraryRow>;
  readonly #known = new Map<string, FunctionIndex>();

  constructor(module: ModuleBuilder, rows: ReadonlyMap<string, LibraryRow>) {
    this.#module = module;
    this.#rows = rows;
  }

  /** Imports Math functions of one or two f64. Before any function of the module is made. */
  importMath(names: Iterable<string>): void {
    for (const name of names) {
      const params =
        name === "pow" || name === "atan2" ? (["f64", "f64"] as const) : (["f64"] as const);
      const index = this.#module.importFunction("math", name, { params, results: ["f64"] });
      this.#known.set(`math.${name}`, index);
    }
  }

  has(name: string): boolean {
    return this.#known.has(name) || this.#rows.has(name);
  }

  /** Calls a function by name. */
  call(f: FunctionBuilder, name: string): void {
    f.call(this.#known.get(name) ?? this.#add(name));
  }

  /** Writes the function's code in place of a call to it. */
  expand(f: FunctionBuilder, name: string, x: () => void): void {
    const row = this.#rows.get(name);
    invariant(row?.expand, () => `library function ${name} has no code to be copied`);
    row.expand(f, this, x);
  }

  expands(name: string): boolean {
    return this.#rows.get(name)?.expand !== undefined;
  }

  #add(name: string): FunctionIndex {
    const row = this.#rows.get(name);
    invariant(row, () => `no library function ${name}`);
    const { index, builder } = this.#module.function(name, row.signature);
    this.#known.set(name, index);
    row.body(builder, this);
    return index;
  }
}
