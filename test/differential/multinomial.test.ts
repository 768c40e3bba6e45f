/** Multinomial: the same draws everywhere, in the proportions that the log-probabilities say. */
import { expect, test } from "vitest";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";

const shares = [0.1, 0, 0.6, 0.3];
const samples = 4096;

function model(seed: number): Uint8Array {
  return writeModel({
    opset: 22,
    inputs: [{ name: "x", dtype: "f32", shape: [2, shares.length] }],
    outputs: [{ name: "y", dtype: "i64", shape: [2, samples] }],
    nodes: [
      {
        op: "Multinomial",
        inputs: ["x"],
        outputs: ["y"],
        attributes: { seed, sample_size: BigInt(samples), dtype: 7n },
      },
    ],
  });
}

// The second row is the first, not normalised, and turned around.
const logs = Float32Array.from([
  ...shares.map(Math.log),
  ...[...shares].reverse().map((p) => Math.log(p) + 50),
]);

test.each([1, 2])("seed %i", async (seed) => {
  const feeds = { x: { type: "float32", dims: [2, shares.length], data: logs } } as const;
  const drawn = await Promise.all(
    [oracleRuntime, wavetileRuntime("wasm", 1)].map(async (runtime) => {
      const session = await runtime.open(model(seed));
      const { y } = await session.run(feeds);
      await session.release();
      return Array.from(y!.data as BigInt64Array, Number);
    }),
  );
  expect(drawn[1]).toEqual(drawn[0]);
  for (const [row, expected] of [shares, [...shares].reverse()].entries()) {
    const own = drawn[0]!.slice(row * samples, (row + 1) * samples);
    for (const [c, p] of expected.entries()) {
      const share = own.filter((v) => v === c).length / samples;
      // Five standard deviations of a share.
      expect(Math.abs(share - p)).toBeLessThanOrEqual(5 * Math.sqrt((p * (1 - p)) / samples));
    }
  }
});
