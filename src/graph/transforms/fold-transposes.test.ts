/** Transposes in front of products: the transformed graph against the graph, what is left, and the programs. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  refTensor,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { allowing } from "../../target/allowing.ts";
import { targets } from "../../target/index.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph, NodeOf, ValueId } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { verifyGraph } from "../verify.ts";
import { eliminateDeadCode } from "./clean.ts";
import { foldTransposes, type ProductOrders } from "./fold-transposes.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const orders: ProductOrders = {
  eitherWay: new Set<DType>(["f16", "bf16", "f32"]),
  alongDepth: new Set<DType>(["u8", "i8"]),
  lineBytes: 16,
  copiesMatrices: true,
};

function folded(graph: Graph, given: ProductOrders = orders): Graph {
  const made = eliminateDeadCode(foldTransposes(graph, given).graph);
  expect(verifyGraph(made)).toEqual([]);
  return made;
}

const opsOf = (graph: Graph): readonly string[] => graph.nodes.map((n) => n.op);

/** Small integers, whose sums are exact in any order. */
function integers(graph: Graph, rng: Rng): readonly RefTensor[] {
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    const extents = shape.map((d) => constantValue(d)!);
    const count = extents.reduce((a, b) => a * b, 1);
    return refTensor(
      dtype,
      extents,
      Array.from({ length: count }, () => rng.integer(-3, 3)),
    );
  });
}

/** A product of random labels, its operands moved and mapped on the way from random inputs. */
class RandomProduct {
  readonly b = new GraphBuilder("g");
  readonly rng: Rng;
  readonly #extents = new Map<string, number>();

  constructor(seed: number) {
    this.rng = new Rng(seed);
  }

  graph(): Graph {
    const labels = (kind: string, least: number): readonly string[] =>
      Array.from({ length: this.rng.integer(least, 2) }, (_, i) => `${kind}${i}`);
    const [batch, left, right, depth] = [
      ...[labels("b", 0), labels("i", 0), labels("j", 0)],
      labels("k", 1),
    ];
    for (const label of [...batch!, ...left!, ...right!, ...depth!])
      this.#extents.set(label, this.rng.integer(1, 4));
    const lhs = this.#shuffled([...batch!, ...left!, ...depth!]);
    const rhs = this.#shuffled([...batch!, ...right!, ...depth!]);
    const output = this.#shuffled([...batch!, ...left!, ...right!]);
    const plans = [lhs, rhs].map((own) => this.#plan(own));
    const inputs = plans.map(({ dtype, shape }, i) =>
      this.b.input(`x${i}`, tensorType(dtype, ...shape)),
    );
    const operands = plans.map((plan, i) => plan.steps.reduce((x, step) => step(x), inputs[i]!));
    const attrs = { lhs, rhs, output, accumulator: "f32" } as const;
    const product = this.b.node("contract", operands, attrs);
    const last = this.rng.integer(0, 1) === 0 ? product : this.#transposed(product);
    return this.b.finish(this.rng.integer(0, 4) === 0 ? [last, operands[0]!] : [last]);
  }

  #shuffled<T>(items: readonly T[]): readonly T[] {
    const left = [...items];
    return items.map(() => left.splice(this.rng.integer(0, left.length - 1), 1)[0]!);
  }

  #transposed(x: ValueId): ValueId {
    return this.b.transpose(x, this.#shuffled(this.b.shapeOf(x).map((_, axis) => axis)));
  }

