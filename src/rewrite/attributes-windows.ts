/**
 * Attributes that make two convolutions of one operand alike: a filter with zeros around it computes the
 * same behind as much more padding, so the smaller window takes on the larger one's. See attributes.ts.
 */
import type { NodeId } from "../egraph/index.ts";
import type { ConvolutionAttrs } from "../semantics/core-ops.ts";
import { constantValue, type IndexExpr, toIndex } from "../semantics/index-expr.ts";
import type { AttributeFunction } from "./attributes.ts";
import { isOne } from "./axes.ts";
import type { Site } from "./site.ts";

interface Enlargement {
  readonly window: ConvolutionAttrs;
  /** Zeros before and behind each spatial axis of the filter. */
  readonly low: readonly number[];
  readonly high: readonly number[];
}

/** The first convolution beside the matched one whose window holds its window. */
function enlargementOf(site: Site, [a, w]: readonly string[]): Enlargement | undefined {
  const own = site.attrs<"convolution">(a!);
  const kernel = site.shape(w!).slice(2);
  const { graph } = site.match;
  for (const user of site.users("x")) {
    if (graph.opName(user) !== "convolution") continue;
    const [x, v] = graph.children(user) as [NodeId, NodeId];
    const { constant, type } = graph.data(v);
    if (x !== site.id("x") || !constant || !type) continue;
    const window = graph.payloadValue(user) as ConvolutionAttrs;
    const found = enlarge([own, kernel], [window, type.shape.slice(2)]);
    if (found) return found;
  }
  return undefined;
}

type Window = readonly [attrs: ConvolutionAttrs, kernel: readonly IndexExpr[]];

function enlarge([own, kernel]: Window, [window, larger]: Window): Enlargement | undefined {
  const alike = (["strides", "dilations"] as const).every(
    (name) => own[name].join() === window[name].join(),
  );
  if (!alike || own.groups !== window.groups || kernel.length !== larger.length) return undefined;
  const grown = own.dilations.map((dilation, i) => {
    const [k, l] = [constantValue(kernel[i]!), constantValue(larger[i]!)];
    const low = (window.padLow[i]! - own.padLow[i]!) / dilation;
    const high = (window.padHigh[i]! - own.padHigh[i]!) / dilation;
    const whole = [low, high].every((n) => Number.isInteger(n) && n >= 0);
    return whole && k !== undefined && l === k + low + high ? { low, high } : undefined;
  });
  if (grown.some((g) => g === undefined)) return undefined;
  const [low, high] = [grown.map((g) => g!.low), grown.map((g) => g!.high)];
  return [...low, ...high].some((n) => n > 0) ? { window, low, high } : undefined;
}

const aroundFilter = (amounts: readonly number[]) => [0, 0, ...amounts].map(toIndex);

export const windowAttributes: Readonly<Record<string, AttributeFunction>> = {
  enlargedWindow: (site, names) => enlargementOf(site, names)?.window,
  /** The shape of a single picture of the data, to which an offset is repeated. */
  onePicture: (site, [x, c]) => {
    const shape = site.shape(x!);
    const own = site.shape(c!);
    if (own.length === shape.length && !isOne(own[0]!)) return undefined;
    return { shape: shape.map((d, i) => (i === 0 ? toIndex(1) : d)) };
  },
  spatialAxes: () => ({ axes: [2, 3] }),
  enlargingZeros: (site, names) => {
    const found = enlargementOf(site, names);
    if (!found) return undefined;
    return { low: aroundFilter(found.low), high: aroundFilter(found.high), mode: "constant" };
  },
};
