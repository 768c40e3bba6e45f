/**
 * Fourier transforms along short axes of known extent as products with their matrix. A transform is
 * linear in the real and imaginary parts of its operand, whether that is padded, cut or completed by
 * symmetry; the rows of its matrix are the transforms of the unit vectors. The work is quadratic,
 * but that of a matrix product, which suits the short frames of sound models.
 */
import type { CoreOpAttrs } from "../../semantics/core-ops.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { unitRoot } from "../../semantics/unit-roots.ts";
import type { Graph, ValueId } from "../graph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** `elements`: of the largest matrix that is made. */
export function expandFourier(graph: Graph, limits: { readonly elements: number }): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => (site.node.op === "dft" ? expand(site, site.node.attrs, limits) : undefined),
  });
}

type DftAttrs = CoreOpAttrs["dft"];

function expand(
  { b, old, node, inputs }: RebuildSite,
  attrs: DftAttrs,
  limits: { readonly elements: number },
): readonly ValueId[] | undefined {
  const x = inputs[0]!;
  const { axis } = attrs;
  const shape = b.shapeOf(x);
  const result = old.values[node.outputs[0]!]!.type.shape;
  const [extent, parts, bins, components] = [
    shape[axis],
    shape.at(-1),
    result[axis],
    result.at(-1),
  ].map((d) => constantValue(d!));
  const length = constantValue(attrs.length);
  if (extent === undefined || bins === undefined || length === undefined || length < 1) {
    return undefined;
  }
  // What is cut must not be multiplied by zero: it may be infinite.
  const used = Math.min(extent, givenBins(attrs, length));
  const sizes = [used, parts!, bins, components!] as const;
  if (sizes.reduce((n, d) => n * d, 1) > limits.elements) return undefined;
  const taken = used === extent ? x : b.sliceAxis(x, axis, 0, used);
  const dtype = b.dtypeOf(x);
  const accumulator = dtype === "f64" ? "f64" : "f32";
  const matrix = b.constant(fromRef(matrixOf(attrs, sizes, accumulator)));
  const lines = shape.slice(0, -1).map((_, i) => `a${i}`);
  const along = (label: string, last: string) => [
    ...lines.map((name, i) => (i === axis ? label : name)),
    last,
  ];
  const product = b.node("contract", [b.cast(taken, accumulator), matrix], {
    lhs: along("from", "part"),
    rhs: ["from", "part", "bin", "component"],
    output: along("bin", "component"),
    accumulator,
  });
  return [b.cast(product, dtype)];
}

/** Entries of the axis that count: the others follow by symmetry, or lie past the length. */
function givenBins({ inverse, onesided }: DftAttrs, length: number): number {
  return inverse && onesided ? Math.floor(length / 2) + 1 : length;
}

/**
 * The transform of every unit vector: [entries, parts, bins, components]. A one-sided inverse takes bin j for its mirror image too, whose imaginary part is the opposite.
 */
function matrixOf(
  attrs: DftAttrs,
  sizes: readonly [number, number, number, number],
  dtype: "f32" | "f64",
): RefTensor {
  const [entries, parts, bins, components] = sizes;
  const { inverse } = attrs;
  const n = constantValue(attrs.length)!;
  const wave = (at: number): readonly [number, number] => unitRoot(inverse ? at : -at, n);
  const given = givenBins(attrs, n);
  const scale = inverse ? 1 / n : 1;
  const data = new Float64Array(entries * parts * bins * components);
  const column = (j: number, part: number, k: number): readonly [number, number] => {
    const [c, s] = wave(j * k);
    return part === 0 ? [c, s] : [0 - s, c];
  };
  for (let at = 0; at < data.length; at += components) {
    const k = Math.floor(at / components) % bins;
    const part = Math.floor(at / (components * bins)) % parts;
    const j = Math.floor(at / (components * bins * parts));
    const own = column(j, part, k);
    const mirrored = n - j >= given && n - j < n ? column(n - j, part, k) : [0, 0];
    const sign = part === 0 ? 1 : -1;
    for (let c = 0; c < components; c++) data[at + c] = scale * (own[c]! + sign * mirrored[c]!);
  }
  return refTensor(dtype, sizes, data);
}
