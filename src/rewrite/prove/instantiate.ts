/**
 * A rule's left side as a graph with random types, attributes and leaves. The pattern is walked from
 * its root: a maker chooses attributes and operand types for the wanted result, variables that occur
 * again keep what they were. Conditions of the rule suggest what a leaf must be for them to hold, which is
 * followed often, but not always: a rule without the guard that it needs must meet its counterexample.
 */
import { type NodePattern, type Pattern, parsePattern } from "../../egraph/index.ts";
import type { AnyAttrs } from "../../graph/attr-schema.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, OpAttrs, OpKind, TensorType, ValueId } from "../../graph/graph.ts";
import { isComposite, isOpKind } from "../../graph/op-table.ts";
import { expandComposites } from "../../graph/transforms/expand-composites.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { constantValue, toIndex } from "../../semantics/index-expr.ts";
import { roundNumber } from "../../semantics/scalar-meaning.ts";
import { elementCount } from "../../semantics/shape.ts";
import { fromRef, type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { attempt } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Rng } from "../../support/rng.ts";
import { conditions, type Suggestion } from "../conditions.ts";
import { clausesOf, type RuleRow } from "../rule-row.ts";
import { isScalarOp, knownElements, mapOp } from "../terms.ts";
import { makeOperands, randomScalarOp, randomShape, type Want } from "./makers.ts";
import { samples } from "./samples.ts";

export interface Instance {
  readonly graph: Graph;
  /** Elements of the inputs and of the stored weights, by the name of the value. */
  readonly values: ReadonlyMap<string, RefTensor>;
}

export interface InstanceOptions {
  /** Element type of values that nothing else decides. */
  readonly dtype: DType;
  /** Elements that floating-point sums and products of a few keep exactly. */
  readonly dyadic: boolean;
  /** Infinities, NaN and zeros of both signs among the elements. */
  readonly specials: boolean;
}

type Build = (b: GraphBuilder) => ValueId;

interface Typed {
  readonly type: Want;
  readonly build: Build;
}

/** Thrown nowhere: a pattern that cannot be typed with the numbers drawn gives undefined. */
export function instantiate(
  row: RuleRow,
  rng: Rng,
  options: InstanceOptions,
): Instance | undefined {
  return new Instantiation(row, rng, options).run();
}

class Instantiation {
  readonly #row: RuleRow;
  readonly #rng: Rng;
  readonly #options: InstanceOptions;
  readonly #suggestions: ReadonlyMap<string, readonly Suggestion[]>;
  readonly #variables = new Map<string, Want>();
  readonly #payloads = new Map<string, { readonly op: string; readonly attrs: AnyAttrs }>();
  readonly #values = new Map<string, RefTensor>();

  constructor(row: RuleRow, rng: Rng, options: InstanceOptions) {
    this.#row = row;
    this.#rng = rng;
    this.#options = options;
    const suggestions = new Map<string, Suggestion[]>();
    for (const { name, call, args } of clausesOf(row.where)) {
      const suggest = name === undefined ? conditions[call]?.suggest : undefined;
      if (!suggest) continue;
      const list = suggestions.get(args[0]!) ?? [];
      suggestions.set(args[0]!, [...list, suggest(args)]);
    }
    this.#suggestions = suggestions;
  }

