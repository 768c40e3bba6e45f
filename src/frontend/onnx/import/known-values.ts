/**
 * Values of a run that are known although nodes compute them, and those that would have to be. A value is
 * named by where it stands: by its own name in the model's graph, and in a body or function that joins that
 * graph by the first output of the node around it, which copy of the body it is, and its own name there.
 * Values of bodies that stay bodies have no name: they differ from trip to trip.
 */
import { constantValue } from "../../../semantics/index-expr.ts";
import type { Tensor } from "../../../semantics/tensor.ts";
import type { Assembly } from "./assembly.ts";
import { type Bound, constantOperand } from "./operand.ts";

/** No name of a model holds it: they are text. */
const separator = "\0";

export function placeWithin(place: string, node: string, copy: number): string {
  return `${place}${node}${separator}${copy}${separator}`;
}

/** The node of the model's own graph whose result a value is, or in whose body it stands. */
export function outermost(name: string): string {
  return name.split(separator, 1)[0]!;
}

/** Elements up to which a value that is computed may be made known. */
const mostElements = 64;

export interface KnownOptions {
  /** Values that stand for what nodes would compute. */
  readonly computed?: Readonly<Record<string, Tensor>>;
  /** Values that the import is for; it ends when it has met all of them. */
  readonly outputs?: readonly string[];
  readonly onUnknown?: (name: string) => void;
}

export class KnownValues {
  readonly #assembly: Assembly;
  readonly #computed: ReadonlyMap<string, Tensor>;
  readonly #wanted: ReadonlySet<string>;
  readonly #onUnknown: (name: string) => void;
  readonly #found = new Map<string, Bound>();
  readonly #nameOf = new Map<Bound, string>();

  constructor(assembly: Assembly, { computed, outputs, onUnknown }: KnownOptions) {
    this.#assembly = assembly;
    this.#computed = new Map(Object.entries(computed ?? {}));
    this.#wanted = new Set(outputs);
    this.#onUnknown = onUnknown ?? (() => {});
  }

  /** What `name` stands for from here on: what was computed for it, or what its node gave. */
  take(place: string, name: string, result: Bound): Bound {
    const full = `${place}${name}`;
    if (this.#wanted.has(full)) this.#found.set(full, result);
    const known = this.#computed.get(full);
    if (known) return constantOperand(known, name);
    const isOurs = result.kind === "value" && result.home === this.#assembly;
    if (isOurs && !this.#nameOf.has(result)) this.#nameOf.set(result, full);
    return result;
  }

  /** Told what a node is refused without knowing, where it is small and has a name. */
  ask(bound: Bound): void {
    const name = this.#nameOf.get(bound);
    if (name !== undefined && isSmall(bound)) this.#onUnknown(name);
  }

  /** Whether all that the import is for was met. */
  get isDone(): boolean {
    return this.#wanted.size > 0 && this.#found.size === this.#wanted.size;
  }

  find(name: string): Bound | undefined {
    return this.#found.get(name);
  }
}

function isSmall(bound: Bound): boolean {
  if (bound.kind !== "value") return false;
  const { shape } = bound.type;
  const count = shape.reduce<number>((n, e) => n * (constantValue(e) ?? Infinity), 1);
  return shape.length <= 1 && count <= mostElements;
}
