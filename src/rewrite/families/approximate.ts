/**
 * Rules that give other numbers, each with a bound of what an element may be off, relative to the
 * largest element or to 1, whichever is more; of a product with a weight of low rank: relative to a row
 * of x times the longest column. No phase has them unless it is asked for (rewrite-model.ts),
 * and what they may have added up to goes with the graph to the verdict.
 */
import type { NodeId } from "../../egraph/index.ts";
import { fromRef, numbersOf, refTensor } from "../../semantics/tensor.ts";
import { factorThin, type Matrix } from "../low-rank.ts";
import { type RuleRow, row, sampled } from "../rule-row.ts";
import type { Site } from "../site.ts";

/** Most of a column that the factors of a weight may miss, as a share of its longest column. */
const missedShare = 1e-3;

/** x W as (x U) V, where the elements of W are at hand and a thin product comes close enough. */
function thinProduct(site: Site): NodeId | undefined {
  const { lhs, rhs, output, accumulator } = site.attrs<"contract">("a");
  const [summed, free] = rhs as readonly [string, string];
  const isLinear =
    rhs.length === 2 && lhs.includes(summed) && !lhs.includes(free) && !output.includes(summed);
  const weight = isLinear && output.includes(free) ? site.elements("w") : undefined;
  if (!weight) return undefined;
  const [rows, columns] = weight.shape as readonly [number, number];
  const found = factorThin({ rows, columns, data: numbersOf(weight) }, missedShare);
  if (!found) return undefined;
  const tensor = ({ rows, columns, data }: Matrix) =>
    site.constant(fromRef(refTensor(weight.dtype, [rows, columns], [...data])));
  const thin = "rank";
  const middle = [...lhs.filter((label) => label !== summed), thin];
  const inner = { lhs, rhs: [summed, thin], output: middle, accumulator };
  const narrow = site.add("contract", [site.id("x"), tensor(found.left)], inner);
  const outer = { lhs: middle, rhs: [thin, free], output, accumulator };
  return site.add("contract", [narrow, tensor(found.right)], outer);
}

export const approximate: readonly RuleRow[] = [
  {
    ...sampled(
      row(
        "low-rank-product",
        "approximates",
        "(contract[?a] ?x ?w)",
        thinProduct,
        "constant(w); computed(x); float(x)",
      ),
      "#thin-product",
    ),
    errorBound: 1e-2,
  },
  {
    ...sampled(
      row(
        "gelu-by-tanh",
        "approximates",
        "(gelu[?g] ?x)",
        "(gelu[?h] ?x)",
        "isExactGelu(g); h = geluForm(tanh)",
      ),
      "#gelu",
    ),
    errorBound: 4.74e-4,
  },
  {
    ...sampled(
      row(
        "gelu-by-sigmoid",
        "approximates",
        "(gelu[?g] ?x)",
        "(mul ?x (sigmoid (mul ?x (constant[?k]))))",
        "isExactGelu(g); k = number(1.702, x)",
      ),
      "#gelu",
    ),
    errorBound: 0.0204,
  },
];
