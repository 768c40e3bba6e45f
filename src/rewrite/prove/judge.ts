/**
 * Judges of an e-graph by numbers: every e-node of a class must compute what the others do. With the
 * references in the declared types for identities that are exact, in f64 with a tolerance for those that
 * reassociate, and modulo a prime, where sums and products have no rounding at all, for those made of
 * ring operations. What is no ring operation is some function there, equal for equal operands.
 */
import type { EGraph, NodeId } from "../../egraph/index.ts";
import type { Graph } from "../../graph/graph.ts";
import { isComposite } from "../../graph/op-table.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { numbersOf, type RefTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import type { Facts } from "../facts.ts";
import { callOf, constantOp, isScalarOp, type Leaf, leafOp, type TermCall } from "../terms.ts";
import { runGraphOfCall } from "./run-call.ts";

export interface Judge {
  /** The value of a leaf as the judge counts. */
  leaf(value: RefTensor): RefTensor | undefined;
  call(call: TermCall, inputs: readonly RefTensor[]): RefTensor | undefined;
  agree(a: RefTensor, b: RefTensor): string | undefined;
  /** Whether the elements of folded constants are values of this judge. */
  readonly readsConstants: boolean;
}

/** A disagreement within a class, or undefined; "open" where some e-node is beyond the judge. */
export function judgeGraph(
  egraph: EGraph<Facts>,
  graph: Graph,
  values: ReadonlyMap<string, RefTensor>,
  judge: Judge,
): string | undefined | "open" {
  return new Judgement(egraph, graph, values, judge).run();
}

class Judgement {
  readonly #egraph: EGraph<Facts>;
  readonly #graph: Graph;
  readonly #values: ReadonlyMap<string, RefTensor>;
  readonly #judge: Judge;
  readonly #known = new Map<NodeId, RefTensor>();

  constructor(
    egraph: EGraph<Facts>,
    graph: Graph,
    values: ReadonlyMap<string, RefTensor>,
    judge: Judge,
  ) {
    this.#egraph = egraph;
    this.#graph = graph;
    this.#values = values;
    this.#judge = judge;
  }

  run(): string | undefined | "open" {
    const egraph = this.#egraph;
    const roots = egraph.classes();
    const nodes = roots.flatMap((root) => egraph.nodes(root).map((node) => ({ root, node })));
    // The import's nodes come first: their values are what later nodes are held to.
    nodes.sort((a, b) => a.node - b.node);
    const done = new Set<NodeId>();
    for (const constants of this.#judge.readsConstants ? [true] : [false, true]) {
      for (let changed = true; changed; ) {
        changed = false;
        for (const { root, node } of nodes) {
          if (done.has(node)) continue;
          const isConstant = egraph.opName(node) === constantOp;
          if (isConstant && !constants) continue;
          const value = this.#valueOf(node);
          if (value === "wait") continue;
          if (value === undefined) return "open";
          done.add(node);
          changed = true;
          const known = this.#known.get(root);
          if (!known) this.#known.set(root, value);
          else if (!isConstant || this.#judge.readsConstants) {
            const fault = this.#judge.agree(known, value);
            if (fault !== undefined) return `${this.#spell(node)}: ${fault}`;
          }
        }
      }
    }
    return undefined;
  }

  #valueOf(node: NodeId): RefTensor | undefined | "wait" {
    const egraph = this.#egraph;
    const op = egraph.opName(node);
    const payload = egraph.payloadValue(node);
    if (op === leafOp) {
      const { name } = this.#graph.values[(payload as Leaf).value]!;
      const value = this.#values.get(name);
      if (value) return this.#judge.leaf(value);
      const weight = this.#graph.weights.find((w) => w.value === (payload as Leaf).value);
      return weight?.source.kind === "inline"
        ? this.#judge.leaf(toRef(weight.source.tensor))
        : undefined;
    }
    if (op === constantOp) return this.#judge.leaf(toRef(payload as Tensor));
    const inputs = egraph.children(node).map((child) => this.#known.get(child));
    if (inputs.some((v) => v === undefined)) return "wait";
    const key = egraph.vocabulary.payloadKey(egraph.payload(node));
    const call = callOf(op, key, payload)!;
    // Folding knows what the function is: two results may be one constant.
    const isFolded = egraph.data(node).value !== undefined && !ring.has(call.op);
    if (isFolded && !this.#judge.readsConstants) return undefined;
    return this.#judge.call(call, inputs as readonly RefTensor[]);
  }

  #spell(node: NodeId): string {
    const egraph = this.#egraph;
    const key = egraph.vocabulary.payloadKey(egraph.payload(node));
    return `${egraph.opName(node)}[${key}]`;
  }
}

function difference(
  a: RefTensor,
  b: RefTensor,
  same: (x: number, y: number) => boolean,
): string | undefined {
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) {
    return `${a.dtype}[${a.shape}] and ${b.dtype}[${b.shape}]`;
  }
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [Number(a.data[i]), Number(b.data[i])];
    if (!same(x, y)) return `element ${i} is ${x} and ${y}`;
  }
  return undefined;
}

