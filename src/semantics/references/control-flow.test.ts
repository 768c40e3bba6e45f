import { describe, expect, it } from "vitest";
import { ok } from "../../support/diagnostic.ts";
import { type RefTensor, refTensor } from "../tensor.ts";
import { loop } from "./control-flow.ts";
import type { ReferenceContext } from "./reference.ts";

/** A body that adds 1 to what it carries, goes on, and keeps `width` elements of each trip. */
function context(width: number): ReferenceContext<unknown> {
  const kept = refTensor("f32", [width], new Array<number>(width).fill(0));
  return {
    runSubgraph: (_, inputs) => {
      const carried = inputs[2] as RefTensor;
      const next = refTensor("f32", [], [Number(carried.data[0]) + 1]);
      return ok([inputs[1]!, next, ...(width > 0 ? [kept] : [])]);
    },
    subgraphOutputTypes: () => [],
  };
}

const attrs = { body: undefined, carried: 1, maxTrips: 2 ** 31 - 1 } as never;
const trips = (count: number) => [
  refTensor("i64", [], [count]),
  refTensor("bool", [], [1]),
  refTensor("f32", [], [0]),
];

describe("the trips of a loop", () => {
  it("are all made where its count is known", () => {
    const [last] = loop(attrs, trips(20_000), context(0));
    expect(last!.data[0]).toBe(20_000);
  });

  it("have an end where only its condition ends it (RUN007)", () => {
    const endless = () => loop(attrs, trips(2 ** 31 - 1), context(0));
    expect(endless).toThrow(/RUN007: .* made more trips than it may, 16384/);
  });

  it("keep no more elements than a run can afford (RUN007)", () => {
    const wide = () => loop(attrs, trips(20_000), context(2 ** 20));
    expect(wide).toThrow(/RUN007: .* kept more elements than it may, 16777216/);
  });
});
