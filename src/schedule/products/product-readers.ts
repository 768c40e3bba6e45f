/**
 * What may become part of a product's kernel: regions of one statement that alone read its one result. In: the
 * regions of a program. Out: their numbers, where each may run behind its product without that being stored.
 */
import type { AnalysedProgram } from "../../region/form-region.ts";
import { isContraction } from "../../region/groups.ts";
import type { Region, Statement } from "../../region/nest.ts";
import { regionsThatRead } from "../../region/regions-of.ts";

export class ProductReaders {
  readonly #regions: readonly Region[];
  readonly #analysed: AnalysedProgram;
  readonly #readers: ReadonlyMap<string, readonly number[]>;

  constructor(regions: readonly Region[], analysed: AnalysedProgram) {
    this.#regions = regions;
    this.#analysed = analysed;
    this.#readers = regionsThatRead(regions);
  }

  /** The readers of a product, if all are as wanted; none where others read it too, or it is no product. */
  of(at: number, isWanted: (reader: Statement) => boolean): readonly number[] {
    const { uses, order, program } = this.#analysed;
    const [statement, ...others] = this.#regions[at]!.statements;
    if (!statement || others.length > 0 || !isContraction(statement)) return [];
    const item = uses.statementAt.get(statement.name);
    const [write, ...more] = statement.writes;
    if (item === undefined || !write || more.length > 0) return [];
    const { tensor } = write;
    if (uses.aliased.has(tensor) || uses.writers.get(tensor)?.length !== 1) return [];
    const found = this.#readers.get(tensor) ?? [];
    const items = found.map((reader) => {
      const [own, ...rest] = this.#regions[reader]!.statements;
      return rest.length === 0 && isWanted(own!) ? uses.statementAt.get(own!.name) : undefined;
    });
    const readers = uses.readers.get(tensor) ?? [];
    if (!readers.every((r) => items.includes(r) && r < program.items.length)) return [];
    // Of the product nothing is stored: it only reads its operands as late as its reader stands.
    const isInOrder = items.every(
      (i) => i !== undefined && order.overtaken(new Set([i]), [item], i) === undefined,
    );
    return isInOrder ? found : [];
  }
}
