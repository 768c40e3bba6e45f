/** Convolutions of 3 x 3 by Winograd's minimal filtering (filtering.ts), for callers who give their own phases. */
import { filter, four, type Transform, two } from "../filtering.ts";
import { type RuleRow, row, sampled } from "../rule-row.ts";

const filtering = (name: string, transform: Transform): RuleRow =>
  sampled(
    row(
      name,
      "reassociates",
      "(convolution[?a] ?x ?w)",
      (site) => {
        const { padLow } = site.attrs<"convolution">("a");
        const { dtype, shape: data } = site.type("x");
        const [x, w, result] = [site.id("x"), site.id("w"), site.rootType().shape];
        return filter(site, { x, w, dtype, padLow, data, result }, transform);
      },
      "constant(w); computed(x); float(x); ungrouped(a); threeByThree(a, x, w)",
    ),
    "#three-by-three",
  );

export const winograd: readonly RuleRow[] = [
  filtering("winograd-two", two),
  filtering("winograd-four", four),
];