  /** Steps that end with axes of the labels, planned from there to the input. */
  #plan(labels: readonly string[]) {
    let shape = labels.map((label) => this.#extents.get(label)!);
    let dtype: DType = "f32";
    const steps: ((x: ValueId) => ValueId)[] = [];
    for (let n = this.rng.integer(0, 5); n > 0; n--) {
      const to = shape;
      const kind = this.rng.integer(0, 6);
      if (kind <= 2) {
        const permutation = this.#shuffled(shape.map((_, axis) => axis));
        shape = permutation.map((_, axis) => to[permutation.indexOf(axis)]!);
        steps.unshift((x) => this.b.transpose(x, permutation));
      } else if (kind === 3) {
        const wide = shape.filter((extent) => extent !== 1);
        const at = this.rng.integer(0, wide.length);
        shape = [...wide.slice(0, at), 1, ...wide.slice(at)];
        steps.unshift((x) => this.b.reshape(x, to));
      } else if (kind === 4) {
        const ones = new Array<number>(this.rng.integer(0, shape.length)).fill(1);
        const isFirst = this.rng.integer(0, 1) === 0;
        steps.unshift((x) => {
          const two = this.b.reshape(this.b.scalarLike(2, x), ones);
          return isFirst ? this.b.mul(two, x) : this.b.mul(x, two);
        });
      } else if (dtype === "f32") {
        dtype = "f16";
        steps.unshift((x) => this.b.cast(x, "f32"));
      } else {
        steps.unshift((x) => this.b.apply("relu", x));
      }
    }
    return { shape, dtype, steps };
  }
}

describe("transposes in front of products", () => {
  it("are labels: the same results for all ranks, batches, orders, and what maps elements", () => {
    let [found, left] = [0, 0];
    const transposes = (graph: Graph) => graph.nodes.filter((n) => n.op === "transpose").length;
    fc.assert(
      fc.property(fc.nat(), fc.boolean(), (seed, copiesMatrices) => {
        const product = new RandomProduct(seed);
        const graph = product.graph();
        const after = folded(graph, {
          ...orders,
          copiesMatrices,
          lineBytes: copiesMatrices ? 16 : 2,
        });
        const inputs = integers(graph, product.rng);
        expect(take(runGraph(after, inputs))).toEqual(take(runGraph(graph, inputs)));
        const [before, now] = [graph, after].map((g) => transposes(eliminateDeadCode(g)));
        if (now! < before!) found++;
        else if (before! > 0) left++;
      }),
      { numRuns: 400 },
    );
    expect(found).toBeGreaterThan(40);
    expect(left).toBeGreaterThan(10);
  });

  /** `x`, moved as told, times `y`. */
  function product(
    dtype: DType,
    x: readonly number[],
    equation: string,
    y: readonly number[],
    permutation: readonly number[] = [1, 0],
  ): Graph {
    const b = new GraphBuilder("g");
    const [left, right] = [x, y].map((shape, i) => b.input(`x${i}`, tensorType(dtype, ...shape)));
    const turned = b.transpose(left!, permutation);
    const isShort = dtype === "u8";
    const operands = [turned, right!].map((v) => (isShort ? b.cast(v, "i32") : v));
    return b.finish([b.einsum(equation, operands[0]!, operands[1]!, isShort ? "i32" : "f32")]);
  }

  it("are labels behind what maps each element, and axes of one element", () => {
    const b = new GraphBuilder("mapped");
    const x = b.input("x", tensorType("f16", 1, 64, 32));
    const right = b.input("y", tensorType("f32", 64, 16));
    const turned = b.transpose(x, [0, 2, 1]);
    const scaled = b.applyNumber("mul", b.reshape(b.cast(turned, "f32"), [32, 64]), 0.5);
    const after = folded(b.finish([b.matMul(scaled, right)]));
    expect(opsOf(after)).toEqual(["cast", "mul", "reshape", "contract"]);
    const { attrs } = after.nodes.at(-1) as NodeOf<"contract">;
    expect([attrs.lhs, attrs.rhs]).toEqual([
      ["k", "i"],
      ["k", "j"],
    ]);
  });

  it("stay where neighbours would be problems of a batch", () => {
    const turned = (permutation: readonly number[]) =>
      opsOf(
        folded(product("bf16", [32, 64, 8], "b i k, b k j -> b i j", [8, 64, 16], permutation)),
      );
    expect(turned([2, 0, 1])).toEqual(["transpose", "contract"]);
  });

  it("stay where lines would no longer begin at multiples of what a copy moves", () => {
    const lines = (columns: number, dtype: DType) =>
      opsOf(folded(product(dtype, [64, columns], "i k, k j -> i j", [64, 16])));
    expect(lines(24, "bf16")).toEqual(["contract"]);
    expect(lines(25, "bf16")).toEqual(["transpose", "contract"]);
    expect(lines(26, "f32")).toEqual(["transpose", "contract"]);
  });

  it("stay where elements are multiplied along the depth and lie so by them", () => {
    const bytes = (equation: string) => opsOf(folded(product("u8", [64, 64], equation, [64, 16])));
    expect(bytes("i k, k j -> i j")).toEqual(["transpose", "cast", "cast", "contract"]);
    expect(bytes("k i, k j -> i j")).toEqual(["cast", "cast", "contract"]);
    const isEither = { ...orders, eitherWay: new Set<DType>(["u8"]), alongDepth: new Set<DType>() };
    const either = folded(product("u8", [64, 64], "i k, k j -> i j", [64, 16]), isEither);
    expect(opsOf(either)).not.toContain("transpose");
  });

  it("stay where extents are open, and in types that no unit multiplies", () => {
    expect(opsOf(folded(product("f64", [64, 32], "i k, k j -> i j", [64, 16])))).toContain(
      "transpose",
    );
    const b = new GraphBuilder("open");
    const n = b.symbol("N", 1, 64);
    const [x, y] = [b.input("x", tensorType("f32", 32, n)), b.input("y", tensorType("f32", 32, 8))];
    const graph = b.finish([b.matMul(b.transpose(x, [1, 0]), y)]);
    expect(opsOf(folded(graph))).toEqual(["transpose", "contract"]);
  });

  it("stay for others that read them, and products then read what is in memory anyway", () => {
    const shared = (isInput: boolean) => {
      const b = new GraphBuilder("shared");
      const x = b.input("x", tensorType("bf16", 64, 64));
      const y = b.input("y", tensorType("bf16", 64, 64));
      const turned = b.transpose(isInput ? x : b.apply("exp", x), [1, 0]);
      return folded(b.finish([b.matMul(turned, y), b.apply("relu", turned)]));
    };
    const inputsOf = (graph: Graph) => {
      const contract = graph.nodes.find((n) => n.op === "contract")!;
      return contract.inputs.map((id) => graph.values[id]!.name);
    };
    expect(inputsOf(shared(true))).toEqual(["x", "y"]);
    expect(inputsOf(shared(false))).toEqual([expect.not.stringMatching(/^[xy]$/), "y"]);
  });
});