/** In the declared types, to the last bit but for the sign of zero and what kind of NaN. */
export const exactJudge: Judge = {
  leaf: (value) => value,
  call: runGraphOfCall,
  agree: (a, b) => difference(a, b, (x, y) => x === y || (Number.isNaN(x) && Number.isNaN(y))),
  readsConstants: true,
};

/** In f64: equal up to a tolerance relative to the largest element, or to `least` where all are smaller. */
export function closeJudge(tolerance: number, least = 1e-3): Judge {
  return {
    leaf: (value) => value,
    call: runGraphOfCall,
    agree: (a, b) => {
      if (a.data.length === 0) return difference(a, b, () => true);
      let scale = least;
      for (const x of a.data)
        if (Number.isFinite(Number(x))) scale = Math.max(scale, Math.abs(Number(x)));
      return difference(a, b, (x, y) => {
        // Real numbers have neither: what divides by zero or overflows may do so in another place.
        if (!Number.isFinite(x) && !Number.isFinite(y)) return true;
        return x === y || Math.abs(x - y) <= tolerance * scale;
      });
    },
    readsConstants: true,
  };
}

/** Below 2^20, so that sums of thousands of products of two residues are exact in float64. */
const prime = 1048573;

function residue(x: number): number {
  const rest = x % prime;
  return rest < 0 ? rest + prime : rest;
}

function product(a: number, b: number): number {
  return (a * b) % prime;
}

function inverseOf(x: number): number {
  let [result, base, power] = [1, residue(x), prime - 2];
  for (; power > 0; power = Math.floor(power / 2)) {
    if (power % 2 === 1) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

/** A dyadic number as a residue. */
function fromNumber(x: number): number | undefined {
  if (!Number.isFinite(x)) return undefined;
  let [numerator, halvings] = [x, 0];
  while (!Number.isInteger(numerator)) {
    numerator *= 2;
    halvings++;
    if (halvings > 60) return undefined;
  }
  let value = residue(Number(BigInt(numerator) % BigInt(prime)));
  const half = inverseOf(2);
  for (let i = 0; i < halvings; i++) value = product(value, half);
  return value;
}

const linear: ReadonlySet<string> = new Set([
  "add",
  "sub",
  "mul",
  "neg",
  "contract",
  "convolution",
  "transposedConvolution",
  "reshape",
  "transpose",
  "broadcast",
  "slice",
  "reverse",
  "concat",
  "pad",
  "gather",
]);

const ring: ReadonlySet<string> = new Set([...linear, "div", "reciprocal"]);

function mapped(tensor: RefTensor, f: (x: number) => number): RefTensor {
  return { ...tensor, data: numbersOf(tensor).map(f) };
}

/** Some function of the operand, different for each op. */
function someFunction(op: string, x: number): number {
  let hash = 17;
  for (const letter of op) hash = (hash * 31 + letter.charCodeAt(0)) % prime;
  return product(product(x + hash, x + 7919), x + 104729 + hash);
}

function isSum({ op, attrs }: TermCall): boolean {
  return op === "reduce" && (attrs as { readonly kind?: string }).kind === "sum";
}

function moduloCall(call: TermCall, inputs: readonly RefTensor[]): RefTensor | undefined {
  if (isComposite(call.op)) return undefined;
  if (linear.has(call.op) || isSum(call)) {
    if (call.op === "gather") return undefined;
    const result = runGraphOfCall(call, inputs);
    return result && mapped(result, residue);
  }
  if (call.op === "reciprocal")
    return invertible(inputs[0]!) ? mapped(inputs[0]!, inverseOf) : undefined;
  if (call.op === "div") {
    if (!invertible(inputs[1]!)) return undefined;
    return moduloCall({ op: "mul", attrs: {} }, [inputs[0]!, mapped(inputs[1]!, inverseOf)]);
  }
  if (isScalarOp(call.op) && inputs.length === 1)
    return mapped(inputs[0]!, (x) => someFunction(call.op, x));
  return undefined;
}

function invertible(tensor: RefTensor): boolean {
  return numbersOf(tensor).every((x) => x !== 0);
}

/** @param interpreted operators that the rule knows more of than that they are functions */
export function moduloJudge(interpreted: ReadonlySet<string>): Judge {
  return {
    leaf: (value) => {
      if (dtypes[value.dtype].kind !== "float") return undefined;
      const residues = Array.from(numbersOf(value), fromNumber);
      if (residues.some((x) => x === undefined)) return undefined;
      return { ...value, dtype: "f64", data: Float64Array.from(residues as number[]) };
    },
    call: (call, inputs) => {
      if (interpreted.has(call.op) && !ring.has(call.op) && !isSum(call)) return undefined;
      const { accumulator } = call.attrs as { readonly accumulator?: string };
      const attrs = accumulator === undefined ? call.attrs : { ...call.attrs, accumulator: "f64" };
      return moduloCall({ op: call.op, attrs }, inputs);
    },
    agree: (a, b) => difference(a, b, (x, y) => x === y),
    readsConstants: false,
  };
}
