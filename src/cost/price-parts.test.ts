import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { coreFigures } from "./core-figures.ts";
import { priceCode } from "./mix-price.ts";
import { priceParts } from "./price-parts.ts";
import { randomWork } from "./samples.test-support.ts";

it.each(["wasm", "x64-avx512"])("adds up to the price, and no part is negative, on %s", (name) => {
  const core = coreFigures(targets.get(name)!);
  const rng = new Rng(11);
  for (let i = 0; i < 200; i++) {
    const work = randomWork(rng);
    const parts = Object.values(priceParts(work, core));
    for (const ns of parts) expect(ns).toBeGreaterThanOrEqual(-1e-6);
    const sum = parts.reduce((a, b) => a + b, 0);
    expect(sum).toBeCloseTo(priceCode(work, core).total, 6);
  }
});

it("names memory where bytes are all there is", () => {
  const core = coreFigures(targets.get("wasm")!);
  const level = { bytes: 1e9, scattered: 0, written: 0, jumps: 0 };
  const parts = priceParts({ runs: [], traffic: [[level]] }, core);
  expect(parts.memory).toBeGreaterThan(0);
  expect(parts.instructions).toBe(0);
});