  run(): Instance | undefined {
    const { sample } = this.#row;
    if (sample?.startsWith("#")) return this.#runSample(sample.slice(1));
    const texts = [this.#row.sample ?? this.#row.left, ...(this.#row.beside ?? [])];
    const roots: Typed[] = [];
    for (const text of texts) {
      const typed = this.#type(parsePattern(text), undefined);
      if (!typed) return undefined;
      roots.push(typed);
    }
    const b = new GraphBuilder("instance");
    const leaves = this.#leaves(b);
    if (!leaves) return undefined;
    const built = attempt(() => b.finish(roots.map((root) => root.build(b))));
    if (!built.ok) return undefined;
    // A sample that is a composite stands for its definition.
    const samples = this.#row.sample !== undefined && isComposite(built.value.nodes.at(-1)!.op);
    const graph = samples ? definitionOf(built.value) : built.value;
    return { graph, values: this.#values };
  }

  /** A sample that is a graph: every leaf is drawn when it is asked for. */
  #runSample(name: string): Instance | undefined {
    const write = samples[name];
    invariant(write, () => `no sample is named "${name}"`);
    const b = new GraphBuilder("instance");
    const leaf =
      (kind: "input" | "weight") => (id: string, shape: readonly number[], dtype?: DType) => {
        const type = { dtype: dtype ?? this.#options.dtype, shape };
        this.#values.set(id, this.#elements(type, undefined));
        return kind === "input" ? b.input(id, typeOf(type)) : b.weight(id, typeOf(type));
      };
    const { dtype } = this.#options;
    const given = (id: string, shape: readonly number[], elements: readonly number[]) => {
      this.#values.set(id, refTensor(dtype, shape, elements));
      return b.weight(id, typeOf({ dtype, shape }));
    };
    const leaves = { input: leaf("input"), weight: leaf("weight"), given };
    const scope = { b, rng: this.#rng, dtype, ...leaves };
    const built = attempt(() => b.finish(write(scope)));
    return built.ok ? { graph: built.value, values: this.#values } : undefined;
  }

  #type(pattern: Pattern, want: Want | undefined): Typed | undefined {
    if (pattern.kind === "node") return this.#typeNode(pattern, want);
    const { name } = pattern;
    const known = this.#variables.get(name);
    if (known && want && !sameWant(known, want)) return undefined;
    const type = known ?? want ?? { dtype: this.#options.dtype, shape: randomShape(this.#rng) };
    this.#variables.set(name, type);
    return { type, build: () => this.#built.get(name)! };
  }

  readonly #built = new Map<string, ValueId>();

  #typeNode(pattern: NodePattern, want: Want | undefined): Typed | undefined {
    const decided = this.#decided(pattern, want);
    const op = decided?.op ?? pattern.op;
    if (!isOpKind(op)) return undefined;
    const made = makeOperands({
      rng: this.#rng,
      op,
      ...(want && { out: want }),
      operands: pattern.children.map((child) => this.#known(child)),
      ...(decided?.attrs && { attrs: decided.attrs }),
      dtype: this.#options.dtype,
    });
    if (!made || made.operands.length !== pattern.children.length) return undefined;
    const { payload } = pattern;
    if (payload.kind === "variable") this.#payloads.set(payload.name, { op, attrs: made.attrs });
    const children: Typed[] = [];
    for (const [i, child] of pattern.children.entries()) {
      const typed = this.#type(child, made.operands[i]!);
      if (!typed) return undefined;
      children.push(typed);
    }
    const type = resultOf(
      op,
      children.map((c) => c.type),
      made.attrs,
    );
    if (!type || (want && !sameWant(type, want))) return undefined;
    const attrs = made.attrs as OpAttrs[OpKind];
    return {
      type,
      build: (b) =>
        b.node<OpKind>(
          op,
          children.map((c) => c.build(b)),
          attrs,
        ),
    };
  }

  /** Op and attributes as far as the pattern or an earlier binding decides them. */
  #decided(
    { op, payload, children }: NodePattern,
    want: Want | undefined,
  ): { readonly op: string; readonly attrs?: AnyAttrs } | undefined {
    if (isScalarOp(op)) return { op, attrs: {} };
    const bound = payload.kind === "variable" ? this.#payloads.get(payload.name) : undefined;
    if (bound) return bound;
    if (op !== mapOp) return { op };
    const dtype =
      want?.dtype === "bool" ? this.#options.dtype : (want?.dtype ?? this.#options.dtype);
    return { op: randomScalarOp(this.#rng, children.length, dtype), attrs: {} };
  }

  /** The type of a pattern whose variables and attributes are all bound. */
  #known(pattern: Pattern): Want | undefined {
    if (pattern.kind === "variable") return this.#variables.get(pattern.name);
    const { op, payload } = pattern;
    const bound = payload.kind === "variable" ? this.#payloads.get(payload.name) : undefined;
    const call = isScalarOp(op) ? { op, attrs: {} } : bound;
    const children = pattern.children.map((child) => this.#known(child));
    if (!call || !isOpKind(call.op) || children.some((c) => c === undefined)) return undefined;
    return resultOf(call.op, children as readonly Want[], call.attrs);
  }

  /** Inputs come first, so kinds are drawn before values are made. */
  #leaves(b: GraphBuilder): true | undefined {
    const drawn = [...this.#variables].map(([name, type]) => ({
      name,
      type,
      ...this.#draw(name, type),
    }));
    if (drawn.some(({ fits }) => !fits)) return undefined;
    for (const { name, type, kind, value } of drawn) {
      if (kind !== "input") continue;
      this.#built.set(name, b.input(name, typeOf(type)));
      this.#values.set(name, value);
    }
    for (const { name, type, kind, value } of drawn) {
      if (kind === "input") continue;
      if (kind === "constant") this.#built.set(name, b.constant(fromRef(value), name));
      else {
        this.#built.set(name, b.weight(name, typeOf(type)));
        this.#values.set(name, value);
      }
    }
    return true;
  }

  #draw(
    name: string,
    type: Want,
  ): { kind: "input" | "weight" | "constant"; value: RefTensor; fits: boolean } {
    const rng = this.#rng;
    const follows = rng.uniform() < 0.9;
    const suggestions = follows ? (this.#suggestions.get(name) ?? []) : [];
    const elements = suggestions.find((s) => s.kind === "elements");
    const few = elementCount(type.shape) <= knownElements;
    const value = this.#elements(type, elements?.values);
    const wantsWeight = suggestions.some((s) => s.kind === "weight");
    const fits = !suggestions.some((s) => s.kind === "scalar") || elementCount(type.shape) === 1;
    if (elements && few) return { kind: "constant", value, fits };
    const draw = rng.uniform();
    if (wantsWeight) return { kind: draw < 0.5 && few ? "constant" : "weight", value, fits };
    if (draw < 0.7) return { kind: "input", value, fits };
    return { kind: draw < 0.85 || !few ? "weight" : "constant", value, fits };
  }

  #elements({ dtype, shape }: Want, choices: readonly number[] | undefined): RefTensor {
    const rng = this.#rng;
    const { kind, min } = dtypes[dtype];
    const one = (): number => {
      if (choices)
        return Math.max(kind === "float" ? -Infinity : min, roundFor(dtype, rng.pick(choices)));
      if (kind === "bool") return rng.integer(0, 1);
      if (kind !== "float") return rng.integer(Math.max(min, -9), 9);
      if (this.#options.specials && rng.uniform() < 0.15) {
        return rng.pick([0, -0, Infinity, -Infinity, Number.NaN, 1, -1]);
      }
      if (this.#options.dyadic) return rng.integer(-8, 8) / 4;
      return 4 * rng.uniform() - 2;
    };
    const values = Array.from({ length: elementCount(shape) }, one);
    const rounded = kind === "float" ? values.map((x) => roundNumber(dtype, x)) : values;
    return refTensor(dtype, shape, rounded);
  }
}

/** The outermost composite alone: a rule may speak of those inside. */
function definitionOf(graph: Graph): Graph {
  const outer = graph.nodes.at(-1)!.op;
  return expandComposites(graph, { select: ({ op }) => op === outer }).graph;
}

function roundFor(dtype: DType, value: number): number {
  return isFloatDType(dtype) ? value : Math.trunc(value);
}

function sameWant(a: Want, b: Want): boolean {
  return a.dtype === b.dtype && a.shape.join() === b.shape.join();
}

function typeOf({ dtype, shape }: Want): TensorType {
  return { dtype, shape: shape.map(toIndex) };
}

function resultOf(op: OpKind, operands: readonly Want[], attrs: AnyAttrs): Want | undefined {
  const b = new GraphBuilder("type");
  const found = attempt(() => {
    const ids = operands.map((o, i) => b.input(`x${i}`, typeOf(o)));
    return b.typeOf(b.node<OpKind>(op, ids, attrs as OpAttrs[OpKind]));
  });
  if (!found.ok) return undefined;
  return { dtype: found.value.dtype, shape: found.value.shape.map((d) => constantValue(d)!) };
}
