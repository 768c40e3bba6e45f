/** Windows of a cosine at the sizes where a period is one sample or none, against onnxruntime. */
import { expect, it } from "vitest";
import { load } from "../../src/commands/library/load.ts";
import { openPeer } from "../../src/commands/library/onnxruntime.ts";
import { tensor } from "../../src/commands/library/tensor.ts";
import { unwrap, WavetileError } from "../../src/commands/library/wavetile-error.ts";
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";

const ops = ["HannWindow", "HammingWindow", "BlackmanWindow"] as const;

const modelOf = (op: string, size: number, periodic: boolean, type = 1n): Uint8Array =>
  writeModel({
    opset: 17,
    inputs: [],
    outputs: ["y"],
    weights: { n: tensor("i64", [], BigInt64Array.of(BigInt(size))) },
    nodes: [
      {
        op,
        inputs: ["n"],
        outputs: ["y"],
        attributes: { periodic: periodic ? 1n : 0n, output_datatype: type },
      },
    ],
  });

async function found(model: Uint8Array): Promise<readonly number[]> {
  const loaded = await load(model, { threads: 1 });
  const { y } = loaded.run({});
  await loaded.dispose();
  return Array.from(y!.data as Float32Array);
}

it.each(ops)("%s of few samples is onnxruntime's", async (op) => {
  for (const periodic of [true, false]) {
    for (const size of [1, 2, 3, 6]) {
      const model = modelOf(op, size, periodic);
      const peer = unwrap(await openPeer(model, 1));
      const { y } = unwrap(await peer.run({}));
      await peer.release();
      const wanted = Array.from(y!.data as Float32Array);
      // A symmetric window of one sample is 0 / 0 in the definition.
      expect(wanted.some(Number.isNaN)).toBe(size === 1 && !periodic);
      const own = await found(model);
      expect(own).toHaveLength(size);
      own.forEach((v, i) => {
        if (Number.isNaN(wanted[i])) expect(v).toBeNaN();
        else expect(v).toBeCloseTo(wanted[i]!, 6);
      });
    }
  }
});

it.each(ops)("%s of no samples is empty, as its definition has it", async (op) => {
  for (const periodic of [true, false]) expect(await found(modelOf(op, 0, periodic))).toEqual([]);
});

it("one sample that is no number is refused as an integer (ONX009)", async () => {
  expect(await found(modelOf("HannWindow", 1, true, 6n))).toEqual([0]);
  const refused = load(modelOf("HannWindow", 1, false, 6n));
  await expect(refused).rejects.toBeInstanceOf(WavetileError);
  await expect(refused).rejects.toMatchObject({ diagnostics: [{ code: "ONX009" }] });
});
