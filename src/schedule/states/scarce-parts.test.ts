import { expect, it } from "vitest";
import { scarceShare, withoutScarce } from "./scarce-parts.ts";

it("finds the share of sizes, by their logarithms, that leave a thread without a part", () => {
  expect(scarceShare({ leastExtent: 1, extent: 4096, unit: 16 }, 2)).toBeCloseTo(
    Math.log(17) / Math.log(4096),
  );
  expect(scarceShare({ leastExtent: 1, extent: 8, unit: 1 }, 2)).toBeCloseTo(1 / 3);
  expect(scarceShare({ leastExtent: 64, extent: 4096, unit: 16 }, 2)).toBe(0);
  expect(scarceShare({ leastExtent: 1, extent: 8, unit: 16 }, 2)).toBe(1);
});

it("says nothing of a known extent, whose price tells already", () => {
  expect(scarceShare({ leastExtent: 1, extent: 1, unit: 1 }, 2)).toBe(0);
});

it("leaves what is dearer at the largest sizes and feeds all threads at the small ones", () => {
  const rows = { name: "rows", priceNs: 100, share: 0.34 };
  const columns = { name: "columns", priceNs: 110, share: 0 };
  const dear = { name: "dear", priceNs: 140, share: 0 };
  const alone = { name: "alone", priceNs: 150, share: undefined };
  const names = (...states: (typeof rows | typeof alone)[]) =>
    withoutScarce(states, (s) => s.share, 2).map((s) => s.name);
  expect(names(rows, columns, alone)).toEqual(["columns", "alone"]);
  expect(names(rows, dear, alone)).toEqual(["rows", "dear", "alone"]);
  expect(names(rows, alone)).toEqual(["rows", "alone"]);
});