describe("programs of products of transposed operands", () => {
  const h200 = targets.get("h200")!;
  type Make = (b: GraphBuilder, dtype: DType) => readonly ValueId[];

  function compiled(make: Make, dtype: DType, target = h200): CompiledModel {
    const b = new GraphBuilder("g");
    const graph = b.finish([...make(b, dtype)]);
    return take(compileModel({ graph, weights: noWeights }, { target }));
  }

  /** What the regions of a program do, in order. */
  function ways({ regions }: CompiledModel): readonly string[] {
    return regions.map(({ scheduled: { schedule, attention } }) => {
      if (attention) return "attend";
      const by = schedule.directives.find((d) => d.kind === "multiply")?.by;
      return by ?? "loops";
    });
  }

  const inputs = (b: GraphBuilder, dtype: DType, ...shapes: readonly (readonly number[])[]) =>
    shapes.map((shape, i) => b.input(`x${i}`, tensorType(dtype, ...shape)));
  const square = [1024, 1024] as const;
  const heads = [4, 8, 512, 64] as const;
  const spellings: Readonly<Record<string, Make>> = {
    "the left operand": (b, dtype) => {
      const [x, y] = inputs(b, dtype, square, square);
      return [b.matMul(b.transpose(x!, [1, 0]), y!)];
    },
    "the right operand": (b, dtype) => {
      const [x, y] = inputs(b, dtype, square, square);
      return [b.matMul(x!, b.transpose(y!, [1, 0]))];
    },
    "both operands": (b, dtype) => {
      const [x, y] = inputs(b, dtype, square, square);
      return [b.matMul(b.transpose(x!, [1, 0]), b.transpose(y!, [1, 0]))];
    },
    "the right operand of heads": (b, dtype) => {
      const [x, y] = inputs(b, dtype, heads, heads);
      return [b.matMul(x!, b.transpose(y!, [0, 1, 3, 2]))];
    },
    "heads beside each other": (b, dtype) => {
      const [x, y] = inputs(b, dtype, [4, 512, 8, 64], [4, 512, 8, 64]);
      return [b.matMul(b.transpose(x!, [0, 2, 1, 3]), b.transpose(y!, [0, 2, 3, 1]))];
    },
    "the result": (b, dtype) => {
      const [x, y] = inputs(b, dtype, square, square);
      return [b.transpose(b.matMul(x!, y!), [1, 0])];
    },
    "the result of heads": (b, dtype) => {
      const [x, y] = inputs(b, dtype, heads, [4, 8, 64, 512]);
      return [b.transpose(b.matMul(x!, y!), [0, 2, 1, 3])];
    },
  };
  const inAllTypes = ["the left operand", "the result"];
  const cases = Object.entries(spellings).flatMap(([name, make]) =>
    (inAllTypes.includes(name) ? (["bf16", "f16", "f32"] as const) : (["bf16"] as const)).map(
      (dtype) => ({ name, dtype, make }),
    ),
  );

  it.each(cases)("are one kernel: $name in $dtype", ({ make, dtype }) => {
    const names = ways(compiled(make, dtype));
    expect(names).toHaveLength(1);
    // Threads multiply f32 in loops too, where that is as fast.
    expect(names[0]).toMatch(dtype === "f32" ? /fma|loops/ : /mma/);
  });

  it("leave a result at one place where others read it as it is", () => {
    const both: Make = (b, dtype) => {
      const [x, y] = inputs(b, dtype, square, square);
      const result = b.matMul(x!, y!);
      return [result, b.transpose(result, [1, 0])];
    };
    expect(ways(compiled(both, "bf16"))).toEqual(["wgmma", "loops"]);
  });

  it("multiply tf32 along the depth: what lies so only by a transpose is turned first", () => {
    const tf32 = allowing(h200, ["tf32"]);
    expect(ways(compiled(spellings["the left operand"]!, "f32", tf32))).toHaveLength(3);
    expect(ways(compiled(spellings["the right operand"]!, "f32", tf32))).toEqual(["wgmma"]);
  });

  it("are attention where they are its products", () => {
    const attention: Make = (b, dtype) => {
      const [q, k, v] = inputs(b, dtype, [2, 512, 8, 64], [2, 512, 8, 64], [2, 512, 8, 64]);
      const [queries, values] = [q!, v!].map((x) => b.transpose(x, [0, 2, 1, 3]));
      const keys = b.transpose(k!, [0, 2, 3, 1]);
      const scores = b.matMul(queries!, b.applyNumber("mul", keys, 0.125));
      const weights = b.node("softmax", [scores], { axis: 3 });
      return [b.transpose(b.matMul(weights, values!), [0, 2, 1, 3])];
    };
    expect(ways(compiled(attention, "bf16"))).toEqual(["attend"]);
  });

  /** Outputs of the program for a GPU, thread by thread. */
  function ran(graph: Graph, inputs: readonly RefTensor[]): readonly ArrayLike<number>[] {
    const made = take(compileModel({ graph, weights: noWeights }, { target: h200 }));
    const contents = new Map(
      graph.inputs.map((id, i) => [graph.values[id]!.name, tensorBytes(fromRef(inputs[i]!))]),
    );
    const how = { parameters: {}, contents, threads: 1, seed: 2 };
    const outcome = runProgram(made.plan.program, how);
    if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
    return graph.outputs.map((id) => {
      const { name, type } = graph.values[id]!;
      const extents = type.shape.map((d) => constantValue(d)!);
      const bytes = outcome.contents.get(name)!.slice();
      return numbersOf(toRef(tensorFromBytes(type.dtype, extents, bytes)));
    });
  }

  it("give the same results: random ones of few elements", () => {
    // Zeros have no sign here: sums begin with one or with their first term.
    const unsigned = (all: readonly ArrayLike<number>[]) =>
      all.map((x) => Array.from(x, (n) => n + 0));
    for (let seed = 1; seed <= 6; seed++) {
      const product = new RandomProduct(seed);
      const graph = product.graph();
      const inputs = integers(graph, product.rng);
      const want = take(runGraph(graph, inputs)).map(numbersOf);
      expect(unsigned(ran(graph, inputs))).toEqual(unsigned(want));
    }
  });
});
